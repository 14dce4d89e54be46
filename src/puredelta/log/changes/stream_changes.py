"""The change data feed as a stream delivers it.

A stream without a starting version first delivers all rows of the table as inserts of the version
it finds. After that, or from the starting version on, it delivers the changes of every commit.
Nothing here reads a data file or a deletion vector.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from puredelta.log.changes.change_files import (
    ChangedFile,
    ChangeFiles,
    VectorChange,
    find_change_files,
    with_change_values,
)
from puredelta.log.changes.change_range import commit_time, require_feed
from puredelta.log.changes.file_rows import ReadableFile
from puredelta.log.changes.stream_items import (
    ItemAction,
    StreamBatch,
    StreamItem,
    admitted_one_by_one,
    count_actions,
)
from puredelta.log.changes.stream_limits import Admission
from puredelta.log.changes.stream_schema import StreamedTable
from puredelta.log.replay.commit_files import Commit
from puredelta.log.replay.history import file_times
from puredelta.log.replay.segment import list_log
from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.actions.actions import (
    Add,
    AddChangeFile,
    CommitInfo,
    DeletionVectorDescriptor,
    Metadata,
    Remove,
)
from puredelta.protocol.actions.paths import absolute_uri
from puredelta.protocol.schema.schema_json import parse_schema
from puredelta.protocol.table.change_data import (
    ChangeType,
    changed_no_rows,
    require_no_change_columns,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeStream:
    """The changes that commits made to the rows of a table."""

    table: StreamedTable

    def __post_init__(self) -> None:
        require_no_change_columns(
            parse_schema(self.table.metadata.schema_string).names, was_enabled=False
        )

    def require_metadata(self, metadata: Metadata, version: int) -> None:
        """Refuse a version whose changes cannot be delivered.

        Raises:
            InvalidRequestError: the feed is off at this version (DELTA_MISSING_CHANGE_DATA), or
                its columns cannot be read (see `StreamedTable.require_columns`).
        """
        require_feed(metadata, version, start=version, end=version)
        self.table.require_columns(metadata, version)

    def items(self, commit: Commit) -> tuple[StreamItem, ...]:
        """Return the places of a commit: its change files if it has any, else all its files."""
        recorded = [a for a in commit.actions if isinstance(a, AddChangeFile)]
        if recorded:
            return count_actions(commit.version, recorded)
        files = [a for a in commit.actions if isinstance(a, Add | Remove) and a.data_change]
        items = count_actions(commit.version, files)
        return items[:1] if changed_no_rows(commit.commit_info) else items

    def admitted(
        self, items: Sequence[StreamItem], admission: Admission
    ) -> tuple[Sequence[StreamItem], bool]:
        """Return the items of one commit that a batch takes, and whether these are all.

        Change files, and files with deletion vectors, come together: two of them tell what
        happened to one row.
        """
        files = [item for item in items if item.action is not None]
        if not any(_is_half(item.action) for item in files):
            return admitted_one_by_one(items, admission)
        taken = admission.admits_together([item.size_bytes for item in files])
        return (items, True) if taken else ((), False)


def _is_half(action: ItemAction | None) -> bool:
    if isinstance(action, AddChangeFile):
        return True
    return action is not None and action.deletion_vector is not None


def batch_changes(batch: StreamBatch, log: TableLog) -> ChangeFiles:
    """Return the files of a batch of changes; the log is listed for the times of commits.

    Raises:
        CorruptTableError: a commit lacks what the feed needs (see `find_change_files`).
    """
    found = ChangeFiles()
    if batch.initial is not None and batch.initial_snapshot is not None:
        snapshot = batch.initial_snapshot
        found.whole += [
            ChangedFile(
                file=add,
                change=ChangeType.INSERT,
                version=snapshot.version,
                timestamp_ms=snapshot.timestamp_ms,
            )
            for add in batch.initial.adds()
        ]
    if not batch.commits:
        return found
    times = file_times(list_log(log.store).commits)
    for commit, actions in batch.commits:
        infos = [a for a in commit.actions if isinstance(a, CommitInfo)]
        part = replace(commit, actions=(*infos, *actions))
        when = {commit.version: commit_time(commit, times)}
        more = find_change_files([part], when)
        found.recorded += more.recorded
        found.whole += more.whole
        found.vector_changes += more.vector_changes
    return found


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
