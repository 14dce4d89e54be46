"""A stream over a table: the files and changes of its next batch.

A stream delivers the rows of the table once, then the rows that every later commit adds. It
cannot take rows back: a commit that removes rows is an error, or skipped if an option says so.

A stream without a starting version first delivers all rows of the table as inserts of the version
it finds. After that, or from the starting version on, it delivers the changes of every commit.
Nothing here reads a data file or a deletion vector.

A stream begins with the files of a whole version, or with the commit of a version, and takes every
later commit once. The same offsets give the same files at every call, after any restart.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeGuard

import pyarrow as pa

from puredelta.errors import CorruptTableError, InvalidRequestError, Message, TableNotFoundError
from puredelta.log.changes.change_feed import (
    ChangedFile,
    ChangeFiles,
    VectorChange,
    find_change_files,
    with_change_values,
)
from puredelta.log.changes.change_range import commit_time, require_feed
from puredelta.log.changes.file_rows import ReadableFile
from puredelta.log.changes.schema_tracking import StreamTracking
from puredelta.log.changes.stream_offsets import (
    AFTER_BARRIER,
    BEFORE_FIRST,
    EVERYTHING,
    SCHEMA_BARRIER,
    Admission,
    InitialFiles,
    ItemAction,
    ReadLimits,
    StreamBatch,
    StreamItem,
    StreamOffset,
    StreamStart,
    admitted_one_by_one,
    count_actions,
    newest_version,
    parse_offset,
    through_barrier,
    with_barrier,
)
from puredelta.log.changes.stream_schema import MetadataInForce, StreamedTable
from puredelta.log.files.file_table import FileTable
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
class StreamRules:
    """The reaction to commits that remove rows."""

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
        """Return the places of a commit."""
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
            Message.SOURCE_TABLE_IGNORE_CHANGES, what=what, version=commit.version, path=root_uri
        )
    return InvalidRequestError(
        Message.SOURCE_IGNORE_DELETE, remove_path=remove.path, version=commit.version, path=root_uri
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
        """Refuse a version whose changes cannot be delivered."""
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
    """Return the files of a batch of changes; the log is listed for the times of commits."""
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


def commit_missing(root_uri: str, wanted: int, found: int) -> CorruptTableError:
    """Say that commits are gone that were not delivered."""
    return CorruptTableError(
        Message.MISSING_FILES_UNEXPECTED_VERSION, root_uri=root_uri, version=wanted, earliest=found
    )


def start_gone(root_uri: str, version: int, why: str) -> CorruptTableError:
    """Say that the version with which a stream began cannot be read any more."""
    return CorruptTableError(
        Message.LOG_FILE_NOT_FOUND_FOR_STREAMING_SOURCE, root_uri=root_uri, why=why, version=version
    )


_KEPT_ACTIONS_MAX = 50_000
_WHOLE_TABLE = StreamStart()


class Streamed(Protocol):
    """The delivery of a stream: the rows of a table, or its changes."""

    @property
    def table(self) -> StreamedTable:
        """The table when the stream was made."""
        ...

    def require_metadata(self, metadata: Metadata, version: int) -> None:
        """Refuse a version that cannot be delivered."""
        ...

    def items(self, commit: Commit) -> tuple[StreamItem, ...]:
        """Return the places of a commit; refuse one that cannot be delivered."""
        ...

    def admitted(
        self, items: Sequence[StreamItem], admission: Admission
    ) -> tuple[Sequence[StreamItem], bool]:
        """Return the items of one commit that a batch takes, and whether these are all."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamSettings:
    """The options of a stream, apart from its kind of delivery."""

    start: StreamStart = _WHOLE_TABLE
    exclude: re.Pattern[str] | None = None
    """Files in whose path it is found are left out."""
    fails_on_data_loss: bool = True
    """Whether a commit that is gone is an error, or is passed over."""


