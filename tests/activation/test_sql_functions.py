"""Delta tables in the bodies of SQL functions, and in subqueries of expressions of frames."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from puredelta.spark.catalog import relation_cache

FUNCTIONS = {
    "counted": "(x BIGINT) RETURNS BIGINT RETURN (SELECT count(*) FROM t WHERE id >= x)",
    "listed": "() RETURNS TABLE (q BIGINT) RETURN SELECT id FROM t",
    "nested": "() RETURNS BIGINT RETURN (SELECT sum(q) + counted(0) FROM listed())",
    "plain": "(x BIGINT) RETURNS BIGINT RETURN x + 1",
}


@pytest.fixture
def called(active: SparkSession) -> Iterator[SparkSession]:
    active.sql("CREATE DATABASE functions")
    active.catalog.setCurrentDatabase("functions")
    active.sql("CREATE TABLE t USING delta AS SELECT id FROM range(3)")
    for name, rest in FUNCTIONS.items():
        active.sql(f"CREATE FUNCTION {name}{rest}")
    yield active
    active.catalog.setCurrentDatabase("default")
    active.sql("DROP DATABASE functions CASCADE")
    assert not relation_cache._cached


def contents(spark: SparkSession, query: str) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in spark.sql(query).collect()]


def test_functions_show_the_newest_version(called: SparkSession) -> None:
    called.sql("CREATE TEMPORARY FUNCTION passing() RETURNS BIGINT RETURN (SELECT max(id) FROM t)")
    try:
        assert contents(called, "SELECT counted(1), plain(1), passing()") == [(2, 2, 2)]
        called.sql("INSERT INTO t VALUES (7)")
        assert contents(called, "SELECT functions.counted(1), nested(), passing()") == [(3, 14, 7)]
    finally:
        called.sql("DROP TEMPORARY FUNCTION passing")
    assert contents(called, "SELECT q FROM listed() ORDER BY q") == [(0,), (1,), (2,), (7,)]


@pytest.mark.thorough
def test_functions_in_statements(called: SparkSession) -> None:
    called.sql(
        "MERGE INTO t USING (SELECT q FROM listed()) s ON t.id = s.q AND s.q = 2 "
        "WHEN MATCHED THEN UPDATE SET id = s.q + 10"
    )
    called.sql("INSERT INTO t SELECT counted(0)")
    assert contents(called, "SELECT id FROM t ORDER BY id") == [(0,), (1,), (3,), (12,)]
    called.sql("CREATE TABLE copied USING delta AS SELECT * FROM listed()")
    called.sql("CREATE VIEW seen AS SELECT nested() AS n")
    assert contents(called, "SELECT count(*) FROM copied") == [(4,)]
    assert contents(called, "SELECT n FROM seen") == [(20,)]


@pytest.mark.thorough
def test_subqueries_of_frames(called: SparkSession) -> None:
    found = called.range(9).where("id IN (SELECT id FROM t WHERE id > 0)")
    assert [row.id for row in found.orderBy("id").collect()] == [1, 2]
    shown = called.range(1).selectExpr("(SELECT max(id) FROM t) AS m", "counted(1) AS c")
    assert [tuple(row) for row in shown.collect()] == [(2, 2)]
    assert called.table("t").filter("id = counted(0) - 1").count() == 1


def test_columns_of_queries_are_those_of_the_newest_version(called: SparkSession) -> None:
    called.sql(
        "MERGE WITH SCHEMA EVOLUTION INTO t USING (SELECT 9 AS id, 'n' AS extra) s "
        "ON t.id = s.id WHEN NOT MATCHED THEN INSERT *"
    )
    described = contents(called, "DESCRIBE QUERY SELECT extra, id FROM t")
    assert [row[:2] for row in described] == [("extra", "string"), ("id", "bigint")]
    assert [column.name for column in called.catalog.listColumns("t")] == ["id", "extra"]


@pytest.mark.thorough
def test_a_generated_column_calls_built_in_functions_only(called: SparkSession) -> None:
    """Another session, and another engine, could not compute it."""
    table = "CREATE TABLE g (a BIGINT, b BIGINT GENERATED ALWAYS AS ({})) USING delta"
    with pytest.raises(AnalysisException, match="UNSUPPORTED_EXPRESSION_GENERATED_COLUMN"):
        called.sql(table.format("plain(a)"))
    assert not called.catalog.tableExists("g")
    called.sql(table.format("abs(a) + 1"))
    called.sql("INSERT INTO g (a) VALUES (-3)")
    assert contents(called, "SELECT * FROM g") == [(-3, 4)]
