"""What statements return that have no rows of their own."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType


def no_rows(spark: SparkSession) -> DataFrame:
    """Return no rows without columns, as Spark does for a command."""
    return spark.createDataFrame([], StructType([]))
