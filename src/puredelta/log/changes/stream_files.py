"""The files that a stream over a table delivers between two versions.

A stream delivers the rows of the table once, then the rows that every later commit adds. It
cannot take rows back: a commit that removes rows is an error, or skipped if an option says so.
The files between two versions are the same at every call.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from puredelta.errors import ErrorCode, InvalidRequestError
from puredelta.log.changes.file_rows import ReadableFile, list_files, readable_files
from puredelta.log.changes.stream_schema import StreamedTable
from puredelta.log.replay.commit_files import Commit
from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.actions.actions import Add, Remove


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

    def whole(self, log: TableLog, version: int) -> tuple[ReadableFile, ...]:
        """Return the files of a whole version, with which a stream begins."""
        snapshot = log.snapshot(version=version)
        self.table.require_columns(snapshot.metadata, version)
        return list_files(snapshot)

    def between(self, log: TableLog, *, after: int, through: int) -> tuple[ReadableFile, ...]:
        """Return the files of the commits after version ``after``.

        Raises:
            InvalidRequestError: a commit removes rows (SOURCE_TABLE_IGNORE_CHANGES,
                SOURCE_IGNORE_DELETE) or changes the columns (see
                `StreamedTable.require_columns`).
            CorruptTableError: a commit is missing in the log.
        """
        adds: list[Add] = []
        for commit in log.read_commits(after, through=through):
            self.table.require_readable(commit)
            adds += _delivered(commit, self.rules, self.table.root_uri)
        return readable_files(adds, self.table.root_uri)


def _delivered(commit: Commit, rules: StreamRules, root_uri: str) -> Iterator[Add]:
    adds = [a for a in commit.actions if isinstance(a, Add) and a.data_change]
    removes = [a for a in commit.actions if isinstance(a, Remove) and a.data_change]
    if not removes:
        yield from adds
        return
    if rules.skip_change_commits:
        return
    if rules.ignore_changes or (rules.ignore_deletes and not adds):
        yield from adds
        return
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
