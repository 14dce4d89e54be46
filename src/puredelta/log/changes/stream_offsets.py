"""Offsets of a stream in the JSON of delta-spark, its first offset, and the limits of a batch.

An offset names a version and the last file of it that has been delivered. The files of a version
are counted in the order of its commit, or, where a stream begins with a whole version, by time and
path. The text is delta-spark's to the letter, so that either of us continues what the other began.

Files count against a limit of files, their sizes against one of bytes. A batch takes at least one
file, and the file that reaches a limit is its last.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from puredelta.errors import InvalidRequestError, Message
from puredelta.log.files.file_table import FileTable
from puredelta.log.replay.commit_files import Commit
from puredelta.log.replay.history import find_version_at, find_version_from
from puredelta.log.replay.segment import list_log, version_not_found
from puredelta.log.replay.snapshot import Snapshot
from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.actions.actions import Add, AddChangeFile, Remove

BEFORE_FIRST = -100
"""The index before the first file of a version; written as -1."""
_BEFORE_FIRST_TEXT = -1
SCHEMA_BARRIER = -20
"""The index of a change of the schema that a tracking log has yet to take."""
AFTER_BARRIER = -19
_PLAIN, _WITH_BARRIER = 1, 3
"""Formats: the second one has indexes of schema changes. There is none between."""
_BEGAN = "puredeltaStartVersion"
"""Left alone by delta-spark."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamOffset:
    """Everything up to and with this file of this version has been delivered."""

    table_id: str
    version: int
    index: int = BEFORE_FIRST
    is_initial: bool = False
    """Whether the files are those of the whole version, with which the stream begins."""
    began_at: int | None = None
    """At the end of the first batch: the version whose commit it begins with, if it is none that
    follows from the rest. A batch that is run again after a restart needs it."""

    @property
    def place(self) -> tuple[int, int]:
        """Version and index, which order the offsets of one table."""
        return self.version, self.index

    def values(self) -> dict[str, Any]:
        """Return the offset as the JSON object that stands for it."""
        is_barrier = self.index in {SCHEMA_BARRIER, AFTER_BARRIER}
        values: dict[str, Any] = {
            "sourceVersion": _WITH_BARRIER if is_barrier else _PLAIN,
            "reservoirId": self.table_id,
            "reservoirVersion": self.version,
            "index": _BEFORE_FIRST_TEXT if self.index == BEFORE_FIRST else self.index,
            "isStartingVersion": self.is_initial,
        }
        return values if self.began_at is None else {**values, _BEGAN: self.began_at}

    def text(self) -> str:
        """Return the JSON text of a checkpoint.

        >>> StreamOffset(table_id="t", version=3).text()
        '{"sourceVersion":1,"reservoirId":"t","reservoirVersion":3,"index":-1,"isStartingVersion":false}'
        """
        return json.dumps(self.values(), separators=(",", ":"))


def parse_offset(
    given: str | Mapping[str, Any], *, table_id: str, root_uri: str = ""
) -> StreamOffset:
    """Read the offset of a checkpoint: delta-spark's, or ours of releases that wrote versions only.

    Raises:
        InvalidRequestError: it is no offset (DELTA_INVALID_SOURCE_OFFSET_FORMAT), one of a format
            that is not known (DELTA_INVALID_SOURCE_VERSION,
            DELTA_INVALID_FORMAT_FROM_SOURCE_VERSION), or of another table
            (DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE).
    """
    values = _object(given)
    try:
        source_version = int(values.get("sourceVersion", _PLAIN))
    except (TypeError, ValueError) as error:
        raise _malformed(given) from error
    _require_known_format(source_version)
    try:
        if "sourceVersion" in values:
            offset = _parsed(values, source_version)
        else:
            offset = StreamOffset(
                table_id=str(values["tableId"]), version=int(values["version"]) + 1
            )
    except (KeyError, TypeError, ValueError) as error:
        raise _malformed(given) from error
    if offset.table_id != table_id:
        raise InvalidRequestError(
            Message.DIFFERENT_TABLE_READ_BY_STREAM,
            table_id=table_id,
            checkpoint_id=offset.table_id,
            path=root_uri,
        )
    return offset


def _object(given: str | Mapping[str, Any]) -> Mapping[str, Any]:
    if isinstance(given, Mapping):
        return given
    try:
        values = json.loads(given)
    except ValueError as error:
        raise _malformed(given) from error
    if not isinstance(values, dict):
        raise _malformed(given)
    return values


