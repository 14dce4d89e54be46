"""Readers and stream writers of format ``delta`` as calls of puredelta.

A stream writer is PySpark's own query with ``foreachBatch``. A batch is committed together with
the query's id and the batch's number, so a repeated batch changes nothing. Classic sessions only.
"""

from __future__ import annotations

import datetime as dt
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from puredelta.activation.captured_options import (
    CapturedOptions,
    clustered_otherwise,
    clustering_paths,
    is_clustered_otherwise,
    require_path,
)
from puredelta.activation.writing import write_options
from puredelta.commands.changes import read_changes
from puredelta.commands.create.as_select import NewTable
from puredelta.commands.create.create_table import CreateMode, create_table
from puredelta.commands.create.definition import TableDefinition
from puredelta.commands.create.registered import create_registered
from puredelta.commands.defined_columns import stored_columns
from puredelta.commands.read_table import read_stream, read_table, resolve_timestamp
from puredelta.commands.write.options import SaveMode
from puredelta.commands.write.write_table import WriteRequest, write_table
from puredelta.errors import InvalidRequestError, Message
from puredelta.log.changes.stream_options import StreamOptions
from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.actions.operations import Operation, streaming_update
from puredelta.protocol.table.table_config import TableConfig
from puredelta.spark.catalog.catalog_entries import EntryName
from puredelta.spark.session.delta_conf import REFUSED_BY_PATHS_WITH_VERSIONS, REFUSED_BY_STREAMS
from puredelta.spark.session.session import settings_of
from puredelta.spark.session.storage import file_system_options, open_log
from puredelta.spark.session.types import struct_as_nullable, without_table_metadata
from puredelta.statements.parse.table_name import TimeTravel, split_time_travel

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc)
_CHANGES = ("readChangeFeed", "readChangeData")


def load(spark: SparkSession, captured: CapturedOptions, path: Any) -> DataFrame:
    """Return the rows selected by the options of a reader.

    ``versionAsOf`` or ``timestampAsOf`` choose the version, and so does the end of a path that is
    no table itself (``/t@v3``, ``/t@20250131120000000``). ``readChangeFeed`` returns the changes,
    with ``startingVersion`` or ``startingTimestamp`` and their ``ending`` counterparts. Other
    options have no effect, as in delta-spark. Runs no job.

    Raises:
        InvalidRequestError: no path or several, a schema was given, options are wrong.
        TableNotFoundError: there is no table at the path, or no such version.
    """
    if captured.has_schema:
        raise _schema_given()
    location = require_path(captured, path)
    root, state = split_time_travel(location)
    if state is None or open_log(spark, location).exists():
        return rows_at(spark, captured, location)
    REFUSED_BY_PATHS_WITH_VERSIONS.require_defaults(settings_of(spark))
    return rows_at(spark, _at_state(captured, state, location), root)


def _at_state(captured: CapturedOptions, state: TimeTravel, path: str) -> CapturedOptions:
    """Return the options with the version or time at the end of the path."""
    if captured.option("versionAsOf") is not None or captured.option("timestampAsOf") is not None:
        raise InvalidRequestError(Message.ONE_OF_IN_TIME_TRAVEL_PATH, path=path)
    if state.version is not None:
        return captured.with_options({"versionAsOf": state.version})
    return captured.with_options({"timestampAsOf": state.timestamp})


def rows_at(spark: SparkSession, captured: CapturedOptions, location: str) -> DataFrame:
    """Return the rows that the options of a reader select in the table at a location."""
    version, timestamp = captured.option("versionAsOf"), captured.option("timestampAsOf")
    if not _reads_changes(captured):
        return read_table(
            spark,
            location,
            version=version,
            timestamp=timestamp,
            storage_options=file_system_options(captured.options or {}),
        )
    if version is not None or timestamp is not None:
        raise _time_travel()
    return read_changes(
        spark,
        open_log(spark, location, storage_options=file_system_options(captured.options or {})),
        starting_version=captured.option("startingVersion"),
        starting_timestamp=captured.option("startingTimestamp"),
        ending_version=captured.option("endingVersion"),
        ending_timestamp=captured.option("endingTimestamp"),
    )


def load_stream(spark: SparkSession, captured: CapturedOptions, path: Any) -> DataFrame:
    """Return a streaming frame over the table of a reader in a classic session.

    Options unknown to `StreamOptions` have no effect, as in delta-spark.

    Raises:
        InvalidRequestError: no path or several, a schema was given, options are wrong.
        TableNotFoundError: there is no table (DELTA_PATH_DOES_NOT_EXIST, DELTA_TABLE_NOT_FOUND).
    """
    if captured.has_schema:
        raise _schema_given()
    return read_stream(spark, require_path(captured, path), captured.options or {})


