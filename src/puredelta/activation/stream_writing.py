"""Stream writers of format ``delta`` as PySpark's own queries with ``foreachBatch``.

A batch is committed together with the query's id and the batch's number, so a repeated batch
changes nothing. Over Connect the function runs in a Python process of the server, which is a client
of the same server: it gets the code of this package by value (`puredelta.spark.connect`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from puredelta.activation.captured_options import (
    CapturedOptions,
    clustered_otherwise,
    clustering_paths,
    is_clustered_otherwise,
)
from puredelta.activation.writing import write_options
from puredelta.catalogs.catalog import name_of_address
from puredelta.commands.create.as_select import NewTable
from puredelta.commands.create.create_table import CreateMode, create_table
from puredelta.commands.create.definition import TableDefinition
from puredelta.commands.create.registered import create_registered
from puredelta.commands.defined_columns import stored_columns
from puredelta.commands.write.options import SaveMode
from puredelta.commands.write.write_table import WriteRequest, write_table
from puredelta.errors import InvalidRequestError, Message, UnsupportedError
from puredelta.log.files.clock import random_id
from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.actions.operations import Operation, streaming_update
from puredelta.protocol.table.table_config import TableConfig
from puredelta.spark.catalog.catalog_entries import EntryName
from puredelta.spark.connect.shipped_code import with_package
from puredelta.spark.session.data_access import as_glob
from puredelta.spark.session.delta_conf import REFUSED_BY_STREAMS
from puredelta.spark.session.session import is_connect, setting_of, settings_of
from puredelta.spark.session.storage import file_system_options, open_log
from puredelta.spark.session.types import struct_as_nullable, without_table_metadata

_CHECKPOINT = "checkpointLocation"
_CHECKPOINTS = "spark.sql.streaming.checkpointLocation"
_QUERY_ID = "sql.streaming.queryId"
_MODES = {"append": SaveMode.APPEND, "complete": SaveMode.OVERWRITE}


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamSink:
    """The table that gets the batches of a query; may be sent to another process."""

    location: str
    mode: str
    """The output mode: a key of `_MODES`."""
    partition_by: tuple[str, ...]
    options: Mapping[str, str]
    """Of the writer, those that have an effect on a table."""
    storage_options: Mapping[str, str]

    def write(
        self, batch: DataFrame, batch_id: int, query_id: str, log: TableLog | None = None
    ) -> None:
        """Commit a batch; one that was committed before changes nothing."""

        def operation(_: TableConfig) -> Operation:
            return streaming_update(mode=self.mode, query_id=query_id, epoch_id=batch_id)

        request = WriteRequest(
            mode=_MODES[self.mode],
            partition_by=self.partition_by,
            options={**self.options, "txnAppId": query_id, "txnVersion": str(batch_id)},
            record=operation,
        )
        write_table(batch, log or self.open(batch.sparkSession), request)

    def open(self, spark: SparkSession) -> TableLog:
        """Open the log of the table."""
        return open_log(spark, self.location, storage_options=self.storage_options)


def start(rows: DataFrame, captured: CapturedOptions, location: str) -> Any:
    """Start a query that writes into the table at a location; return it.

    Raises:
        InvalidRequestError: no checkpoint, or an output mode other than append and complete.
        UnsupportedError: an option that is not implemented.
    """
    spark, mode = rows.sparkSession, _mode(captured)
    REFUSED_BY_STREAMS.require_defaults(settings_of(spark))
    checkpoint = _checkpoint(spark, captured)
    writer = rows.writeStream.outputMode(mode).options(**(captured.options or {}))
    if captured.query_name is not None:
        writer = writer.queryName(captured.query_name)
    if captured.trigger:
        writer = writer.trigger(**captured.trigger)
    given = file_system_options(captured.options or {})
    log = open_log(spark, location, storage_options=given)
    if captured.cluster_by:
        _create_clustered(rows, captured, log)
    sink = StreamSink(
        location=location if name_of_address(location) is not None else log.root_uri,
        mode=mode,
        partition_by=captured.partition_by,
        options=write_options(captured),
        storage_options=given,
    )
    if is_connect(spark):
        writer = writer.option(_CHECKPOINT, checkpoint)
        function = with_package(partial(_write_on_server, sink, checkpoint))
        return _started_on_server(writer.foreachBatch(function))

    def write_batch(batch: DataFrame, batch_id: int) -> None:
        sink.write(batch, batch_id, _query_id(batch.sparkSession), log)

    return writer.foreachBatch(write_batch).start()


def _started_on_server(writer: Any) -> Any:
    try:
        return writer.start()
    except PySparkException as failure:
        if "Python worker" not in str(failure):
            raise
        raise UnsupportedError(Message.UNSUPPORTED_ON_CONNECT_WRITE_STREAM) from failure


_query_ids: dict[str, str] = {}
"""By checkpoint: the one of the query whose batches this process of a server gets."""


def _write_on_server(sink: StreamSink, checkpoint: str, batch: DataFrame, batch_id: int) -> None:
    """Commit a batch in a process of a Connect server, which knows no property of the query.

    Spark writes the id into the checkpoint before the first batch; it stays the same over restarts.
    """
    if checkpoint not in _query_ids:
        rows = batch.sparkSession.read.text(as_glob(f"{checkpoint}/metadata")).collect()
        _query_ids[checkpoint] = json.loads("".join(row[0] for row in rows))["id"]
    sink.write(batch, batch_id, _query_ids[checkpoint])


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


def _checkpoint(spark: SparkSession, captured: CapturedOptions) -> str:
    """Return the checkpoint of a query, where Spark would look for it."""
    if (given := captured.option(_CHECKPOINT)) is not None:
        return given
    if checkpoints := setting_of(spark, _CHECKPOINTS, ""):
        return f"{checkpoints.rstrip('/')}/{captured.query_name or random_id()}"
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
