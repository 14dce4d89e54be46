"""What statements on names must do in every catalog: run in memory and on Hive.

Each check gets an activated session whose current database is empty, and a directory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import puredelta
from puredelta.errors import CatalogError, DeltaError, UnsupportedError
from puredelta.spark.jvm import catalog
from puredelta.spark.write.parquet_job import temporary_settings
from puredelta.tables import DeltaTable

Check = Callable[[SparkSession, Path], None]
NAME_CHECKS: dict[str, Check] = {}

ODD = ("a b", "a.b", "a'b", 'a"b', "a`b", "täble", "a-b", "表")
"""Names that Spark's catalog takes for no table."""


def check(function: Check) -> Check:
    NAME_CHECKS[function.__name__] = function
    return function


def contents(spark: SparkSession, query: str) -> list[tuple[Any, ...]]:
    return sorted((tuple(row) for row in spark.sql(query).collect()), key=str)


def quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


@contextmanager
def replaced(owner: Any, name: str, value: Any) -> Iterator[None]:
    before = getattr(owner, name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, before)


class Spellings:
    """Ways to write one name, each in its turn; the log and the catalog must agree after each."""

    def __init__(self, spark: SparkSession, name: str) -> None:
        self.spark = spark
        database = spark.catalog.currentDatabase()
        self.location = ""
        self._ways = [
            quoted(name),
            quoted(name.upper()),
            f"{database}.{quoted(name.lower())}",
            f"spark_catalog.{database.upper()}.{quoted(name.swapcase())}",
            f"SPARK_CATALOG.{database}.{quoted(name)}",
        ]
        self._turn = 0

    def __str__(self) -> str:
        self._turn += 1
        return self._ways[self._turn % len(self._ways)]

    def sql(self, text: str) -> list[tuple[Any, ...]]:
        found = contents(self.spark, text)
        if self.location:
            log = puredelta.read(self.spark, self.location).columns
            listed = [column.name for column in self.spark.catalog.listColumns(str(self))]
            assert listed == log, text
        return found


@check
def every_statement_takes_every_spelling(spark: SparkSession, root: Path) -> None:
    t = Spellings(spark, "MyTable")
    mapped = "TBLPROPERTIES ('delta.columnMapping.mode' = 'name')"
    t.sql(f"CREATE TABLE {t} (id INT, v INT) USING delta {mapped}")
    t.sql(f"CREATE TABLE IF NOT EXISTS {t} (other INT) USING delta")
    t.location = spark.sql(f"DESCRIBE DETAIL {t}").first()["location"]
    t.sql(f"INSERT INTO {t} VALUES (1, 1), (2, 2)")
    t.sql(f"ALTER TABLE {t} ADD COLUMNS (x INT)")
    t.sql(f"ALTER TABLE {t} RENAME COLUMN x TO `Y z`")
    t.sql(f"ALTER TABLE {t} ALTER COLUMN v COMMENT 'value'")
    t.sql(f"ALTER TABLE {t} DROP COLUMN `Y z`")
    t.sql(f"ALTER TABLE {t} SET TBLPROPERTIES ('k' = 'v')")
    t.sql(f"COMMENT ON TABLE {t} IS 'mine'")
    t.sql(f"UPDATE {t} SET v = v + (SELECT count(*) FROM {t}) WHERE id = 1")
    t.sql(f"MERGE INTO {t} AS t USING {t} AS s ON t.id = s.id + 1 "
          "WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED THEN INSERT *")  # fmt: skip
    t.sql(f"DELETE FROM {t} WHERE v > 100")
    assert t.sql(f"SELECT id, v FROM {t}") == [(1, 3), (2, 2), (2, 3)]
    assert t.sql(f"SELECT count(*) FROM {t} VERSION AS OF 1") == [(2,)]
    assert len(t.sql(f"DESCRIBE HISTORY {t} LIMIT 2")) == 2
    assert ("k", "v") in t.sql(f"SHOW TBLPROPERTIES {t}")
    assert t.sql(f"SHOW COLUMNS IN {t}") == [("id",), ("v",)]
    assert t.sql(f"DESCRIBE {t}")[0][0] == "id"
    t.sql(f"OPTIMIZE {t}")
    t.sql(f"VACUUM {t} DRY RUN")
    t.sql(f"RESTORE TABLE {t} TO VERSION AS OF 1")
    t.sql(f"INSERT OVERWRITE {t} VALUES (5, 5)")
    rows = spark.sql("SELECT 6 AS id, 6 AS v, 'new' AS w")
    writer = rows.write.format("delta")
    writer.mode("append").option("mergeSchema", "true").saveAsTable(str(t))
    rows.write.insertInto(str(t))
    rows.writeTo(str(t)).append()
    rows.writeTo(str(t)).overwrite(F.lit(True))
    assert t.sql(f"SELECT * FROM {t}") == [(6, 6, "new")]
    DeltaTable.forName(spark, str(t)).update("id = 6", {"v": "7"})
    assert spark.table(str(t)).count() == spark.read.table(str(t)).count() == 1