def prepare_stream(spark: SparkSession, captured: CapturedOptions) -> str | None:
    """Check the options of a stream over Connect; return its start time, if any, with UTC offset.

    The data source does not know the session's time zone.
    """
    chosen = StreamOptions.parse(captured.option, lambda text: resolve_timestamp(spark, text))
    chosen.require_untracked()
    start = chosen.settings.start
    if start.timestamp_ms is None:
        return None
    return (_EPOCH + dt.timedelta(milliseconds=start.timestamp_ms)).isoformat()


def _schema_given() -> InvalidRequestError:
    return InvalidRequestError(Message.UNSUPPORTED_SCHEMA_DURING_READ_SCHEMA_GIVEN)


def _time_travel() -> InvalidRequestError:
    return InvalidRequestError(Message.UNSUPPORTED_TIME_TRAVEL_VIEWS_STREAM_READER)


def _reads_changes(captured: CapturedOptions) -> bool:
    return any((captured.option(name) or "").lower() == "true" for name in _CHANGES)


_CHECKPOINT = "checkpointLocation"
_CHECKPOINTS = "spark.sql.streaming.checkpointLocation"
_QUERY_ID = "sql.streaming.queryId"
_MODES = {"append": SaveMode.APPEND, "complete": SaveMode.OVERWRITE}


def start(rows: DataFrame, captured: CapturedOptions, location: str) -> Any:
    """Start a query that writes into the table at a location; return it.

    Raises:
        InvalidRequestError: no checkpoint, or an output mode other than append and complete.
        UnsupportedError: an option that is not implemented.
    """
    mode = _mode(captured)
    REFUSED_BY_STREAMS.require_defaults(settings_of(rows.sparkSession))
    _require_checkpoint(rows.sparkSession, captured)
    options = write_options(captured)
    writer = rows.writeStream.outputMode(mode).options(**(captured.options or {}))
    if captured.query_name is not None:
        writer = writer.queryName(captured.query_name)
    if captured.trigger:
        writer = writer.trigger(**captured.trigger)
    log, partition_by = open_log(rows.sparkSession, location), captured.partition_by
    if captured.cluster_by:
        _create_clustered(rows, captured, log)

    def write_batch(batch: DataFrame, batch_id: int) -> None:
        query_id = _query_id(batch.sparkSession)

        def operation(_: TableConfig) -> Operation:
            return streaming_update(mode=mode, query_id=query_id, epoch_id=batch_id)

        request = WriteRequest(
            mode=_MODES[mode],
            partition_by=partition_by,
            options={**options, "txnAppId": query_id, "txnVersion": str(batch_id)},
            record=operation,
        )
        write_table(batch, log, request)

    return writer.foreachBatch(write_batch).start()


def create_for_stream(rows: DataFrame, captured: CapturedOptions, name: EntryName) -> None:
    """Create the table of the session catalog for the rows of a query.

    Raises:
        InvalidRequestError: the columns cannot be a table's.
    """
    table = NewTable(
        name=name, location=captured.option("path"), definition=_definition(rows, captured)
    )
    create_registered(rows.sparkSession, table)


def _create_clustered(rows: DataFrame, captured: CapturedOptions, log: TableLog) -> None:
    """Create the clustered table for the rows of a query, before it starts.

    Raises:
        InvalidRequestError: the table exists with other clustering columns.
    """
    if not log.exists():
        definition = _definition(rows, captured)
        create_table(rows.sparkSession, log, definition, mode=CreateMode.CREATE_IF_NOT_EXISTS)
    if is_clustered_otherwise(log, captured):
        raise clustered_otherwise(log, captured)


def _definition(rows: DataFrame, captured: CapturedOptions) -> TableDefinition:
    """Return the definition of a table for these rows."""
    schema = without_table_metadata(struct_as_nullable(rows.schema))
    return TableDefinition(
        columns=stored_columns(schema),
        partition_columns=captured.partition_by,
        clustering_columns=clustering_paths(captured) or None,
        properties={k: v for k, v in write_options(captured).items() if k.startswith("delta.")},
    )


def _mode(captured: CapturedOptions) -> str:
    mode = (captured.output_mode or "append").lower()
    if mode not in _MODES:
        raise InvalidRequestError(Message.UNSUPPORTED_OUTPUT_MODE, mode=mode)
    return mode


def _require_checkpoint(spark: SparkSession, captured: CapturedOptions) -> None:
    if captured.option(_CHECKPOINT) is None and not spark.conf.get(_CHECKPOINTS, None):
        raise InvalidRequestError(
            Message.OPERATION_NOT_ALLOWED_CHECKPOINT,
            checkpoint=_CHECKPOINT,
            checkpoints=_CHECKPOINTS,
        )


def _query_id(spark: SparkSession) -> str:
    """Return the id of the query of this batch; it stays the same over restarts."""
    found = spark.sparkContext.getLocalProperty(_QUERY_ID)
    assert found is not None  # noqa: S101 - Spark sets it for the thread of every query
    return str(found)
