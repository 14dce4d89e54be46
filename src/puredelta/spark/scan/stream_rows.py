"""A stream over a table, as Spark's engine asks for it: native scans of the files of each batch."""

from __future__ import annotations

import threading
from collections import defaultdict
from dataclasses import replace
from functools import reduce

from pyspark.sql import DataFrame, SparkSession

from puredelta.log.changes.stream_changes import batch_changes
from puredelta.log.changes.stream_files import batch_files
from puredelta.log.changes.stream_items import StreamBatch
from puredelta.log.changes.stream_limits import EVERYTHING, ReadLimits
from puredelta.log.changes.stream_log import StreamLog
from puredelta.log.changes.stream_offset import StreamOffset
from puredelta.log.files.file_table import FileTable
from puredelta.log.replay.snapshot import Snapshot
from puredelta.protocol.features.column_mapping import physical_name
from puredelta.spark.jvm.streams.queries import RunningQuery
from puredelta.spark.jvm.streams.source import stream_frame
from puredelta.spark.jvm.streams.tracking_location import require_under
from puredelta.spark.scan.change_scan import scan_changes
from puredelta.spark.scan.scan import scan
from puredelta.spark.session.delta_conf import TRACKING_OUTSIDE_CHECKPOINT
from puredelta.spark.session.session import settings_of


def stream_rows(
    spark: SparkSession,
    stream: StreamLog,
    read: Snapshot,
    *,
    limits: ReadLimits,
    reads_changes: bool,
) -> DataFrame:
    """Return a streaming frame of the rows, or changes, that a stream delivers.

    Its columns are those of ``read``, which is the state of the table when the stream was made.
    Runs no job. Classic sessions only.
    """
    source = TableStream(spark, stream, read, limits=limits, reads_changes=reads_changes)
    return stream_frame(spark, source, source.batch_of(StreamBatch.nothing()).schema)


class TableStream:
    """One stream; threads of Spark ask it, for one query at a time."""

    def __init__(
        self,
        spark: SparkSession,
        stream: StreamLog,
        read: Snapshot,
        *,
        limits: ReadLimits,
        reads_changes: bool,
    ) -> None:
        self._spark = spark
        self._stream = stream
        self._read = read.with_files(FileTable.of(()))
        self._limits = limits
        self._reads_changes = reads_changes
        self._bound_lock = threading.Lock()
        self._is_bounded = False
        self._bound: StreamOffset | None = None
        self._source_path: str | None = None

    @property
    def description(self) -> str:
        """What the progress of a query shows."""
        return f"DeltaSource[{self._read.root_uri}]"

    @property
    def default_limits(self) -> ReadLimits:
        """How much a batch takes."""
        return self._limits

    @property
    def tracking_location(self) -> str | None:
        """Where the log of schemas is, if there is one."""
        tracking = self._stream.tracking
        return None if tracking is None else tracking.location

    def begin(self, query: RunningQuery, source_path: str) -> None:
        """Begin a query that keeps a log of schemas; the next questions are those of the same.

        Raises:
            InvalidRequestError: the log lies elsewhere
                (DELTA_STREAMING_SCHEMA_LOCATION_NOT_UNDER_CHECKPOINT), or see
                `StreamTracking.begin`.
        """
        tracking = self._stream.tracking
        if tracking is None or source_path == self._source_path:
            return
        settings = settings_of(self._spark)
        if not TRACKING_OUTSIDE_CHECKPOINT.flag(settings):
            require_under(self._spark, tracking.location, query.checkpoint)
        tracking.begin(source_path, settings)
        self._source_path = source_path

    def complete(self, end: str) -> None:
        """Take note that rows are done with; errors as `StreamLog.complete`."""
        self._stream.complete(self._stream.offset(end))

    def latest_offset(self, start: str | None, limits: ReadLimits) -> str | None:
        """Return the end of the next batch; errors as `StreamLog.latest`."""
        begin = None if start is None else self._stream.offset(start)
        found = self._stream.latest(begin, limits, self._bound_from(begin))
        if found is begin:
            return start
        return None if found is None else found.text()

    def batch(self, start: str | None, end: str) -> DataFrame:
        """Return the rows between two offsets; errors as `StreamLog.batch`."""
        begin = None if start is None else self._stream.offset(start)
        return self.batch_of(self._stream.batch(begin, self._stream.offset(end)))

    def batch_of(self, batch: StreamBatch) -> DataFrame:
        """Return the rows of a batch."""
        if self._reads_changes:
            return scan_changes(self._spark, self._read, batch_changes(batch, self._stream.log))
        return _scan_alike(self._spark, self._read, batch_files(batch))

    def prepare_for_available_now(self) -> None:
        """Let a query end with what is there at its first question."""
        with self._bound_lock:
            self._is_bounded, self._bound = True, None

    def stop(self) -> None:
        """Let the next query begin anew."""
        with self._bound_lock:
            self._is_bounded, self._bound = False, None
        self._source_path = None
        self._stream.forget_start()

    def _bound_from(self, start: StreamOffset | None) -> StreamOffset | None:
        if not self._is_bounded:
            return None
        bound = self._bound
        if bound is None:
            bound = self._stream.latest(start, EVERYTHING)
            with self._bound_lock:
                # Nothing there yet: then the next question sees no more than this one.
                self._bound = bound = self._stream.beginning() if bound is None else bound
        return bound


def _scan_alike(spark: SparkSession, read: Snapshot, files: FileTable) -> DataFrame:
    """Scan files; those of a time when the table had other partition columns by themselves."""
    mode = read.config.column_mapping
    partitioned = {physical_name(f, mode): f.name for f in read.config.schema.fields}
    groups: defaultdict[tuple[str, ...], list[int]] = defaultdict(list)
    for n, values in enumerate(files.rows["partition_values"].to_pylist()):
        groups[tuple(sorted(name for name, _ in values or ()))].append(n)
    if len(groups) < 2:  # noqa: PLR2004 - as nearly always
        return scan(spark, read.with_files(files), files, time_travel=True)
    scans = []
    for names, places in groups.items():
        columns = tuple(partitioned[name] for name in names if name in partitioned)
        config = replace(read.config, partition_columns=columns)
        some = files.take(places)
        scans.append(scan(spark, replace(read, config=config).with_files(some), some))
    return reduce(DataFrame.union, scans)
