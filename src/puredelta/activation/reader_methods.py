"""``spark.read``, ``spark.readStream``, ``spark.table`` and ``spark.sql`` for Delta tables.

Each function takes a method of PySpark and returns its replacement. The replacement inspects as
little as possible; calls on other formats reach the original with the caller's exact arguments.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from pyspark.sql import SparkSession

from puredelta.activation.captured_options import CapturedOptions
from puredelta.activation.data_source import STORAGE_OPTION
from puredelta.activation.patches import Make, Method, session_behind, table_name
from puredelta.activation.reading import changes_at, load, load_stream, prepare_stream, rows_at
from puredelta.errors import InvalidRequestError, Message
from puredelta.spark.catalog.connect_entries import prepare, with_source
from puredelta.spark.catalog.relation_cache import (
    NamedRelations,
    find_relations,
    named_relations,
    pinned_tables,
)
from puredelta.spark.resolve.sql_text import asks_parser
from puredelta.spark.resolve.table_attributes import qualified
from puredelta.spark.session.catalogs import find_identifier
from puredelta.spark.session.names import FORMAT, is_delta
from puredelta.spark.session.session import forget_settings, is_connect
from puredelta.spark.session.storage import session_storage
from puredelta.statements.execute.cached import run_cache_statement
from puredelta.statements.execute.dispatch import run_ours, run_query
from puredelta.statements.execute.namespaces import require_for_spark
from puredelta.statements.names.catalog_query import (
    catalog_command,
    catalog_query,
    catalog_rows,
)
from puredelta.statements.names.names import find_location, rows_in_catalog
from puredelta.statements.names.parameters import with_computed_names
from puredelta.statements.names.stored_views import need_names, rows_of_name
from puredelta.store.registry import has_scheme

_MAY_NAME_TABLES = re.compile(r"\b(?:from|join|table)\b", re.IGNORECASE)
_FIELD = re.compile(r"\{[^{}]*\}")
"""A field of a template; its value is no table of the catalog."""
_STREAM_START = "startingTimestamp"


def delta_load(original: Method) -> Method:
    """``spark.read.format("delta").load(path)`` and ``spark.read.load(path, "delta")``."""

    def call(
        self: Any, path: Any = None, format: str | None = None, schema: Any = None, **options: Any
    ) -> Any:
        captured, spark = CapturedOptions.of(self), session_behind(self)
        if not is_delta(spark, format, captured.format):
            return original(self, path, format, schema, **options)
        captured = replace(captured, has_schema=captured.has_schema or schema is not None)
        return load(spark, captured.with_options(options), path)

    return call


def delta_table(session: Callable[[Any], SparkSession]) -> Make:
    """``spark.table(name)`` and ``spark.read.table(name)``: paths, and tables of the catalog.

    ``session`` returns the session of the method's owner.
    """

    def make(original: Method) -> Method:
        def call(self: Any, tableName: Any) -> Any:
            name = table_name(tableName)
            if name is None:
                return original(self, tableName)
            spark, captured = session(self), CapturedOptions.of(self)
            location = name.path
            in_catalog = location is None and find_identifier(spark, name.parts) is not None
            if in_catalog:
                found = rows_in_catalog(spark, name, partial(rows_at, spark, captured))
                return qualified(found, name.qualifier)
            if location is None and captured.options:
                location = find_location(spark, name)
            if location is not None:
                return rows_at(spark, captured, location)
            if is_connect(spark):
                named = catalog_rows(spark, name.parts)
                return original(self, tableName) if named is None else named
            return rows_of_name(spark, name.parts, lambda: original(self, tableName))

        return call

    return make


def delta_changes(original: Method) -> Method:
    """``spark.read.changes(name)`` of PySpark 4.2 and newer: a path or a table of the catalog."""

    def call(self: Any, tableName: Any) -> Any:
        name, spark = table_name(tableName), session_behind(self)
        location = None if name is None else find_location(spark, name)
        if location is None:
            return original(self, tableName)
        return changes_at(spark, CapturedOptions.of(self), location, name)

    return call


def delta_stream_changes(original: Method) -> Method:
    """``spark.readStream.changes(name)``, which is refused for Delta tables."""

    def call(self: Any, tableName: Any) -> Any:
        name, spark = table_name(tableName), session_behind(self)
        if name is not None and find_location(spark, name) is not None:
            raise InvalidRequestError(Message.UNSUPPORTED_CHANGES, name=name)
        return original(self, tableName)

    return call


def delta_stream_load(original: Method) -> Method:
    """``spark.readStream.load(path)``: over Connect it uses the Python data source."""

    def call(
        self: Any,
        path: str | None = None,
        format: str | None = None,
        schema: Any = None,
        **options: Any,
    ) -> Any:
        captured, spark = CapturedOptions.of(self), session_behind(self)
        if not is_delta(spark, format, captured.format):
            return original(self, path, format, schema, **options)
        if not is_connect(spark):
            has_schema = captured.has_schema or schema is not None
            captured = replace(captured, has_schema=has_schema)
            return load_stream(spark, captured.with_options(options), path)
        start = prepare_stream(spark, captured.with_options(options))
        prepare(spark)
        location = path if path is not None else (captured.options or {}).get("path")
        if _is_elsewhere(location):
            self.option(STORAGE_OPTION, session_storage(spark).packed())
        if start is not None:
            options = {k: v for k, v in options.items() if k.lower() != _STREAM_START.lower()}
            self.option(_STREAM_START, start)
        return original(self, path, format, schema, **options)

    return call


def _is_elsewhere(location: Any) -> bool:
    """Return whether a location is not on a local disk."""
    if not isinstance(location, str) or not has_scheme(location):
        return False
    return not location.lower().startswith("file:")


def delta_stream_table(original: Method) -> Method:
    """``spark.readStream.table(name)``."""

    def call(self: Any, tableName: Any) -> Any:
        name = table_name(tableName)
        location = None if name is None else find_location(session_behind(self), name)
        if location is None:
            return original(self, tableName)
        return self.format(FORMAT).load(location)

    return call


def delta_sql(original: Method) -> Method:
    """``spark.sql(text)`` for statements on Delta tables (`run_ours`)."""

    def call(self: Any, sqlQuery: Any, args: Any = None, **kwargs: Any) -> Any:
        if not isinstance(sqlQuery, str) or asks_parser():
            return original(self, sqlQuery, args, **kwargs)
        text, args = with_computed_names(self, sqlQuery, args)
        result = run_ours(self, text, args=args, fields=kwargs)
        if result is not None:
            return result
        if is_connect(self):
            return _by_client(self, original, text, args, kwargs)
        require_for_spark(self, text)
        found = _named(self, _FIELD.sub("field", text) if kwargs else text)
        if need_names(self, found.views):
            result = run_query(self, text, args=args, fields=kwargs)
            if result is not None:
                return result
        with pinned_tables(self, found.tables):
            return original(self, text, args, **kwargs)

    return call


def _by_client(
    spark: SparkSession, original: Method, text: str, args: Any, fields: dict[str, Any]
) -> Any:
    """Let a Connect server execute a text, with the rows of the Delta tables that it names."""
    if _MAY_NAME_TABLES.search(text) is not None:
        done = run_cache_statement(spark, text, args=args, fields=fields)
        if done is not None:
            return done
        rows = catalog_query(spark, text, args=args, fields=fields)
        if rows is not None:
            return rows
        command = catalog_command(spark, text, fields=fields)
        if command is not None:
            text, fields = command[0], dict(command[1])
    try:
        return with_source(spark, lambda: original(spark, text, args, **fields))
    finally:
        forget_settings()


def _named(spark: SparkSession, text: str) -> NamedRelations:
    """Return the Delta tables of the catalog, and the views, in a text.

    A text that cannot contain one is not read again.
    """
    if _MAY_NAME_TABLES.search(text) is None:
        return NamedRelations(tables=(), views=())
    return find_relations(spark, named_relations(spark, text))
