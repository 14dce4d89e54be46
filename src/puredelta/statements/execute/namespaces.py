"""Execution of USE, SHOW, DESCRIBE, CREATE and DROP of schemas, and of the entries of tables.

Spark executes these statements, except in a catalog of this library. Spark cannot load such a
catalog, so its own current schema stays as it is while one of these is the session's.
"""

from __future__ import annotations

import re
from functools import partial

from pyspark.sql import DataFrame, SparkSession
from typing_extensions import assert_never

from puredelta.catalogs.catalog import DescribedSchema, ListedTable
from puredelta.catalogs.failures import CatalogRequestError, Refusal
from puredelta.catalogs.settings import SESSION_CATALOG
from puredelta.commands.read_table import read_table
from puredelta.errors import (
    DeltaError,
    InvalidRequestError,
    Message,
    TableNotFoundError,
    UnsupportedError,
)
from puredelta.protocol.schema.sql_lexer import keywords, tokenize, unquoted
from puredelta.spark.session.catalogs import (
    DEFAULT_SCHEMA,
    Namespace,
    current_namespace,
    drop_catalog_table,
    find_identifier,
    require_catalog,
    require_loaded,
    session_catalog,
    session_catalog_names,
    set_current_namespace,
)
from puredelta.spark.session.names import display_name, quote, quote_name
from puredelta.spark.session.server import has_temporary_view
from puredelta.spark.session.session import no_rows
from puredelta.statements.names.names import resolve_name, rows_in_catalog
from puredelta.statements.parse.cursor import Cursor
from puredelta.statements.parse.statement import (
    CatalogStatement,
    CreateSchema,
    DescribeSchema,
    DropNamedStatement,
    DropSchema,
    RenameTable,
    ShowCatalogs,
    ShowCurrent,
    ShowSchemas,
    ShowTables,
    UseNamespace,
    ViewLifetime,
    ViewStatement,
)
from puredelta.statements.parse.table_name import TableName

_TABLES = "namespace STRING, tableName STRING, isTemporary BOOLEAN"
_INFO = "info_name STRING, info_value STRING"


def execute_in_catalog(spark: SparkSession, statement: CatalogStatement) -> DataFrame | None:
    """Execute a statement in a catalog of this library; None if Spark is to execute it.

    Raises:
        TableNotFoundError: there is no such table, or no such schema.
        InvalidRequestError: the schema is there already.
        CatalogRequestError: the catalog refuses.
    """
    match statement:
        case UseNamespace():
            return _use(spark, statement)
        case ShowCatalogs():
            return _show_catalogs(spark, statement.pattern)
        case ShowCurrent():
            return _show_current(spark)
        case ShowSchemas():
            return _show_schemas(spark, statement)
        case ShowTables():
            return _show_tables(spark, statement)
        case DescribeSchema() | CreateSchema() | DropSchema():
            found = find_schema(spark, statement.namespace)
            return None if found is None else _schema(spark, statement, found)
        case RenameTable():
            return _rename(spark, statement)
        case DropNamedStatement():
            return _drop(spark, statement)
        case _:
            assert_never(statement)


def find_catalog_part(
    spark: SparkSession, parts: tuple[str, ...]
) -> tuple[str, tuple[str, ...]] | None:
    """Return the catalog of this library in which a namespace is, and the rest of its name."""
    if parts and session_catalog(spark, parts[0]) is not None:
        return parts[0], parts[1:]
    current = current_namespace(spark)
    if current is None or (parts and parts[0].lower() == SESSION_CATALOG):
        return None
    return current.catalog, parts


def find_schema(spark: SparkSession, parts: tuple[str, ...]) -> Namespace | None:
    """Return the schema of a catalog of this library that a name stands for, None for others.

    Without a name it is the current schema. Nothing is asked.

    Raises:
        TableNotFoundError: the name is that of a catalog, or has too many parts.
    """
    found = find_catalog_part(spark, parts)
    if found is None:
        return None
    catalog, rest = found
    current = current_namespace(spark)
    if not parts and current is not None:
        return current
    if len(rest) != 1:
        raise _no_schema(display_name(parts), "Write catalog.schema.")
    return Namespace(catalog, rest[0])


def use_namespace(spark: SparkSession, namespace: Namespace) -> None:
    """Let names without a catalog belong to a schema of a catalog of this library.

    Raises:
        TableNotFoundError: the catalog has no such schema (SCHEMA_NOT_FOUND).
    """
    if namespace.schema != DEFAULT_SCHEMA:
        describe_schema(spark, namespace)
    set_current_namespace(spark, namespace)


def _use(spark: SparkSession, statement: UseNamespace) -> DataFrame | None:
    parts = statement.parts
    is_ours = len(parts) == 1 and session_catalog(spark, parts[0]) is not None
    if is_ours and statement.is_catalog is not False:
        use_namespace(spark, Namespace(parts[0], DEFAULT_SCHEMA))
        return no_rows(spark)
    if statement.is_catalog:
        return leave_for_spark(spark, f"SET CATALOG {quote(parts[0])}")
    found = find_schema(spark, parts)
    if found is None:
        return leave_for_spark(spark, f"USE {quote_name(parts)}")
    use_namespace(spark, found)
    return no_rows(spark)