def _require_known_format(source_version: int) -> None:
    if source_version > _WITH_BARRIER:
        raise InvalidRequestError(
            Message.INVALID_FORMAT_FROM_SOURCE_VERSION,
            with_barrier=_WITH_BARRIER,
            version=source_version,
        )
    if source_version not in {_PLAIN, _WITH_BARRIER}:
        raise InvalidRequestError(Message.INVALID_SOURCE_VERSION, version=source_version)


def _parsed(values: Mapping[str, Any], source_version: int) -> StreamOffset:
    index = int(values["index"])
    began = values.get(_BEGAN)
    return StreamOffset(
        table_id=str(values["reservoirId"]),
        version=int(values["reservoirVersion"]),
        index=BEFORE_FIRST if (source_version, index) == (_PLAIN, _BEFORE_FIRST_TEXT) else index,
        is_initial=bool(values["isStartingVersion"]),
        began_at=None if began is None else int(began),
    )


def _malformed(given: object) -> InvalidRequestError:
    return InvalidRequestError(Message.INVALID_SOURCE_OFFSET_FORMAT, given=given)


MAX_FILES_DEFAULT = 1000
_NO_LIMIT = (1 << 63) - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadLimits:
    """The limits of a batch; None is no limit."""

    max_files: int | None = None
    max_bytes: int | None = None

    @classmethod
    def of_options(cls, max_files: int | None, max_bytes: int | None) -> ReadLimits:
        """Return the limits that options ask for; without any, a number of files.

        >>> ReadLimits.of_options(None, None).max_files
        1000
        """
        if max_files is None and max_bytes is None:
            return cls(max_files=MAX_FILES_DEFAULT)
        return cls(max_files=max_files, max_bytes=max_bytes)


EVERYTHING = ReadLimits()


class Admission:
    """The remaining capacity of one batch."""

    def __init__(self, limits: ReadLimits) -> None:
        self._files = _NO_LIMIT if limits.max_files is None else limits.max_files
        self._bytes = _NO_LIMIT if limits.max_bytes is None else limits.max_bytes
        self._has_taken = False

    @property
    def has_room(self) -> bool:
        """Whether another file may come."""
        return self._files > 0 and self._bytes > 0

    def admits(self, size_bytes: int) -> bool:
        """Take one file if there is room for any; return whether it is taken."""
        had_room = self.has_room
        self._take([size_bytes])
        return had_room

    def admits_together(self, sizes_bytes: Sequence[int]) -> bool:
        """Take files if there is room for all of them, or if they are the first."""
        fits = len(sizes_bytes) <= self._files and sum(sizes_bytes) <= self._bytes
        taken = fits or not self._has_taken or not sizes_bytes
        self._take(sizes_bytes)
        return taken

    def _take(self, sizes_bytes: Sequence[int]) -> None:
        self._has_taken = self._has_taken or bool(sizes_bytes)
        self._files -= len(sizes_bytes)
        self._bytes -= sum(sizes_bytes)


ItemAction: TypeAlias = Add | Remove | AddChangeFile


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamItem:
    """A place in a commit: before its first file, at a file of it, or where the columns change."""

    version: int
    index: int
    action: ItemAction | None = None
    is_last: bool = False
    """Whether this is the last file of the commit."""

    @property
    def place(self) -> tuple[int, int]:
        """Version and index."""
        return self.version, self.index

    @property
    def is_barrier(self) -> bool:
        """Whether the stream has to be restarted after this place, in other columns."""
        return self.index == SCHEMA_BARRIER

    @property
    def size_bytes(self) -> int:
        """The size of the file; 0 where the log does not say it."""
        return 0 if self.action is None else self.action.size_bytes or 0


def count_actions(version: int, actions: Sequence[ItemAction]) -> tuple[StreamItem, ...]:
    """Return the places of a commit that delivers these actions.

    >>> count_actions(3, ())
    (StreamItem(version=3, index=-100, action=None, is_last=False),)
    """
    last = len(actions) - 1
    return (
        StreamItem(version=version, index=BEFORE_FIRST),
        *(
            StreamItem(version=version, index=n, action=action, is_last=n == last)
            for n, action in enumerate(actions)
        ),
    )


def with_barrier(items: Sequence[StreamItem]) -> tuple[StreamItem, ...]:
    """Return the places of a commit that changes the columns: before its files is a barrier."""
    version = items[0].version
    return (items[0], StreamItem(version=version, index=SCHEMA_BARRIER), *items[1:])


def through_barrier(items: Sequence[StreamItem]) -> Sequence[StreamItem]:
    """Return the places up to and with the barrier, if there is one."""
    end = next((n for n, item in enumerate(items) if item.is_barrier), None)
    return items if end is None else items[: end + 1]


