"""The calls of PySpark that are ours when they mean Delta, and PySpark's own otherwise.

Each function puts one of our own in the place of a method. It looks at as little as it can,
and what is not ours reaches the original with the very arguments of the caller.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from puredelta.activation.patches import Method, Patches
from puredelta.activation.reading import load, rows_at
from puredelta.activation.told import Told
from puredelta.activation.writing import insert_into, save, save_as_table
from puredelta.spark.catalog.relation_cache import cached_relations, named_relations
from puredelta.spark.session.formats import is_delta
from puredelta.spark.session.session import is_connect
from puredelta.sql.execute.run import run_ours
from puredelta.sql.execute.tables import not_on_connect
from puredelta.sql.relations.names import find_location, find_name
from puredelta.sql.text.table_name import TableName

_MAY_NAME_TABLES = re.compile(r"\b(?:from|join|table)\b", re.IGNORECASE)
_FIELD = re.compile(r"\{[^{}]*\}")
"""A field of a template; what it stands for is no table of the catalog."""


def open_load(patches: Patches, reader: type) -> None:
    """``spark.read.format("delta").load(path)`` and ``spark.read.load(path, "delta")``."""

    def make(original: Method) -> Method:
        def ours(
            self: Any,
            path: Any = None,
            format: str | None = None,  # noqa: A002 - PySpark's name
            schema: Any = None,
            **options: Any,
        ) -> Any:
            told, spark = Told.of(self), reader_session(self)
            if not is_delta(spark, format, told.format):
                return original(self, path, format, schema, **options)
            told = replace(told, has_schema=told.has_schema or schema is not None)
            return load(spark, told.with_options(options), path)

        return ours

    patches.replace(reader, "load", make)


def open_save(patches: Patches, writer: type) -> None:
    """``df.write.format("delta").save(path)``."""

    def make(original: Method) -> Method:
        def ours(
            self: Any,
            path: str | None = None,
            format: str | None = None,  # noqa: A002 - PySpark's name
            mode: str | None = None,
            partitionBy: Any = None,  # noqa: N803 - PySpark's name
            **options: Any,
        ) -> Any:
            told, spark = Told.of(self), writer_session(self)
            if not is_delta(spark, format, told.format):
                return original(self, path, format, mode, partitionBy, **options)
            told = replace(told, mode=mode or told.mode).with_options(options)
            if partitionBy is not None:
                told = told.with_partitions(partitionBy)
            return save(rows_of(self), told, path)

        return ours

    patches.replace(writer, "save", make)


def open_save_as_table(patches: Patches, writer: type) -> None:
    """``df.write.format("delta").saveAsTable(name)``."""

    def make(original: Method) -> Method:
        def ours(
            self: Any,
            name: Any,
            format: str | None = None,  # noqa: A002 - PySpark's name
            mode: str | None = None,
            partitionBy: Any = None,  # noqa: N803 - PySpark's name
            **options: Any,
        ) -> Any:
            spark, table = writer_session(self), _table_name(name)
            if is_connect(spark) and is_delta(spark, format, Told.of(self).format):
                raise not_on_connect("saveAsTable")
            if table is not None and not is_connect(spark):
                told = Told.of(self)
                told = replace(told, mode=mode or told.mode, format=format or told.format)
                told = told.with_options(options)
                if partitionBy is not None:
                    told = told.with_partitions(partitionBy)
                ours_by_format = is_delta(spark, format, told.format)
                if save_as_table(rows_of(self), told, table, is_delta=ours_by_format):
                    return None
            return original(self, name, format, mode, partitionBy, **options)

        return ours

    patches.replace(writer, "saveAsTable", make)


def open_insert_into(patches: Patches, writer: type) -> None:
    """``df.write.insertInto(name)``."""

    def make(original: Method) -> Method:
        def ours(self: Any, tableName: Any, overwrite: bool | None = None) -> Any:  # noqa: FBT001, N803
            table = _table_name(tableName)
            if table is not None and not is_connect(writer_session(self)):
                mode = (Told.of(self).mode or "").lower()
                replaces = mode == "overwrite" if overwrite is None else overwrite
                if insert_into(rows_of(self), table, overwrite=replaces):
                    return None
            return original(self, tableName, overwrite)

        return ours

    patches.replace(writer, "insertInto", make)


def open_sql(patches: Patches, session: type) -> None:
    """``spark.sql(text)`` for the statements of `puredelta.sql.execute.run.run_ours`."""

    def make(original: Method) -> Method:
        def ours(self: Any, sqlQuery: Any, args: Any = None, **kwargs: Any) -> Any:  # noqa: N803
            if isinstance(sqlQuery, str):
                result = run_ours(self, sqlQuery, args=args, fields=kwargs)
                if result is not None:
                    return result
                with pinned_for(self, _FIELD.sub("field", sqlQuery) if kwargs else sqlQuery):
                    return original(self, sqlQuery, args, **kwargs)
            return original(self, sqlQuery, args, **kwargs)

        return ours

    patches.replace(session, "sql", make)


def open_table(patches: Patches, owner: type, session_of: Callable[[Any], SparkSession]) -> None:
    """``spark.table(name)`` and ``spark.read.table(name)``: paths, and tables of the catalog."""

    def make(original: Method) -> Method:
        def ours(self: Any, tableName: Any) -> Any:  # noqa: N803 - PySpark's name
            name = _table_name(tableName)
            if name is None:
                return original(self, tableName)
            spark, told = session_of(self), Told.of(self)
            location = name.path
            if location is None and told.options:
                location = find_location(spark, name)
            if location is not None:
                return rows_at(spark, told, location)
            if is_connect(spark):
                return original(self, tableName)
            with cached_relations(spark, [name.parts]):
                return original(self, tableName)

        return ours

    patches.replace(owner, "table", make)


def pinned_for(spark: SparkSession, text: str) -> AbstractContextManager[None]:
    """Return a context in which the Delta tables of the catalog that a text names are pinned.

    What cannot name one is not looked at twice.
    """
    if is_connect(spark) or _MAY_NAME_TABLES.search(text) is None:
        return nullcontext()
    return cached_relations(spark, named_relations(spark, text))


def reader_session(reader: Any) -> SparkSession:
    """Return the session of a reader; a Connect reader calls it its client."""
    known = vars(reader)
    session: SparkSession = known["_spark"] if "_spark" in known else known["_client"]
    return session


def writer_session(writer: Any) -> SparkSession:
    """Return the session of a writer."""
    session: SparkSession = vars(writer)["_spark"]
    return session


def own_session(session: SparkSession) -> SparkSession:
    """Return the session itself."""
    return session


def rows_of(writer: Any) -> DataFrame:
    """Return the frame that a writer writes; over Connect it holds the plan of one."""
    rows: Any = vars(writer)["_df"]
    if isinstance(rows, DataFrame):
        return rows
    frames: Any = importlib.import_module("pyspark.sql.connect.dataframe")  # Connect clients only
    made: DataFrame = frames.DataFrame(rows, writer_session(writer))
    return made


def _table_name(given: Any) -> TableName | None:
    return find_name(given) if isinstance(given, str) else None
