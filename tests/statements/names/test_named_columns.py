"""A query gives the same rows of a table that lacks all columns it does not name."""

from __future__ import annotations

import uuid

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from puredelta.statements.names.named_columns import limits_columns, named_columns, needed_columns

ROWS = """SELECT id, id * 2 AS `two words`, string(id) AS s, named_struct('x', id, 'y', 1) AS n,
 array(id, 1) AS l, map('k', id) AS m, id % 2 = 0 AS b, date'2020-01-01' AS d, 7 AS unused,
 'u' AS `dotted.name`, 1.5 AS `FROM`, 'k' AS k FROM range(6)"""

FEWER = [
    "SELECT id FROM t",
    "SELECT count(*) FROM t",
    "SELECT 1 FROM t",
    "SELECT count( * ), id * 2 FROM t GROUP BY ALL ORDER BY ALL",
    "SELECT T.ID, t.`two words` * 2 FROM t WHERE s > '1' AND b",
    "SELECT n.x, l[0] * 2, m['k'] FROM t",
    "SELECT a FROM (SELECT id AS a, s FROM t) WHERE s IS DISTINCT FROM '2'",
    "WITH c AS (SELECT id, s FROM t) SELECT c.id FROM c JOIN t USING (id) WHERE c.s = t.s",
    "SELECT id FROM t UNION ALL SELECT int(s) FROM t EXCEPT SELECT 3",
    "SELECT id FROM t WHERE id IN (SELECT int(s) FROM t WHERE b)",
    "SELECT id, (SELECT max(id) FROM t x WHERE x.s = t.s) FROM t",
    "SELECT extract(YEAR FROM d), trim(BOTH '1' FROM s), substring(s FROM 1 FOR 1) FROM t",
    "SELECT id, e FROM t LATERAL VIEW explode(l) AS e",
    "SELECT id, sum(id) OVER (PARTITION BY b ORDER BY id DESC) FROM t",
    "SELECT `dotted.name`, CASE WHEN b THEN id END * 2 FROM t ORDER BY 1 LIMIT 3",
    "SELECT transform(l, v -> v * id), map(s, id) FROM t",
    "SELECT `FROM` FROM t",
    "SELECT /* * */ id FROM t -- *",
    "SELECT id, '*' FROM t",
    "SELECT b, count(1) FROM t GROUP BY b HAVING max(k) = 'k'",
]
ALL = [
    "SELECT * FROM t",
    "SELECT DISTINCT * FROM t",
    "SELECT ALL * FROM t",
    "SELECT /*+ COALESCE(1) */ * FROM t",
    "SELECT t.* FROM t",
    "SELECT id, t.* FROM t",
    "SELECT id, * FROM t",
    "SELECT count(DISTINCT *) FROM t",
    "SELECT hash(*) FROM t",
    "SELECT n.* FROM t",
    "SELECT * EXCEPT (s) FROM t",
    "TABLE t",
    "SELECT id FROM t WHERE EXISTS (TABLE t)",
    "FROM t",
    "FROM t |> SELECT id",
    "SELECT 1 UNION ALL (FROM t)",
    "WITH c AS (SELECT 1) FROM t",
    "SELECT 1 UNION ALL FROM t",
    "SELECT 1 UNION SELECT count(*) FROM t EXCEPT FROM t",
    "SELECT id FROM t NATURAL JOIN t AS u",
    "SELECT id FROM t PIVOT (sum(id) FOR b IN (true))",
    "SELECT v FROM t UNPIVOT (v FOR c IN (id))",
    "SELECT IDENTIFIER('s') FROM t",
]


@pytest.mark.parametrize("query", FEWER)
def test_fewer_columns_are_named(query: str) -> None:
    names = named_columns(query)
    assert names is not None
    assert "unused" not in names


@pytest.mark.parametrize("query", ALL)
def test_a_query_may_need_columns_that_it_does_not_name(query: str) -> None:
    assert named_columns(query) is None


@pytest.mark.spark
@pytest.mark.parametrize("query", FEWER)
def test_rows_are_equal_without_the_other_columns(spark: SparkSession, query: str) -> None:
    found = []
    names = named_columns(query)
    assert names is not None
    every = spark.sql(ROWS)
    some = every.select(*(f"`{name}`" for name in every.columns if name.lower() in names))
    for rows in (every, some):
        view = f"t_{uuid.uuid4().hex}"
        rows.createTempView(view)
        try:
            text = query.replace("FROM t", f"FROM {view} t").replace("JOIN t ", f"JOIN {view} t ")
            found.append(sorted(map(str, spark.sql(text).collect())))
        except PySparkException as error:
            found.append([str(error.getCondition())])
        finally:
            spark.catalog.dropTempView(view)
    assert found[0] == found[1]


@pytest.mark.spark
def test_a_classic_session_asks_for_columns_by_its_plans(spark: SparkSession) -> None:
    assert needed_columns(spark, "SELECT id FROM t") is None


LIMITING = [
    "SELECT id FROM t GROUP BY id",
    "SELECT b, count(1) FROM t WHERE s > '1' GROUP BY b HAVING max(k) = 'k' ORDER BY b LIMIT 2",
    "SELECT count(*) FROM t",
    "SELECT max(id), count(*) AS n FROM t",
    "SELECT id FROM t UNION ALL SELECT int(s) FROM t",
    "SELECT id FROM t EXCEPT SELECT 3",
    "WITH c AS (SELECT id FROM t) SELECT id, sum(id) OVER (ORDER BY id) AS x FROM c GROUP BY id",
]
OPEN = [
    "SELECT id FROM t",
    "SELECT id FROM t LIMIT 3",
    "SELECT DISTINCT id FROM t",
    "SELECT id FROM (SELECT id, s FROM t)",
    "SELECT t.id FROM t JOIN t u ON t.id = u.id",
    "SELECT id, count(*) OVER () FROM t",
    "SELECT id FROM (SELECT id, s FROM t UNION SELECT id, s FROM t)",
    "SELECT id FROM t WHERE id IN (SELECT count(*) FROM t GROUP BY b)",
    "SELECT id group, id by FROM t",
    "WITH c AS (SELECT id, s FROM t GROUP BY id, s) SELECT id FROM c",
]


@pytest.mark.parametrize("query", LIMITING)
def test_nothing_above_can_name_other_columns(query: str) -> None:
    assert limits_columns(query)


@pytest.mark.parametrize("query", OPEN)
def test_a_frame_may_name_other_columns(query: str) -> None:
    assert not limits_columns(query)


@pytest.mark.spark
@pytest.mark.parametrize("query", LIMITING)
def test_spark_finds_no_other_column_above(spark: SparkSession, query: str) -> None:
    with pytest.raises(PySparkException, match=r"MISSING|UNRESOLVED"):
        spark.sql(f"WITH t AS ({ROWS}) {query.replace('WITH c', ', c')}").where(
            "unused = 7"
        ).count()
