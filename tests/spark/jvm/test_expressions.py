"""Expressions of the JVM, and Columns made of them."""

from __future__ import annotations

from pyspark.sql import Column, SparkSession

from puredelta.spark.jvm.expressions import Attribute, lazy_column_of
from puredelta.spark.jvm.frames import analyzed_plan


def test_a_lazy_column_is_fetched_once_and_only_when_it_is_used(spark: SparkSession) -> None:
    rows = spark.range(3)
    fetched: list[Attribute] = []

    def first_attribute() -> Attribute:
        fetched.append(analyzed_plan(rows).output()[0])
        return fetched[-1]

    column = lazy_column_of(first_attribute)
    assert isinstance(column, Column)
    assert not fetched
    assert [tuple(row) for row in rows.select(column, column + 1).collect()] == [
        (0, 1),
        (1, 2),
        (2, 3),
    ]
    assert len(fetched) == 1


def test_ids_of_attributes_that_print_more_than_an_id(spark: SparkSession) -> None:
    rows = spark.range(2).selectExpr("timestamp_seconds(id) AS at", "id")
    plain = analyzed_plan(rows).output()
    watched = analyzed_plan(rows.withWatermark("at", "1 minute")).output()
    assert watched.expr_ids() == plain.expr_ids() == [a.expr_id() for a in plain]


def test_only_some_columns_get_an_id_of_their_own(spark: SparkSession) -> None:
    known = analyzed_plan(spark.range(1).selectExpr("id", "id + 1 AS b", "2 AS c")).output(3)
    new = known.with_new_ids({1})
    assert [a.name() for a in new] == ["id", "b", "c"]
    same = [k == n for k, n in zip(known.expr_ids(), new.expr_ids(), strict=True)]
    assert same == [True, False, True]
