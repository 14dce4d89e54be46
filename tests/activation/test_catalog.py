"""Tables of the session catalog in an activated session."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

import puredelta
from puredelta.commands.create import as_select
from puredelta.commands.create.as_select import create_table_as
from puredelta.errors import ErrorCode, InvalidRequestError, TableNotFoundError
from puredelta.log.replay.table_log import TableLog
from puredelta.spark.catalog import relation_cache
from puredelta.tables import DeltaTable


@pytest.fixture
def database(active: SparkSession) -> Iterator[SparkSession]:
    """A database of its own, which is the current one."""
    active.sql("CREATE DATABASE shop")
    active.catalog.setCurrentDatabase("shop")
    yield active
    active.catalog.setCurrentDatabase("default")
    active.sql("DROP DATABASE shop CASCADE")
    assert not relation_cache._cached


def contents(rows: Any) -> list[tuple[Any, ...]]:
    return sorted(map(tuple, rows.collect()), key=str)


def operations(spark: SparkSession, name: str) -> list[str]:
    return [row["operation"] for row in spark.sql(f"DESCRIBE HISTORY {name}").collect()]


@pytest.mark.smoke
def test_a_table_from_its_creation_to_its_end(database: SparkSession) -> None:
    spark = database
    spark.sql(
        "CREATE TABLE items (id BIGINT NOT NULL COMMENT 'key', kind STRING, price DECIMAL(5,2)) "
        "USING delta PARTITIONED BY (kind) COMMENT 'for sale' TBLPROPERTIES "
        "('delta.appendOnly' = 'false')"
    )
    spark.sql("INSERT INTO items VALUES (1, 'a', 1.5), (2, 'b', 2)")
    spark.sql("INSERT INTO shop.items (kind, id) SELECT upper(kind), id + 10 FROM items")
    expected = [(1, "a"), (11, "A"), (12, "B"), (2, "b")]
    assert contents(spark.sql("SELECT i.id, shop.items.kind FROM items i, items "
                              "WHERE i.id = shop.items.id")) == expected  # fmt: skip
    plan = spark.table("items")._jdf.queryExecution().executedPlan().toString()
    assert "FileScan parquet" in plan
    spark.sql("CREATE VIEW small AS SELECT id FROM items WHERE id < 10")
    spark.sql(
        "MERGE INTO items t USING (SELECT id, 'm' AS kind FROM small) s ON t.id = s.id + 1 "
        "WHEN MATCHED THEN UPDATE SET kind = s.kind WHEN NOT MATCHED THEN INSERT (id) VALUES (7)"
    )
    spark.sql("DELETE FROM spark_catalog.shop.items WHERE id > 10")
    spark.sql("UPDATE items SET price = 9 WHERE id = 1")
    assert contents(spark.sql("WITH c AS (SELECT * FROM items) SELECT id, kind FROM c")) == [
        (1, "a"),
        (2, "m"),
        (7, None),
    ]
    assert spark.sql("SELECT count(*) FROM small").first()[0] == 3
    assert operations(spark, "items") == [
        "UPDATE", "DELETE", "MERGE", "WRITE", "WRITE", "CREATE TABLE"
    ]  # fmt: skip
    assert spark.sql("DESCRIBE HISTORY items LIMIT 2").count() == 2
    detail = spark.sql("DESC DETAIL shop.items").first()
    assert (detail["format"], detail["partitionColumns"]) == ("delta", ["kind"])
    assert DeltaTable.forName(spark, "items").detail().first()["id"] == detail["id"]
    assert spark.read.option("versionAsOf", 1).table("items").count() == 2
    old = spark.sql("SELECT count(*) FROM items VERSION AS OF 2 AS i WHERE i.id > 1")
    plain = spark.sql("SELECT count(items.id) FROM items VERSION AS OF 2 WHERE items.id > 1")
    assert plain.collect() == old.collect()
    assert old.first()[0] == 3
    with pytest.raises(InvalidRequestError) as taken:
        spark.sql("CREATE TABLE items (a INT) USING delta")
    assert taken.value.code is ErrorCode.TABLE_OR_VIEW_ALREADY_EXISTS
    spark.sql("CREATE TABLE IF NOT EXISTS items (a INT) USING delta")
    spark.sql("DROP TABLE items")
    assert not Path(detail["location"].removeprefix("file:")).exists(), "the catalog owned it"


def test_a_location_of_its_own(database: SparkSession, tmp_path: Path) -> None:
    spark, path = database, str(tmp_path / "it's a table")
    puredelta.write(spark.range(3), path)
    quoted = path.replace("'", "\\'")
    spark.sql(f"CREATE TABLE known USING delta LOCATION '{quoted}'")
    assert contents(spark.table("known")) == [(0,), (1,), (2,)]
    assert spark.catalog.listColumns("known")[0].name == "id"
    with pytest.raises(InvalidRequestError):
        spark.sql(f"CREATE TABLE other (x INT) USING delta LOCATION '{quoted}'")
    spark.sql(f"CREATE TABLE copied USING delta AS SELECT id, 1 AS one FROM delta.`{path}`")
    spark.sql("INSERT OVERWRITE copied SELECT 5, id FROM known")
    assert contents(spark.sql("SELECT * FROM copied")) == [(5, 0), (5, 1), (5, 2)]
    spark.sql(f"INSERT INTO delta.`{path}` SELECT one FROM copied")
    spark.sql(f"INSERT INTO delta.`{path}` BY NAME SELECT 8 AS ID")
    assert puredelta.read(spark, path).count() == 7
    spark.sql("DROP TABLE known")
    assert TableLog.open(path).exists()


@pytest.mark.thorough
def test_a_relative_location_lies_below_that_of_the_database(
    active: SparkSession, tmp_path: Path
) -> None:
    """As Spark has it for every format; relative to the working directory it is to nobody."""
    spark, below = active, f"file:{tmp_path}/a b%20"
    spark.sql(f"CREATE DATABASE below LOCATION '{tmp_path}/a b%20'")
    location = "sub/%20 t"
    made = {
        "made": lambda: spark.sql(
            f"CREATE TABLE below.made (id BIGINT) USING delta LOCATION '{location}'"
        ),
        "named": lambda: spark.sql(f"CREATE TABLE below.named USING delta LOCATION '{location}'"),
        "selected": lambda: spark.sql(
            "CREATE TABLE below.selected USING delta LOCATION './x/../s' AS SELECT 1L AS id"
        ),
        "saved": lambda: (
            spark.range(1).write.format("delta").option("path", "saved").saveAsTable("below.saved")
        ),
        "built": lambda: (
            DeltaTable.create(spark)
            .tableName("below.built")
            .location("built/b")
            .addColumn("id", "BIGINT")
            .execute()
        ),
    }
    expected = [location, location, "s", "saved", "built/b"]
    try:
        for (name, action), place in zip(made.items(), expected, strict=True):
            action()
            detail = spark.sql(f"DESCRIBE DETAIL below.{name}").first()
            assert detail is not None
            assert detail["location"] == f"{below}/{place}"
        spark.sql("REPLACE TABLE below.selected USING delta LOCATION 's' AS SELECT 2L AS id")
        spark.sql("ALTER TABLE below.made SET LOCATION 's'")
        assert contents(spark.table("below.made")) == [(2,)]
        with pytest.raises(TableNotFoundError, match="a b%20/nothing is not a Delta table"):
            spark.sql("ALTER TABLE below.made SET LOCATION 'nothing'")
        with pytest.raises(InvalidRequestError) as relative:
            spark.sql("CREATE TABLE below.cloned SHALLOW CLONE below.made LOCATION 'c'")
        assert relative.value.code is ErrorCode.INVALID_CLONE_PATH
    finally:
        spark.sql("DROP DATABASE below CASCADE")


def test_save_as_table_and_insert_into(database: SparkSession, tmp_path: Path) -> None:
    spark = database
    rows = spark.sql("SELECT id, id % 2 AS p FROM range(4)")
    rows.write.format("delta").partitionBy("p").saveAsTable("saved")
    with pytest.raises(InvalidRequestError, match="already exists"):
        rows.write.format("delta").saveAsTable("saved")
    rows.write.saveAsTable("shop.saved", "delta", mode="ignore")
    rows.write.mode("append").saveAsTable("saved")
    spark.sql("SELECT 0L, 9L").write.insertInto("saved")
    assert spark.table("saved").count() == 9
    partial = rows.where("p = 1").write.format("delta").mode("overwrite")
    partial.option("replaceWhere", "p = 1").saveAsTable("saved")
    assert contents(spark.sql("SELECT p, count(*) FROM saved GROUP BY p")) == [
        (0, 4), (1, 2), (9, 1)
    ]  # fmt: skip
    spark.range(1).selectExpr("id", "id").write.insertInto("saved", overwrite=True)
    assert contents(spark.table("saved")) == [(0, 0)]
    rows.write.format("delta").option("path", str(tmp_path / "x")).saveAsTable("elsewhere")
    assert puredelta.read(spark, str(tmp_path / "x")).count() == 4
    rows.write.saveAsTable("plain", format="parquet")
    spark.sql("INSERT INTO plain SELECT * FROM saved")
    assert spark.table("plain").count() == 5


def test_an_interrupt_after_the_commit_keeps_a_managed_table(
    database: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To take the name back would drop the directory, and the rows with it."""

    def interrupted(*args: Any, **kwargs: Any) -> None:
        create_table_as(*args, **kwargs)
        raise KeyboardInterrupt

    monkeypatch.setattr(as_select, "create_table_as", interrupted)
    with pytest.raises(KeyboardInterrupt):
        database.sql("CREATE TABLE kept USING delta AS SELECT 1 AS id")
    monkeypatch.undo()
    assert contents(database.table("kept")) == [(1,)]


