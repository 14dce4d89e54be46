"""Delta tables in queries: by path and by version, and names that only look like one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

import puredelta
from puredelta.statements.names.query_tables import may_need_names, may_query_tables


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM delta.`/t`",
        "/* new */ (select * from `delta` . `/t`)",
        "EXPLAIN EXTENDED SELECT * FROM t VERSION AS OF 1",
        "INSERT INTO t SELECT * FROM table_changes('t', 0)",
        "CREATE TABLE t USING parquet AS SELECT * FROM delta.`/t`",
    ],
)
def test_queries(text: str) -> None:
    assert may_query_tables(text)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM t",
        "CREATE TEMP VIEW v AS SELECT * FROM delta.`/t`",
        "CREATE VIEW v AS SELECT * FROM table_changes('t', 0)",
        "DELETE FROM delta.`/t`",
        "-- delta.`/t`",
    ],
)
def test_other_texts(text: str) -> None:
    assert not may_query_tables(text)


def test_versions_in_the_definition_of_a_view() -> None:
    assert may_need_names("CREATE TEMP VIEW v AS SELECT * FROM delta.`/t`")
    assert may_need_names("CACHE TABLE c AS SELECT * FROM t VERSION AS OF 1")
    assert not may_need_names("CREATE TEMP VIEW v AS SELECT * FROM t")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT * FROM delta /* it's */ . -- a\n `/t`", True),
        ('SELECT * FROM `DELTA`."/t"', True),
        ("SELECT * FROM t VERSION AS /* of */ OF 1", True),
        ("SELECT * FROM table_changes /* it's */ ('t', 0)", True),
        ("SELECT 'delta.`/t`', r'\\' -- AS OF table_changes(", False),
        ("SELECT a AS of FROM delta.t /* delta.`/t` */", True),  # OF may be a name, too
        ("SELECT of, table_changes FROM delta.t /* delta.`/t` */", False),
    ],
)
def test_comments_and_texts_are_no_names(text: str, expected: bool) -> None:
    assert may_need_names(text) is expected


@pytest.fixture(scope="module")
def travelled(spark: SparkSession) -> Iterator[None]:
    """A table ``travels.t`` of the catalog with two versions, and an active session."""
    puredelta.activate(spark)
    spark.sql("CREATE DATABASE travels")
    spark.sql("CREATE TABLE travels.t USING delta AS SELECT 0 AS id, 'a' AS v")
    spark.sql("INSERT INTO travels.t VALUES (1, 'b')")
    yield
    spark.sql("DROP DATABASE travels CASCADE")
    puredelta.deactivate()


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "query",
    [
        "FROM {} |> WHERE t.id = 0 |> SELECT t.v",
        "FROM {} |> AS q |> WHERE q.id = 0 |> SELECT q.v",
        "FROM {} |> JOIN range(1) r ON t.id = r.id |> SELECT t.v",
        "SELECT t.v FROM {} TABLESAMPLE (100 PERCENT) WHERE t.id = 0",
        "SELECT s.v FROM {} TABLESAMPLE (10 ROWS) s WHERE s.id = 0",
        "SELECT t.v FROM {} OFFSET 0",
        "SELECT t.v FROM {} LEFT ANTI JOIN range(1, 2) r ON t.id = r.id",
        "SELECT t.v FROM {} SEMI JOIN range(1) r ON t.id = r.id",
        "SELECT t.v FROM range(1) r NATURAL JOIN {}",
        "SELECT t.v FROM {} LATERAL VIEW explode(array(1)) e AS x WHERE t.id = 0",
        "SELECT t.v FROM {} WINDOW w AS (PARTITION BY t.id)",
        "SELECT max(t.v) FROM {} GROUP BY t.id SORT BY 1",
        "SELECT t.v FROM ({}) DISTRIBUTE BY t.id",
        "FROM {} SELECT t.v",
        "SELECT v FROM {} PIVOT (max(t.id) FOR id IN (0))",
        "SELECT t.v FROM {} MINUS SELECT 'c'",
        "SELECT (SELECT t.v FROM {} LIMIT 1)",
    ],
)
@pytest.mark.usefixtures("travelled")
def test_a_version_keeps_the_name_of_its_table(spark: SparkSession, query: str) -> None:
    named = query.format("travels.t VERSION AS OF 0")
    assert [row[0] for row in spark.sql(named).collect()] == ["a"]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT delta.`/x` FROM (SELECT named_struct('/x', 1) delta)", [1]),
        ("SELECT d.delta.`/x` FROM (SELECT named_struct('/x', 1) delta) d", [1]),
        ("SELECT delta.`/x` FROM (SELECT 1 AS `/x`) AS delta", [1]),
        ("WITH delta AS (SELECT 1 AS `/x`) SELECT delta.`/x` FROM delta", [1]),
        ("WITH delta(`/x`) AS (VALUES (1), (2)) SELECT 1 FROM delta ORDER BY -delta.`/x`", [1, 1]),
        ("SELECT transform(array(named_struct('/x', 1)), delta -> delta.`/x`)[0]", [1]),
        ("SELECT count(*) FROM (SELECT 1 `/x`) delta JOIN range(2) r ON delta.`/x` = r.id", [1]),
        ("SELECT x FROM (SELECT array(1) `/x`) delta, LATERAL explode(delta.`/x`) AS e(x)", [1]),
        ("SELECT x FROM (SELECT array(1) `/x`) delta LATERAL VIEW explode(delta.`/x`) e AS x", [1]),
        ("SELECT max(delta.`/x`) FROM (SELECT 1 `/x`) delta GROUP BY id(delta.`/x`)", None),
        ("SELECT max(delta.`/x`) FROM (SELECT 1 `/x`) delta GROUP BY abs(delta.`/x`)", [1]),
        ("FROM (SELECT 1 `/x`) AS delta |> WHERE delta.`/x` = 1 |> SELECT delta.`/x`", [1]),
        ("SELECT 1 FROM (SELECT 1 `/x`) delta WHERE EXISTS (SELECT delta.`/x`)", [1]),
    ],
)
@pytest.mark.usefixtures("travelled")
def test_names_that_look_like_a_path(
    spark: SparkSession, query: str, expected: list[int] | None
) -> None:
    if expected is None:
        with pytest.raises(AnalysisException, match="UNRESOLVED_ROUTINE"):
            spark.sql(query)
    else:
        assert [row[0] for row in spark.sql(query).collect()] == expected


@pytest.mark.thorough
@pytest.mark.usefixtures("travelled")
def test_paths_are_names_before_columns(spark: SparkSession, tmp_path: Path) -> None:
    puredelta.write(spark.range(2), tmp_path)
    table = f"delta.`{tmp_path}`"
    for query in (
        f"SELECT {table}.id FROM {table} WHERE {table}.id > 0",
        f"SELECT spark_catalog.{table}.id FROM spark_catalog.{table} WHERE id > 0",
        f"SELECT {table}.id FROM {table} VERSION AS OF 0 ORDER BY {table}.id DESC LIMIT 1",
        f"SELECT /*+ BROADCAST({table}) */ {table}.* FROM {table} JOIN range(1, 2) r USING (id)",
        f"SELECT r.id FROM range(1, 2) r, {table} t WHERE r.id = t.id",
        f"FROM {table} |> WHERE {table}.id > 0 |> SELECT {table}.id",
    ):
        assert [row[0] for row in spark.sql(query).collect()] == [1], query
    spark.sql("CREATE TABLE travels.u (id LONG) USING delta")
    spark.sql(
        f"FROM {table} INSERT INTO travels.u SELECT {table}.id INSERT INTO travels.u SELECT 7"
    )
    assert sorted(row.id for row in spark.table("travels.u").collect()) == [0, 1, 7, 7]
