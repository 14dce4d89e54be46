"""SQL text and Columns: validity, text form, and expressions that a table stores.

The first two see the columns of one row and nothing else, a default sees nothing. Spark's
analyzer says whether an expression is valid; no job runs.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from enum import Enum
from typing import Any
from weakref import WeakKeyDictionary

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from puredelta.errors import InvalidRequestError, Message, UnsupportedError
from puredelta.protocol.schema.types import StructType
from puredelta.spark.jvm import analyzer
from puredelta.spark.jvm.analyzer import folded
from puredelta.spark.jvm.expressions import parsed
from puredelta.spark.jvm.frames import analyzed_plan
from puredelta.spark.jvm.plans import parsed_plan
from puredelta.spark.jvm.stored_text import user_functions
from puredelta.spark.resolve.text_from_message import proven_text
from puredelta.spark.session.names import parse_name
from puredelta.spark.session.session import is_connect, no_rows, settings_of
from puredelta.spark.session.types import struct_as_nullable, to_spark, without_table_metadata

_asks_parser: ContextVar[bool] = ContextVar("puredelta_asks_parser", default=False)


def asks_parser() -> bool:
    """Return whether a text that reaches ``spark.sql`` now is a question to Spark's parser.

    An activated session leaves such a text to Spark, also a statement on a Delta table.
    """
    return _asks_parser.get()


@contextmanager
def _question() -> Iterator[None]:
    token = _asks_parser.set(True)
    try:
        yield
    finally:
        _asks_parser.reset(token)


def require_parsable(spark: SparkSession, text: str) -> None:
    """Refuse what Spark's parser refuses, with its error; nothing is analyzed or run.

    Raises:
        pyspark.errors.ParseException: line, position and class are Spark's.
    """
    if not is_connect(spark):
        parsed_plan(spark, text)
        return
    known = _parsable.setdefault(spark, {})
    key = (text, tuple(sorted(settings_of(spark).items())))
    if hash(key) in known:
        return
    with _question():
        try:
            # Explaining parses the statement and reports all later errors as its result.
            spark.sql(f"EXPLAIN {text}")
        except ParseException:
            spark.sql(text)  # fails in the same way, at places that fit the user's text
            raise
    if len(known) >= _PARSABLE_MAX:
        known.clear()
    known[hash(key)] = None


_parsable: WeakKeyDictionary[SparkSession, dict[int, None]] = WeakKeyDictionary()
"""Hashes of texts, each with the settings, that Spark's parser has taken."""
_PARSABLE_MAX = 1000


def column_name(spark: SparkSession, column: Column) -> str | None:
    """Return the name of a Column that is a column of the rows and nothing more.

    Fields of a struct are no such thing, and neither are transforms of partitions.
    """
    if is_connect(spark):
        known: Any = spark
        made: Any = column
        message = made.to_plan(known.client)
        if message.WhichOneof("expr_type") != "unresolved_attribute":
            return None
        parts = parse_name(str(message.unresolved_attribute.unparsed_identifier))
        return parts[0] if len(parts) == 1 else None
    expression = parsed(spark, column)
    match expression.kind:
        case "AttributeReference":
            return expression.name()
        case "UnresolvedAttribute":
            parts = expression.name_parts()
            return parts[0] if len(parts) == 1 else None
        case _:
            return None


def sql_text(column: Column, rows: DataFrame) -> str:
    """Return a condition over these rows as SQL; in a classic session as Spark writes it.

    Raises:
        UnsupportedError: over Connect, where no text is proven to mean the same.
    """
    if is_connect(rows.sparkSession):
        text = proven_text(column, rows)
        if text is None:
            raise UnsupportedError(Message.UNSUPPORTED_ON_CONNECT_OVERWRITE, condition=str(column))
        return text
    plan = folded(analyzed_plan(rows.select(column.alias("value"))))
    return plan.projections()[0].child().sql()


_UNRESOLVED = ("UNRESOLVED_COLUMN", "UNRESOLVED_FIELD", "FIELD_NOT_FOUND")
_AGGREGATES = ("INVALID_WHERE_CONDITION", "UNSUPPORTED_EXPR_FOR_WINDOW")


class Fault(Enum):
    """The reason why an expression cannot be part of a table's definition."""

    UNRESOLVED = "it names a column that does not exist"
    AGGREGATE = "it has an aggregate or window function"
    NON_DETERMINISTIC = "it is not deterministic"


@dataclass(frozen=True, slots=True)
class CheckedExpression:
    """Spark's analysis of an expression over one row."""

    simple_type: str
    """As ``DataType.simpleString`` writes it, whatever may be null in it; empty if unknown."""
    fault: Fault | None = None
    user_function: str | None = None
    """A function that it calls and that is not built in; not known over Connect."""


def check_expression(
    spark: SparkSession, expression: str, columns: StructType
) -> CheckedExpression:
    """Resolve SQL text over columns of a table; runs no job.

    Over Connect determinism is not known and passes.

    Raises:
        pyspark.errors.PySparkException: Spark refuses it for another reason, such as a
            syntax error.
    """
    plain = without_table_metadata(struct_as_nullable(to_spark(columns)))
    rows = no_rows(spark, plain)
    try:
        value = rows.select(F.expr(expression).alias("value"))
        kind = value.schema.fields[0].dataType.simpleString()
        # An aggregate alone would be a query of its own; a filter sees one row.
        _ = rows.filter(F.expr(expression).isNotNull()).schema
    except AnalysisException as error:
        fault = _fault(error)
        if fault is None:
            raise
        return CheckedExpression("", fault)
    if is_connect(spark):
        return CheckedExpression(kind)
    if not analyzed_plan(value).is_deterministic():
        return CheckedExpression(kind, Fault.NON_DETERMINISTIC)
    return CheckedExpression(kind, user_function=next(user_functions(spark, expression), None))


def _fault(error: AnalysisException) -> Fault | None:
    condition = error.getCondition() or ""
    if condition.startswith(_UNRESOLVED):
        return Fault.UNRESOLVED
    if condition.startswith(_AGGREGATES):
        return Fault.AGGREGATE
    return None


def require_valid_default(
    spark: SparkSession, column: str, expression: str, data_type: T.DataType, *, statement: str
) -> None:
    """Refuse what cannot be the default of a column.

    ``statement`` is what messages call the command.
    """
    if is_connect(spark):
        try:
            _ = spark.sql(f"SELECT CAST(({expression}) AS {data_type.simpleString()})").schema
        except AnalysisException as error:
            if _fault(error) is not Fault.UNRESOLVED:
                raise
            raise InvalidRequestError(
                Message.INVALID_DEFAULT_VALUE_UNRESOLVED,
                statement=statement,
                column=column,
                expression=expression,
            ) from error
    else:
        analyzer.require_valid_default(spark, column, expression, data_type, statement=statement)
