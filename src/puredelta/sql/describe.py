"""``DESCRIBE HISTORY`` and ``DESCRIBE DETAIL``, which Spark's parser does not know."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession

from puredelta.commands.detail import detail_rows
from puredelta.commands.history import history_rows
from puredelta.errors import ErrorCode, TableNotFoundError
from puredelta.log.table_log import TableLog
from puredelta.sql.cursor import Cursor
from puredelta.sql.lexer import TokenKind
from puredelta.sql.names import find_location, resolve_name

_STRINGS = (TokenKind.STRING, TokenKind.DOUBLE_QUOTED)


def run_describe(spark: SparkSession, text: str) -> DataFrame | None:
    """Execute ``DESC[RIBE] HISTORY table [LIMIT n]`` or ``DESC[RIBE] DETAIL table``.

    The table is a name, ``delta.`/path` `` or a path in quotes. None for any other text, such
    as ``DESCRIBE history``, which describes a table of that name.

    Raises:
        SqlSyntaxError: something else stands behind the table.
        TableNotFoundError: there is no Delta table.
    """
    cursor = Cursor(text)
    if not (cursor.accept("DESCRIBE") or cursor.accept("DESC")):
        return None
    is_history = cursor.accept("HISTORY")
    if not is_history and not cursor.accept("DETAIL"):
        return None
    if cursor.is_done or cursor.sees(";") or cursor.sees("."):
        return None
    log = _log(spark, cursor)
    limit = None
    if is_history and cursor.accept("LIMIT"):
        token = cursor.peek()
        if token is None or not token.text.isdecimal():
            raise cursor.error(expected="a number")
        limit = int(token.text)
        cursor.skip()
    cursor.expect_end()
    if is_history:
        return history_rows(spark, log, limit=limit)
    return detail_rows(spark, log.snapshot())


def _log(spark: SparkSession, cursor: Cursor) -> TableLog:
    token = cursor.peek()
    if token is not None and token.kind in _STRINGS and token.text[0] in "'\"":
        cursor.skip()
        name, location = token.text, token.text[1:-1]
    else:
        table = resolve_name(spark, cursor.table())
        name, found = str(table), find_location(spark, table)
        location = found or ""
    log = TableLog.open(location) if location else None
    if log is None or not log.exists():
        raise TableNotFoundError(
            f"{name} is not a Delta table.", code=ErrorCode.MISSING_DELTA_TABLE, table=name
        )
    return log
