"""The answer of a command, as PySpark would make it of a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from puredelta.spark.session.session import count_row

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_a_row_of_longs(spark: SparkSession) -> None:
    counts = {"num_affected_rows": 3, "num_inserted_rows": 1 << 40, "num_deleted_rows": -1}
    rows = count_row(spark, counts)
    usual = spark.createDataFrame(pa.table({name: pa.array([n]) for name, n in counts.items()}))
    assert rows.schema == usual.schema
    assert [row.asDict() for row in rows.collect()] == [counts]
    none = count_row(spark, counts, exists=False)
    assert none.schema == usual.schema
    assert none.isEmpty()
