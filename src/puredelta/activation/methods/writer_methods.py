"""``df.write``, ``df.writeTo`` and ``df.mergeInto`` where they mean Delta.

As in `reader_methods`, what does not mean Delta reaches the original with the very arguments
of the caller.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from pyspark.sql import Column
from pyspark.sql.types import StructType

from puredelta.activation.calls.captured_options import CapturedOptions, TableOptions
from puredelta.activation.calls.merge_into import DeltaMergeInto, find_target
from puredelta.activation.calls.table_creation import create_named
from puredelta.activation.calls.table_writing import define
from puredelta.activation.calls.writing import insert_into, save, save_as_table
from puredelta.activation.methods.builders import rows_of, session_behind, table_name
from puredelta.activation.methods.patches import Make, Method
from puredelta.commands.create.create_table import CreateMode
from puredelta.spark.session.formats import is_delta
from puredelta.spark.session.session import is_connect
from puredelta.sql.execute.tables import not_on_connect
from puredelta.sql.relations.names import find_name
from puredelta.sql.text.table_name import TableName

TableWrite: TypeAlias = Callable[..., bool]
"""What ends ``df.writeTo(name)``; False where the table is not ours."""


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
        if is_connect(spark) and by_format:
            raise not_on_connect("saveAsTable")
        if table is not None and not is_connect(spark):
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
            and not is_connect(spark)
            and is_delta(spark, source)
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
        if table is not None and not is_connect(session_behind(self)):
            mode = (CapturedOptions.of(self).mode or "").lower()
            replaces = mode == "overwrite" if overwrite is None else overwrite
            if insert_into(rows_of(self), table, overwrite=replaces):
                return None
        return original(self, tableName, overwrite)

    return call


def delta_table_write(write: TableWrite) -> Make:
    """``df.writeTo(name)`` with a call that ends it and does the work."""

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
        if not is_delta(table.rows.sparkSession, captured.format):
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
