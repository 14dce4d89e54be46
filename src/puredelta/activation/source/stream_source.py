"""``spark.readStream.format("delta")``: a Python data source over the commits of a table.

An offset is a version: everything up to and with it has been delivered. A stream begins with
the whole table, or behind a version it was given, and takes every commit after that once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from puredelta.activation.source.source_rows import SourceRows
from puredelta.errors import ErrorCode, InvalidRequestError
from puredelta.log.changes.file_rows import ReadableFile
from puredelta.log.changes.stream_schema import StreamedTable
from puredelta.log.replay.history import find_version_at, find_version_from
from puredelta.log.replay.segment import list_log, version_not_found
from puredelta.log.replay.table_log import TableLog
from puredelta.store.registry import Storage

_VERSION, _TABLE, _WHOLE = "version", "tableId", "wholeTable"
_NOTHING = -1
_LATEST = "latest"

Offset = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamStart:
    """Where a stream without a checkpoint begins: with the whole table, unless an option says."""

    version: int | None = None
    is_latest: bool = False
    """Behind the newest version."""
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
            raise InvalidRequestError(
                "Please either provide 'startingVersion' or 'startingTimestamp', not both.",
                code=ErrorCode.STARTING_VERSION_AND_TIMESTAMP_BOTH_SET,
            )
        if timestamp is not None:
            return cls(timestamp_ms=millis(timestamp))
        if version is None:
            return cls()
        text = version.strip().lower()
        if text != _LATEST and not text.isdecimal():
            raise InvalidRequestError(
                f"Invalid value '{version}' for option 'startingVersion', must be greater than or "
                f"equal to zero, or '{_LATEST}'.",
                code=ErrorCode.INVALID_WRITE_OPTION,
                option="startingVersion",
                value=version,
            )
        return cls(is_latest=True) if text == _LATEST else cls(version=int(text))


class Streamed(Protocol):
    """What a stream delivers of the table it knows: its rows, or what changed in it."""

    @property
    def table(self) -> StreamedTable:
        """The table when the stream was made."""
        ...

    def whole(self, log: TableLog, version: int) -> Sequence[ReadableFile]:
        """Return the files of a whole version, with which a stream begins."""
        ...

    def between(self, log: TableLog, *, after: int, through: int) -> Sequence[ReadableFile]:
        """Return the files of the commits behind ``after``."""
        ...


class DeltaStreamReader(DataSourceStreamReader):
    """Reads the files of the commits between two versions, a task each."""

    def __init__(
        self, streamed: Streamed, rows: SourceRows, *, start: StreamStart, storage: Storage
    ) -> None:
        self._storage = storage
        self._streamed = streamed
        self._rows = rows
        self._start = start
        self._path = streamed.table.root_uri
        self._table_id = streamed.table.metadata.id

    def initialOffset(self) -> Offset:
        """Return the place before the first row.

        Raises:
            TableNotFoundError: there is no such version (DELTA_VERSION_NOT_FOUND).
            InvalidRequestError: the time lies behind the newest version
                (DELTA_TIMESTAMP_GREATER_THAN_COMMIT).
        """
        log = TableLog.open(self._path, storage=self._storage)
        match self._start:
            case StreamStart(is_latest=True):
                return self.latestOffset()
            case StreamStart(version=int() as version):
                return self._offset(_existing(log, version) - 1)
            case StreamStart(timestamp_ms=int() as moment_ms):
                return self._offset(_version_from(log, moment_ms) - 1)
            case _:
                return {**self._offset(_NOTHING), _WHOLE: True}

    def latestOffset(self) -> Offset:  # type: ignore[override]
        """Return the newest version; this form of the method is that of every PySpark 4."""
        log = TableLog.open(self._path, storage=self._storage)
        version = log.latest_version()
        return self._offset(log.snapshot().version if version is None else version)

    def partitions(self, start: Mapping[str, Any], end: Mapping[str, Any]) -> Sequence[Any]:
        """Return one partition per file that came between two offsets.

        Raises:
            InvalidRequestError: rows were removed, the columns have changed, the change data
                feed was off, or the checkpoint is that of another table.
        """
        self._require_same_table(start)
        through, after = int(end[_VERSION]), int(start[_VERSION])
        log = TableLog.open(self._path, storage=self._storage)
        if start.get(_WHOLE):
            files = self._streamed.whole(log, through)
        elif through > after:
            files = self._streamed.between(log, after=after, through=through)
        else:
            files = ()
        return [InputPartition(file) for file in files]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a file."""
        return self._rows(partition.value)

    def _offset(self, version: int) -> Offset:
        return {_VERSION: version, _TABLE: self._table_id}

    def _require_same_table(self, start: Mapping[str, Any]) -> None:
        before = start.get(_TABLE)
        if before != self._table_id:
            raise InvalidRequestError(
                f"The streaming query was reading from an unexpected Delta table (id = "
                f"'{self._table_id}'). It used to read from another Delta table (id = "
                f"'{before}') according to checkpoint. Please revert your change or delete your "
                "streaming query checkpoint to restart from scratch.",
                code=ErrorCode.DIFFERENT_TABLE_READ_BY_STREAM,
                path=self._path,
            )


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
        # Raises: the time lies after the newest version.
        find_version_at(log.store, listing, newest.config, timestamp_ms=moment_ms)
    return version
