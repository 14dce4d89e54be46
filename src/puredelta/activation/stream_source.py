"""``spark.readStream.format("delta")``: a Python data source over the commits of a table.

An offset is a version: everything up to and with it has been delivered. A stream begins with
the whole table, or behind a version it was given, and takes every commit after that once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from puredelta.commands.read import parse_version
from puredelta.errors import ErrorCode, InvalidRequestError
from puredelta.log.file_rows import FileRows
from puredelta.log.history import find_version_from
from puredelta.log.segment import list_log
from puredelta.log.snapshot import Snapshot
from puredelta.log.stream_files import StreamRules, files_between, files_of
from puredelta.log.table_log import TableLog

_VERSION, _TABLE, _WHOLE = "version", "tableId", "wholeTable"
_NOTHING = -1
_LATEST = "latest"

Offset = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamStart:
    """Where a stream begins that has no checkpoint yet."""

    version: str | None
    """``startingVersion``: a number or ``latest``."""
    timestamp_ms: int | None


class DeltaStreamReader(DataSourceStreamReader):
    """Reads the files of the commits between two versions, a task each."""

    def __init__(
        self,
        snapshot: Snapshot,
        read: Callable[[FileRows], Iterator[pa.RecordBatch]],
        *,
        start: StreamStart,
        rules: StreamRules,
    ) -> None:
        self._path = snapshot.root_uri
        self._known_version = snapshot.version
        self._table_id = snapshot.metadata.id
        self._read = read
        self._start = start
        self._rules = rules

    def initialOffset(self) -> Offset:  # noqa: N802 - PySpark's name
        """Return the place before the first row."""
        log = TableLog.open(self._path)
        match self._start:
            case StreamStart(version=None, timestamp_ms=None):
                return {**self._offset(_NOTHING), _WHOLE: True}
            case StreamStart(version=version, timestamp_ms=None) if version is not None:
                newest = log.snapshot().version
                # A start beyond the newest version waits for it, as in the reference.
                first = newest + 1 if version.lower() == _LATEST else parse_version(version)
                return self._offset(first - 1)
            case StreamStart(version=None, timestamp_ms=int() as moment_ms):
                listing, config = list_log(log.store), log.snapshot().config
                first = find_version_from(log.store, listing, config, timestamp_ms=moment_ms)
                return self._offset(first - 1)
            case _:
                raise InvalidRequestError(
                    "Please either provide 'startingVersion' or 'startingTimestamp', not both.",
                    code=ErrorCode.STARTING_VERSION_AND_TIMESTAMP_BOTH_SET,
                )

    def latestOffset(self) -> Offset:  # type: ignore[override] # noqa: N802
        """Return the newest version; this form of the method is that of every PySpark 4."""
        return self._offset(TableLog.open(self._path).snapshot().version)

    def partitions(self, start: Mapping[str, Any], end: Mapping[str, Any]) -> Sequence[Any]:
        """Return one partition per file that came between two offsets.

        Raises:
            InvalidRequestError: rows were removed, the columns have changed, or the
                checkpoint is that of another table.
        """
        self._require_same_table(start)
        through, after = int(end[_VERSION]), int(start[_VERSION])
        log = TableLog.open(self._path)
        if start.get(_WHOLE):
            return [InputPartition(file) for file in files_of(log, through)]
        if through <= after:
            return []
        known = log.snapshot(version=self._known_version)
        files = files_between(log, known, after=after, through=through, rules=self._rules)
        return [InputPartition(file) for file in files]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a file."""
        return self._read(partition.value)

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
