"""``table_changes('table', start[, end])`` in FROM: the change data feed as a table.

A bound of an integer type is a version, text or a timestamp is a time. The arguments are
expressions without columns; Spark computes them.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from puredelta.commands.read.changes import read_changes
from puredelta.commands.read.read_table import TimestampArgument
from puredelta.errors import ErrorCode, InvalidRequestError, UnsupportedError
from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.schema.sql_lexer import TokenKind
from puredelta.spark.session.session import is_connect
from puredelta.sql.relations.names import find_log, require_table
from puredelta.sql.text.cursor import Cursor
from puredelta.sql.text.expression import read_expression
from puredelta.sql.text.table_name import parse_table_name

_BY_NAME = "TABLE_CHANGES"
_BY_PATH = "TABLE_CHANGES_BY_PATH"
_CALL = re.compile(r"\btable_changes(?:_by_path)?\s*\(", re.IGNORECASE)
_ARGUMENTS = (2, 3)
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc)
_SUPPORTED = "IntegerType, LongType, StringType, TimestampType"


def may_call(text: str) -> bool:
    """Tell from a glance whether one of our functions could be called in a text."""
    return _CALL.search(text) is not None


def accept_changes(
    spark: SparkSession, cursor: Cursor, namespace: Sequence[str] = ()
) -> DataFrame | None:
    """Step over a call on a Delta table and return its rows; None if none comes next.

    ``namespace`` is where a name of one part belongs, if that is not the session's.

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
    if function not in {_BY_NAME, _BY_PATH} or not bracket.means("("):
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
    """Return the log of the table that the first argument names."""
    kind, name = _value(spark, argument)
    if not isinstance(kind, T.StringType) or name is None:
        raise _unsupported(kind, "table name", "StringType literal")
    if function == _BY_PATH:
        return require_table(spark, str(name), f"`{name}`")
    named = parse_table_name(str(name))
    if named.path is not None:
        return require_table(spark, named.path, f"`{named.path}`")
    if is_connect(spark):
        raise UnsupportedError(
            f"{function.lower()} of {named} needs a classic session: a Spark Connect client has no "
            "access to the session catalog. Name the path, delta.`/path`.",
            code=ErrorCode.UNSUPPORTED_ON_CONNECT,
        )
    return find_log(spark, named.seen_from(namespace))


def _change_rows(spark: SparkSession, log: TableLog, arguments: Sequence[str]) -> DataFrame:
    bounds: dict[str, Any] = {}
    for which, argument in zip(("starting", "ending"), arguments[1:], strict=False):
        bounds |= _bound(spark, which, argument)
    return read_changes(spark, log, **bounds)


def _bound(spark: SparkSession, which: str, argument: str) -> Mapping[str, int | TimestampArgument]:
    """Return a version or a time under its name in `read_changes`."""
    kind, value = _value(spark, argument)
    if value is None:
        raise InvalidRequestError(
            "CDC read start/end parameters cannot be null. Please provide a valid version or "
            "timestamp.",
            code=ErrorCode.CDC_READ_NULL_RANGE_BOUNDARY,
            argument=argument,
        )
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
        f"Unsupported expression type({type(kind).__name__}) for {words}. The supported types are "
        f"[{supported}].",
        code=ErrorCode.UNSUPPORTED_EXPRESSION,
        expType=type(kind).__name__,
        causedBy=words,
    )


def _wrong_number(function: str, arguments: Sequence[str]) -> InvalidRequestError:
    return InvalidRequestError(
        f"The `{function.lower()}` requires [2, 3] parameters but the actual number is "
        f"{len(arguments)}: the table, the first version or moment, and perhaps the last.",
        code=ErrorCode.WRONG_NUM_ARGS,
        functionName=function.lower(),
        actualNum=len(arguments),
    )
