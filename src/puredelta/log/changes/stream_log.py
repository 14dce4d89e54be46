"""A stream's way through the log of a table: how far a batch goes, and what comes between.

A stream begins with the files of a whole version, or with the commit of a version, and takes every
later commit once. The same offsets give the same files at every call, after any restart.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeGuard

import pyarrow as pa

from puredelta.errors import TableNotFoundError
from puredelta.log.changes.stream_errors import commit_missing, start_gone
from puredelta.log.changes.stream_items import (
    InitialFiles,
    ItemAction,
    StreamBatch,
    StreamItem,
    through_barrier,
    with_barrier,
)
from puredelta.log.changes.stream_limits import EVERYTHING, Admission, ReadLimits
from puredelta.log.changes.stream_metadata import MetadataInForce
from puredelta.log.changes.stream_offset import (
    AFTER_BARRIER,
    BEFORE_FIRST,
    SCHEMA_BARRIER,
    StreamOffset,
    parse_offset,
)
from puredelta.log.changes.stream_schema import StreamedTable
from puredelta.log.changes.stream_start import StreamStart, newest_version
from puredelta.log.files.file_table import FileTable
from puredelta.log.replay.commit_files import Commit
from puredelta.log.replay.table_log import TableLog
from puredelta.log.tracking.stream_tracking import StreamTracking
from puredelta.protocol.actions.actions import Metadata

_KEPT_ACTIONS_MAX = 50_000
_WHOLE_TABLE = StreamStart()


class Streamed(Protocol):
    """What a stream delivers of a table: its rows, or what changed in it."""

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
    """What the options of a stream say, beside what is delivered."""

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
        """Return the offset before the first file.

        Raises:
            TableNotFoundError, InvalidRequestError: see `StreamStart.first_version`.
        """
        first = self._first
        if first is None:
            first = self._first = self._settings.start.first_version(self.log)
        if first is None:
            return self._at(newest_version(self.log), is_initial=True)
        return self._at(first, began_at=first)

    def newest(self) -> StreamOffset:
        """Return the place behind the newest commit, whatever the commits before it hold."""
        return self._at(newest_version(self.log) + 1, began_at=self._first)

    def latest(
        self,
        start: StreamOffset | None,
        limits: ReadLimits = EVERYTHING,
        bound: StreamOffset | None = None,
    ) -> StreamOffset | None:
        """Return the end of the batch that begins behind ``start``, ``start`` itself without rows.

        Without ``start`` it begins where the stream does, and None means that there is nothing.
        It does not go beyond ``bound``.

        Raises:
            InvalidRequestError: rows were removed, the columns changed, the change data feed was
                off (see `RowStream` and `ChangeStream`).
            CorruptTableError: a commit is missing (DELTA_MISSING_FILES_UNEXPECTED_VERSION).
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
        """Take note that everything up to an offset is done.

        Raises:
            InvalidRequestError: the columns change there (see `StreamTracking.follow`).
        """
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
        begin = self.beginning() if start is None else start
        return self._at(end.version - 1, is_initial=True) if begin.is_initial else begin

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