class StreamLog:
    """The log as one stream reads it. One query at a time uses it, from any thread."""

    def __init__(
        self,
        log: TableLog,
        streamed: Streamed,
        settings: StreamSettings,
        tracking: StreamTracking | None = None,
    ) -> None:
        self.log = log
        self.streamed = streamed
        self.tracking = tracking
        self._settings = settings
        self._first: int | None = None
        """Where the stream begins, once that is known; for the whole table it never is."""
        self._initial: InitialFiles | None = None
        self._in_force = MetadataInForce(log, streamed.table, streamed.require_metadata)
        self._kept: dict[int, Commit] = {}
        """What the last search read: a batch of it comes next."""

    def offset(self, text: str | Mapping[str, Any]) -> StreamOffset:
        """Read an offset of a checkpoint; errors as `parse_offset`."""
        table = self.streamed.table
        return parse_offset(text, table_id=table.metadata.id, root_uri=table.root_uri)

    def forget_start(self) -> None:
        """Let the next query find its own start."""
        self._first, self._initial, self._kept = None, None, {}

    def beginning(self) -> StreamOffset:
        """Return the offset before the first file."""
        first = self._first_commit()
        if first is None:
            return self._at(newest_version(self.log), is_initial=True)
        return self._at(first, began_at=first)

    def _first_commit(self) -> int | None:
        """Return the version whose commit comes first; None for the whole table."""
        if self._first is None:
            self._first = self._settings.start.first_version(self.log)
        return self._first

    def newest(self) -> StreamOffset:
        """Return the place after the newest commit, regardless of the commits before it."""
        return self._at(newest_version(self.log) + 1, began_at=self._first)

    def latest(
        self,
        start: StreamOffset | None,
        limits: ReadLimits = EVERYTHING,
        bound: StreamOffset | None = None,
    ) -> StreamOffset | None:
        """Return the end of the batch that begins after ``start``, ``start`` itself without rows.

        Without ``start`` it begins where the stream does, and None means that there is nothing.
        It does not go beyond ``bound``.
        """
        is_first = start is None or _is_beginning(start)
        if start is not None and start.index == SCHEMA_BARRIER:
            # Another place, so that Spark says that everything before it is done.
            return self._at(start.version, AFTER_BARRIER)
        if start is not None and start.index == AFTER_BARRIER:
            self.complete(start)
        begin = self.beginning() if start is None else start
        if self.tracking is not None and start is None:
            self.tracking.start_at(begin.version)
        if is_first and begin.is_initial and bound is not None:
            begin = self._at(bound.version - 1, is_initial=True)
        admission = Admission(limits)
        end = begin
        if begin.is_initial:
            end = self._through_initial(begin, admission, bound)
            # The first batch takes nothing else: its end alone has to say where it began.
            if is_first or end.is_initial or not admission.has_room:
                return _moved(start, begin, end)
        end = self._through_commits(end, admission, bound)
        if is_first and end.place != begin.place:
            return self._at(end.version, end.index, began_at=begin.version)
        return _moved(start, begin, end)

    def batch(self, start: StreamOffset | None, end: StreamOffset) -> StreamBatch:
        """Return what comes between two offsets; errors as `latest`."""
        if self.tracking is not None:
            last = end.version - 1 if end.index == BEFORE_FIRST else end.version
            self.tracking.start_within(self._begin_of(start, end).version, last)
        is_same = start is not None and start.place == end.place
        if is_same and start is not None and start.is_initial == end.is_initial:
            return StreamBatch.nothing()
        begin = self._begin_of(start, end)
        files, snapshot, after = None, None, begin
        if begin.is_initial:
            initial = self._initial_files(begin.version)
            through = end.index if end.is_initial else None
            files, snapshot = self._wanted(initial.between(begin.index, through)), initial.snapshot
            after = self._at(begin.version + 1)
        commits = [] if end.is_initial else list(self._commits_between(after, end))
        return StreamBatch(initial=files, initial_snapshot=snapshot, commits=commits)

    def complete(self, end: StreamOffset) -> None:
        """Take note that everything up to an offset is done."""
        if self.tracking is not None and end.index in {SCHEMA_BARRIER, AFTER_BARRIER}:
            self.tracking.follow(end.version)

    # --- positions

    def _at(
        self,
        version: int,
        index: int = BEFORE_FIRST,
        *,
        is_initial: bool = False,
        began_at: int | None = None,
    ) -> StreamOffset:
        return StreamOffset(
            table_id=self.streamed.table.metadata.id,
            version=version,
            index=index,
            is_initial=is_initial,
            began_at=began_at,
        )

    def _begin_of(self, start: StreamOffset | None, end: StreamOffset) -> StreamOffset:
        """Return where a batch began, which only its end says if it is the first."""
        if start is not None and not _is_beginning(start):
            return start
        if end.began_at is not None:
            return self._at(end.began_at)
        if end.is_initial:
            return self._at(end.version, is_initial=True)
        first = self._first_commit() if start is None else None
        if start is not None and not start.is_initial:
            return start
        if first is not None:
            return self._at(first, began_at=first)
        return self._at(end.version - 1, is_initial=True)

    # --- the version that the stream begins with

    def _initial_files(self, version: int) -> InitialFiles:
        known = self._initial
        if known is None or known.snapshot.version != version:
            try:
                snapshot = self.log.snapshot(version=version)
            except TableNotFoundError as error:
                raise start_gone(self.log.root_uri, version, str(error)) from error
            if self.tracking is not None:
                self.tracking.require_initial(snapshot)
            self._in_force.require_state(snapshot.metadata, version)
            known = self._initial = InitialFiles.of(snapshot)
        return known

    def _through_initial(
        self, begin: StreamOffset, admission: Admission, bound: StreamOffset | None
    ) -> StreamOffset:
        through = bound.index if bound is not None and bound.is_initial else None
        last, is_all = self._initial_files(begin.version).admitted(begin.index, through, admission)
        if is_all:
            self._initial = self._initial if admission.has_room else None
            return self._at(begin.version + 1)
        return begin if last <= begin.index else self._at(begin.version, last, is_initial=True)

    def _wanted(self, files: FileTable) -> FileTable:
        exclude = self._settings.exclude
        if exclude is None:
            return files
        wanted = [exclude.search(path) is None for path in files.rows["path"].to_pylist()]
        return files.select(pa.array(wanted, pa.bool_()))

    # --- commits

    def _through_commits(
        self, begin: StreamOffset, admission: Admission, bound: StreamOffset | None
    ) -> StreamOffset:
        end, kept, num_kept = begin, dict[int, Commit](), 0
        for commit in self._read(begin.version):
            items = self._items(commit)
            left = through_barrier(
                [i for i in items if i.place > begin.place and _is_within(i, bound)]
            )
            taken, is_all = self.streamed.admitted(left, admission)
            num_kept += len(commit.actions)
            if num_kept <= _KEPT_ACTIONS_MAX:
                kept[commit.version] = commit
            is_stopped = bool(taken) and taken[-1].is_barrier
            if is_all and not is_stopped and (bound is None or bound.version > commit.version):
                end = self._at(commit.version + 1)
            elif taken:
                end = self._at(commit.version, taken[-1].index)
            if is_stopped or not (is_all and admission.has_room):
                break
            if bound is not None and bound.version <= commit.version:
                break
        self._kept = kept
        return end

    def _commits_between(
        self, begin: StreamOffset, end: StreamOffset
    ) -> Iterator[tuple[Commit, Sequence[ItemAction]]]:
        last = end.version if end.index > BEFORE_FIRST else end.version - 1
        if last < begin.version:
            return
        for commit in self._read(begin.version, through=last):
            items = self._items(commit)
            between = (i for i in items if begin.place < i.place <= end.place)
            yield commit, [a for a in (i.action for i in between) if self._is_wanted(a)]

    def _is_wanted(self, action: ItemAction | None) -> TypeGuard[ItemAction]:
        exclude = self._settings.exclude
        return action is not None and (exclude is None or exclude.search(action.path) is None)

    def _items(self, commit: Commit) -> tuple[StreamItem, ...]:
        self._in_force.require_commit(commit)
        items = self.streamed.items(commit)
        is_change = self.tracking is not None and self.tracking.is_change(commit)
        return with_barrier(items) if is_change else items

    def _read(self, first: int, *, through: int | None = None) -> Iterator[Commit]:
        """Yield the commits from a version on, those that the last search read from memory."""
        kept, version = self._kept, first
        while through is not None and version <= through and version in kept:
            yield kept[version]
            version += 1
        if through is not None and version > through:
            return
        for commit in self.log.read_commits_left(version, through=through):
            if commit.version > version and self._settings.fails_on_data_loss:
                raise commit_missing(self.log.root_uri, version, commit.version)
            yield commit
            version = commit.version + 1


def _is_within(item: StreamItem, bound: StreamOffset | None) -> bool:
    return bound is None or item.place <= bound.place


def _moved(
    start: StreamOffset | None, begin: StreamOffset, end: StreamOffset
) -> StreamOffset | None:
    """Return the end of a batch, or its start where it has moved nowhere."""
    return start if end.place == begin.place else end


def _is_beginning(offset: StreamOffset) -> bool:
    """Return whether nothing comes before an offset."""
    if offset.index != BEFORE_FIRST:
        return False
    return offset.is_initial or offset.began_at == offset.version