def leave_for_spark(spark: SparkSession, text: str) -> DataFrame | None:
    """Let Spark change its current catalog or schema; None if no other one is current."""
    current = current_namespace(spark)
    if current is None:
        return None
    set_current_namespace(spark, None)
    try:
        return spark.sql(text)
    except BaseException:
        set_current_namespace(spark, current)
        raise


def _show_catalogs(spark: SparkSession, pattern: str) -> DataFrame | None:
    ours = session_catalog_names(spark)
    if not ours:
        return None
    of_spark = [row.name for row in spark.catalog.listCatalogs()]
    names = sorted({*of_spark, *ours})
    return spark.createDataFrame(
        [(name,) for name in names if is_like(name, pattern)], "catalog STRING"
    )


def _show_current(spark: SparkSession) -> DataFrame | None:
    current = current_namespace(spark)
    if current is None:
        return None
    row = (current.catalog, current.schema)
    return spark.createDataFrame([row], "catalog STRING, namespace STRING")


def _show_schemas(spark: SparkSession, statement: ShowSchemas) -> DataFrame | None:
    found = find_catalog_part(spark, statement.namespace)
    if found is None:
        return None
    catalog, rest = found
    if rest:
        raise _no_schema(
            display_name(statement.namespace), f"Catalog {catalog} has no nested ones."
        )
    names = require_catalog(spark, catalog).schemas()
    return spark.createDataFrame(
        [(name,) for name in names if is_like(name, statement.pattern)], "namespace STRING"
    )


def _show_tables(spark: SparkSession, statement: ShowTables) -> DataFrame | None:
    found = find_schema(spark, statement.namespace)
    if found is None:
        return None
    listed = list_tables(spark, found, statement.pattern)
    rows = [(found.schema, row.name.table, False) for row in listed]
    return spark.createDataFrame(rows, _TABLES)


def list_tables(spark: SparkSession, namespace: Namespace, pattern: str = "*") -> list[ListedTable]:
    """Return the tables of a schema whose names match a pattern of SHOW.

    Raises:
        TableNotFoundError: there is no such schema (SCHEMA_NOT_FOUND).
    """
    catalog = require_catalog(spark, namespace.catalog)
    try:
        rows = list(catalog.tables(namespace.schema))
    except CatalogRequestError as failure:
        raise _mended(failure, namespace) from failure
    return [row for row in rows if is_like(row.name.table, pattern)]


def describe_schema(spark: SparkSession, namespace: Namespace) -> DescribedSchema:
    """Return what the catalog says of a schema.

    Raises:
        TableNotFoundError: there is no such schema (SCHEMA_NOT_FOUND).
    """
    try:
        return require_catalog(spark, namespace.catalog).schema(namespace.schema)
    except CatalogRequestError as failure:
        raise _mended(failure, namespace) from failure


def _schema(
    spark: SparkSession, statement: DescribeSchema | CreateSchema | DropSchema, found: Namespace
) -> DataFrame:
    if isinstance(statement, DescribeSchema):
        return _schema_rows(spark, found, extended=statement.extended)
    catalog = require_catalog(spark, found.catalog)
    try:
        if isinstance(statement, DropSchema):
            catalog.drop_schema(found.schema, cascade=statement.cascade)
        else:
            catalog.create_schema(
                DescribedSchema(
                    name=found.schema,
                    comment=statement.comment,
                    location=statement.location,
                    properties=statement.properties,
                )
            )
    except CatalogRequestError as failure:
        is_drop = isinstance(statement, DropSchema)
        is_fine = (
            statement.if_exists if isinstance(statement, DropSchema) else (statement.if_not_exists)
        )
        wanted = Refusal.NOT_FOUND if is_drop else Refusal.EXISTS
        if failure.refusal is not wanted or not is_fine:
            raise _mended(failure, found) from failure
    return no_rows(spark)


def _schema_rows(spark: SparkSession, found: Namespace, *, extended: bool) -> DataFrame:
    schema = describe_schema(spark, found)
    rows = [
        ("Catalog Name", found.catalog),
        ("Namespace Name", found.schema),
        ("Comment", schema.comment),
        ("Location", schema.location),
    ]
    if extended:
        pairs = ", ".join(f"({key},{value})" for key, value in sorted(schema.properties.items()))
        rows.append(("Properties", f"({pairs})" if pairs else ""))
    return spark.createDataFrame(rows, _INFO)


def _rename(spark: SparkSession, statement: RenameTable) -> DataFrame | None:
    """Give a table another name in its schema."""
    name = resolve_name(spark, statement.table)
    identifier = None if name.path is not None else find_identifier(spark, name.parts)
    if identifier is None:
        return None
    *parents, new_name = statement.new_name
    if tuple(parents) != identifier.parts[:2][2 - len(parents) :]:
        raise UnsupportedError(
            Message.OPERATION_NOT_ALLOWED_OTHER_SCHEMA,
            table=str(identifier),
            new_name=display_name(statement.new_name),
            namespace=".".join(identifier.parts[:2]),
        )
    require_loaded(spark, identifier)
    try:
        require_catalog(spark, identifier.catalog).rename(identifier, new_name)
    except CatalogRequestError as failure:
        if failure.refusal is not Refusal.EXISTS:
            raise
        raise InvalidRequestError(
            Message.TABLE_OR_VIEW_ALREADY_EXISTS_RENAME,
            name=".".join((*identifier.parts[:2], new_name)),
        ) from failure
    return no_rows(spark)