def test_names_with_capitals_are_the_same_tables(database: SparkSession) -> None:
    spark = database
    spark.range(2).write.format("delta").saveAsTable("MyTable")
    spark.sql("ALTER TABLE MyTable ADD COLUMNS (x INT)")
    assert spark.table("MYTABLE").columns == ["id", "x"]
    assert [c.name for c in spark.catalog.listColumns("mytable")] == ["id", "x"]
    spark.sql("CREATE OR REPLACE TABLE SHOP.MyTable USING delta AS SELECT 5 AS y")
    assert contents(spark.table("mytable")) == [(5,)]
    assert [c.name for c in spark.catalog.listColumns("mytable")] == ["y"]
    spark.sql("ALTER TABLE Shop.MyTable SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')")
    spark.sql("ALTER TABLE Shop.MyTable RENAME COLUMN y TO z")
    assert [c.name for c in spark.catalog.listColumns("mytable")] == ["z"]
    assert operations(spark, "mytable")[0] == "RENAME COLUMN"


def test_what_does_not_fit(database: SparkSession) -> None:
    spark = database
    spark.sql("CREATE TABLE narrow (a INT, b INT) USING delta")
    with pytest.raises(AnalysisException, match="INSERT_COLUMN_ARITY_MISMATCH"):
        spark.sql("INSERT INTO narrow SELECT 1")
    with pytest.raises(AnalysisException, match="DATATYPE_MISMATCH"):
        spark.sql("INSERT INTO narrow SELECT 1, current_date()")
    with pytest.raises(InvalidRequestError, match="no column 'c'"):
        spark.sql("INSERT INTO narrow (a, c) SELECT 1, 2")
    with pytest.raises(InvalidRequestError, match="non-partition column"):
        spark.sql("INSERT INTO narrow PARTITION (a = 1) SELECT 1")
    with pytest.raises(InvalidRequestError, match="allowColumnDefaults"):
        spark.sql("CREATE TABLE odd (a INT, b INT DEFAULT 5) USING delta")
    with pytest.raises(TableNotFoundError, match="cannot be found"):
        spark.sql("DESCRIBE HISTORY shop.nothing")
    with pytest.raises(TableNotFoundError, match="not a Delta table"):
        DeltaTable.forName(spark, "nothing")
    assert [row.tableName for row in spark.sql("SHOW TABLES").collect()] == ["narrow"]


