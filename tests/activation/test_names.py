"""Names of the session catalog wherever a user may write one."""

from __future__ import annotations

import datetime as dt
import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from py4j.clientserver import JavaClient
from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import SparkSession

import puredelta
from puredelta.errors import ErrorCode, InvalidRequestError, TableNotFoundError
from puredelta.spark.catalog import catalog_entries, relation_cache
from puredelta.spark.jvm.plans import parsed_plan, relation_names


@pytest.fixture
def database(active: SparkSession) -> Iterator[SparkSession]:
    """A database of its own, with two small tables, which is the current one."""
    active.sql("CREATE DATABASE named")
    active.catalog.setCurrentDatabase("named")
    active.sql("CREATE TABLE d (id INT, v INT) USING delta")
    active.sql("INSERT INTO d VALUES (1, 1), (2, 2)")
    active.sql("CREATE TABLE other (w INT) USING delta")
    active.sql("INSERT INTO other VALUES (7)")
    yield active
    active.catalog.setCurrentDatabase("default")
    active.sql("DROP DATABASE named CASCADE")
    assert not relation_cache._cached


def contents(rows: Any) -> list[tuple[Any, ...]]:
    return sorted(map(tuple, rows.collect()), key=str)


def place(spark: SparkSession, name: str) -> str:
    location = spark.sql(f"DESCRIBE DETAIL {name}").first()["location"]
    return str(location).removeprefix("file:")


@pytest.mark.thorough
def test_scalar_subqueries_over_names_are_values(database: SparkSession) -> None:
    spark = database
    spark.sql("UPDATE d SET v = (SELECT max(w) FROM other) WHERE id = 1")
    assert contents(spark.table("d")) == [(1, 7), (2, 2)]
    spark.sql("UPDATE d SET v = (SELECT max(o.v) + 1 FROM named.d AS o) WHERE id = 2")
    assert contents(spark.table("d")) == [(1, 7), (2, 8)]
    spark.sql("INSERT INTO other VALUES (9)")  # the next statement sees the newest version
    spark.sql(
        "MERGE INTO d USING (SELECT 1 AS id) s ON d.id = s.id "
        "WHEN MATCHED THEN UPDATE SET v = (SELECT max(w) FROM other)"
    )
    assert contents(spark.table("d")) == [(1, 9), (2, 8)]
    spark.sql(
        "WITH most AS (SELECT max(w) AS w FROM other) "
        "UPDATE d SET v = (SELECT w * 10 FROM most) WHERE id = 2"
    )
    assert contents(spark.table("d")) == [(1, 9), (2, 90)]
    table = puredelta.DeltaTable.forName(spark, "d")
    table.update("id = 1", {"v": "(SELECT min(w) FROM other)"})
    assert contents(spark.table("d")) == [(1, 7), (2, 90)]


@pytest.mark.thorough
def test_the_catalogs_own_way_to_create_a_table(database: SparkSession, tmp_path: Path) -> None:
    spark = database
    schema = spark.sql("SELECT 1 AS a, CAST('x' AS VARCHAR(3)) AS b").schema
    made = spark.catalog.createTable("made", source="delta", schema=schema, description="for sale")
    assert made.columns == ["a", "b"]
    spark.sql("INSERT INTO made VALUES (1, 'y')")
    assert contents(spark.table("made")) == [(1, "y")]
    assert spark.sql("DESCRIBE DETAIL made").first()["description"] == "for sale"
    named = spark.catalog.createTable("again", place(spark, "d"), source="delta")
    assert contents(named) == [(1, 1), (2, 2)]
    spark.catalog.createTable("far", str(tmp_path / "far"), "delta", schema)
    assert (tmp_path / "far" / "_delta_log").exists()
    with pytest.raises(InvalidRequestError) as taken:
        spark.catalog.createTable("made", source="delta", schema=schema)
    assert taken.value.code is ErrorCode.TABLE_OR_VIEW_ALREADY_EXISTS
    with pytest.raises(InvalidRequestError) as empty:
        spark.catalog.createTable("nothing", source="delta")
    assert empty.value.code is ErrorCode.SCHEMA_NOT_PROVIDED
    assert not spark.catalog.tableExists("nothing")
    spark.catalog.createTable("texts", source="parquet", schema=schema)
    assert spark.table("texts").count() == 0


