"""The files whose rows a stream over a table delivers.

A stream delivers the rows of the table once, then the rows that every later commit adds. It
cannot take rows back: a commit that removes rows is an error, or skipped if an option says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from puredelta.errors import ErrorCode, InvalidRequestError
from puredelta.log.changes.stream_items import (
    StreamBatch,
    StreamItem,
    admitted_one_by_one,
    count_actions,
)
from puredelta.log.changes.stream_limits import Admission
from puredelta.log.changes.stream_schema import StreamedTable
from puredelta.log.files.file_table import FileTable
from puredelta.log.replay.commit_files import Commit
from puredelta.protocol.actions.actions import Add, Metadata, Remove


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamRules:
    """What to do about commits that remove rows."""

    ignore_deletes: bool = False
    """Commits that only remove rows deliver nothing."""
    ignore_changes: bool = False
    """Rewritten files are delivered whole, unchanged rows included."""
    skip_change_commits: bool = False
    """Commits that remove any row deliver nothing at all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowStream:
    """The rows that commits added to a table."""

    table: StreamedTable
    rules: StreamRules

    def require_metadata(self, metadata: Metadata, version: int) -> None:
        """Refuse a version whose files the stream cannot read; errors as `StreamedTable` has."""
        self.table.require_columns(metadata, version)

    def items(self, commit: Commit) -> tuple[StreamItem, ...]:
        """Return the places of a commit.

        Raises:
            InvalidRequestError: the commit removes rows (DELTA_SOURCE_TABLE_IGNORE_CHANGES,
                DELTA_SOURCE_IGNORE_DELETE).
        """
        return count_actions(commit.version, _delivered(commit, self.rules, self.table.root_uri))

    def admitted(
        self, items: Sequence[StreamItem], admission: Admission
    ) -> tuple[Sequence[StreamItem], bool]:
        """Return the items of one commit that a batch takes, and whether these are all."""
        return admitted_one_by_one(items, admission)


def batch_adds(batch: StreamBatch) -> list[Add]:
    """Return the files of a batch of rows."""
    initial = () if batch.initial is None else batch.initial.adds()
    later = (a for _, actions in batch.commits for a in actions if isinstance(a, Add))
    return [*initial, *later]


def batch_files(batch: StreamBatch) -> FileTable:
    """Return the files of a batch of rows as columns."""
    if batch.initial is not None and not any(actions for _, actions in batch.commits):
        return batch.initial
    return FileTable.of(batch_adds(batch))


def _delivered(commit: Commit, rules: StreamRules, root_uri: str) -> Sequence[Add]:
    adds = [a for a in commit.actions if isinstance(a, Add) and a.data_change]
    removes = [a for a in commit.actions if isinstance(a, Remove) and a.data_change]
    if not removes:
        return adds
    if rules.skip_change_commits:
        return ()
    if rules.ignore_changes or (rules.ignore_deletes and not adds):
        return adds
    raise _changed(commit, removes[0], has_adds=bool(adds), root_uri=root_uri)


def _changed(
    commit: Commit, remove: Remove, *, has_adds: bool, root_uri: str
) -> InvalidRequestError:
    if has_adds:
        info = commit.commit_info
        what = "a data update" if info is None else f"a data update (for example {info.operation})"
        return InvalidRequestError(
            f"Detected {what} in the source table at version {commit.version}. This is currently "
            "not supported. If this is going to happen regularly and you are okay to skip "
            "changes, set the option 'skipChangeCommits' to 'true'. If you would like the data "
            "update to be reflected, please restart this query with a fresh checkpoint "
            f"directory. The source table can be found at path {root_uri}.",
            code=ErrorCode.SOURCE_TABLE_IGNORE_CHANGES,
            version=commit.version,
            path=root_uri,
        )
    return InvalidRequestError(
        f"Detected deleted data (for example {remove.path}) from streaming source at version "
        f"{commit.version}. This is currently not supported. If you'd like to ignore deletes, set "
        f"the option 'ignoreDeletes' to 'true'. The source table can be found at path {root_uri}.",
        code=ErrorCode.SOURCE_IGNORE_DELETE,
        version=commit.version,
        path=root_uri,
    )
