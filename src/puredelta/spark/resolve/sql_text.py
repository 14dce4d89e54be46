"""SQL text beside Spark's own parser: whether a text is valid, and what a ``Column`` says."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from pyspark.errors import ParseException
from pyspark.sql import Column, DataFrame, SparkSession

from puredelta.spark.jvm.analyzer import folded
from puredelta.spark.jvm.expressions import parsed
from puredelta.spark.jvm.frames import analyzed_plan
from puredelta.spark.jvm.plans import parsed_plan
from puredelta.spark.session.session import is_connect

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
    with _question():
        try:
            # Explaining parses the statement and reports all later errors as its result.
            spark.sql(f"EXPLAIN {text}")
        except ParseException:
            spark.sql(text)  # fails in the same way, at places that fit the user's text
            raise


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
        text = str(message.unresolved_attribute.unparsed_identifier)
        return text.removeprefix("`").removesuffix("`").replace("``", "`")
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
    """Return a Column over these rows as SQL, as Spark writes it. Classic sessions only.

    Raises:
        pyspark.errors.AnalysisException: it names what the rows do not have.
    """
    plan = folded(analyzed_plan(rows.select(column.alias("value"))))
    return plan.projections()[0].child().sql()