@pytest.mark.thorough
def test_a_path_may_end_in_a_version_or_a_time(database: SparkSession) -> None:
    spark, path = database, place(database, "d")
    reader = spark.read.format("delta")
    assert contents(reader.load(f"{path}@v0")) == []
    assert contents(reader.load(f"{path}@v1")) == [(1, 1), (2, 2)]
    commit = Path(path) / "_delta_log" / f"{1:020d}.json"
    at = dt.datetime.fromtimestamp(commit.stat().st_mtime, tz=dt.timezone.utc)
    text = (at + dt.timedelta(milliseconds=1)).strftime("%Y%m%d%H%M%S%f")[:17]
    spark.sql("INSERT INTO d VALUES (3, 3)")
    assert len(contents(reader.load(f"{path}@{text}"))) == 2
    with pytest.raises(InvalidRequestError) as both:
        spark.read.format("delta").option("versionAsOf", 0).load(f"{path}@v1")
    assert both.value.code is ErrorCode.ONE_OF_IN_TIME_TRAVEL
    with pytest.raises(TableNotFoundError):
        reader.load(f"{path}@v99")
    spark.sql(f"CREATE TABLE delta.`{path}@v7` (id INT) USING delta")  # its own name comes first
    assert reader.load(f"{path}@v7").columns == ["id"]


@pytest.mark.thorough
def test_changes_of_a_table_by_its_name(database: SparkSession) -> None:
    spark = database
    spark.sql("ALTER TABLE d SET TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')")
    spark.sql("UPDATE d SET v = 5 WHERE id = 1")
    for name in ("d", "named.d", "spark_catalog.named.D"):
        found = spark.sql(f"SELECT id, v, _change_type FROM table_changes('{name}', 2)")
        assert contents(found) == [(1, 1, "update_preimage"), (1, 5, "update_postimage")], name
    with pytest.raises(TableNotFoundError) as missing:
        spark.sql("SELECT * FROM table_changes('nope', 0)")
    assert missing.value.code is ErrorCode.TABLE_OR_VIEW_NOT_FOUND
    spark.sql("CREATE TABLE texts (a INT) USING parquet")
    with pytest.raises(TableNotFoundError) as other:
        spark.sql("SELECT * FROM table_changes('texts', 0)")
    assert other.value.code is ErrorCode.MISSING_DELTA_TABLE


