"""Views that a view of SQL text refers to in the place of a table at a path."""

from __future__ import annotations

from pyspark.sql import SparkSession

from puredelta.spark.catalog.table_views import path_view


def test_rows_of_no_table_share_no_view(spark: SparkSession) -> None:
    """Each frame is gone when the next one is made, and may lie where it lay."""
    names = [path_view(spark.range(n), is_global=False) for n in range(40)]
    assert len(set(names)) == 40
    assert [spark.table(name).count() for name in names[:3]] == [0, 1, 2]
