"""``spark.readStream.format("delta")`` as a Python data source, over the commits of a table.

Offsets are those of `puredelta.log.changes.stream_offset`, so that a native stream, and
delta-spark's, may go on from a checkpoint of this one and the other way round.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from puredelta.activation.source.source_rows import SourceRows
from puredelta.log.changes.file_rows import ReadableFile, readable_files
from puredelta.log.changes.stream_changes import batch_changes, feed_files
from puredelta.log.changes.stream_files import batch_adds
from puredelta.log.changes.stream_limits import EVERYTHING
from puredelta.log.changes.stream_log import StreamLog
from puredelta.log.changes.stream_offset import StreamOffset
from puredelta.log.changes.stream_options import StreamOptions
from puredelta.log.changes.stream_schema import StreamedTable
from puredelta.log.replay.table_log import TableLog

Offset = dict[str, Any]

_MODULE = "pyspark.sql.streaming.datasource"
_LIMITS: Any = importlib.import_module(_MODULE) if find_spec(_MODULE) is not None else None
"""Since PySpark 4.2 a source is asked for less than everything."""


class DeltaStreamReader(DataSourceStreamReader):
    """Reads the files of the commits between two offsets, a task each."""

    def __init__(self, table: StreamedTable, options: StreamOptions, rows: SourceRows) -> None:
        self._table = table
        self._options = options
        self._rows = rows
        self._opened: StreamLog | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what was read: workers get this object with every file."""
        return {**vars(self), "_opened": None}

    @property
    def _stream(self) -> StreamLog:
        stream = self._opened
        if stream is None:
            log = TableLog.open(self._table.root_uri, storage=self._rows.storage)
            streamed = self._options.streamed(self._table)
            stream = self._opened = StreamLog(log, streamed, self._options.settings)
        return stream

    def initialOffset(self) -> Offset:
        """Return the place before the first row; errors as `StreamStart.first_version`."""
        return self._stream.beginning().values()

    def latestOffset(self) -> Offset:  # type: ignore[override]
        """Return the place behind the newest commit; before PySpark 4.2 sources have no limits."""
        return self._stream.newest().values()

    def partitions(self, start: Mapping[str, Any], end: Mapping[str, Any]) -> Sequence[Any]:
        """Return one partition per file that came between two offsets; see `StreamLog`.

        Raises:
            InvalidRequestError: rows were removed, the columns have changed, the change data
                feed was off, or the checkpoint is that of another table.
        """
        stream = self._stream
        batch = stream.batch(stream.offset(start), stream.offset(end))
        files: Sequence[ReadableFile]
        if self._options.reads_changes:
            changes = batch_changes(batch, stream.log)
            files = tuple(feed_files(changes, stream.log.root_uri))
        else:
            files = readable_files(batch_adds(batch), stream.log.root_uri)
        return [InputPartition(file) for file in files]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a file."""
        return self._rows(partition.value)


if _LIMITS is not None:

    class LimitedStreamReader(DeltaStreamReader, _LIMITS.SupportsTriggerAvailableNow):  # type: ignore[misc]
        """The same with the limits of batches, and queries that end with what is there."""

        def __init__(self, table: StreamedTable, options: StreamOptions, rows: SourceRows) -> None:
            super().__init__(table, options, rows)
            self._bound: StreamOffset | None = None
            self._is_bounded = False

        def getDefaultReadLimit(self) -> Any:
            """Return what options ask for; a limit of files stands for one of both kinds."""
            limits = self._options.limits
            if limits.max_files is not None:
                return _LIMITS.ReadMaxFiles(limits.max_files)
            return _LIMITS.ReadMaxBytes(limits.max_bytes)

        def latestOffset(self, start: Offset, limit: Any) -> Offset:  # type: ignore[override]
            """Return the end of the next batch, ``start`` if there is nothing new.

            Raises:
                InvalidRequestError: rows were removed, the columns have changed, or the change
                    data feed was off.
            """
            stream, everything = self._stream, isinstance(limit, _LIMITS.ReadAllAvailable)
            begin = stream.offset(start)
            if self._is_bounded and self._bound is None:
                self._bound = stream.latest(begin) or begin
            found = stream.latest(
                begin, EVERYTHING if everything else self._options.limits, self._bound
            )
            return start if found is None or found is begin else found.values()

        def prepareForTriggerAvailableNow(self) -> None:
            """Let the query end with what is there at its first question."""
            self._is_bounded, self._bound = True, None


def stream_reader(
    table: StreamedTable, options: StreamOptions, rows: SourceRows
) -> DeltaStreamReader:
    """Return the best reader that this PySpark takes."""
    if _LIMITS is None:
        return DeltaStreamReader(table, options, rows)
    return LimitedStreamReader(table, options, rows)
