"""``df.writeStream.format("delta")``: each batch is one write, exactly once.

The query is PySpark's own, with ``foreachBatch``. A batch is committed together with the
query's id and the batch's number, so one that Spark runs again changes nothing. Classic
sessions only.
"""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame, SparkSession

from puredelta.activation.calls.captured_options import CapturedOptions
from puredelta.activation.calls.clustering import (
    clustered_otherwise,
    clustering_paths,
    is_clustered_otherwise,
)
from puredelta.activation.calls.writing import write_options
from puredelta.commands.create.create_table import CreateMode, create_table
from puredelta.commands.create.definition import TableDefinition
from puredelta.commands.create.registered import NewTable, create_registered
from puredelta.commands.definition.columns import stored_columns
from puredelta.commands.write.options import SaveMode
from puredelta.commands.write.write_table import WriteRequest, write_table
from puredelta.errors import ErrorCode, InvalidRequestError
from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.actions.operations import Operation
from puredelta.protocol.actions.table_operations import streaming_update
from puredelta.protocol.table.table_config import TableConfig
from puredelta.spark.catalog.catalog_entries import EntryName
from puredelta.spark.session.delta_conf import REFUSED_BY_STREAMS
from puredelta.spark.session.open_log import open_log
from puredelta.spark.session.session import settings_of
from puredelta.spark.session.types import struct_as_nullable, without_table_metadata

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
    """Create the table of the session catalog that a query is to write into.

    Raises:
        InvalidRequestError: the columns cannot be a table's.
    """
    table = NewTable(
        name=name, location=captured.option("path"), definition=_definition(rows, captured)
    )
    create_registered(rows.sparkSession, table)


def _create_clustered(rows: DataFrame, captured: CapturedOptions, log: TableLog) -> None:
    """Create the clustered table that a query is to write into, before it starts.

    Raises:
        InvalidRequestError: the table is there and clustered otherwise.
    """
    if not log.exists():
        definition = _definition(rows, captured)
        create_table(rows.sparkSession, log, definition, mode=CreateMode.CREATE_IF_NOT_EXISTS)
    if is_clustered_otherwise(log, captured):
        raise clustered_otherwise(log, captured)


def _definition(rows: DataFrame, captured: CapturedOptions) -> TableDefinition:
    """Return the table of these rows."""
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
        raise InvalidRequestError(
            f"Data source delta does not support {mode} output mode. Use append or complete, or "
            "foreachBatch with a MERGE.",
            code=ErrorCode.UNSUPPORTED_OUTPUT_MODE,
            mode=mode,
        )
    return mode


def _require_checkpoint(spark: SparkSession, captured: CapturedOptions) -> None:
    if captured.option(_CHECKPOINT) is None and not spark.conf.get(_CHECKPOINTS, None):
        raise InvalidRequestError(
            f'checkpointLocation must be specified either through option("{_CHECKPOINT}", ...) or '
            f'SparkSession.conf.set("{_CHECKPOINTS}", ...)',
            code=ErrorCode.OPERATION_NOT_ALLOWED,
        )


def _query_id(spark: SparkSession) -> str:
    """Return the id of the query that runs this batch; it stays the same over restarts."""
    found = spark.sparkContext.getLocalProperty(_QUERY_ID)
    assert found is not None  # noqa: S101 - Spark sets it for the thread of every query
    return str(found)
