"""Scans of changed rows: a range of commits, or the batch of a stream.

For Spark every file belongs to a table that is also partitioned by the columns of the feed:
version, time and (unless the file holds it) kind of change are partition values of the file.
So filters on them choose files, and the number of scans does not grow with the commits.
"""

from __future__ import annotations

import dataclasses
import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import reduce
from typing import TypeVar

from pyspark.sql import DataFrame, SparkSession

from puredelta.log.changes.change_feed import (
    ChangedFile,
    ChangedRows,
    ChangeFiles,
    read_vector_changes,
    with_change_values,
)
from puredelta.log.changes.stream import StreamLog, batch_changes, batch_files
from puredelta.log.changes.stream_offsets import EVERYTHING, ReadLimits, StreamBatch, StreamOffset
from puredelta.log.files.file_table import FileTable
from puredelta.log.replay.snapshot import Snapshot
from puredelta.protocol.features.column_mapping import physical_name
from puredelta.protocol.table.change_data import (
    CHANGE_TYPE,
    COMMIT_TIMESTAMP,
    COMMIT_VERSION,
    change_schema,
    require_no_change_columns,
)
from puredelta.protocol.table.row_tracking import RowTrackingColumns
from puredelta.protocol.table.table_config import TableConfig
from puredelta.spark.jvm.streams import RunningQuery, require_under, stream_frame
from puredelta.spark.scan.bitmaps import rows_by_file, rows_inside
from puredelta.spark.scan.row_tracking_scan import tracked_scan
from puredelta.spark.scan.scan import POSITION, scan, scan_strictly
from puredelta.spark.session.delta_conf import TRACKING_OUTSIDE_CHECKPOINT
from puredelta.spark.session.session import settings_of

_T = TypeVar("_T")


def scan_changes(
    spark: SparkSession,
    read: Snapshot,
    changes: ChangeFiles,
    *,
    strictly: bool = False,
    tracked: RowTrackingColumns | None = None,
) -> DataFrame:
    """Return the changed rows: the columns of ``read``, then the three of the feed.

    Schema and location of the snapshot count, its files do not. One scan each for change
    files, for files that came or went, and for files of which rows did; several only where
    the table was repartitioned meanwhile. With ``strictly`` a missing or damaged file is an error,
    whatever the session says. With ``tracked`` `ROW_ID` and `ROW_COMMIT_VERSION` follow, and
    reading is strict.
    """
    scan_files = scan_strictly if strictly else scan

    def file_scan(files: Sequence[ChangedFile]) -> DataFrame:
        table = _as_table(read, files)
        if tracked is None:
            return scan_files(spark, table, time_travel=True)
        return _scan_with_ids(spark, table, tracked).drop(*POSITION)

    require_no_change_columns(read.config.schema.names, was_enabled=False)
    vector_changes = read_vector_changes(
        changes.vector_changes, read.root_uri, open_at=read.open_at
    )
    scans = [
        *map(file_scan, _alike(changes.recorded, _itself)),
        *map(file_scan, _alike(changes.whole, _itself)),
        *(_row_scan(spark, read, rows, tracked) for rows in _alike(vector_changes, _file_of)),
    ]
    return reduce(DataFrame.union, scans or [file_scan([])])


def _row_scan(
    spark: SparkSession,
    read: Snapshot,
    changed: Sequence[ChangedRows],
    tracked: RowTrackingColumns | None,
) -> DataFrame:
    table = _as_table(read, [c.file for c in changed])
    chosen = rows_by_file({ordinal: c.rows for ordinal, c in enumerate(changed)})
    if tracked is None:
        rows = scan(spark, table, with_position=True, time_travel=True)
    else:
        rows = _scan_with_ids(spark, table, tracked)
    return rows_inside(rows, chosen).drop(*POSITION)


def _scan_with_ids(spark: SparkSession, table: Snapshot, tracked: RowTrackingColumns) -> DataFrame:
    names = table.config.schema.names
    return tracked_scan(spark, table, table.files, tracked, columns=names)


def _itself(file: ChangedFile) -> ChangedFile:
    return file


def _file_of(changed: ChangedRows) -> ChangedFile:
    return changed.file


def _alike(items: Iterable[_T], file_of: Callable[[_T], ChangedFile]) -> Iterable[list[_T]]:
    """Group files by the columns they are partitioned by: one group, as a rule.

    In a table that was repartitioned every file keeps its own columns: what one has in
    its partition values, another holds inside.
    """
    groups: defaultdict[frozenset[str], list[_T]] = defaultdict(list)
    for item in items:
        groups[frozenset(file_of(item).file.partition_values)].append(item)
    return groups.values()


def _as_table(read: Snapshot, files: Sequence[ChangedFile]) -> Snapshot:
    """Return a table of just these files, which are partitioned alike, with the feed's columns."""
    changed = dataclasses.replace(read, config=_with_change_columns(read.config, files))
    return changed.with_files(FileTable.of(map(with_change_values, files)))


def _with_change_columns(config: TableConfig, files: Sequence[ChangedFile]) -> TableConfig:
    mode = config.column_mapping
    partitioned = files[0].file.partition_values if files else {}
    # A change file holds what happened to its rows, but no id of that column.
    is_recorded = bool(files) and files[0].change is None
    by_log = (COMMIT_VERSION, COMMIT_TIMESTAMP) if is_recorded else _EVERY_CHANGE_COLUMN
    return dataclasses.replace(
        config,
        schema=change_schema(config.schema),
        partition_columns=(
            *(f.name for f in config.schema.fields if physical_name(f, mode) in partitioned),
            *by_log,
        ),
    )


_EVERY_CHANGE_COLUMN = (CHANGE_TYPE, COMMIT_VERSION, COMMIT_TIMESTAMP)


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
        """The description in the progress of a query."""
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
        """Begin a query that keeps a log of schemas; the next questions are those of the same."""
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
        """Let the next query begin again."""
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
