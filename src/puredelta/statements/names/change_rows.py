"""Changed rows in a query: calls of ``table_changes``, and the clause ``CHANGES`` of a table.

A bound of ``table_changes`` is a version if its type is an integer, else a time, as text or a
timestamp. The arguments are expressions without columns; Spark computes them.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from puredelta.commands.changes import read_changes
from puredelta.commands.read_table import TimestampArgument
from puredelta.commands.version_changes import OPTIONS, read_row_changes
from puredelta.errors import InvalidRequestError, Message
from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.schema.sql_lexer import TokenKind, mentions, tokenize
from puredelta.statements.names.names import open_table, require_table
from puredelta.statements.parse.changes_clause import (
    BoundText,
    accept_changes_clause,
    may_have_changes_clause,
)
from puredelta.statements.parse.cursor import Cursor
from puredelta.statements.parse.expression_text import read_expression
from puredelta.statements.parse.table_name import parse_table_name

_BY_NAME = "TABLE_CHANGES"
_BY_PATH = "TABLE_CHANGES_BY_PATH"
_FUNCTIONS = frozenset({_BY_NAME, _BY_PATH})
_ARGUMENTS = (2, 3)
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc)
_SUPPORTED = "IntegerType, LongType, StringType, TimestampType"


def may_call(text: str) -> bool:
    """Tell from its tokens whether a text may call a function of this package."""
    return any(mentions(text, name.lower()) for name in _FUNCTIONS) and any(
        bracket.means("(") and function.text.upper() in _FUNCTIONS
        for function, bracket in pairwise(tokenize(text))
    )


def accept_changes(
    spark: SparkSession, cursor: Cursor, namespace: Sequence[str] = ()
) -> DataFrame | None:
    """Parse a call on a Delta table and return its rows; None if no call comes next.

    ``namespace`` is that of a name of one part, if it is not the session's.

    The log is read and checked here; no job runs on the table's data.

    Raises:
        InvalidRequestError: the arguments are wrong; errors of the feed as `read_changes`.
        TableNotFoundError: there is no table at the path or of the name.
        pyspark.errors.PySparkException: Spark cannot compute an argument.
    """
    token = cursor.peek()
    bracket = cursor.peek(1)
    if token is None or token.kind is not TokenKind.WORD or bracket is None:
        return None
    function = token.text.upper()
    if function not in _FUNCTIONS or not bracket.means("("):
        return None
    before = cursor.peek(-1) if cursor.position else None
    if before is not None and before.means("."):  # a function of some schema
        return None
    cursor.skip()
    arguments = _arguments(cursor.group())
    if len(arguments) not in _ARGUMENTS:
        raise _wrong_number(function, arguments)
    return _change_rows(spark, _log(spark, function, arguments[0], namespace), arguments)


def _arguments(text: str) -> list[str]:
    """Split at the commas outside of all brackets."""
    cursor = Cursor(text)
    if cursor.is_done:
        return []
    return cursor.items(lambda at: read_expression(at, lambda rest: rest.sees(",")))


def _log(spark: SparkSession, function: str, argument: str, namespace: Sequence[str]) -> TableLog:
    """Return the log of the table in the first argument."""
    kind, name = _value(spark, argument)
    if not isinstance(kind, T.StringType) or name is None:
        raise _unsupported(kind, "table name", "StringType literal")
    if function == _BY_PATH:
        return require_table(spark, str(name), f"`{name}`")
    named = parse_table_name(str(name))
    if named.path is not None:
        return require_table(spark, named.path, f"`{named.path}`")
    return open_table(spark, named.seen_from(namespace), "table_changes")


def _change_rows(spark: SparkSession, log: TableLog, arguments: Sequence[str]) -> DataFrame:
    bounds: dict[str, Any] = {}
    for which, argument in zip(("starting", "ending"), arguments[1:], strict=False):
        bounds |= _bound(spark, which, argument)
    return read_changes(spark, log, **bounds)


def _bound(spark: SparkSession, which: str, argument: str) -> Mapping[str, int | TimestampArgument]:
    """Return a version or a time under its name in `read_changes`."""
    kind, value = _value(spark, argument)
    if value is None:
        raise InvalidRequestError(Message.CDC_READ_NULL_RANGE_BOUNDARY, argument=argument)
    match kind:
        case T.IntegerType() | T.LongType():
            return {f"{which}_version": value}
        case T.StringType():
            return {f"{which}_timestamp": value}
        case T.TimestampType():
            return {f"{which}_timestamp": _EPOCH + dt.timedelta(microseconds=value)}
        case _:
            raise _unsupported(kind, f"{which} option", _SUPPORTED)


def _value(spark: SparkSession, expression: str) -> tuple[T.DataType, Any]:
    """Return an expression's type and value; a timestamp as microseconds since 1970."""
    rows = spark.sql(f"SELECT ({expression}) AS value")
    kind = rows.schema["value"].dataType
    if isinstance(kind, T.TimestampType):
        rows = rows.select(F.unix_micros("value").alias("value"))
    [row] = rows.collect()
    return kind, row["value"]


def _unsupported(kind: T.DataType, words: str, supported: str) -> InvalidRequestError:
    return InvalidRequestError(
        Message.UNSUPPORTED_EXPRESSION_TYPE,
        supported=supported,
        expType=type(kind).__name__,
        causedBy=words,
    )


def _wrong_number(function: str, arguments: Sequence[str]) -> InvalidRequestError:
    return InvalidRequestError(
        Message.WRONG_NUM_ARGS, functionName=function.lower(), actualNum=len(arguments)
    )


def may_ask_for_changes(text: str) -> bool:
    """Tell from its tokens whether a text may ask for changed rows."""
    return may_call(text) or may_have_changes_clause(text)


def accept_changed_rows(
    spark: SparkSession, cursor: Cursor, location: str, name: object
) -> DataFrame | None:
    """Parse ``CHANGES`` after a table and return its rows; None if no such clause comes next.

    ``location`` and ``name`` are those of the Delta table. The log is read here; no job runs on
    the table's data.

    Raises:
        SqlSyntaxError: the clause is incomplete.
        InvalidRequestError: errors as `read_row_changes`.
        TableNotFoundError: there is no table at the location.
    """
    clause = accept_changes_clause(cursor)
    if clause is None:
        return None
    log = require_table(spark, location, name)
    options = {k: v for k, v in clause.options.items() if k.lower() not in _OF_THE_RANGE}
    options |= _range_options(spark, "starting", clause.start)
    if clause.end is not None:
        options |= _range_options(spark, "ending", clause.end)
    return read_row_changes(spark, log, options, name=str(name))


_OF_THE_RANGE = frozenset(name.lower() for name in OPTIONS if name.startswith(("start", "end")))


def _range_options(spark: SparkSession, which: str, bound: BoundText) -> dict[str, str]:
    inclusive = {f"{which}BoundInclusive": str(not bound.is_exclusive).lower()}
    if bound.version is not None:
        return {f"{which}Version": bound.version, **inclusive}
    kind, value = _value(spark, bound.time or "")
    if not isinstance(kind, T.StringType | T.TimestampType):
        kind, value = _value(spark, f"timestamp({bound.time})")
    if value is None:
        raise InvalidRequestError(Message.CDC_READ_NULL_RANGE_BOUNDARY, argument=bound.time)
    if not isinstance(kind, T.StringType):
        value = (_EPOCH + dt.timedelta(microseconds=value)).isoformat()
    return {f"{which}Timestamp": value, **inclusive}
