"""What statements of our own take for a table and for a number: names, paths, text."""

from __future__ import annotations

import re

from pyspark.sql import SparkSession

from puredelta.errors import ErrorCode, TableNotFoundError
from puredelta.log.replay.table_log import TableLog
from puredelta.spark.session.identifiers import quote_name
from puredelta.sql.relations.names import find_catalog_name, find_location, resolve_name
from puredelta.sql.text.cursor import Cursor
from puredelta.sql.text.table_name import TableName
from puredelta.sql.text.text_literal import accept_text

_NUMBER = re.compile(r"\d+(?:\.\d*)?")


def read_table_argument(spark: SparkSession, cursor: Cursor) -> TableLog:
    """Step over a table: a name, ``delta.`/path` `` or a path in quotes.

    Raises:
        SqlSyntaxError: there is none of these.
        TableNotFoundError: see `find_log`.
    """
    log, _ = read_named_table(spark, cursor)
    return log


def read_named_table(spark: SparkSession, cursor: Cursor) -> tuple[TableLog, str | None]:
    """Step over a table as `read_table_argument` does; also return its name in the catalog."""
    text = accept_text(cursor)
    if text is not None:
        return require_table(text, text), None
    name = resolve_name(spark, cursor.table())
    return find_log(spark, name), find_catalog_name(spark, name)


def find_log(spark: SparkSession, name: TableName) -> TableLog:
    """Return the log of a Delta table that a statement names.

    Raises:
        TableNotFoundError: there is no table of the name (TABLE_OR_VIEW_NOT_FOUND), or it is
            no Delta table (DELTA_MISSING_DELTA_TABLE).
    """
    location = find_location(spark, name)
    if location is None and not spark.catalog.tableExists(quote_name(name.parts)):
        raise not_found(name)
    return require_table(location, name)


def not_found(name: TableName) -> TableNotFoundError:
    """Return the error for a name that stands for nothing."""
    return TableNotFoundError(
        f"The table or view {name} cannot be found. Verify the spelling and correctness of the "
        "schema and catalog.",
        code=ErrorCode.TABLE_OR_VIEW_NOT_FOUND,
        table=str(name),
    )


def require_table(location: str | None, name: object) -> TableLog:
    """Return the log of the table at a location; ``name`` is what the statement calls it.

    Raises:
        TableNotFoundError: there is no Delta table (DELTA_MISSING_DELTA_TABLE).
    """
    log = TableLog.open(location) if location else None
    if log is None or not log.exists():
        raise TableNotFoundError(
            f"{name} is not a Delta table.", code=ErrorCode.MISSING_DELTA_TABLE, table=str(name)
        )
    return log


def read_number(cursor: Cursor) -> str:
    """Step over a number without a sign and return its text.

    Raises:
        SqlSyntaxError: there is none.
    """
    token = cursor.peek()
    if token is None or _NUMBER.fullmatch(token.text) is None:
        raise cursor.error(expected="a number")
    cursor.skip()
    return token.text
