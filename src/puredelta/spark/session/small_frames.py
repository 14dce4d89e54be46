"""Frames of one row, or of none, which this library makes itself: no job runs, now or later."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from puredelta.spark.jvm.frames import lazy_frame, row_of_longs
from puredelta.spark.session.session import is_connect


def no_rows(spark: SparkSession, schema: T.StructType | None = None) -> DataFrame:
    """Return a frame of no rows, by default without columns as Spark does for a command.

    Runs no job.
    """
    schema = T.StructType([]) if schema is None else schema
    return spark.createDataFrame([], schema) if is_connect(spark) else lazy_frame(spark, schema)


def count_row(spark: SparkSession, counts: Mapping[str, int], *, exists: bool = True) -> DataFrame:
    """Return the counts that a command answers with as the long columns of one row, or of none.

    Examples:
        >>> count_row(spark, {"num_affected_rows": 3}).first()  # doctest: +SKIP
        Row(num_affected_rows=3)
    """
    if is_connect(spark):
        values = {name: pa.array([n] if exists else [], pa.int64()) for name, n in counts.items()}
        return spark.createDataFrame(pa.table(values))
    schema = T.StructType([T.StructField(name, T.LongType()) for name in counts])
    numbers = list(counts.values())
    return lazy_frame(spark, schema, lambda: [row_of_longs(spark, numbers)] if exists else [])
