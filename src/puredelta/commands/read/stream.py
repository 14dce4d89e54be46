"""Read a table as a stream: the rows or changes of every commit, batch by batch."""

from __future__ import annotations

import os
from collections.abc import Mapping

from pyspark.sql import DataFrame, SparkSession

from puredelta.commands.read.read_table import resolve_timestamp
from puredelta.errors import ErrorCode, InvalidRequestError
from puredelta.log.changes.stream_log import StreamLog
from puredelta.log.changes.stream_options import StreamOptions, TrackingOptions
from puredelta.log.changes.stream_schema import StreamedTable
from puredelta.log.replay.table_log import TableLog
from puredelta.log.tracking.allowed_changes import AllowedChanges
from puredelta.log.tracking.schema_log import SchemaLog
from puredelta.log.tracking.stream_tracking import StreamTracking, TrackedRead
from puredelta.spark.scan.stream_rows import stream_rows
from puredelta.spark.session.delta_conf import REFUSED_BY_STREAMS
from puredelta.spark.session.open_log import file_system_options, open_log
from puredelta.spark.session.session import settings_of


def read_stream(
    spark: SparkSession, path: str | os.PathLike[str], options: Mapping[str, str]
) -> DataFrame:
    """Return a streaming frame over the table at ``path``; names of options in any case.

    Batches are native scans: no row passes through Python. Runs no job. Classic sessions only.

    Raises:
        TableNotFoundError: there is no table (DELTA_PATH_DOES_NOT_EXIST, DELTA_TABLE_NOT_FOUND).
        InvalidRequestError: the table has no columns, or see `StreamOptions.parse`.
        UnsupportedError: an option or the table needs what is not implemented.
        CorruptTableError: the log, or that of schemas, is damaged.
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
        raise InvalidRequestError(
            f"Table schema is not set. Write data into {read.root_uri} before it is streamed.",
            code=ErrorCode.SCHEMA_NOT_SET,
        )
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
