"""Defaults of columns, as Spark judges them: one value, of a type the column can hold."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import types as T

from puredelta.spark.plans.catalyst import Catalyst
from puredelta.spark.session.session import is_connect


def require_valid_default(
    spark: SparkSession, column: str, expression: str, data_type: T.DataType, *, statement: str
) -> None:
    """Refuse what cannot be the default of a column; runs no job.

    ``statement`` is what messages call the command.

    Raises:
        pyspark.errors.AnalysisException: the expression names columns, has a subquery, or
            is of another type (INVALID_DEFAULT_VALUE, with its subclass).
        pyspark.errors.ParseException: it is no expression.
    """
    if is_connect(spark):
        _ = spark.sql(f"SELECT CAST(({expression}) AS {data_type.simpleString()})").schema
        return
    catalyst = Catalyst(spark)
    kind = catalyst.jvm.org.apache.spark.sql.types.DataType.fromJson(data_type.json())
    judge: Any = catalyst.jvm.org.apache.spark.sql.catalyst.util.ResolveDefaultColumns
    judge.analyze(column, kind, expression, statement)
