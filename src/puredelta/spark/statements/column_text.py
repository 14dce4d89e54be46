"""What a ``Column`` says, as text."""

from __future__ import annotations

from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession

from puredelta.spark.plans.catalyst import Catalyst
from puredelta.spark.session.session import is_connect

_PLAIN = frozenset({"UnresolvedAttribute", "AttributeReference"})


def column_name(spark: SparkSession, column: Column) -> str | None:
    """Return the name of a Column that is a column of the rows and nothing more.

    Fields of a struct are no such thing, and neither are transforms of partitions.
    """
    if is_connect(spark):
        known: Any = spark
        made: Any = column
        said = made.to_plan(known.client)
        if said.WhichOneof("expr_type") != "unresolved_attribute":
            return None
        text = str(said.unresolved_attribute.unparsed_identifier)
        return text.removeprefix("`").removesuffix("`").replace("``", "`")
    expression = Catalyst(spark).parsed(column)
    kind = expression.getClass().getSimpleName()
    if kind not in _PLAIN:
        return None
    if kind == "AttributeReference":
        return str(expression.name())
    parts = expression.nameParts()
    return str(parts.apply(0)) if parts.size() == 1 else None


def sql_text(column: Column, rows: DataFrame) -> str:
    """Return a Column over these rows as SQL, as Spark writes it. Classic sessions only.

    Raises:
        pyspark.errors.AnalysisException: it names what the rows do not have.
    """
    catalyst = Catalyst(rows.sparkSession)
    plan = catalyst.folded(catalyst.analyzed(rows.select(column.alias("value"))))
    return str(plan.projectList().apply(0).child().sql())
