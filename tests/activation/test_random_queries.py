"""Random queries that name no Delta table have one plan, with and without the activation."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import puredelta

QUERIES = 60
QUERIES_OF_ALL = 600
NAMES = ("delta", "`a/b`", "d", "`delta.x`")
_NUMBERS = re.compile(
    r"(?<=CTERelationDef )\d+|(?<=CTERelationRef )\d+|#\d+L?|\[id=#?\d+\]|plan_id=\d+|id=\d+"
    r"|__auto_generated\w*"
)


class Queries:
    """A source of texts; ``delta`` is an alias, a CTE, a column and a struct in them."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def query(self, depth: int = 2) -> str:
        """Return a query with the columns ``k``, ``delta`` (a struct with ``/x``) and ``v``."""
        pick = self._random.choice
        if depth == 0:
            return f"SELECT * FROM {pick(('rows_a', 'rows_b'))}"
        name, one = pick(NAMES), self.query(depth - 1)
        column, relation = self._column(name), self._relation(depth)
        return pick(
            (
                f"SELECT {name}.* FROM {relation} {name} WHERE {column} > 1",
                (
                    f"SELECT /*+ BROADCAST({name}) */ {name}.* FROM {relation} {name} "
                    f"JOIN rows_b other ON {column} = other.k"
                ),
                f"WITH {name} AS ({one}) SELECT k, delta, v FROM {name} WHERE {column} < 9",
                f"({one}) UNION ALL ({self.query(depth - 1)})",
                f"({one}) EXCEPT (SELECT * FROM rows_b)",
                f"SELECT k, delta, v FROM {relation} {name} |> WHERE {column} > 0 |> LIMIT 3",
                f"FROM {relation} {name} |> WHERE {column} > 0 |> ORDER BY k",
                (
                    f"SELECT {name}.k, delta, x.v FROM {relation} {name}, "
                    f"LATERAL (SELECT {column} AS v) x"
                ),
                (
                    f"SELECT k, delta, sum(v) OVER (PARTITION BY {column} ORDER BY k) AS v "
                    f"FROM {relation} {name}"
                ),
                (
                    f"SELECT k, delta, v FROM {relation} {name} "
                    f"WHERE k IN (SELECT delta.k FROM rows_b delta WHERE delta.v = {column})"
                ),
                (
                    f"SELECT k, named_struct('/x', `p/1`) AS delta, `q/2` AS v FROM "
                    f"(SELECT k, delta.`/x` AS x, v FROM {relation} {name}) "
                    "PIVOT (max(v) FOR x IN (1 AS `p/1`, 2 AS `q/2`))"
                ),
                f"SELECT k, delta, v FROM {relation} {name} LATERAL VIEW explode(array(1)) delta",
            )
        )

    def _column(self, name: str) -> str:
        return self._random.choice(
            (f"{name}.k", f"{name}.v", f"{name}.delta.`/x`", "v", "delta.`/x`")
        )

    def _relation(self, depth: int) -> str:
        return self._random.choice(("rows_a", "rows_b", f"({self.query(depth - 1)})"))


@pytest.fixture(scope="module")
def rows(spark: SparkSession) -> Iterator[SparkSession]:
    for name in ("rows_a", "rows_b"):
        spark.sql(
            f"CREATE TEMPORARY VIEW {name} AS "
            "SELECT id AS k, named_struct('/x', id + 1) AS delta, id * 2 AS v FROM range(5)"
        )
    yield spark
    puredelta.deactivate()


def _plan(spark: SparkSession, query: str) -> str:
    try:
        plan = spark.sql(query)._jdf.queryExecution().analyzed()
        return _NUMBERS.sub("#", str(plan.toString()))
    except PySparkException as error:
        return f"{type(error).__name__} {error.getCondition()}"
    except Py4JJavaError as error:
        return str(error.java_exception.getClass().getName())


def _compare(spark: SparkSession, queries: list[str]) -> None:
    puredelta.deactivate()
    plain = [_plan(spark, query) for query in queries]
    puredelta.activate(spark)
    active = [_plan(spark, query) for query in queries]
    for query, one, other in zip(queries, plain, active, strict=True):
        assert one == other, query
    # A generator of wrong queries would compare errors with errors.
    assert sum("SubqueryAlias" in plan for plan in plain) > len(queries) // 2


@pytest.mark.parametrize("queries", [25, pytest.param(QUERIES, marks=pytest.mark.thorough)])
def test_plans_are_the_same(rows: SparkSession, queries: int) -> None:
    _compare(rows, [Queries(seed).query() for seed in range(queries)])


@pytest.mark.thorough
def test_plans_of_many_are_the_same(rows: SparkSession) -> None:
    _compare(rows, [Queries(seed).query(3) for seed in range(QUERIES, QUERIES_OF_ALL)])
