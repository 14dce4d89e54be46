"""``df.write``, ``df.writeTo``, ``df.mergeInto`` and ``df.writeStream`` for Delta tables.

As in `reader_methods`, calls on other formats reach the original with the caller's exact
arguments.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, TypeAlias

from pyspark.sql import Column
from pyspark.sql.types import StructType

from puredelta.activation.captured_options import CapturedOptions, TableOptions, require_path
from puredelta.activation.merge_into import DeltaMergeInto, find_target
from puredelta.activation.patches import (
    Make,
    Method,
    rows_of,
    session_behind,
    streamed_rows,
    table_name,
)
from puredelta.activation.stream_writing import create_for_stream, start
from puredelta.activation.table_writing import define
from puredelta.activation.writing import create_named, insert_into, save, save_as_table
from puredelta.commands.create.create_table import CreateMode
from puredelta.spark.catalog.unity_entries import creation_name, is_made_as_delta, is_name_taken
from puredelta.spark.connect.shipped_code import has_package, names_delta, with_package
from puredelta.spark.session.names import is_delta
from puredelta.spark.session.session import is_connect
from puredelta.statements.names.names import existing_location, find_location, find_name
from puredelta.statements.parse.table_name import TableName

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
        table = table_name(tableName)
        if table is not None:
            mode = (CapturedOptions.of(self).mode or "").lower()
            replaces = mode == "overwrite" if overwrite is None else overwrite
            if insert_into(rows_of(self), table, overwrite=replaces):
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


def delta_start(original: Method) -> Method:
    """``df.writeStream.format("delta").start(path)``."""

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
        captured, spark = CapturedOptions.of(self).with_start(*given, options), session_behind(self)
        if captured.has_own_sink or not is_delta(spark, captured.format):
            return original(self, path, *given, **options)
        return start(streamed_rows(self), captured, require_path(captured, path))

    return call


def delta_to_table(original: Method) -> Method:
    """``df.writeStream.toTable(name)``."""

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
        captured, name = CapturedOptions.of(self).with_start(*given, options), table_name(tableName)
        if name is not None and not captured.has_own_sink:
            location = _location(self, captured, name)
            if location is not None:
                return start(streamed_rows(self), captured, location)
        return original(self, tableName, *given, **options)

    return call


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
    """``df.writeStream.foreachBatch(function)``: over Connect the server gets this package, too."""

    def call(self: Any, func: Any) -> Any:
        given, is_shipped = func, has_package(func) or not is_connect(session_behind(self))
        if not is_shipped and callable(func) and names_delta(func):
            given = with_package(partial(_call_activated, func))
        answer = original(self, given)
        replace(CapturedOptions.of(self), has_own_sink=True).keep(self)
        return answer

    return call


def _call_activated(function: Any, batch: Any, batch_id: int) -> None:
    """Call a user's function in a process of a Connect server, in an activated session."""
    importlib.import_module("puredelta").activate(batch.sparkSession, delta_module=True)
    function(batch, batch_id)
