"""``SHOW TBLPROPERTIES``, ``SHOW COLUMNS``, ``SHOW CREATE TABLE``, ``DESCRIBE TABLE`` as text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from puredelta.protocol.schema.schema_edit import FieldPath
from puredelta.sql.text.column_text import read_path
from puredelta.sql.text.cursor import Cursor
from puredelta.sql.text.lexer import keywords
from puredelta.sql.text.property_text import read_property_keys
from puredelta.sql.text.syntax_error import SqlSyntaxError
from puredelta.sql.text.table_name import TableReference


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowProperties:
    """``SHOW TBLPROPERTIES table [(key)]``."""

    table: TableReference
    key: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowColumns:
    """``SHOW COLUMNS IN table [IN database]``."""

    table: TableReference
    database: FieldPath = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowCreate:
    """``SHOW CREATE TABLE table [AS SERDE]``."""

    table: TableReference


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowPartitions:
    """``SHOW PARTITIONS table``."""

    table: TableReference


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeTable:
    """``DESCRIBE [TABLE] [EXTENDED] table [column]``."""

    table: TableReference
    extended: bool = False
    column: FieldPath | None = None


ShowStatement: TypeAlias = (
    ShowProperties | ShowColumns | ShowCreate | ShowPartitions | DescribeTable
)

_OTHER_THINGS = keywords("DATABASE SCHEMA NAMESPACE CATALOG FUNCTION QUERY VARIABLE PROCEDURE")
"""What else DESCRIBE describes."""


def parse_show(text: str) -> ShowStatement | None:
    """Read a statement; None for any other text, also for one that goes on in another way.

    >>> parse_show("DESC EXTENDED events").extended
    True
    """
    cursor = Cursor(text)
    try:
        statement = _show(cursor) if cursor.accept("SHOW") else _describe(cursor)
        cursor.expect_end()
    except SqlSyntaxError:
        return None  # Spark's own parser says it best
    return statement


def _show(cursor: Cursor) -> ShowStatement | None:
    if cursor.accept("TBLPROPERTIES"):
        table = cursor.table()
        key = ".".join(read_property_keys(cursor)) if cursor.sees("(") else None
        return ShowProperties(table=table, key=key)
    if cursor.accept("CREATE", "TABLE"):
        statement = ShowCreate(table=cursor.table())
        cursor.accept("AS", "SERDE")
        return statement
    if cursor.accept("PARTITIONS"):
        return ShowPartitions(table=cursor.table())
    if not cursor.accept("COLUMNS") or not _accept_in(cursor):
        return None
    table = cursor.table()
    return ShowColumns(table=table, database=read_path(cursor) if _accept_in(cursor) else ())


def _accept_in(cursor: Cursor) -> bool:
    return cursor.accept("IN") or cursor.accept("FROM")


def _describe(cursor: Cursor) -> DescribeTable | None:
    if not (cursor.accept("DESCRIBE") or cursor.accept("DESC")):
        return None
    word = cursor.peek()
    if word is not None and word.text.upper() in _OTHER_THINGS and cursor.peek(1) is not None:
        return None
    if cursor.sees("TABLE") and cursor.peek(1) is not None:
        cursor.skip()
    extended = False
    if (cursor.sees("EXTENDED") or cursor.sees("FORMATTED")) and cursor.peek(1) is not None:
        cursor.skip()
        extended = True
    table = cursor.table()
    done = cursor.is_done or cursor.sees(";")
    return DescribeTable(table=table, extended=extended, column=None if done else read_path(cursor))
