"""Permanent views over what only this library knows: paths, versions and changes of tables."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from puredelta.errors import InvalidRequestError


@pytest.fixture
def database(active: SparkSession) -> Iterator[SparkSession]:
    """A database with one table of two versions, and another one that is the current one."""
    active.sql("CREATE DATABASE viewed")
    active.sql("CREATE DATABASE elsewhere")
    active.catalog.setCurrentDatabase("viewed")
    active.sql("CREATE TABLE d (id INT, v INT) USING delta "
               "TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')")  # fmt: skip
    active.sql("INSERT INTO d VALUES (1, 1), (2, 2)")
    yield active
    active.catalog.setCurrentDatabase("default")
    for name in ("viewed", "elsewhere"):
        active.sql(f"DROP DATABASE {name} CASCADE")


def contents(rows: Any) -> list[tuple[Any, ...]]:
    return sorted(map(tuple, rows.collect()), key=str)


def place(spark: SparkSession, name: str) -> str:
    location = spark.sql(f"DESCRIBE DETAIL {name}").first()["location"]
    return str(location).removeprefix("file:")


def test_a_view_of_a_path_follows_its_table(database: SparkSession) -> None:
    spark, path = database, place(database, "d")
    query = f"WITH q AS (SELECT * FROM delta.`{path}`) SELECT id, v + 1 AS w FROM q"
    spark.sql(f"CREATE VIEW p (a COMMENT 'key', b) COMMENT 'of a path' AS {query}")
    shown = {row[0]: row[1] for row in spark.sql("DESCRIBE EXTENDED p").collect()}
    assert shown["View Text"] == query  # as delta-spark keeps it
    assert shown["Comment"] == "of a path"
    spark.catalog.setCurrentDatabase("elsewhere")
    assert contents(spark.table("viewed.p")) == [(1, 2), (2, 3)]
    spark.sql("INSERT INTO viewed.d VALUES (3, 3)")
    assert contents(spark.sql("SELECT p.b FROM viewed.p WHERE a > 2")) == [(4,)]
    assert contents(spark.sql("SELECT x.b FROM viewed.P x JOIN viewed.p AS y ON x.a = y.a "
                              "WHERE x.a IN (SELECT max(a) FROM viewed.p)")) == [(4,)]  # fmt: skip
    assert contents(spark.read.table("spark_catalog.viewed.p").where("a = 1")) == [(1, 2)]
    assert contents(spark.sql("WITH p AS (SELECT 9 AS a) SELECT * FROM p")) == [(9,)]
    assert contents(spark.sql("SELECT :x + b FROM viewed.p WHERE a = 1", {"x": 10})) == [(12,)]
    kept = spark.sql("SELECT t.b FROM viewed.p t JOIN {rows} r ON t.a = r.id", rows=spark.range(2))
    assert contents(kept) == [(2,)]


@pytest.mark.thorough
def test_views_of_versions_and_changes(database: SparkSession) -> None:
    spark = database
    spark.sql("CREATE VIEW before AS SELECT * FROM d VERSION AS OF 1")
    spark.sql("UPDATE d SET v = 7 WHERE id = 1")
    spark.sql("CREATE OR REPLACE VIEW changed AS SELECT id, v FROM table_changes('d', 2) "
              "WHERE _change_type = 'update_postimage'")  # fmt: skip
    spark.sql("CREATE VIEW both AS SELECT b.v AS was, d.v AS is FROM before b JOIN d USING (id)")
    spark.catalog.setCurrentDatabase("elsewhere")
    assert contents(spark.table("viewed.before")) == [(1, 1), (2, 2)]
    assert contents(spark.table("viewed.changed")) == [(1, 7)]
    assert contents(spark.table("viewed.both")) == [(1, 7), (2, 2)]
    spark.sql("ALTER VIEW viewed.before AS SELECT * FROM viewed.d VERSION AS OF 0")
    assert contents(spark.table("viewed.before")) == []
    assert contents(spark.table("viewed.both")) == []


@pytest.mark.thorough
def test_statements_read_such_views(database: SparkSession) -> None:
    spark = database
    spark.sql("CREATE VIEW before AS SELECT * FROM d VERSION AS OF 1")
    spark.sql("INSERT INTO d SELECT id + 10, v FROM before")
    spark.sql("MERGE INTO d USING before ON d.id = before.id "
              "WHEN MATCHED THEN UPDATE SET v = before.v + 100")  # fmt: skip
    spark.sql("UPDATE d SET v = (SELECT max(v) FROM before) WHERE id > 10")
    spark.sql("CREATE TABLE copied USING delta AS SELECT * FROM before")
    assert contents(spark.table("d")) == [(1, 101), (11, 2), (12, 2), (2, 102)]
    assert contents(spark.table("copied")) == [(1, 1), (2, 2)]
    spark.sql("CREATE TEMP VIEW fresh AS SELECT count(*) AS n FROM before")
    assert contents(spark.table("fresh")) == [(2,)]
    spark.sql("ALTER VIEW before AS SELECT * FROM d VERSION AS OF 2")
    assert contents(spark.table("fresh")) == [(4,)]


def test_what_spark_refuses_of_a_view(database: SparkSession) -> None:
    spark, path = database, place(database, "d")
    text = f"VIEW p AS SELECT * FROM delta.`{path}`"
    spark.sql(f"CREATE {text}")
    with pytest.raises(AnalysisException, match="already exists"):
        spark.sql(f"CREATE {text}")
    spark.sql(f"CREATE VIEW IF NOT EXISTS p AS SELECT * FROM delta.`{path}`")
    with pytest.raises((AnalysisException, InvalidRequestError), match=r"(?i)recursive"):
        spark.sql("CREATE OR REPLACE VIEW p AS SELECT p.* FROM p JOIN d VERSION AS OF 0 USING (id)")
