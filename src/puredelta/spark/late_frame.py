"""Rows that the driver's JVM holds as a DataFrame, made with few round trips. Classic sessions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from puredelta.spark.java_class import java_class


def local_frame(spark: SparkSession, rows: Sequence[Any], schema: T.StructType) -> DataFrame:
    """Return the JVM's ``Row`` objects under a schema; runs no job.

    PySpark's own ``createDataFrame`` starts from an RDD or from Arrow: many times the calls.
    """
    jvm: Any = spark._jvm  # noqa: SLF001 - the Py4J edge
    held = java_class(jvm, "java.util.ArrayList")()
    for row in rows:
        held.add(row)
    java_type = java_class(jvm, "org.apache.spark.sql.types.DataType").fromJson(schema.json())
    return DataFrame(spark._jsparkSession.createDataFrame(held, java_type), spark)  # noqa: SLF001
