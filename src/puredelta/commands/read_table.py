"""Rows of a version, rows of a stream, and the history of a table."""

from __future__ import annotations

import datetime as dt
import json
import os
import re
from collections.abc import Mapping
from typing import Any, TypeAlias

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from puredelta.errors import InvalidRequestError, Message
from puredelta.log.changes.schema_log import AllowedChanges, SchemaLog
from puredelta.log.changes.schema_tracking import StreamTracking, TrackedRead
from puredelta.log.changes.stream import StreamLog
from puredelta.log.changes.stream_options import StreamOptions, TrackingOptions
from puredelta.log.changes.stream_schema import StreamedTable
from puredelta.log.replay.history import HistoryEntry
from puredelta.log.replay.snapshot import Snapshot
from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.actions.actions import CommitInfo
from puredelta.quantities import in_milliseconds
from puredelta.spark.scan.change_scan import stream_rows
from puredelta.spark.scan.row_tracking_scan import readable_rows
from puredelta.spark.scan.table_rows import named_rows
from puredelta.spark.session.delta_conf import REFUSED_BY_STREAMS
from puredelta.spark.session.session import settings_of
from puredelta.spark.session.storage import file_system_options, open_log

TimestampArgument: TypeAlias = str | dt.datetime | dt.date
"""A timestamp: text as Spark casts it, a datetime, or a date, which means its start. The
session's time zone is used where none is given.
"""

_ONE_ROW = "SELECT * FROM VALUES (0)"
_RELATIVE = re.compile(r"\s*(?:epoch|now|today|tomorrow|yesterday)\b", re.IGNORECASE)
"""Words that Spark accepts only in a timestamp literal."""
_WHOLE = re.compile(r"[+-]?\d{1,18}")
"""A number that Java can read as a long; longer ones are no version of any table."""
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc)


def read_table(
    spark: SparkSession,
    path: str | os.PathLike[str],
    *,
    version: int | str | None = None,
    timestamp: TimestampArgument | None = None,
    where: str | None = None,
    storage_options: Mapping[str, object] | None = None,
) -> DataFrame:
    """Return the rows of the table at ``path``, or those for which ``where`` is true.

    Runs no job on the table's data.
    """
    log = open_log(spark, path, storage_options=storage_options)
    snapshot = snapshot_of(spark, log, version=version, timestamp=timestamp)
    chosen = version is not None or timestamp is not None
    return readable_rows(spark, snapshot, time_travel=chosen, where=where)


def read_named(
    spark: SparkSession,
    path: str | os.PathLike[str],
    names: frozenset[str] | None,
    *,
    version: int | str | None = None,
    timestamp: TimestampArgument | None = None,
) -> DataFrame:
    """Return the rows of the table at ``path`` for a query.

    ``names`` has, in lower case, every column that the query can need, None for any. The frame
    lacks other columns if no plan could request some. Errors as `read_table`.
    """
    snapshot = snapshot_of(spark, open_log(spark, path), version=version, timestamp=timestamp)
    chosen = version is not None or timestamp is not None
    rows = None if names is None else named_rows(spark, snapshot, names, time_travel=chosen)
    return readable_rows(spark, snapshot, time_travel=chosen) if rows is None else rows


def find_snapshot(
    spark: SparkSession,
    path: str | os.PathLike[str],
    *,
    version: int | str | None = None,
    timestamp: TimestampArgument | None = None,
) -> Snapshot:
    """Return the state of the table at ``path``, by default the newest; errors as `read_table`."""
    return snapshot_of(spark, open_log(spark, path), version=version, timestamp=timestamp)


def snapshot_of(
    spark: SparkSession,
    log: TableLog,
    *,
    version: int | str | None = None,
    timestamp: TimestampArgument | None = None,
) -> Snapshot:
    """Return the state of the table of a log, by default the newest; errors as `read_table`."""
    if version is not None and timestamp is not None:
        raise InvalidRequestError(
            Message.ONE_OF_IN_TIME_TRAVEL_READ, version=version, timestamp=timestamp
        )
    if timestamp is not None:
        return log.snapshot(timestamp_ms=resolve_timestamp(spark, timestamp))
    return log.snapshot(version=None if version is None else parse_version(version))


def resolve_timestamp(spark: SparkSession, instant: TimestampArgument) -> int:
    """Return milliseconds since 1970; only text and values without a zone ask Spark.

    Raises:
        InvalidRequestError: the text is no timestamp (DELTA_TIMESTAMP_INVALID).
    """
    match instant:
        case dt.datetime() if instant.tzinfo is not None:
            return in_milliseconds(instant - _EPOCH)
        case dt.datetime() | dt.date():
            text = instant.isoformat()
        case _:
            text = instant
            if _RELATIVE.match(text) is not None:  # Spark's optimizer would accept it
                raise _not_a_timestamp(instant)
    # The session's own cast knows its zone and all of Spark's spellings. No job: one row.
    # No SQL parameter: parsers of extensions, delta-spark's for one, may not bind it.
    millis = F.unix_millis(F.lit(text).try_cast("timestamp")).alias("millis")
    row = spark.sql(_ONE_ROW).select(millis).first()
    if row is None or row["millis"] is None:
        raise _not_a_timestamp(instant)
    return int(row["millis"])