def admitted_one_by_one(
    items: Sequence[StreamItem], admission: Admission
) -> tuple[Sequence[StreamItem], bool]:
    """Return the items that a batch takes, and whether these are all."""
    for n, item in enumerate(items):
        taken = admission.has_room if item.action is None else admission.admits(item.size_bytes)
        if not taken:
            return items[:n], False
    return items, True


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class InitialFiles:
    """The files of the version that a stream begins with, by time and path."""

    snapshot: Snapshot
    files: FileTable
    sizes_bytes: Sequence[int]

    @classmethod
    def of(cls, snapshot: Snapshot) -> InitialFiles:
        """Sort the files of a version."""
        rows = snapshot.files.rows
        keys = [("modified_ms", "ascending"), ("path", "ascending")]
        order = pc.sort_indices(rows.select(["modified_ms", "path"]), sort_keys=keys)
        files = snapshot.files.take(order)
        return cls(snapshot=snapshot, files=files, sizes_bytes=files.rows["size_bytes"].to_pylist())

    def admitted(self, after: int, through: int | None, admission: Admission) -> tuple[int, bool]:
        """Return the last index that a batch takes, and whether nothing is left after it."""
        end = len(self.sizes_bytes)
        if through is not None:
            end = min(end, through + 1)
        for n in range(max(after + 1, 0), end):
            if not admission.admits(self.sizes_bytes[n]):
                return n - 1, False
        return max(end - 1, after), end == len(self.sizes_bytes)

    def between(self, after: int, through: int | None) -> FileTable:
        """Return the files after an index, up to and with another."""
        first = max(after + 1, 0)
        end = len(self.files) if through is None else min(through + 1, len(self.files))
        return self.files.take(pa.array(range(first, max(first, end)), pa.int64()))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StreamBatch:
    """What comes between two offsets."""

    initial: FileTable | None
    """Files of the version that the stream begins with."""
    initial_snapshot: Snapshot | None
    commits: Sequence[tuple[Commit, Sequence[ItemAction]]]
    """Commits, and the actions of each that are delivered."""

    @classmethod
    def nothing(cls) -> StreamBatch:
        """Return a batch without rows."""
        return cls(initial=None, initial_snapshot=None, commits=())


_LATEST = "latest"


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamStart:
    """The start of a stream without a checkpoint: with the whole table, unless an option says."""

    version: int | None = None
    is_latest: bool = False
    """After the newest version."""
    timestamp_ms: int | None = None

    @classmethod
    def parse(
        cls, version: str | None, timestamp: str | None, millis: Callable[[str], int]
    ) -> StreamStart:
        """Read ``startingVersion`` (a number or ``latest``) and ``startingTimestamp``.

        Raises:
            InvalidRequestError: both are given (DELTA_STARTING_VERSION_AND_TIMESTAMP_BOTH_SET),
                or one is no version (DELTA_ILLEGAL_OPTION) or no time.
        """
        if version is not None and timestamp is not None:
            raise InvalidRequestError(Message.STARTING_VERSION_AND_TIMESTAMP_BOTH_SET)
        if timestamp is not None:
            return cls(timestamp_ms=millis(timestamp))
        if version is None:
            return cls()
        text = version.strip().lower()
        if text != _LATEST and not text.isdecimal():
            raise InvalidRequestError(
                Message.INVALID_WRITE_OPTION_STREAM_START,
                latest=_LATEST,
                option="startingVersion",
                value=version,
            )
        return cls(is_latest=True) if text == _LATEST else cls(version=int(text))

    def first_version(self, log: TableLog) -> int | None:
        """Return the version whose commit comes first; None for the whole table."""
        if self.is_latest:
            return newest_version(log) + 1
        if self.timestamp_ms is not None:
            return _version_from(log, self.timestamp_ms)
        return None if self.version is None else _existing(log, self.version)


def newest_version(log: TableLog) -> int:
    """Return the newest version; errors as `TableLog.snapshot` where there is no table."""
    version = log.latest_version()
    return log.snapshot().version if version is None else version


def _existing(log: TableLog, version: int) -> int:
    listing = list_log(log.store)
    latest = log.snapshot().version if listing.latest_version is None else listing.latest_version
    earliest = min(listing.commits, default=latest)
    if not earliest <= version <= latest:
        raise version_not_found(log.root_uri, version, earliest=earliest, latest=latest)
    return version


def _version_from(log: TableLog, moment_ms: int) -> int:
    listing, newest = list_log(log.store), log.snapshot()
    version = find_version_from(log.store, listing, newest.config, timestamp_ms=moment_ms)
    if version > newest.version:
        # Raises: the time is after the newest version.
        find_version_at(log.store, listing, newest.config, timestamp_ms=moment_ms)
    return version
