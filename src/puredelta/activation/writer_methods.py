"""``df.write``, ``df.writeTo``, ``df.mergeInto`` and ``df.writeStream`` for Delta tables.

As in `reader_methods`, calls on other formats reach the original with the caller's exact
arguments.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeAlias

from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.types import StructType

from puredelta.activation.captured_options import (
    CapturedOptions,
    TableOptions,
    clustered_otherwise,
    clustering_paths,
    is_clustered_otherwise,
    require_path,
)
from puredelta.activation.merge_into import DeltaMergeInto, find_target
from puredelta.activation.patches import (
    Make,
    Method,
    rows_of,
    session_behind,
    streamed_rows,
    table_name,
)
from puredelta.activation.table_writing import define
from puredelta.activation.writing import (
    create_named,
    insert_into,
    save,
    save_as_table,
    write_options,
)
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
from puredelta.spark.catalog.unity_entries import creation_name, is_made_as_delta, is_name_taken
from puredelta.spark.connect.shipped_code import has_package, names_delta, with_package
from puredelta.spark.session.data_access import as_glob
from puredelta.spark.session.delta_conf import REFUSED_BY_STREAMS
from puredelta.spark.session.names import is_delta
from puredelta.spark.session.session import (
    setting_of,
    settings_of,
)
from puredelta.spark.session.storage import file_system_options, open_log
from puredelta.spark.session.types import struct_as_nullable, without_table_metadata
from puredelta.statements.names.names import existing_location, find_location, find_name
from puredelta.statements.parse.table_name import TableName

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
            needs_partitions=True,
        )
        write_table(batch, log or self.open(batch.sparkSession), request)

    def open(self, spark: SparkSession) -> TableLog:
        """Open the log of the table."""
        return open_log(spark, self.location, storage_options=self.storage_options)


Start: TypeAlias = Callable[[Any, StreamSink, TableLog, str], Any]
"""Starts the query of a writer, with the log of the table and the checkpoint."""


def _start_stream(rows: DataFrame, captured: CapturedOptions, location: str, start: Start) -> Any:
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
    return start(writer, sink, log, checkpoint)


def start_in_session(writer: Any, sink: StreamSink, log: TableLog, _: str) -> Any:
    """Start a query of a classic session, whose batches this process writes."""

    def write_batch(batch: DataFrame, batch_id: int) -> None:
        sink.write(batch, batch_id, _query_id(batch.sparkSession), log)

    return writer.foreachBatch(write_batch).start()


def start_on_server(writer: Any, sink: StreamSink, _: TableLog, checkpoint: str) -> Any:
    """Start a query of a Connect server, whose batches a process of the server writes."""
    function = with_package(partial(_write_on_server, sink, checkpoint))
    try:
        return writer.option(_CHECKPOINT, checkpoint).foreachBatch(function).start()
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
        properties={
            k: v for k, v in write_options(captured).items() if k.lower().startswith("delta.")
        },
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


TableWrite: TypeAlias = Callable[..., bool]
"""Runs the last call of ``df.writeTo(name)``; False where the table is no Delta table."""


def delta_save(original: Method) -> Method:
    """``df.write.format("delta").save(path)``."""

    def call(
        self: Any,
        path: str | None = None,
        format: str | None = None,
        mode: str | None = None,
        partitionBy: Any = None,
        **options: Any,
    ) -> Any:
        captured = CapturedOptions.of(self)
        if not is_delta(session_behind(self), format, captured.format):
            return original(self, path, format, mode, partitionBy, **options)
        captured = captured.with_last_call(options, mode=mode, partition_by=partitionBy)
        return save(rows_of(self), captured, path)

    return call


def delta_save_as_table(original: Method) -> Method:
    """``df.write.format("delta").saveAsTable(name)``."""

    def call(
        self: Any,
        name: Any,
        format: str | None = None,
        mode: str | None = None,
        partitionBy: Any = None,
        **options: Any,
    ) -> Any:
        spark, table, captured = session_behind(self), table_name(name), CapturedOptions.of(self)
        by_format = is_delta(spark, format, captured.format)
        if table is not None:
            captured = captured.with_last_call(
                options, mode=mode, format=format, partition_by=partitionBy
            )
            if save_as_table(rows_of(self), captured, table, is_delta=by_format):
                return None
        return original(self, name, format, mode, partitionBy, **options)

    return call


def delta_create_table(original: Method) -> Method:
    """``spark.catalog.createTable(name, source="delta")``."""

    def call(
        self: Any,
        tableName: Any,
        path: str | None = None,
        source: str | None = None,
        schema: Any = None,
        description: str | None = None,
        **options: Any,
    ) -> Any:
        spark, table = self._sparkSession, table_name(tableName)
        given = {**options, **({} if path is None else {"path": path})}
        if (
            table is not None
            and is_made_as_delta(spark, table.parts, source)
            and isinstance(schema, StructType | None)
            and create_named(spark, table, schema, description=description, options=given)
        ):
            return spark.table(tableName)
        return original(self, tableName, path, source, schema, description, **options)

    return call


def delta_insert_into(original: Method) -> Method:
    """``df.write.insertInto(name)``."""

    def call(self: Any, tableName: Any, overwrite: bool | None = None) -> Any:
        table, captured = table_name(tableName), CapturedOptions.of(self)
        if table is not None and not captured.partition_by:  # Spark refuses partitionBy here
            replaces = (captured.mode or "").lower() == "overwrite"
            replaces = replaces if overwrite is None else overwrite
            if insert_into(rows_of(self), captured, table, overwrite=replaces):
                return None
        return original(self, tableName, overwrite)

    return call


def delta_table_write(write: TableWrite) -> Make:
    """``df.writeTo(name)`` with the call that does the work."""

    def make(original: Method) -> Method:
        def call(self: Any, *args: Any, **kwargs: Any) -> Any:
            captured = CapturedOptions.of(self)
            table = None if captured.table is None else find_name(captured.table.name)
            if captured.table is None or table is None:
                return original(self, *args, **kwargs)
            if not write(captured, captured.table, table, *args, **kwargs):
                return original(self, *args, **kwargs)
            return None

        return call

    return make


def delta_definition(mode: CreateMode) -> Make:
    """``df.writeTo(name)`` with ``create``, ``replace`` or ``createOrReplace``."""

    def write(captured: CapturedOptions, table: TableOptions, name: TableName) -> bool:
        if not is_made_as_delta(table.rows.sparkSession, name.parts, captured.format):
            return False
        return define(captured, table, name, mode=mode)

    return delta_table_write(write)


def delta_merge_into(original: Method) -> Method:
    """``df.mergeInto(name, condition)``."""

    def call(self: Any, table: Any, condition: Column) -> Any:
        name = table_name(table)
        target = None if name is None else find_target(self.sparkSession, name)
        if target is None:
            return original(self, table, condition)
        return DeltaMergeInto(self, target, condition)

    return call


def delta_start(start: Start) -> Make:
    """``df.writeStream.format("delta").start(path)``."""

    def make(original: Method) -> Method:
        def call(
            self: Any,
            path: str | None = None,
            format: str | None = None,
            outputMode: str | None = None,
            partitionBy: Any = None,
            queryName: str | None = None,
            **options: Any,
        ) -> Any:
            given = (format, outputMode, partitionBy, queryName)
            captured = CapturedOptions.of(self).with_start(*given, options)
            if captured.has_own_sink or not is_delta(session_behind(self), captured.format):
                return original(self, path, *given, **options)
            location = require_path(captured, path)
            return _start_stream(streamed_rows(self), captured, location, start)

        return call

    return make


def delta_to_table(start: Start) -> Make:
    """``df.writeStream.toTable(name)``."""

    def make(original: Method) -> Method:
        def call(
            self: Any,
            tableName: Any,
            format: str | None = None,
            outputMode: str | None = None,
            partitionBy: Any = None,
            queryName: str | None = None,
            **options: Any,
        ) -> Any:
            given = (format, outputMode, partitionBy, queryName)
            captured = CapturedOptions.of(self).with_start(*given, options)
            name = None if captured.has_own_sink else table_name(tableName)
            location = None if name is None else _location(self, captured, name)
            if location is None:
                return original(self, tableName, *given, **options)
            return _start_stream(streamed_rows(self), captured, location, start)

        return call

    return make


def _location(writer: Any, captured: CapturedOptions, name: TableName) -> str | None:
    """Return the table's location, and create the table if needed; None if it is no Delta table."""
    spark = session_behind(writer)
    known = existing_location(spark, name)
    if known is None and not is_made_as_delta(spark, name.parts, captured.format):
        return None
    if known is not None:
        return known
    entry = creation_name(spark, name.parts)
    if entry is None or is_name_taken(spark, entry):
        return None
    create_for_stream(streamed_rows(writer), captured, entry)
    return find_location(spark, name)


def delta_foreach_batch(original: Method) -> Method:
    """``df.writeStream.foreachBatch(function)``."""

    def call(self: Any, func: Any) -> Any:
        answer = original(self, func)
        replace(CapturedOptions.of(self), has_own_sink=True).keep(self)
        return answer

    return call


def foreach_batch_on_server(original: Method) -> Method:
    """``df.writeStream.foreachBatch(function)`` over Connect: the server gets this package, too."""
    capturing = delta_foreach_batch(original)

    def call(self: Any, func: Any) -> Any:
        if callable(func) and not has_package(func) and names_delta(func):
            return capturing(self, with_package(partial(_call_activated, func)))
        return capturing(self, func)

    return call


def _call_activated(function: Any, batch: Any, batch_id: int) -> None:
    """Call a user's function in a process of a Connect server, in an activated session."""
    importlib.import_module("puredelta").activate(batch.sparkSession, delta_module=True)
    function(batch, batch_id)
