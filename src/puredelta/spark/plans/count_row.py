"""The row of counts that a command answers with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from puredelta.spark.plans.lazy_frame import late_frame
from puredelta.spark.session.jvm import java_class
from puredelta.spark.session.session import is_connect


def count_row(spark: SparkSession, counts: Mapping[str, int], *, exists: bool = True) -> DataFrame:
    """Return counts as the long columns of one row, or of none; runs no job.

    Examples:
        >>> count_row(spark, {"num_affected_rows": 3}).first()  # doctest: +SKIP
        Row(num_affected_rows=3)
    """
    if is_connect(spark):
        values = {name: pa.array([n] if exists else [], pa.int64()) for name, n in counts.items()}
        return spark.createDataFrame(pa.table(values))
    schema = T.StructType([T.StructField(name, T.LongType()) for name in counts])
    numbers = list(counts.values())
    return late_frame(spark, schema, lambda: [_row(spark, numbers)] if exists else [])


def _row(spark: SparkSession, values: list[int]) -> Any:
    gateway: Any = spark.sparkContext._gateway  # noqa: SLF001
    jvm = gateway.jvm
    cells = gateway.new_array(jvm.long, len(values))
    for n, value in enumerate(values):
        cells[n] = value
    # Alone, a number that fits would become an Integer on the other side.
    longs = java_class(jvm, "java.util.stream.LongStream").of(cells).boxed().toArray()
    return java_class(jvm, "org.apache.spark.sql.RowFactory").create(longs)