@check
def definitions_take_every_spelling(spark: SparkSession, root: Path) -> None:
    t = Spellings(spark, "MyTable")
    t.sql(f"CREATE TABLE {t} (id INT) USING delta")
    t.sql(f"INSERT INTO {t} VALUES (1)")
    t.location = spark.sql(f"DESCRIBE DETAIL {t}").first()["location"]
    copy = Spellings(spark, "MyCopy")
    copy.sql(f"CREATE TABLE {copy} SHALLOW CLONE {t}")
    copy.sql(f"CREATE TABLE IF NOT EXISTS {copy} SHALLOW CLONE {t} VERSION AS OF 1")
    like = Spellings(spark, "MyLike")
    like.sql(f"CREATE TABLE {like} LIKE {t}")
    spark.sql(f"DROP TABLE {like}")
    t.sql(f"CREATE OR REPLACE TABLE {t} (a INT, b INT) USING delta")
    t.sql(f"CREATE OR REPLACE TABLE {t} USING delta AS SELECT 1 AS c")
    t.sql(f"REPLACE TABLE {t} (d STRING) USING delta")
    DeltaTable.createOrReplace(spark).tableName(str(t)).addColumn("e", "INT").execute()
    t.sql(f"INSERT INTO {t} VALUES (1)")
    t.sql(f"TRUNCATE TABLE {t}")
    assert not t.sql(f"SELECT * FROM {t}")
    spark.sql(f"DROP TABLE {t}")
    assert not spark.catalog.tableExists("MyTable")
    external = Spellings(spark, "MyPlace")
    external.sql(f"CREATE TABLE {external} (id INT) USING delta LOCATION '{root}/My Place'")
    spark.sql(f"DROP TABLE {external}")
    external.sql(f"CREATE TABLE {external} USING delta LOCATION '{root}/My Place'")
    assert spark.table(str(external)).columns == ["id"]


@check
def words_and_numbers_are_names(spark: SparkSession, _: Path) -> None:
    for name in ("SELECT", "1a", "_x"):
        spark.sql(f"CREATE TABLE {quoted(name)} (id INT) USING delta")
        spark.sql(f"ALTER TABLE {quoted(name.lower())} ADD COLUMNS (b INT)")
        spark.sql(f"INSERT INTO {quoted(name.upper())} VALUES (1, 2)")
        spark.sql("SELECT 3 AS id, 4 AS b").write.mode("append").format("delta").saveAsTable(
            quoted(name)
        )
        assert contents(spark, f"SELECT * FROM {quoted(name)}") == [(1, 2), (3, 4)]
        spark.sql(f"DROP TABLE {quoted(name)}")


@check
def a_name_that_no_table_can_have_leaves_nothing(spark: SparkSession, root: Path) -> None:
    spark.sql("CREATE TABLE origin (id INT) USING delta")
    for number, name in enumerate((*ODD, "nowhere.t")):
        place = root / f"place{number}"
        table = name if name == "nowhere.t" else quoted(name)
        for attempt in _attempts(spark, table, str(place)):
            with pytest.raises((DeltaError, AnalysisException)):
                attempt()
            assert not place.exists(), name


