"""Names of tables in statements, resolved to catalog names, locations and logs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import islice

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from puredelta.catalogs.catalog import address_of
from puredelta.catalogs.failures import CatalogRequestError, Refusal
from puredelta.errors import InvalidRequestError, Message, TableNotFoundError
from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.schema.sql_lexer import is_identifier, tokenize, unquoted
from puredelta.spark.catalog.catalog_entries import entry_formats, entry_name, find_table, is_taken
from puredelta.spark.catalog.unity_entries import other_format_rows
from puredelta.spark.jvm.catalog import StoredEntry
from puredelta.spark.session.catalogs import (
    current_namespace,
    find_identifier,
    find_loaded,
    require_loaded,
    session_catalog,
)
from puredelta.spark.session.names import FORMAT, quote_name
from puredelta.spark.session.storage import open_log
from puredelta.statements.parse.cursor import SqlSyntaxError
from puredelta.statements.parse.table_name import (
    ComputedName,
    QuotedPath,
    TableArgument,
    TableName,
    TableReference,
    parse_table_name,
)

_DOTS = 2
"""Dots in a name of three parts."""
_PATH_PARTS = 2
"""Number of parts in ``format.`path` ``."""
_LOOKED_AT = 100
"""Number of files listed to identify a directory that is no table."""


def resolve_name(spark: SparkSession, reference: TableReference) -> TableName:
    """Return the name; ``IDENTIFIER(...)`` is computed by Spark."""
    if not isinstance(reference, ComputedName):
        return reference
    [row] = spark.sql(f"SELECT string({reference.expression}) AS name").collect()
    return parse_table_name(row["name"] or "")


def find_location(spark: SparkSession, name: TableName) -> str | None:
    """Return the location of a Delta table: its path, the session catalog's, or its address.

    None if the name is not that of a Delta table.

    Raises:
        TableNotFoundError: another catalog of this library has no table of the name.
        CatalogRequestError: it has one of another format, or does not answer.
    """
    if name.path is not None:
        return name.path
    if (identifier := find_identifier(spark, name.parts)) is not None:
        return address_of(require_loaded(spark, identifier).name)
    table = find_table(spark, name.parts)
    return None if table is None else table.location


def rows_in_catalog(
    spark: SparkSession, name: TableName, read: Callable[[str], DataFrame]
) -> DataFrame:
    """Return the rows of a table of a catalog of this library; ``read`` takes a Delta table's
    location.

    Raises:
        TableNotFoundError: the catalog has no table of the name.
        CatalogRequestError: it does not answer.
        UnsupportedError: the table is of a format that Spark does not read from files.
    """
    try:
        location = find_location(spark, name)
    except CatalogRequestError as failure:
        identifier = find_identifier(spark, name.parts)
        if failure.refusal is not Refusal.OTHER_FORMAT or identifier is None:
            raise
        return other_format_rows(spark, identifier)
    if location is None:
        raise not_found(name)
    return read(location)


def may_name_catalog(spark: SparkSession, text: str) -> bool:
    """Tell whether a text may name a table of a catalog of this library.

    Any text may while such a catalog is the current one, others as `names_catalog` says.
    """
    return current_namespace(spark) is not None or names_catalog(spark, text)


def names_catalog(spark: SparkSession, text: str) -> bool:
    """Tell from its tokens whether a text has a whole name in a catalog of this library.

    Every name of three parts counts, also that of a field of a struct.
    """
    if text.count(".") < _DOTS:
        return False
    tokens = tokenize(text)
    heads = {
        unquoted(first)
        for first, dot, second, other, third in zip(
            tokens, tokens[1:], tokens[2:], tokens[3:], tokens[4:], strict=False
        )
        if dot.means(".") and other.means(".") and all(map(is_identifier, (first, second, third)))
    }
    return any(session_catalog(spark, head) is not None for head in heads)


def existing_location(spark: SparkSession, name: TableName) -> str | None:
    """Return as `find_location`; also None for a name that a catalog does not know yet."""
    if name.path is None and (identifier := find_identifier(spark, name.parts)) is not None:
        return None if find_loaded(spark, identifier) is None else address_of(identifier)
    return find_location(spark, name)


def find_catalog_name(spark: SparkSession, name: TableName) -> str | None:
    """Return the whole name of a Delta table in a catalog, None for a path."""
    if name.path is None and (identifier := find_identifier(spark, name.parts)) is not None:
        return str(identifier)
    table = None if name.path is not None else find_table(spark, name.parts)
    return None if table is None else table.full_name


def qualifier_of(spark: SparkSession, name: TableName) -> tuple[str, ...]:
    """Return the longest qualifier of the columns of a Delta table, or of a view, of this name."""
    if name.path is not None:
        return name.qualifier
    if (identifier := find_identifier(spark, name.parts)) is not None:
        return identifier.parts
    table = find_table(spark, name.parts)
    return name.parts if table is None else (table.catalog, table.database, table.name)


def find_other_table(spark: SparkSession, name: TableName) -> StoredEntry | None:
    """Return a table of the session catalog that is neither a Delta table nor a view, if any."""
    if name.path is not None:
        return None
    entry = entry_name(spark, name.parts)
    if entry is None or not is_taken(spark, entry):
        return None
    found = entry_formats(spark).read_entry(spark, entry.database, entry.name)
    return None if found.is_view or (found.provider or "").lower() == FORMAT else found


def find_other_format(spark: SparkSession, name: TableName) -> str | None:
    """Return the format of a name that is not Delta, in lower case.

    Such a name is a table of the session catalog, or like ``parquet.`/path` ``. None for a view,
    for an unknown name, and for a table without a format.
    """
    if (entry := find_other_table(spark, name)) is not None:
        return (entry.provider or "").lower() or None
    provider = name.parts[0].lower() if names_files(name) else FORMAT
    return None if provider == FORMAT else provider


def names_files(name: TableName) -> bool:
    """Tell a name like ``parquet.`/path` ``, of files that are no Delta table."""
    return name.path is None and len(name.parts) == _PATH_PARTS and "/" in name.parts[1]


def find_name(text: str) -> TableName | None:
    """Return a name as Spark would read it; None if it is none.

    >>> find_name("delta.`/data/events`").path
    '/data/events'
    """
    try:
        return parse_table_name(text)
    except SqlSyntaxError:
        return None  # Spark raises the error itself


def open_table(spark: SparkSession, table: TableArgument, operation: str) -> TableLog:
    """Return the log of the table named in one of Delta's own statements.

    Raises:
        TableNotFoundError: as of `find_log`.
        InvalidRequestError: it is a view (EXPECT_TABLE_NOT_VIEW.NO_ALTERNATIVE, of RESTORE
            DELTA_ONLY_OPERATION, of table_changes DELTA_TABLE_ONLY_OPERATION).
    """
    if isinstance(table, QuotedPath):
        return require_table(spark, table.path, table.path)
    name = resolve_name(spark, table)
    try:
        return find_log(spark, name)
    except TableNotFoundError as error:
        if not is_view(spark, name):
            raise
        refusal = _NO_VIEWS.get(operation, Message.EXPECT_TABLE_NOT_VIEW)
        raise InvalidRequestError(refusal, operation=operation, view=str(name)) from error


_NO_VIEWS = {
    "RESTORE": Message.ONLY_OPERATION,
    "table_changes": Message.TABLE_ONLY_OPERATION,
}
"""Operations that delta-spark refuses for views with an error class of their own."""


def find_log(spark: SparkSession, name: TableName) -> TableLog:
    """Return the log of the Delta table of a name.

    Raises:
        TableNotFoundError: there is no table of the name (TABLE_OR_VIEW_NOT_FOUND), or it is
            no Delta table (DELTA_MISSING_DELTA_TABLE).
    """
    location = find_location(spark, name)
    if location is None and not is_known(spark, name):
        raise not_found(name)
    return require_table(spark, location, name)


def is_known(spark: SparkSession, name: TableName) -> bool:
    """Tell whether there is a table or a view of the name."""
    if (identifier := find_identifier(spark, name.parts)) is not None:
        return find_loaded(spark, identifier) is not None
    return spark.catalog.tableExists(quote_name(name.parts))


def is_view(spark: SparkSession, name: TableName) -> bool:
    """Tell whether a name is that of a view: temporary, global or kept in the catalog."""
    if name.path is not None or find_identifier(spark, name.parts) is not None:
        return False
    try:
        entry = spark.catalog.getTable(quote_name(name.parts))
    except PySparkException:
        return False  # Spark raises the error of the statement itself
    return entry.isTemporary or entry.tableType == "VIEW"


def not_found(name: TableName) -> TableNotFoundError:
    """Return the error for an unknown name."""
    hint = " The path in it must be absolute." if _is_relative_path(name) else ""
    return TableNotFoundError(
        Message.TABLE_OR_VIEW_NOT_FOUND_NAME, name=name, hint=hint, table=str(name)
    )


def require_target(name: TableName) -> None:
    """Refuse a target path that is certainly no Delta table; Spark would name another cause.

    Raises:
        TableNotFoundError: it is ``parquet.`/path` ``, or ``delta.`path` `` that is not absolute.
    """
    if _is_relative_path(name):
        raise not_found(name)
    if len(name.parts) == _PATH_PARTS and name.parts[0].lower() == "parquet":
        raise TableNotFoundError(Message.MISSING_DELTA_TABLE_TARGET, name=name, table=str(name))


def _is_relative_path(name: TableName) -> bool:
    """Tell whether a name looks like ``delta.`data/events` ``, which no session resolves."""
    parts = name.parts
    is_of_path = len(parts) == _PATH_PARTS and parts[0].lower() == FORMAT
    return is_of_path and name.path is None and "/" in parts[1]


def require_table(
    spark: SparkSession,
    location: str | None,
    name: object,
    *,
    storage_options: Mapping[str, object] | None = None,
) -> TableLog:
    """Return the log of the table at a location; ``name`` is its name in the statement.

    Raises:
        TableNotFoundError: there is no Delta table (DELTA_MISSING_DELTA_TABLE).
    """
    log = open_log(spark, location, storage_options=storage_options) if location else None
    if log is None or not log.exists():
        raise missing_table(log, name)
    return log


def missing_table(log: TableLog | None, name: object) -> TableNotFoundError:
    """Return the error for a name, or for a location in a store, without a Delta table."""
    hint = "" if log is None else _parquet_hint(log)
    return TableNotFoundError(
        Message.MISSING_DELTA_TABLE_NAME, name=name, hint=hint, table=str(name)
    )


def _parquet_hint(log: TableLog) -> str:
    """Return the next step for a directory of Parquet files, if a short listing shows some."""
    files = islice(log.store.walk(""), _LOOKED_AT)
    if not any(file.name.endswith(".parquet") for file in files):
        return ""
    root = log.root_uri.removeprefix("file:")
    return f" It holds Parquet files: DeltaTable.convertToDelta(spark, 'parquet.`{root}`')."
