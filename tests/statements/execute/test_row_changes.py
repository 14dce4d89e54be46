"""The rows behind USING: names, queries, common table expressions, paths."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from puredelta.api import write
from puredelta.errors import InvalidRequestError
from puredelta.statements.execute.row_changes import source_rows
from puredelta.statements.names.views import TemporaryViews
from puredelta.statements.parse.parse import parse
from puredelta.statements.parse.statement import MergeStatement

NEW = [(3, "new"), (4, "new")]


@pytest.fixture(scope="module")
def other(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    """k = 3..4, v = 'new' in version 0, 'newer' in version 1."""
    path = str(tmp_path_factory.mktemp("delta") / "it`s")
    write(spark.sql("SELECT id AS k, 'new' AS v FROM range(3, 5)"), path)
    write(spark.sql("SELECT 9L AS k, 'newer' AS v"), path, mode="overwrite")
    return "delta.`" + path.replace("`", "``") + "`"


@pytest.fixture(autouse=True)
def updates(spark: SparkSession) -> Iterator[None]:
    spark.sql("SELECT id AS k, 'new' AS v FROM range(3, 5)").createOrReplaceTempView("updates")
    yield
    spark.catalog.dropTempView("updates")


def rows_of(spark: SparkSession, source: str, *columns: str, ctes: str = "") -> list[Any]:
    text = f"{ctes} MERGE INTO delta.`/t` t USING {source} ON true WHEN MATCHED THEN DELETE"
    statement = parse(text)
    assert isinstance(statement, MergeStatement)
    with TemporaryViews() as views:
        rows: DataFrame = source_rows(spark, statement, views=views).select(*columns)
        return sorted(tuple(row) for row in rows.collect())


@pytest.mark.parametrize(
    ("source", "qualifier"),
    [
        ("updates AS s", "s"),
        ("updates", "updates"),
        ("IDENTIFIER('up' || 'dates') s", "s"),
        ("(SELECT k, v FROM updates WHERE k < 9) s", "s"),
        ("(SELECT * FROM VALUES (3L, 'new'), (4L, 'new') v(k, v)) s", "s"),
    ],
)
def test_names_and_queries(spark: SparkSession, source: str, qualifier: str) -> None:
    assert rows_of(spark, source, f"{qualifier}.k", f"{qualifier}.v") == NEW


def test_values_alone(spark: SparkSession) -> None:
    assert rows_of(spark, "(VALUES (3, 'new'), (4, 'new'))", "col1", "col2") == NEW


@pytest.mark.parametrize("source", ["b AS s", "(SELECT * FROM b) AS s"])
def test_common_table_expressions(spark: SparkSession, source: str) -> None:
    ctes = "WITH a AS (SELECT k FROM updates), b (k, v) AS (SELECT k, 'new' FROM a)"
    assert rows_of(spark, source, "s.k", "s.v", ctes=ctes) == NEW
    assert rows_of(spark, "a", "a.k", ctes=ctes) == [(3,), (4,)]


def test_a_delta_table(spark: SparkSession, other: str) -> None:
    assert rows_of(spark, f"{other} AS s", "s.k", "s.v") == [(9, "newer")]
    assert rows_of(spark, other, f"{other}.k", f"spark_catalog.{other}.v") == [(9, "newer")]


def test_delta_tables_in_a_query(spark: SparkSession, other: str) -> None:
    whole_names = f"(SELECT {other}.k, {other}.v FROM {other} WHERE {other}.k > 3)"
    assert rows_of(spark, whole_names, "k", "v") == [(9, "newer")]
    joined = f"(SELECT a.* FROM {other} VERSION AS OF 0 AS a JOIN {other} b ON a.k < b.k) s"
    assert rows_of(spark, joined, "s.k", "s.v") == NEW
    ctes = f"WITH a AS (SELECT * FROM {other} FOR VERSION AS OF '0')"
    assert rows_of(spark, "a", "a.k", "a.v", ctes=ctes) == NEW
    with pytest.raises(InvalidRequestError, match="2001-01-01"):
        rows_of(spark, f"(SELECT * FROM {other} TIMESTAMP AS OF to_date('2001-01-01')) s", "s.k")
    assert not [t for t in spark.catalog.listTables() if t.name.startswith("__puredelta")]


def test_a_path_is_not_looked_for_in_strings(spark: SparkSession, tmp_path: Path) -> None:
    text = f"delta.`{tmp_path}/none`"
    assert rows_of(spark, f'(SELECT "{text}" AS k) s', "s.k") == [(text,)]