def _not_a_timestamp(instant: TimestampArgument) -> InvalidRequestError:
    return InvalidRequestError(Message.TIMESTAMP_INVALID_TEXT, timestamp=instant)


def parse_version(version: object, error: Message = Message.TIME_TRAVEL_INVALID_BEGIN_VALUE) -> int:
    """Return a version as a number; a user may give it as text.

    Raises:
        InvalidRequestError: it is no whole number; ``error`` is the text.
    """
    match version:
        case bool():
            raise InvalidRequestError(error, version=version)
        case int():
            return version
        case str() if _WHOLE.fullmatch(version) is not None:
            return int(version)
        case _:
            raise InvalidRequestError(error, version=version)


def read_stream(
    spark: SparkSession, path: str | os.PathLike[str], options: Mapping[str, str]
) -> DataFrame:
    """Return a streaming frame over the table at ``path``; names of options in any case.

    Batches are native scans: no row passes through Python. Runs no job. Classic sessions only.

    Raises:
        TableNotFoundError: there is no table (DELTA_PATH_DOES_NOT_EXIST, DELTA_TABLE_NOT_FOUND).
        InvalidRequestError: the table has no columns, or see `StreamOptions.parse`.
        UnsupportedError: an option or a feature of the table is not implemented.
        CorruptTableError: the log, or the schema log, is damaged.
    """
    REFUSED_BY_STREAMS.require_defaults(settings_of(spark))
    given = {name.lower(): text for name, text in options.items()}
    chosen = StreamOptions.parse(
        lambda name: given.get(name.lower()), lambda text: resolve_timestamp(spark, text)
    )
    log = open_log(spark, path, storage_options=file_system_options(options))
    read, tracking = log.snapshot(), None
    if chosen.tracking is not None:
        tracked = _tracked_read(spark, log, chosen.tracking, options)
        allowed = AllowedChanges(options=chosen.tracking.allowed)
        read, tracking = tracked.snapshot, StreamTracking(log, tracked, allowed)
    if not read.config.schema.fields:
        raise InvalidRequestError(Message.SCHEMA_NOT_SET, root_uri=read.root_uri)
    streamed = chosen.streamed(StreamedTable.of(read, follows_changes=tracking is not None))
    return stream_rows(
        spark,
        StreamLog(log, streamed, chosen.settings, tracking),
        read,
        limits=chosen.limits,
        reads_changes=chosen.reads_changes,
    )


def _tracked_read(
    spark: SparkSession, log: TableLog, tracking: TrackingOptions, options: Mapping[str, str]
) -> TrackedRead:
    table_id = log.snapshot().metadata.id
    place = open_log(
        spark, tracking.directory(table_id), storage_options=file_system_options(options)
    )
    return TrackedRead.of(log, SchemaLog.read(place.store, table_id))


_SCHEMA = """
    version BIGINT, timestamp TIMESTAMP, userId STRING, userName STRING, operation STRING,
    operationParameters MAP<STRING, STRING>,
    job STRUCT<jobId: STRING, jobName: STRING, jobRunId: STRING, runId: STRING,
               jobOwnerId: STRING, triggerType: STRING>,
    notebook STRUCT<notebookId: STRING>, clusterId STRING, readVersion BIGINT,
    isolationLevel STRING, isBlindAppend BOOLEAN, operationMetrics MAP<STRING, STRING>,
    userMetadata STRING, engineInfo STRING
"""
_JOB_FIELDS = ("jobId", "jobName", "jobRunId", "runId", "jobOwnerId", "triggerType")


def history_rows(spark: SparkSession, log: TableLog, *, limit: int | None = None) -> DataFrame:
    """Return one row per commit that is still in the log, newest first; reads the log only."""
    rows = [] if limit is not None and limit <= 0 else [_row(e) for e in log.history(limit=limit)]
    return spark.createDataFrame(rows, _SCHEMA)


def utc_time(time_ms: int) -> dt.datetime:
    """Return a timestamp with a time zone, so that the session's zone does not change it."""
    return dt.datetime.fromtimestamp(time_ms // 1000, tz=dt.timezone.utc) + dt.timedelta(
        milliseconds=time_ms % 1000
    )


def _row(entry: HistoryEntry) -> tuple[Any, ...]:
    info = entry.commit_info or CommitInfo()
    job, notebook = info.extra.get("job"), info.extra.get("notebook")
    return (
        entry.version,
        utc_time(entry.timestamp_ms),
        _text(info.extra.get("userId")),
        _text(info.extra.get("userName")),
        info.operation,
        {name: _text(value) for name, value in info.operation_parameters.items()},
        tuple(_text(job.get(f)) for f in _JOB_FIELDS) if isinstance(job, Mapping) else None,
        (_text(notebook.get("notebookId")),) if isinstance(notebook, Mapping) else None,
        _text(info.extra.get("clusterId")),
        info.read_version,
        info.isolation_level,
        info.is_blind_append,
        None if info.operation_metrics is None else dict(info.operation_metrics),
        info.user_metadata,
        info.engine_info,
    )


def _text(value: Any) -> str | None:
    """Return a JSON value as text: strings unchanged, everything else as JSON."""
    return value if value is None or isinstance(value, str) else json.dumps(value)
