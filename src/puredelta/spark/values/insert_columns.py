"""Values of an INSERT cast to the columns they are for, by Spark's own rules.

``TableOutputResolver`` is what Spark resolves its INSERT statements with: positions or names,
``spark.sql.storeAssignmentPolicy``, casts of nested values, and the errors. Classic sessions
only.
"""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import types as T

from puredelta.spark.plans.catalyst import Catalyst
from puredelta.spark.session.types import struct_as_nullable, without_table_metadata


def stored_as(rows: DataFrame, columns: T.StructType, *, table: str, by_name: bool) -> DataFrame:
    """Return the rows with exactly these columns; ``table`` is what errors call the table.

    Raises:
        pyspark.errors.AnalysisException: too many or too few columns, or a type that does not
            fit (INSERT_COLUMN_ARITY_MISMATCH, INCOMPATIBLE_DATA_FOR_TABLE).
    """
    spark = rows.sparkSession
    catalyst = Catalyst(spark)
    plain = without_table_metadata(struct_as_nullable(columns))
    expected = catalyst.analyzed(spark.createDataFrame([], plain)).output()
    resolver: Any = catalyst.jvm.org.apache.spark.sql.catalyst.analysis.TableOutputResolver
    plan = resolver.resolveOutputColumns(
        table,
        expected,
        catalyst.analyzed(rows),
        by_name,
        catalyst.session.sessionState().conf(),
        getattr(resolver, "resolveOutputColumns$default$6")(),
    )
    return catalyst.rows(plan)
