"""``df.writeStream`` where it means Delta: ``start(path)`` and ``toTable(name)``."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession

from puredelta.activation.calls.captured_options import CapturedOptions, require_path
from puredelta.activation.calls.stream_sink import create_for_stream, start
from puredelta.activation.methods.builders import session_behind, table_name
from puredelta.activation.methods.patches import Method
from puredelta.errors import ErrorCode, UnsupportedError
from puredelta.spark.catalog.catalog_entries import entry_name, is_taken
from puredelta.spark.session.formats import is_delta
from puredelta.spark.session.session import is_connect
from puredelta.sql.relations.names import find_location
from puredelta.sql.text.table_name import TableName


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
        _require_classic(spark)
        return start(vars(self)["_df"], captured, require_path(captured, path))

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
                return start(vars(self)["_df"], captured, location)
        return original(self, tableName, *given, **options)

    return call


def _location(writer: Any, captured: CapturedOptions, name: TableName) -> str | None:
    """Return where the table is, which is created if it has to be; None if it is not ours."""
    spark = session_behind(writer)
    known = find_location(spark, name)
    if known is None and not is_delta(spark, captured.format):
        return None
    _require_classic(spark)
    if known is not None:
        return known
    entry = entry_name(spark, name.parts)
    if entry is None or is_taken(spark, entry):
        return None
    create_for_stream(vars(writer)["_df"], captured, entry)
    return find_location(spark, name)


def _require_classic(spark: SparkSession) -> None:
    if is_connect(spark):
        raise UnsupportedError(
            "writeStream with format 'delta' is not possible over Spark Connect. Use "
            "foreachBatch: write each batch to a path, with the options txnAppId and txnVersion, "
            "or run a MERGE.",
            code=ErrorCode.UNSUPPORTED_ON_CONNECT,
        )
