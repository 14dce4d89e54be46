"""``SHOW TBLPROPERTIES``, ``COLUMNS``, ``PARTITIONS``, ``CREATE TABLE``, and ``DESCRIBE``."""

from __future__ import annotations

from puredelta.protocol.schema.sql_lexer import keywords
from puredelta.sql.parse.statement import (
    DescribeDetail,
    DescribeHistory,
    DescribeTable,
    Rejected,
    ShowColumns,
    ShowCreate,
    ShowPartitions,
    ShowProperties,
    ShowStatement,
    read_or_reject,
)
from puredelta.sql.text.cursor import Cursor
from puredelta.sql.text.property_text import read_property_keys
from puredelta.sql.text.table_name import read_table, read_table_argument

_OTHER_THINGS = keywords("DATABASE SCHEMA NAMESPACE CATALOG FUNCTION QUERY VARIABLE PROCEDURE")
"""What else DESCRIBE describes."""


def read_show(cursor: Cursor) -> ShowStatement | None:
    """Read a SHOW of one table; None for any other.

    Raises:
        SqlSyntaxError: it goes on in another way, perhaps one that Spark knows.
    """
    cursor.expect("SHOW")
    statement = _show(cursor)
    if statement is not None:
        cursor.expect_end()
    return statement


def _show(cursor: Cursor) -> ShowStatement | None:
    if cursor.accept("TBLPROPERTIES"):
        table = read_table(cursor)
        key = ".".join(read_property_keys(cursor)) if cursor.sees("(") else None
        return ShowProperties(table=table, key=key)
    if cursor.accept("CREATE", "TABLE"):
        statement = ShowCreate(table=read_table(cursor))
        cursor.accept("AS", "SERDE")
        return statement
    if cursor.accept("PARTITIONS"):
        return ShowPartitions(table=read_table(cursor))
    if not cursor.accept("COLUMNS") or not _accept_in(cursor):
        return None
    table = read_table(cursor)
    return ShowColumns(table=table, database=cursor.name() if _accept_in(cursor) else ())


def _accept_in(cursor: Cursor) -> bool:
    return cursor.accept("IN") or cursor.accept("FROM")


def read_describe(
    cursor: Cursor,
) -> DescribeHistory | DescribeDetail | DescribeTable | Rejected | None:
    """Read DESCRIBE of a table, of its history or of its detail; None for any other thing.

    ``DESCRIBE history`` is of a table that has this name.

    Raises:
        SqlSyntaxError: it goes on in another way, perhaps one that Spark knows.
    """
    cursor.skip()  # DESCRIBE or DESC
    after = cursor.peek(1)
    if after is not None and not after.means(";") and not after.means("."):
        if cursor.accept("HISTORY"):
            return read_or_reject(cursor, _history, known_to_spark=False)
        if cursor.accept("DETAIL"):
            return read_or_reject(cursor, _detail, known_to_spark=False)
    statement = _describe(cursor)
    if statement is not None:
        cursor.expect_end()
    return statement


def _history(cursor: Cursor) -> DescribeHistory:
    table = read_table_argument(cursor)
    limit = int(cursor.number(whole=True)) if cursor.accept("LIMIT") else None
    return DescribeHistory(table=table, limit=limit)


def _detail(cursor: Cursor) -> DescribeDetail:
    return DescribeDetail(table=read_table_argument(cursor))


def _describe(cursor: Cursor) -> DescribeTable | None:
    has_more = cursor.peek(1) is not None
    if cursor.word in _OTHER_THINGS and has_more:
        return None
    if cursor.sees("TABLE") and has_more:
        cursor.skip()
    extended = False
    if (cursor.sees("EXTENDED") or cursor.sees("FORMATTED")) and cursor.peek(1) is not None:
        cursor.skip()
        extended = True
    table = read_table(cursor)
    done = cursor.is_done or cursor.sees(";")
    return DescribeTable(table=table, extended=extended, column=None if done else cursor.name())
