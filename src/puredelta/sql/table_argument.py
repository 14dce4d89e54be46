"""What statements of our own take for a table and for a number: names, paths, text."""

from __future__ import annotations

import re

from pyspark.sql import SparkSession

from puredelta.errors import ErrorCode, TableNotFoundError
from puredelta.log.table_log import TableLog
from puredelta.sql.cursor import Cursor
from puredelta.sql.lexer import TokenKind
from puredelta.sql.names import find_location, resolve_name

_STRINGS = (TokenKind.STRING, TokenKind.DOUBLE_QUOTED)
_NUMBER = re.compile(r"\d+(?:\.\d*)?")


def read_table_argument(spark: SparkSession, cursor: Cursor) -> TableLog:
    """Step over a table: a name, ``delta.`/path` `` or a path in quotes.

    Raises:
        SqlSyntaxError: there is none of these.
        TableNotFoundError: there is no Delta table (DELTA_MISSING_DELTA_TABLE).
    """
    text = accept_text(cursor)
    if text is not None:
        name, location = text, text
    else:
        table = resolve_name(spark, cursor.table())
        name, location = str(table), find_location(spark, table) or ""
    log = TableLog.open(location) if location else None
    if log is None or not log.exists():
        raise TableNotFoundError(
            f"{name} is not a Delta table.", code=ErrorCode.MISSING_DELTA_TABLE, table=name
        )
    return log


def accept_text(cursor: Cursor) -> str | None:
    """Step over text in quotes and return what is between them; None if there is none."""
    token = cursor.peek()
    if token is None or token.kind not in _STRINGS or token.text[0] not in "'\"":
        return None
    cursor.skip()
    return token.text[1:-1]


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