@pytest.mark.thorough
def test_the_catalog_lists_new_columns(
    database: SparkSession, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    spark = database

    def listed() -> list[str]:
        return [column.name for column in spark.catalog.listColumns("d")]

    rows = spark.sql("SELECT 1 AS id, 'x' AS z")
    rows.write.format("delta").mode("append").option("mergeSchema", "true").saveAsTable("d")
    assert listed() == ["id", "v", "z"]
    whole = rows.write.format("delta").mode("overwrite").option("overwriteSchema", "true")
    whole.saveAsTable("D")
    assert listed() == ["id", "z"]

    def down(*_: object, **__: object) -> None:
        raise AnalysisException("the metastore is down")

    monkeypatch.setattr(catalog_entries, "update_columns", down)
    wider = spark.sql("SELECT 2 AS id, 'y' AS z, 3 AS n")
    wider.write.format("delta").mode("append").option("mergeSchema", "true").saveAsTable("d")
    assert "the metastore is down" in caplog.text  # the commit stands
    assert contents(spark.table("d")) == [(1, "x", None), (2, "y", 3)]


def test_the_catalog_follows_statements_that_change_the_columns(database: SparkSession) -> None:
    """The entry is what a session without activation, and Spark's own commands, see."""
    spark = database

    def entry() -> list[str]:
        described = spark._jsparkSession.sessionState().catalog().externalCatalog()  # type: ignore[attr-defined]
        return list(described.getTable("named", "d").schema().fieldNames())

    spark.sql(
        "MERGE WITH SCHEMA EVOLUTION INTO d USING (SELECT 3 AS id, 3 AS v, 'x' AS m) s "
        "ON d.id = s.id WHEN NOT MATCHED THEN INSERT *"
    )
    assert entry() == ["id", "v", "m"]
    spark.range(1).selectExpr("9 AS id", "9 AS v", "'y' AS m", "1 AS n").writeTo("d").option(
        "mergeSchema", "true"
    ).append()
    assert entry() == ["id", "v", "m", "n"]
    spark.sql("RESTORE TABLE d TO VERSION AS OF 1")
    assert entry() == ["id", "v"]


@pytest.mark.thorough
def test_detail_of_a_table_of_another_format(database: SparkSession) -> None:
    spark = database
    spark.sql("CREATE TABLE texts (a INT, p INT) USING parquet PARTITIONED BY (p) COMMENT 'c' "
              "TBLPROPERTIES ('k' = 'v')")  # fmt: skip
    found = spark.sql("DESCRIBE DETAIL texts").first().asDict()
    assert found["format"] == "parquet"
    assert (found["name"], found["description"]) == ("spark_catalog.named.texts", "c")
    assert (found["partitionColumns"], found["properties"]) == (["p"], {"k": "v"})
    assert found["createdAt"] is not None
    assert found["numFiles"] is None


def test_messages_name_the_next_step(database: SparkSession, tmp_path: Path) -> None:
    spark = database
    spark.sql("SELECT 1 AS a").write.parquet(str(tmp_path / "files"))
    with pytest.raises(TableNotFoundError, match=r"DeltaTable\.convertToDelta"):
        puredelta.DeltaTable.forPath(spark, str(tmp_path / "files"))
    with pytest.raises(TableNotFoundError, match="no table or view of this name"):
        puredelta.DeltaTable.forName(spark, "mytabel")
    with pytest.raises(TableNotFoundError) as typo:
        spark.readStream.format("delta").load(str(tmp_path / "typo"))
    assert typo.value.code is ErrorCode.PATH_DOES_NOT_EXIST
    with pytest.raises(AnalysisException) as arity:
        spark.sql("INSERT INTO named.other VALUES (1, 2)")
    assert "`named`.`other`" in str(arity.value)


@pytest.mark.thorough
def test_statements_that_are_computed(database: SparkSession) -> None:
    spark = database
    spark.sql("EXECUTE IMMEDIATE 'INSERT INTO d VALUES (?, ?)' USING 3, 1 + 2")
    query = "EXECUTE IMMEDIATE 'SELECT v FROM d WHERE id = :n' USING 3 AS n"
    assert contents(spark.sql(query)) == [(3,)]
    counts = spark.sql("-- one\nexecute immediate 'update d set v' || ' = ' || (SELECT 40 + 2)")
    assert contents(counts) == [(3,)]
    text = "DELETE FROM named.d WHERE id < 3"
    spark.sql(f"DECLARE OR REPLACE VARIABLE wanted STRING DEFAULT '{text}'")
    spark.sql("EXECUTE IMMEDIATE wanted")
    assert contents(spark.table("d")) == [(3, 42)]
    assert contents(spark.sql("EXECUTE IMMEDIATE 'SELECT 1'")) == [(1,)]
    for wrong in ("CAST(NULL AS STRING)", "'SELECT ?' USING"):
        with pytest.raises(AnalysisException):
            spark.sql(f"EXECUTE IMMEDIATE {wrong}")


@pytest.mark.thorough
def test_names_that_a_clause_computes(database: SparkSession) -> None:
    """`IDENTIFIER(...)` is a name wherever Spark takes one."""
    spark, named = database, {"t": "d"}
    place_of = place(spark, "d")
    assert contents(spark.sql("SELECT v FROM IDENTIFIER(:t)", args=named)) == [(1,), (2,)]
    assert contents(spark.sql("SELECT v FROM IDENTIFIER(?) WHERE id = ?", args=["d", 2])) == [(2,)]
    text = f"'delta.`{place_of}`'"
    assert contents(spark.sql(f"SELECT IDENTIFIER('v') FROM IDENTIFIER({text})")) == [(1,), (2,)]
    assert contents(spark.sql("SELECT v FROM IDENTIFIER(:t) VERSION AS OF 0", args=named)) == []
    spark.sql("INSERT INTO IDENTIFIER('na' || 'med.d') VALUES (:id, 3)", args={**named, "id": 3})
    spark.sql("UPDATE IDENTIFIER(:t) SET v = 4 WHERE id = 3", args=named)
    spark.sql("DELETE FROM IDENTIFIER(:t) WHERE id = 1", args=named)
    assert contents(spark.table("d")) == [(2, 2), (3, 4)]
    spark.sql("CREATE TABLE IDENTIFIER(:new) USING delta AS SELECT * FROM d", args={"new": "e"})
    spark.sql("ALTER TABLE IDENTIFIER('e') ADD COLUMN w INT")
    spark.sql("OPTIMIZE IDENTIFIER('e')")
    assert spark.table("e").columns == ["id", "v", "w"]
    spark.sql("DROP TABLE IDENTIFIER(:new)", args={"new": "e"})
    assert not spark.catalog.tableExists("e")
    with pytest.raises(AnalysisException, match="nowhere"):
        spark.sql("SELECT * FROM IDENTIFIER('nowhere')").collect()
    with pytest.raises(AnalysisException, match="IDENTIFIER"):
        spark.sql("SELECT * FROM IDENTIFIER(rand())").collect()
    with pytest.raises(AnalysisException, match="IDENTIFIER"):  # Spark wants a constant
        spark.sql("SELECT * FROM IDENTIFIER((SELECT 'd'))").collect()
    spark.sql("CREATE TABLE None (id INT) USING delta")
    for nothing in ("SELECT * FROM IDENTIFIER(NULL)", "DELETE FROM IDENTIFIER(NULL)"):
        with pytest.raises((AnalysisException, ParseException)):
            spark.sql(nothing).collect()
    for attack in ("d WHERE false", "d; DROP TABLE d", "d, other", "`d` x"):
        with pytest.raises((AnalysisException, ParseException)):
            spark.sql("DELETE FROM IDENTIFIER(:t)", args={"t": attack}).collect()
    assert contents(spark.table("d")) == [(2, 2), (3, 4)]


def test_an_entry_is_what_it_is_now(active: SparkSession) -> None:
    """A name that was looked up before, and is changed by another session or a temporary view."""
    spark, other = active, active.newSession()

    def shown(expected: int) -> None:
        for _ in range(3):
            assert spark.sql("SELECT max(id) FROM turns").first() == (expected,)
            assert spark.sql("SELECT max(t.id) FROM turns t, turns u").first() == (expected,)
            assert spark.table("turns").first() == (expected,)

    spark.sql("CREATE TABLE turns USING parquet AS SELECT 1 AS id")
    shown(1)
    other.sql("DROP TABLE turns")
    other.sql("CREATE TABLE turns (id INT) USING delta")
    other.sql("INSERT INTO turns VALUES (2)")
    shown(2)
    other.sql("DROP TABLE turns")
    with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
        spark.sql("SELECT max(id) FROM turns")
    other.sql("CREATE TABLE turns USING csv AS SELECT 3 AS id")
    shown(3)
    other.sql("DROP TABLE turns")
    other.sql("CREATE TABLE of_delta (id INT) USING delta")
    other.sql("INSERT INTO of_delta VALUES (4)")
    other.sql("CREATE VIEW turns AS SELECT id FROM of_delta")
    shown(4)
    spark.range(5, 6).createOrReplaceTempView("turns")
    shown(5)
    spark.sql("CREATE OR REPLACE TEMPORARY VIEW turns AS SELECT id + 2 AS id FROM of_delta")
    shown(6)
    other.sql("INSERT INTO of_delta VALUES (5)")
    shown_again = spark.sql("SELECT max(id) FROM turns").first()
    assert shown_again == (7,)
    spark.catalog.dropTempView("turns")
    assert spark.sql("SELECT max(id) FROM turns").first() == (5,)
    other.sql("DROP VIEW turns")
    other.sql("DROP TABLE of_delta")


@pytest.mark.thorough
def test_global_views_may_have_the_names_of_files(active: SparkSession, tmp_path: Path) -> None:
    spark, path = active, str(tmp_path / "files")
    spark.range(3).write.parquet(path)
    spark.sql("CREATE TABLE counted (id INT) USING delta")
    spark.sql("INSERT INTO counted VALUES (1)")
    spark.sql(f"CREATE GLOBAL TEMPORARY VIEW `{path}` AS SELECT id FROM default.counted")
    for _ in range(2):
        assert spark.sql(f"SELECT count(*) FROM global_temp.`{path}`").first() == (1,)
        assert spark.sql(f"SELECT count(*) FROM parquet.`{path}`").first() == (3,)
    spark.sql("INSERT INTO counted VALUES (2)")
    assert spark.sql(f"SELECT count(*) FROM global_temp.`{path}`").first() == (2,)
    spark.catalog.dropGlobalTempView(f"`{path}`")
    spark.sql("DROP TABLE counted")


def test_the_catalog_is_not_asked_for_files(
    active: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = str(tmp_path / "files")
    active.range(3).write.parquet(path)
    query = f"SELECT count(*) FROM parquet.`{path}`"
    assert active.sql(query).first() == (3,)
    asked: list[str] = []
    send = JavaClient.send_command

    def noted(self: Any, command: str, *args: Any, **how: Any) -> Any:
        asked.append(command)
        return send(self, command, *args, **how)

    monkeypatch.setattr(JavaClient, "send_command", noted)
    active.sql(query)
    monkeypatch.undo()
    own = [one for one in asked if not one.startswith("m\n")]  # garbage collection of Python
    assert 0 < len(own) <= 5, own  # calls of PySpark


PLAIN = (
    "SELECT max(id) FROM t",
    "select * from db.t as x where x.id in (1, 2) and name = 'a, b'",
    "SELECT cat.db.t.id FROM cat.db.t ORDER BY 1;",
    "SELECT (SELECT max(id) FROM t) AS m",
    "SELECT 1 FROM t UNION ALL SELECT 2",
    "SELECT id, count(*) FROM t x GROUP BY id HAVING count(*) > 1 LIMIT 3",
    "SELECT extract(year FROM d) AS y",
    "SELECT * FROM `t.u`.`v` x",
    "SELECT * FROM parquet.`s3://b/a-b/c d`",
)
NOT_PLAIN = (
    "SELECT 'from' || id AS a",
    "SELECT 'a from b' FROM t",
    "SELECT * FROM t, u",
    "SELECT * FROM t JOIN u",
    "SELECT * FROM t WHERE id IN (SELECT id FROM u)",
    "SELECT * FROM t WHERE id IN (TABLE u)",
    "SELECT * FROM t -- , u\n , v",
    "SELECT * FROM t /* x */, u",
    "SELECT * FROM STREAM t",
    "SELECT `a from b`, `c` FROM t",
    "SELECT `x` FROM `t`",
    "SELECT * FROM `t",
    "SELECT * FROM t VERSION AS OF 1",
    "SELECT * FROM IDENTIFIER('t')",
    "SELECT * FROM ${t}",
    "FROM t SELECT 1",
    "WITH t AS (SELECT 1) SELECT * FROM t",
    "INSERT INTO u SELECT * FROM t",
    "SELECT * FROM range(3)",
    "SELECT * FROM t x(a, b), u",
    "SELECT * FROM t TABLESAMPLE (5 ROWS), u",
)
PIECES: tuple[tuple[str, ...], ...] = (
    ("SELECT *", "SELECT a.b, 'x, y from z'", "SELECT trim(BOTH 'x' FROM y)", "SELECT 1, (2)"),
    (" FROM ", "\nfrom\t", " FROM (SELECT 1 FROM "),
    (
        "t",
        "db.t",
        "`t u`",
        "t.`a`, u",
        "t x",
        "t AS x",
        "t, u",
        "t x, u y",
        "t u JOIN v",
        "t, LATERAL f(1)",
        "t x y",
    ),
    ("", " WHERE a IN (1, 2)", " WHERE a IN (SELECT 1 FROM w)", " ORDER BY a, b", ", w", ")"),
    ("", " LIMIT 1", " UNION SELECT 1", " UNION TABLE z", ";", " -- from q", " HAVING a IS NULL"),
)


@pytest.mark.thorough
def test_names_of_plain_queries_are_those_of_the_parser(spark: SparkSession) -> None:
    assert all(map(relation_cache.plain_relation, PLAIN))
    assert not any(map(relation_cache.plain_relation, NOT_PLAIN))
    recognized = 0
    for text in (*PLAIN, *map("".join, itertools.product(*PIECES))):
        name = relation_cache.plain_relation(text)
        if name is not None:
            try:
                found = relation_names(parsed_plan(spark, text))
            except ParseException:
                continue
            recognized += 1
            assert set(found) <= {name}, text
    assert recognized > 50
