"""Commits without a change data feed, sorted by the way to tell changed rows from carried ones.

A rewrite carries rows from a removed file into an added one. Row ids tell such rows from changed
ones, and without row ids equal values do. A commit that only adds or only removes rows carries
none, and neither does one that hides rows by deletion vectors. Nothing here reads a data file.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum

from puredelta.errors import InvalidRequestError, Message
from puredelta.log.changes.change_feed import ChangeFiles, find_change_files
from puredelta.log.replay.commit_files import Commit
from puredelta.protocol.actions.actions import Add, AddChangeFile, CommitInfo, Metadata
from puredelta.protocol.features.properties import TableProperties
from puredelta.protocol.table.change_data import ChangeType
from puredelta.protocol.table.row_tracking import (
    ROW_COMMIT_VERSION_COLUMN,
    ROW_ID_COLUMN,
    RowTrackingColumns,
)


class Deduplication(Enum):
    """The values of ``deduplicationMode``, in Spark's words."""

    NONE = "none"
    """All rows of rewritten files."""
    DROP_CARRYOVERS = "dropCarryovers"
    """Without the rows that a commit only carried into another file."""
    NET_CHANGES = "netChanges"
    """The first and the last state of each row in the range."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedChanges:
    """The options of ``CHANGES`` beside the range."""

    deduplication: Deduplication = Deduplication.DROP_CARRYOVERS
    compute_updates: bool = False
    """Whether the two halves of an update are ``update_preimage`` and ``update_postimage``."""
    key_columns: tuple[str, ...] = ()
    """Columns that identify a row of a table without row ids."""


@dataclass(slots=True, kw_only=True)
class SortedChanges:
    """The files of a range of commits, by the way to find their changed rows."""

    exact: ChangeFiles = field(default_factory=ChangeFiles)
    """Every row is a change."""
    by_row_id: ChangeFiles = field(default_factory=ChangeFiles)
    """The row id identifies the rows of a commit."""
    by_value: ChangeFiles = field(default_factory=ChangeFiles)
    """Carried rows are equal; keys identify the others, if there are keys."""
    updates_by_value: ChangeFiles = field(default_factory=ChangeFiles)
    """Carried rows are equal; every other row is one half of an update."""


def sort_changes(
    commits: Iterable[Commit],
    timestamps_ms: Mapping[int, int],
    metadata: Metadata,
    tracked: RowTrackingColumns | None,
    wanted: WantedChanges,
) -> SortedChanges:
    """Sort the file actions of commits.

    ``timestamps_ms`` has the time of every version, ``metadata`` is in force at the first commit,
    and ``tracked`` names the columns by which row ids are read.

    Raises:
        InvalidRequestError: an option needs the identity of rows, and at some version nothing
            tells it (DELTA_CHANGELOG_REQUIRES_ROW_TRACKING).
    """
    found = SortedChanges()
    for commit in commits:
        metadata = commit.metadata[-1] if commit.metadata else metadata
        has_ids = tracked is not None and tracked == _columns_of(metadata)
        is_net = wanted.deduplication is Deduplication.NET_CHANGES
        files = find_change_files([_unrecorded(commit) if is_net else commit], timestamps_ms)
        if is_net:
            chosen = _net_way(found, files, commit, wanted, has_ids=has_ids)
        else:
            has_feed = TableProperties.of(metadata.configuration).enable_change_data_feed
            chosen = _way(found, files, commit, wanted, has_feed=has_feed, has_ids=has_ids)
        chosen.extend(files)
    return found


def _way(
    found: SortedChanges,
    files: ChangeFiles,
    commit: Commit,
    wanted: WantedChanges,
    *,
    has_feed: bool,
    has_ids: bool,
) -> ChangeFiles:
    removes = any(file.change is ChangeType.DELETE for file in files.whole)
    restores = any(change.before is not None for change in files.vector_changes)
    adds = restores or any(file.change is ChangeType.INSERT for file in files.whole)
    may_carry = removes and adds and wanted.deduplication is not Deduplication.NONE
    may_update = wanted.compute_updates and adds and (removes or bool(files.vector_changes))
    if files.recorded or has_feed or not (may_carry or may_update):
        return found.exact
    if has_ids and _all_numbered(files):
        return found.by_row_id
    if not wanted.compute_updates or wanted.key_columns:
        return found.by_value
    return found.updates_by_value if _only_updates(commit) else found.by_value


def _net_way(
    found: SortedChanges,
    files: ChangeFiles,
    commit: Commit,
    wanted: WantedChanges,
    *,
    has_ids: bool,
) -> ChangeFiles:
    if wanted.key_columns or files.are_none:
        return found.by_value
    if has_ids and _all_numbered(files):
        return found.by_row_id
    raise _no_identity("deduplicationMode=netChanges", commit.version)


def _all_numbered(files: ChangeFiles) -> bool:
    whole = (file.file for file in files.whole)
    marked = (change.file for change in files.vector_changes)
    return all(_is_numbered(add) for adds in (whole, marked) for add in adds)


def _is_numbered(add: Add) -> bool:
    return add.base_row_id is not None and add.default_row_commit_version is not None


def _columns_of(metadata: Metadata) -> RowTrackingColumns | None:
    names = metadata.configuration
    row_id, version = names.get(ROW_ID_COLUMN), names.get(ROW_COMMIT_VERSION_COLUMN)
    if not (row_id and version and TableProperties.of(names).enable_row_tracking):
        return None
    return RowTrackingColumns(row_id=row_id, row_commit_version=version)


def _unrecorded(commit: Commit) -> Commit:
    """Return a commit without its change files, which do not name their rows."""
    kept = tuple(a for a in commit.actions if not isinstance(a, AddChangeFile))
    return Commit(version=commit.version, modified_ms=commit.modified_ms, actions=kept)


_WITHOUT_UPDATES = frozenset(
    {
        "WRITE",
        "STREAMING UPDATE",
        "DELETE",
        "TRUNCATE",
        "RESTORE",
        "CLONE",
        "CONVERT",
        "CREATE TABLE AS SELECT",
        "REPLACE TABLE",
        "REPLACE TABLE AS SELECT",
        "CREATE OR REPLACE TABLE",
        "CREATE OR REPLACE TABLE AS SELECT",
    }
)
_UPDATED = "numTargetRowsUpdated"
_NOT_UPDATED = ("numTargetRowsInserted", "numTargetRowsDeleted")


def _only_updates(commit: Commit) -> bool:
    """Return whether all changes of a commit are updates; False if none is.

    The operation in its history entry tells, except for a MERGE that does both.
    """
    info = commit.commit_info or CommitInfo()
    counts = info.operation_metrics or {}
    if info.operation == "UPDATE":
        return True
    if info.operation in _WITHOUT_UPDATES:
        return False
    if info.operation == "MERGE":
        if counts.get(_UPDATED) == "0":
            return False
        if _UPDATED in counts and all(counts.get(name) == "0" for name in _NOT_UPDATED):
            return True
    raise _no_identity("computeUpdates", commit.version)


def _no_identity(option: str, version: int) -> InvalidRequestError:
    return InvalidRequestError(
        Message.CHANGELOG_REQUIRES_ROW_TRACKING, option=option, version=version
    )
