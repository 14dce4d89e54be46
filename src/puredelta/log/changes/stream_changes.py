"""The change data feed as a stream delivers it between two versions of a table.

A stream without a starting version first delivers all rows of the table as inserts of its newest
version. After that, or after the starting version, it delivers the changes of every commit.
Nothing here reads a data file or a deletion vector, and commits are read one by one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from puredelta.log.changes.change_files import (
    ChangedFile,
    ChangeFiles,
    VectorChange,
    find_change_files,
    with_change_values,
)
from puredelta.log.changes.change_range import commit_time, require_feed
from puredelta.log.changes.file_rows import ReadableFile
from puredelta.log.changes.stream_schema import StreamedTable, metadata_of
from puredelta.log.replay.history import file_times
from puredelta.log.replay.segment import list_log
from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.actions.actions import Add, DeletionVectorDescriptor, Metadata
from puredelta.protocol.actions.paths import absolute_uri
from puredelta.protocol.schema.schema_json import parse_schema
from puredelta.protocol.table.change_data import ChangeType, require_no_change_columns


@dataclass(slots=True, kw_only=True)
class ChangeStream:
    """The changes that commits made to the rows of a table."""

    table: StreamedTable
    _last: tuple[int, Metadata] | None = field(default=None, init=False)
    """The last delivered version and its metadata, which the next batch needs."""

    def __post_init__(self) -> None:
        require_no_change_columns(
            parse_schema(self.table.metadata.schema_string).names, was_enabled=False
        )

    def whole(self, log: TableLog, version: int) -> tuple[ReadableFile, ...]:
        """Return all rows of a version as inserts of that version.

        Raises:
            InvalidRequestError: the feed is off at this version (DELTA_MISSING_CHANGE_DATA).
        """
        snapshot = log.snapshot(version=version)
        require_feed(snapshot.metadata, version, start=version, end=version)
        self.table.require_columns(snapshot.metadata, version)
        self._last = (version, snapshot.metadata)
        inserted = (
            ChangedFile(
                file=add,
                change=ChangeType.INSERT,
                version=version,
                timestamp_ms=snapshot.timestamp_ms,
            )
            for add in snapshot.files.adds()
        )
        return tuple(_whole_file(file, snapshot.root_uri) for file in inserted)

    def between(self, log: TableLog, *, after: int, through: int) -> tuple[ReadableFile, ...]:
        """Return the changes of the commits after version ``after``.

        Raises:
            InvalidRequestError: the feed was off at some version (DELTA_MISSING_CHANGE_DATA),
                or the columns changed (see `StreamedTable.require_columns`).
            CorruptTableError: a commit is missing in the log, or lacks what the feed needs.
        """
        start, files = after + 1, list[ReadableFile]()
        times = file_times(list_log(log.store).commits)
        metadata: Metadata | None = None
        for commit in log.read_commits(after, through=through):
            own = metadata_of(commit)
            if metadata is None and not own:
                metadata = self._metadata_at(log, start)
                require_feed(metadata, start, start=start, end=through)
                self.table.require_columns(metadata, start)
            for metadata in own:
                require_feed(metadata, commit.version, start=start, end=through)
            self.table.require_readable(commit)
            when = {commit.version: commit_time(commit, times)}
            files += feed_files(find_change_files([commit], when), log.root_uri)
        if metadata is not None:
            self._last = (through, metadata)
        return tuple(files)

    def _metadata_at(self, log: TableLog, start: int) -> Metadata:
        """Return the metadata in force at a version whose commit has none."""
        if self._last is not None and self._last[0] == start - 1:
            return self._last[1]
        return log.snapshot(version=start).metadata


def feed_files(changes: ChangeFiles, root_uri: str) -> Iterator[ReadableFile]:
    """Yield the files with the changed rows; columns of the feed are partition values."""
    for file in (*changes.recorded, *changes.whole):
        yield _whole_file(file, root_uri)
    for change in changes.vector_changes:
        yield from _rows_of_vectors(change, root_uri)


def _whole_file(changed: ChangedFile, root_uri: str) -> ReadableFile:
    return _file(changed, root_uri, deleted=changed.file.deletion_vector, only=None)


def _rows_of_vectors(changed: VectorChange, root_uri: str) -> Iterable[ReadableFile]:
    """Yield newly deleted rows as deletes, and restored rows as inserts."""
    for kind, only, deleted in (
        (ChangeType.DELETE, changed.after, changed.before),
        (ChangeType.INSERT, changed.before, changed.after),
    ):
        if only is not None:
            yield _file(changed.rows(kind), root_uri, deleted=deleted, only=only)


def _file(
    changed: ChangedFile,
    root_uri: str,
    *,
    deleted: DeletionVectorDescriptor | None,
    only: DeletionVectorDescriptor | None,
) -> ReadableFile:
    file: Add = with_change_values(changed)
    # A change file has the type of change in a column, so there is no partition value for it.
    values = {
        name: value
        for name, value in file.partition_values.items()
        if value is not None or name in changed.file.partition_values
    }
    return ReadableFile(
        uri=absolute_uri(root_uri, file.path),
        partition_values=values,
        root_uri=root_uri,
        deleted=deleted,
        only=only,
    )
