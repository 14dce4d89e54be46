"""``spark.read``, ``spark.readStream``, ``spark.table`` and ``spark.sql`` for Delta tables.

Each function takes a method of PySpark and returns its replacement. The replacement inspects as
little as possible; calls on other formats reach the original with the caller's exact arguments.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, TypeAlias

import pyspark
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from puredelta.activation.captured_options import (
    CapturedOptions,
    require_path,
)
from puredelta.activation.data_source import STORAGE_OPTION
from puredelta.activation.patches import Make, Method, session_behind, table_name
from puredelta.commands.changes import read_changes
from puredelta.commands.read_table import read_stream, read_table, resolve_timestamp
from puredelta.commands.version_changes import read_row_changes
from puredelta.errors import InvalidRequestError, Message, UnsupportedError
from puredelta.log.changes.stream_options import StreamOptions
from puredelta.protocol.schema.sql_lexer import may_hold_query
from puredelta.spark.catalog.connect_entries import prepare, with_source
from puredelta.spark.catalog.relation_cache import (
    NamedRelations,
    find_relations,
    named_relations,
    names_in_expression,
    pinned_tables,
    rows_of_expressions,
)
from puredelta.spark.connect.messages import hide_in_log
from puredelta.spark.jvm.stored_text import may_call_function
from puredelta.spark.resolve.sql_text import asks_parser
from puredelta.spark.resolve.table_attributes import as_named, qualified
from puredelta.spark.session.catalogs import find_identifier
from puredelta.spark.session.delta_conf import REFUSED_BY_PATHS_WITH_VERSIONS
from puredelta.spark.session.names import FORMAT, is_delta
from puredelta.spark.session.session import (
    forget_settings,
    settings_of,
    version_of_spark,
)
from puredelta.spark.session.storage import file_system_options, open_log, session_storage
from puredelta.statements.execute.cached import run_cache_statement
from puredelta.statements.execute.dispatch import run_ours, run_query, with_plain_names
from puredelta.statements.execute.namespaces import require_for_spark
from puredelta.statements.names.catalog_query import (
    catalog_command,
    catalog_query,
    catalog_rows,
    whole_name,
)
from puredelta.statements.names.names import find_location, require_table, rows_in_catalog
from puredelta.statements.names.query_tables import bound_call, bound_expression
from puredelta.statements.names.stored_views import need_names
from puredelta.statements.parse.table_name import TimeTravel, split_time_travel
from puredelta.store.registry import has_scheme

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc)
_CHANGES = ("readChangeFeed", "readChangeData")


def load_rows(spark: SparkSession, captured: CapturedOptions, path: Any) -> DataFrame:
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


def changes_at(
    spark: SparkSession, captured: CapturedOptions, location: str, name: object
) -> DataFrame:
    """Return the changed rows that the options of a reader select in the table at a location.

    Raises:
        InvalidRequestError: a schema was given; errors as `read_row_changes`.
        TableNotFoundError: there is no table at the location.
    """
    if captured.has_schema:
        raise _schema_given()
    options = captured.options or {}
    log = require_table(spark, location, name, storage_options=file_system_options(options))
    return read_row_changes(spark, log, options, name=str(name))


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


_MAY_NAME_TABLES = re.compile(r"\b(?:from|join|table)\b", re.IGNORECASE)
_FIELD = re.compile(r"\{[^{}]*\}")
_FIELD_NAME = "__puredelta_field"
"""A field of a template; its value is no table of the catalog."""
_STREAM_START = "startingTimestamp"


NamedRows: TypeAlias = Callable[[SparkSession, tuple[str, ...], Callable[[], DataFrame]], DataFrame]
"""Returns the rows of a name of the session catalog, which the last argument asks Spark for."""


def delta_table(session: Callable[[Any], SparkSession], named_rows: NamedRows) -> Make:
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
            return named_rows(spark, name.parts, lambda: original(self, tableName))

        return call

    return make


def named_by_client(
    spark: SparkSession, parts: tuple[str, ...], by_spark: Callable[[], DataFrame]
) -> DataFrame:
    """Return the rows of a name of the session catalog of a Connect server."""
    named = catalog_rows(spark, parts)
    return by_spark() if named is None else as_named(named, partial(whole_name, spark, parts))


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


def delta_load(load: Callable[[SparkSession, CapturedOptions, Any], DataFrame]) -> Make:
    """``spark.read.format("delta").load(path)``, and the same of ``spark.readStream``."""

    def make(original: Method) -> Method:
        def call(
            self: Any, path: Any = None, format: Any = None, schema: Any = None, **options: Any
        ) -> Any:
            captured, spark = CapturedOptions.of(self), session_behind(self)
            if not is_delta(spark, format, captured.format):
                return original(self, path, format, schema, **options)
            captured = replace(captured, has_schema=captured.has_schema or schema is not None)
            return load(spark, captured.with_options(options), path)

        return call

    return make


def stream_load_by_client(original: Method) -> Method:
    """``spark.readStream.load(path)`` over Connect, which uses the Python data source."""

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
        start = prepare_stream(spark, captured.with_options(options))
        prepare(spark)
        location = path if path is not None else (captured.options or {}).get("path")
        if _is_elsewhere(location):
            storage = session_storage(spark)
            hide_in_log(storage.secrets)
            self.option(STORAGE_OPTION, storage.packed())
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


def delta_sql(by_spark: Callable[..., Any]) -> Make:
    """``spark.sql(text)`` for statements on Delta tables (`run_ours`).

    ``by_spark`` lets Spark execute every other text.
    """

    def make(original: Method) -> Method:
        def call(self: Any, sqlQuery: Any, args: Any = None, **kwargs: Any) -> Any:
            if not isinstance(sqlQuery, str) or asks_parser():
                return original(self, sqlQuery, args, **kwargs)
            text, args = with_plain_names(self, sqlQuery, args)
            result = run_ours(self, text, args=args, fields=kwargs)
            return by_spark(self, original, text, args, kwargs) if result is None else result

        return call

    return make


def sql_of_session(
    spark: SparkSession, original: Method, text: str, args: Any, fields: dict[str, Any]
) -> Any:
    """Let Spark execute a text of a classic session, in which it sees the newest versions."""
    require_for_spark(spark, text)
    found = _named(spark, _FIELD.sub(_FIELD_NAME, text) if fields else text)
    if need_names(spark, found.views):
        result = run_query(spark, text, args=args, fields=fields)
        if result is not None:
            return result
    with pinned_tables(spark, found.tables):
        return original(spark, text, args, **fields)


def sql_of_client(
    spark: SparkSession, original: Method, text: str, args: Any, fields: dict[str, Any]
) -> Any:
    """Let a Connect server execute a text, with the rows of the Delta tables that it names."""
    if _MAY_NAME_TABLES.search(text) is not None or may_call_function(text):
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

    A text that cannot contain one is not read again, but a function that it calls may.
    """
    if _MAY_NAME_TABLES.search(text) is not None:
        names = named_relations(spark, text)
    else:
        names = names_in_expression(spark, text)
    return find_relations(spark, [name for name in names if name != (_FIELD_NAME,)])


