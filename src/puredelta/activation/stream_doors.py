"""``df.writeStream`` and ``spark.readStream``: the calls that are ours when they mean Delta."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame, SparkSession

from puredelta.activation.patches import Method, Patches
from puredelta.activation.paths import require_path
from puredelta.activation.reading import prepare_stream
from puredelta.activation.stream_sink import create_for_stream, start
from puredelta.activation.told import Told
from puredelta.activation.told_stream import ToldStream
from puredelta.errors import ErrorCode, UnsupportedError
from puredelta.spark.catalog.catalog_entries import entry_name, is_taken
from puredelta.spark.session.formats import FORMAT, is_delta
from puredelta.spark.session.session import is_connect
from puredelta.sql.relations.names import find_location, find_name
from puredelta.sql.text.table_name import TableName

_AT = "startingTimestamp"


def open_stream_writer(patches: Patches, writer: type) -> None:
    """``df.writeStream.format("delta")`` with ``start(path)`` and ``toTable(name)``."""
    patches.replace(writer, "start", _make_start)
    patches.replace(writer, "toTable", _make_to_table)


def open_stream_reader(patches: Patches, reader: type) -> None:
    """``spark.readStream.table(name)`` and ``load(path)``, which find the Python data source."""
    patches.replace(reader, "load", _make_load)
    patches.replace(reader, "table", _make_table)


def _make_load(original: Method) -> Method:
    def ours(
        self: Any,
        path: str | None = None,
        format: str | None = None,  # noqa: A002 - PySpark's name
        schema: Any = None,
        **options: Any,
    ) -> Any:
        told, spark = Told.of(self), vars(self).get("_spark")
        if spark is not None and is_delta(spark, format, told.format):
            start = prepare_stream(spark, told.with_options(options))
            if start is not None:
                options = {k: v for k, v in options.items() if k.lower() != _AT.lower()}
                self.option(_AT, start)
        return original(self, path, format, schema, **options)

    return ours


def _make_table(original: Method) -> Method:
    def ours(self: Any, tableName: Any) -> Any:  # noqa: N803 - PySpark's name
        name = find_name(tableName) if isinstance(tableName, str) else None
        spark: SparkSession | None = vars(self).get("_spark")
        location = None if name is None or spark is None else find_location(spark, name)
        if location is None:
            return original(self, tableName)
        return self.format(FORMAT).load(location)

    return ours


def _make_start(original: Method) -> Method:
    def ours(  # noqa: PLR0917 - PySpark's signature
        self: Any,
        path: str | None = None,
        format: str | None = None,  # noqa: A002 - PySpark's name
        outputMode: str | None = None,  # noqa: N803 - PySpark's name
        partitionBy: Any = None,  # noqa: N803 - PySpark's name
        queryName: str | None = None,  # noqa: N803 - PySpark's name
        **options: Any,
    ) -> Any:
        words = ToldStream.of(self)
        words = words.with_start(format, outputMode, partitionBy, queryName, options)
        spark = _session(self)
        if words.has_own_sink or not is_delta(spark, words.told.format):
            return original(self, path, format, outputMode, partitionBy, queryName, **options)
        _require_classic(spark)
        return start(vars(self)["_df"], words, require_path(words.told, path))

    return ours


def _make_to_table(original: Method) -> Method:
    def ours(  # noqa: PLR0917 - PySpark's signature
        self: Any,
        tableName: Any,  # noqa: N803 - PySpark's name
        format: str | None = None,  # noqa: A002 - PySpark's name
        outputMode: str | None = None,  # noqa: N803 - PySpark's name
        partitionBy: Any = None,  # noqa: N803 - PySpark's name
        queryName: str | None = None,  # noqa: N803 - PySpark's name
        **options: Any,
    ) -> Any:
        words = ToldStream.of(self)
        words = words.with_start(format, outputMode, partitionBy, queryName, options)
        name = find_name(tableName) if isinstance(tableName, str) else None
        if name is not None and not words.has_own_sink:
            location = _location(self, words, name)
            if location is not None:
                return start(vars(self)["_df"], words, location)
        return original(self, tableName, format, outputMode, partitionBy, queryName, **options)

    return ours


def _location(writer: Any, words: ToldStream, name: TableName) -> str | None:
    """Return where the table is, which is created if it has to be; None if it is not ours."""
    spark = _session(writer)
    known = find_location(spark, name)
    if known is None and not is_delta(spark, words.told.format):
        return None
    _require_classic(spark)
    if known is not None:
        return known
    entry = entry_name(spark, name.parts)
    if entry is None or is_taken(spark, entry):
        return None
    rows: DataFrame = vars(writer)["_df"]
    create_for_stream(rows, words, entry)
    return find_location(spark, name)


def _session(writer: Any) -> SparkSession:
    known = vars(writer)
    session: SparkSession = known["_spark"] if "_spark" in known else known["_session"]
    return session


def _require_classic(spark: SparkSession) -> None:
    if is_connect(spark):
        raise UnsupportedError(
            "writeStream with format 'delta' is not possible over Spark Connect. Use "
            "foreachBatch: write each batch to a path, with the options txnAppId and txnVersion, "
            "or run a MERGE.",
            code=ErrorCode.UNSUPPORTED_ON_CONNECT,
        )
