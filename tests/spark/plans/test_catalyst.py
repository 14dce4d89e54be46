"""The Py4J edge, where it is lazier than Spark's own."""

from __future__ import annotations

from typing import Any

from pyspark.sql import Column, SparkSession

from puredelta.spark.plans.catalyst import Catalyst


def test_a_late_column_is_fetched_once_and_only_when_it_is_used(spark: SparkSession) -> None:
    rows = spark.range(3)
    catalyst = Catalyst(spark)
    fetched: list[Any] = []

    def first_attribute() -> Any:
        fetched.append(catalyst.analyzed(rows).output().apply(0))
        return fetched[-1]

    column = catalyst.late_column(first_attribute)
    assert isinstance(column, Column)
    assert not fetched
    assert [tuple(row) for row in rows.select(column, column + 1).collect()] == [
        (0, 1),
        (1, 2),
        (2, 3),
    ]
    assert len(fetched) == 1
