"""The change data feed as a stream delivers it between two versions of a table.

A stream without a start begins with the rows of the table as inserts of the version at which
they are found; from then on, and from a start on, every commit brings what it did to which
rows. Nothing here reads a data file or a deletion vector, and commits are taken one by one.
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
from puredelta.log.changes.change_range import commit_time, file_times, require_feed
from puredelta.log.changes.file_rows import ReadableFile
from puredelta.log.changes.stream_schema import StreamedTable, metadata_of
from puredelta.log.replay.segment import list_log
from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.actions.actions import Add, DeletionVectorDescriptor, Metadata
from puredelta.protocol.actions.paths import absolute_uri
from puredelta.protocol.schema.schema_json import parse_schema
from puredelta.protocol.table.change_data import ChangeType, require_no_change_columns


@dataclass(slots=True, kw_only=True)
class ChangeStream:
    """What the commits of a table did to its rows."""

    known: StreamedTable
    _last: tuple[int, Metadata] | None = field(default=None, init=False)
    """The last version that was delivered, with its metadata: the next batch needs it."""

    def __post_init__(self) -> None:
        require_no_change_columns(
            parse_schema(self.known.metadata.schema_string).names, was_enabled=False
        )

    def whole(self, log: TableLog, version: int) -> tuple[ReadableFile, ...]:
        """Return all rows of a version as its inserts.

        Raises:
            InvalidRequestError: the feed is off at this version (DELTA_MISSING_CHANGE_DATA).
        """
        snapshot = log.snapshot(version=version)
        require_feed(snapshot.metadata, version, start=version, end=version)
        self.known.require_columns(snapshot.metadata, version)
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
        """Return what the commits behind ``after`` did.

        Raises:
            InvalidRequestError: the feed was off at some version (DELTA_MISSING_CHANGE_DATA),
                or the columns were others (see `StreamedTable.require_columns`).
            CorruptTableError: a commit is gone from the log, or lacks what the feed needs.
        """
        start, files = after + 1, list[ReadableFile]()
        times = file_times(list_log(log.store))
        metadata: Metadata | None = None
        for commit in log.read_commits(after, through=through):
            own = metadata_of(commit)
            if metadata is None and not own:
                metadata = self._metadata_at(log, start)
                require_feed(metadata, start, start=start, end=through)
                self.known.require_columns(metadata, start)
            for metadata in own:
                require_feed(metadata, commit.version, start=start, end=through)
            self.known.require_readable(commit)
            when = {commit.version: commit_time(commit, times)}
            files += feed_files(find_change_files([commit], when), log.root_uri)
        if metadata is not None:
            self._last = (through, metadata)
        return tuple(files)

    def _metadata_at(self, log: TableLog, start: int) -> Metadata:
        """Return the metadata in force at a version whose commit brings none."""
        if self._last is not None and self._last[0] == start - 1:
            return self._last[1]
        return log.snapshot(version=start).metadata


def feed_files(changes: ChangeFiles, root_uri: str) -> Iterator[ReadableFile]:
    """Yield the files that hold the changed rows, with the columns of the feed as partitions."""
    for file in (*changes.recorded, *changes.whole):
        yield _whole_file(file, root_uri)
    for redrawn in changes.redrawn:
        yield from _redrawn_file(redrawn, root_uri)


def _whole_file(changed: ChangedFile, root_uri: str) -> ReadableFile:
    return _file(changed, root_uri, deleted=changed.file.deletion_vector, only=None)


def _redrawn_file(changed: VectorChange, root_uri: str) -> Iterable[ReadableFile]:
    """Rows that were deleted since are deletes, rows that came back are inserts."""
    for kind, only, deleted in (
        (ChangeType.DELETE, changed.after, changed.before),
        (ChangeType.INSERT, changed.before, changed.after),
    ):
        if only is not None:
            file = ChangedFile(
                file=changed.file,
                change=kind,
                version=changed.version,
                timestamp_ms=changed.timestamp_ms,
            )
            yield _file(file, root_uri, deleted=deleted, only=only)


def _file(
    changed: ChangedFile,
    root_uri: str,
    *,
    deleted: DeletionVectorDescriptor | None,
    only: DeletionVectorDescriptor | None,
) -> ReadableFile:
    file: Add = with_change_values(changed)
    # What happened stands in a change file itself: a value that is missing is no partition's.
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