@pytest.mark.thorough
def test_without_activation_a_data_source_reads_tables_by_path(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = str(tmp_path / "t")
    rows = spark.sql(
        "SELECT id, id % 2 AS p, named_struct('x', id, 'y', array(id, NULL)) AS s, "
        "map('k', id) AS m, timestamp'2025-01-31 12:00:00' AS at, 1.5 AS n FROM range(4)"
    )
    wanted = ("enableDeletionVectors", "enableChangeDataFeed")
    properties = {"delta.columnMapping.mode": "name", **{f"delta.{n}": "true" for n in wanted}}
    puredelta.write(rows, path, partition_by="p", properties=properties)
    DeltaTable.forPath(spark, path).delete("id = 2")
    found = spark.read.format("delta").load(path)
    assert contents(found) == contents(puredelta.read(spark, path))
    assert len(found.collect()) == 3
    assert spark.read.format("delta").option("versionAsOf", 0).load(path).count() == 4
    changes = spark.read.format("delta").option("readChangeFeed", "true")
    changes = changes.option("startingVersion", 1).load(path)
    assert contents(changes.select("id", "p", "_change_type")) == [(2, 0, "delete")]
    with pytest.raises(AnalysisException, match=r"Call puredelta\.activate\(spark\) first"):
        rows.write.format("delta").mode("append").save(path)


def test_a_new_location_has_the_same_table(database: SparkSession, tmp_path: Path) -> None:
    spark = database
    spark.sql("CREATE TABLE here (id BIGINT, p INT) USING delta PARTITIONED BY (p)")
    rows = spark.range(3).selectExpr("id", "1 AS p")
    puredelta.write(rows, tmp_path / "same", partition_by=["p"])
    puredelta.write(rows, tmp_path / "flat")
    with pytest.raises(TableNotFoundError) as missing:
        spark.sql(f"ALTER TABLE here SET LOCATION '{tmp_path}/nothing'")
    assert missing.value.code is ErrorCode.MISSING_DELTA_TABLE
    with pytest.raises(InvalidRequestError, match="original schema") as differs:
        spark.sql(f"ALTER TABLE here SET LOCATION '{tmp_path}/flat'")
    assert differs.value.code is ErrorCode.SET_LOCATION_SCHEMA_MISMATCH
    with pytest.raises(InvalidRequestError) as of_path:
        spark.sql(f"ALTER TABLE delta.`{tmp_path}/flat` SET LOCATION '{tmp_path}/same'")
    assert of_path.value.code is ErrorCode.CANNOT_SET_LOCATION_ON_PATH_IDENTIFIER
    assert spark.table("here").count() == 0
    spark.sql(f"ALTER TABLE here SET LOCATION '{tmp_path}/same'")
    assert spark.table("here").count() == 3
    spark.conf.set("spark.databricks.delta.alterLocation.bypassSchemaCheck", "true")
    try:
        spark.sql(f"ALTER TABLE here SET LOCATION '{tmp_path}/flat'")
    finally:
        spark.conf.unset("spark.databricks.delta.alterLocation.bypassSchemaCheck")
    assert spark.table("here").count() == 3
    spark.sql("DROP TABLE here")