def delta_expressions(original: Method) -> Method:
    """``df.filter(text)`` and ``df.selectExpr(text, ...)``: tables in subqueries and functions."""

    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        given = (*args, *kwargs.values())
        texts = [
            text
            for one in given
            for text in (one if isinstance(one, list) else [one])
            if isinstance(text, str) and "(" in text
        ]
        make = partial(original, self, *args, **kwargs)
        return rows_of_expressions(self.sparkSession, texts, make) if texts else make()

    return call


def delta_expression(original: Method) -> Method:
    """The message of a text (``F.expr``) for a Connect client: see `bound_expression`."""

    def call(self: Any, session: Any) -> Any:
        message = original(self, session)
        text = message.expression_string.expression
        if may_hold_query(text) or may_call_function(text):
            message.expression_string.expression = bound_expression(self, session, text)
        return message

    return call


def delta_call(original: Method) -> Method:
    """The message of ``F.call_function`` for a Connect client."""

    def call(self: Any, session: Any) -> Any:
        message = original(self, session)
        name = message.call_function.function_name
        if may_call_function(f"{name}("):
            message.call_function.function_name = bound_call(self, session, name)
        return message

    return call


def rows_of_client(original: Method) -> Method:
    """``spark.createDataFrame`` of a Connect client, which newer clients cannot call everywhere."""

    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return original(self, *args, **kwargs)
        except (PySparkException, ValueError) as failed:
            require_server_of_client(version_of_spark(self), pyspark.__version__, failed)
            raise

    return call


def require_server_of_client(server: str, client: str, failed: Exception) -> None:
    """Refuse a client that is newer than its server, if PySpark has failed because of that.

    It asks for settings that the server does not have, or has in another form.

    Raises:
        UnsupportedError: the versions do not fit.
    """
    condition = failed.getCondition() if isinstance(failed, PySparkException) else None
    is_number = isinstance(failed, ValueError) and _NO_NUMBER in str(failed)
    if (condition == "SQL_CONF_NOT_FOUND" or is_number) and _release(server) < _release(client):
        raise UnsupportedError(
            Message.UNSUPPORTED_ON_CONNECT_VERSIONS, client=client, server=server
        ) from failed


_NO_NUMBER = "invalid literal for int()"


def _release(version: str) -> tuple[int, ...]:
    """Return the first two numbers of a version.

    >>> _release("4.10.0-SNAPSHOT") < _release("4.9.1")
    False
    """
    return tuple(int(part) for part in version.split(".")[:2])