def _drop(spark: SparkSession, statement: DropNamedStatement) -> DataFrame | None:
    """Drop a table of any format; the catalog removes the files of a managed one."""
    identifier = find_identifier(spark, statement.table.parts)
    if identifier is None:
        return None
    drop_catalog_table(spark, identifier, if_exists=statement.if_exists)
    return no_rows(spark)


def _mended(failure: CatalogRequestError, namespace: Namespace) -> DeltaError:
    """Return the error of Spark for a schema that is missing, or is there already."""
    if failure.refusal is Refusal.NOT_FOUND:
        return _no_schema(str(namespace), "Verify its spelling, or create it: CREATE SCHEMA.")
    if failure.refusal is Refusal.EXISTS:
        return InvalidRequestError(Message.SCHEMA_ALREADY_EXISTS, schema=str(namespace))
    return failure


def _no_schema(name: str, step: str) -> TableNotFoundError:
    return TableNotFoundError(Message.SCHEMA_NOT_FOUND_IN_CATALOG, schema=name, step=step)


def is_like(name: str, pattern: str) -> bool:
    """Return whether a name matches a pattern of SHOW: ``*`` is any text, ``|`` separates.

    >>> is_like("orders", "o*|x")
    True
    """
    parts = (re.escape(part).replace(r"\*", ".*") for part in pattern.split("|"))
    return any(re.fullmatch(part.strip(), name, re.IGNORECASE) for part in parts)


_OF_OBJECTS = keywords("ALTER ANALYZE CACHE CREATE DROP LOAD MSCK REFRESH REPAIR UNCACHE")
_TEMPORARY = keywords("TEMPORARY TEMP GLOBAL")


def require_for_spark(spark: SparkSession, text: str) -> None:
    """Refuse a statement that Spark would execute in its own current schema, not in the session's.

    Raises:
        UnsupportedError: a catalog of this library is current, and the names lack a catalog.
    """
    current = current_namespace(spark)
    if current is None:
        return
    words = [unquoted(token) for token in tokenize(text)[:8]]
    if not words or words[0].upper() not in _OF_OBJECTS:
        return
    is_whole = any(word.lower() == SESSION_CATALOG for word in words)
    if is_whole or any(word.upper() in _TEMPORARY for word in words[1:5]):
        return
    last = next((word for word in reversed(words) if word != ";"), "")
    if words[0].upper() == "DROP" and has_temporary_view(spark, last):
        return
    raise UnsupportedError(
        Message.OPERATION_NOT_ALLOWED_BY_SPARK,
        statement=" ".join(words[:2]).upper(),
        catalog=current.catalog,
        session_catalog=SESSION_CATALOG,
    )


def run_view_in_catalog(spark: SparkSession, statement: ViewStatement, *, text: str) -> bool:
    """Execute ``[UN]CACHE TABLE`` of a table in a catalog of this library; False for other texts.

    Raises:
        UnsupportedError: a view would be stored in such a catalog, which has tables alone.
    """
    if _cached_in_catalog(spark, text):
        return True
    if statement.lifetime is ViewLifetime.PERMANENT:
        _require_session_catalog(spark, text)
    return False


def _cached_in_catalog(spark: SparkSession, text: str) -> bool:
    """Execute ``[UN]CACHE TABLE name`` of a catalog of this library; return whether it is one."""
    cursor = Cursor(text)
    caches, is_lazy = cursor.accept("CACHE"), cursor.accept("LAZY")
    if not (caches or cursor.accept("UNCACHE")) or not cursor.accept("TABLE"):
        return False
    cursor.accept("IF", "EXISTS")
    name = TableName(() if cursor.is_done else cursor.name())
    is_plain = cursor.is_done or cursor.sees(";") or cursor.sees("OPTIONS")
    if not is_plain or find_identifier(spark, name.parts) is None:
        return False
    rows = rows_in_catalog(spark, name, partial(read_table, spark))
    if not caches:
        rows.unpersist()
    elif not rows.cache().isEmpty() and not is_lazy:
        rows.count()
    return True


def view_name(text: str) -> TableName | None:
    """Return the name of the view that a text defines."""
    head = Cursor(text)
    while not (head.is_done or head.accept("VIEW")):
        head.skip()
    head.accept("IF", "NOT", "EXISTS")
    return None if head.is_done else TableName(head.name())


def _require_session_catalog(spark: SparkSession, text: str) -> None:
    """Refuse a stored view in a catalog of this library: such a catalog has tables alone."""
    name = view_name(text)
    if name is not None and find_identifier(spark, name.parts) is not None:
        raise UnsupportedError(Message.OPERATION_NOT_ALLOWED_VIEW_IN_CATALOG, name=str(name))