def _attempts(spark: SparkSession, table: str, place: str) -> tuple[Callable[[], object], ...]:
    rows = spark.range(1)
    builder = DeltaTable.create(spark).tableName(table).location(place).addColumn("id", "INT")
    return (
        lambda: spark.sql(f"CREATE TABLE {table} (id INT) USING delta LOCATION '{place}'"),
        lambda: spark.sql(f"CREATE TABLE {table} USING delta LOCATION '{place}' AS SELECT 1 x"),
        lambda: spark.sql(f"CREATE TABLE {table} SHALLOW CLONE origin LOCATION '{place}'"),
        lambda: rows.write.format("delta").option("path", place).saveAsTable(table),
        lambda: rows.writeTo(table).using("delta").option("path", place).create(),
        lambda: spark.sql(f"CREATE TABLE {table} (id INT) USING delta"),
        lambda: spark.catalog.createTable(table, place, "delta", rows.schema),
        builder.execute,
    )


@check
def a_catalog_that_refuses_an_entry_is_told(spark: SparkSession, root: Path) -> None:
    place = root / "place"
    missing = "SELECT * FROM `no such table`"

    def refuse(spark: SparkSession, _: str) -> None:
        catalog.session_of(spark).sql(missing)

    with replaced(catalog, "run_command", refuse), pytest.raises(CatalogError) as told:
        spark.sql(f"CREATE TABLE t USING delta LOCATION '{place}' AS SELECT 1 AS id")
    assert f"USING delta LOCATION 'file:{place}'" in str(told.value)
    spark.sql(f"CREATE TABLE t USING delta LOCATION 'file:{place}'")
    assert contents(spark, "SELECT * FROM t") == [(1,)]


@check
def tables_need_no_columns(spark: SparkSession, _: Path) -> None:
    spark.sql("CREATE TABLE Bare USING delta COMMENT 'later'")
    assert spark.catalog.listColumns("bare") == []
    spark.sql("ALTER TABLE bare ADD COLUMNS (id INT)")
    spark.sql("INSERT INTO BARE VALUES (1)")
    assert contents(spark, "SELECT * FROM bare") == [(1,)]
    assert [column.name for column in spark.catalog.listColumns("bare")] == ["id"]
    assert spark.sql("DESCRIBE DETAIL bare").first()["description"] == "later"


@check
def what_another_session_does_is_noticed(spark: SparkSession, root: Path) -> None:
    database = spark.catalog.currentDatabase()
    spark.sql("CREATE TABLE t (id INT) USING delta")
    spark.sql("INSERT INTO t VALUES (1)")
    assert contents(spark, "SELECT * FROM t") == [(1,)]
    other = spark.newSession()
    other.sql(f"ALTER TABLE {database}.t RENAME TO {database}.Renamed")
    assert contents(spark, "SELECT * FROM renamed") == [(1,)]
    with pytest.raises(AnalysisException):
        spark.sql("SELECT * FROM t")
    spark.sql("INSERT INTO renamed VALUES (2)")
    other.sql(f"CREATE OR REPLACE TABLE {database}.renamed USING delta AS SELECT 'x' AS s")
    assert contents(spark, "SELECT * FROM renamed") == [("x",)]
    other.sql(f"DROP TABLE {database}.renamed")
    other.sql(f"CREATE TABLE {database}.renamed USING delta LOCATION '{root}/e' AS SELECT 7 AS n")
    assert contents(spark, "SELECT * FROM renamed") == [(7,)]
    other.sql(f"DROP TABLE {database}.renamed")
    other.sql(f"CREATE TABLE {database}.renamed (a INT) USING parquet")
    assert contents(spark, "SELECT * FROM renamed") == []
    with pytest.raises((DeltaError, AnalysisException)):
        spark.sql("DELETE FROM renamed")


@check
def another_session_catalog_is_refused_by_name(spark: SparkSession, root: Path) -> None:
    with temporary_settings(spark, {"spark.sql.catalog.spark_catalog": "some.UnityCatalog"}):
        for text in (
            f"CREATE TABLE t USING delta LOCATION '{root}/t' AS SELECT 1 AS id",
            "CREATE TABLE t (id INT) USING delta",
        ):
            with pytest.raises(UnsupportedError, match=r"some\.UnityCatalog"):
                puredelta.sql(spark, text)
    assert not (root / "t").exists()
