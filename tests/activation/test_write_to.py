"""``df.writeTo``, ``df.mergeInto`` and builders by name in an activated session."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException, UnsupportedOperationException
from pyspark.sql import Column, DataFrame, DataFrameWriter, SparkSession
from pyspark.sql import functions as F

import puredelta
from puredelta.errors import DeltaError, ErrorCode, TableNotFoundError
from puredelta.log.replay.table_log import TableLog
from puredelta.tables import DeltaTable


@pytest.fixture
def database(active: SparkSession) -> Iterator[SparkSession]:
    """A database of its own, which is the current one."""
    active.sql("CREATE DATABASE desk")
    active.catalog.setCurrentDatabase("desk")
    yield active
    active.catalog.setCurrentDatabase("default")
    active.sql("DROP DATABASE desk CASCADE")


def contents(rows: Any) -> list[tuple[Any, ...]]:
    return sorted(map(tuple, rows.collect()), key=str)


def operations(spark: SparkSession, name: str) -> list[str]:
    history = DeltaTable.forName(spark, name).history()
    return [row["operation"] for row in history.collect()]


def operation_parameters(spark: SparkSession, name: str) -> dict[str, str]:
    last = DeltaTable.forName(spark, name).history(1).first()
    return dict(last["operationParameters"])


@pytest.mark.smoke
def test_write_to_a_table_of_the_catalog(database: SparkSession) -> None:
    spark = database
    rows = spark.sql("SELECT id, id % 2 AS p FROM range(4)")
    writer = rows.writeTo("w").using("delta").partitionedBy("p").tableProperty("mine", "1")
    writer.option("delta.enableChangeDataFeed", "true").create()
    with pytest.raises(AnalysisException, match="already exists"):
        rows.writeTo("w").using("delta").create()
    detail = DeltaTable.forName(spark, "w").detail().first()
    assert (detail["name"], detail["partitionColumns"]) == ("spark_catalog.desk.w", ["p"])
    assert detail["properties"] == {"mine": "1", "delta.enableChangeDataFeed": "true"}
    spark.sql("SELECT 9L AS id, 1L AS p").writeTo("w").append()
    spark.sql("SELECT 8L AS id, 1L AS p").writeTo("desk.w").overwrite(F.col("id") >= 8)
    expected = [(0, 0), (1, 1), (2, 0), (3, 1), (8, 1)]
    assert contents(spark.table("w")) == expected
    assert operation_parameters(spark, "w")["predicate"] == "(id >= 8L)"
    with pytest.raises(DeltaError, match="does not conform"):
        rows.writeTo("w").overwrite(F.col("p") == 1)
    spark.sql("SELECT 7L AS id, 1L AS p").writeTo("w").overwritePartitions()
    assert contents(spark.table("w")) == [(0, 0), (2, 0), (7, 1)]
    rows.writeTo("w").overwrite(F.lit(True))
    assert spark.table("w").count() == 4
    refused = rows.writeTo("w").using("delta").option("replaceWhere", "p = 1")
    for replaces in (refused.replace, refused.createOrReplace):
        with pytest.raises(UnsupportedOperationException, match="replaceWhere"):
            replaces()
    rows.select("id").writeTo("w").using("delta").clusterBy("id").replace()
    assert spark.table("w").columns == ["id"]
    rows.writeTo("w").using("delta").option("path", detail["location"]).createOrReplace()
    assert contents(spark.table("w"))[0] == (0, 0)
    assert [c.name for c in spark.catalog.listColumns("w")] == ["id", "p"]
    assert operations(spark, "w") == [
        "CREATE OR REPLACE TABLE AS SELECT", "REPLACE TABLE AS SELECT", "WRITE", "WRITE", "WRITE",
        "WRITE", "CREATE TABLE AS SELECT",
    ]  # fmt: skip


def test_write_to_paths_and_other_formats(database: SparkSession, tmp_path: Path) -> None:
    spark, name = database, f"delta.`{tmp_path}/t`"
    rows = spark.range(3)
    with pytest.raises(TableNotFoundError):
        rows.writeTo(name).append()
    rows.writeTo(name).using("delta").create()
    rows.selectExpr("string(id) AS ID").writeTo(name).append()
    with pytest.raises(AnalysisException, match="FAILED_TO_MERGE_FIELDS"):
        rows.selectExpr("array(id) AS id").writeTo(name).append()
    assert puredelta.read(spark, f"{tmp_path}/t").count() == 6
    rows.writeTo("plain").using("parquet").create()
    with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
        rows.writeTo("nothing").append()
    with pytest.raises(AnalysisException, match="Partitioning by expressions"):
        rows.writeTo("odd").using("delta").partitionedBy(F.partitioning.bucket(3, "id")).create()
    with pytest.raises(AnalysisException, match="cannot be found"):
        rows.writeTo("nothing").using("delta").replace()
    with pytest.raises(DeltaError) as not_ours:
        rows.writeTo("plain").using("delta").createOrReplace()
    assert not_ours.value.code is ErrorCode.NOT_A_DELTA_TABLE


def test_merge_into(database: SparkSession) -> None:
    spark = database
    spark.sql("SELECT id, id * 10 AS v FROM range(4)").writeTo("m").using("delta").create()
    news = spark.sql("SELECT id, 1L AS v, 'x' AS more FROM range(2, 6)").alias("s")

    def on(condition: str) -> Column:
        return F.expr(condition)

    merge = news.mergeInto("m", on("m.id = s.id")).withSchemaEvolution()
    merge = merge.whenMatched(on("s.id = 2")).updateAll().whenMatched().delete()
    merge = merge.whenNotMatched(on("s.id = 4")).insertAll()
    merge = merge.whenNotMatched().insert({"id": F.col("s.id")})
    merge = merge.whenNotMatchedBySource(on("desk.m.id = 0")).update({"v": F.col("m.v") - 1})
    merge.whenNotMatchedBySource().delete().merge()
    assert contents(spark.table("m")) == [
        (0, -1, None),
        (2, 1, "x"),
        (4, 1, "x"),
        (5, None, None),
    ]
    with pytest.raises(DeltaError, match="no row of the source"):
        news.mergeInto("m", on("m.id = s.id")).whenNotMatchedBySource().updateAll()
    with pytest.raises(AnalysisException, match="WHEN clause"):
        news.mergeInto("m", on("m.id = s.id")).merge()


@pytest.mark.thorough
def test_builders_by_name(database: SparkSession, tmp_path: Path) -> None:
    spark = database
    made = DeltaTable.create(spark).tableName("b").addColumn("a", "INT", comment="c")
    table = made.property("mine", "1").comment("words").execute()
    spark.sql("INSERT INTO b VALUES (1)")
    assert contents(table.toDF()) == [(1,)]
    with pytest.raises(AnalysisException, match="already exists"):
        made.execute()
    same = DeltaTable.createIfNotExists(spark).tableName("b").addColumn("x", "INT").execute()
    assert same.toDF().columns == ["a"]
    assert {t.detail().first()["name"] for t in (table, same)} == {"spark_catalog.desk.b"}
    DeltaTable.replace(spark).tableName("b").addColumn("r", "INT").execute()
    DeltaTable.createOrReplace(spark).tableName("desk.b").addColumn("c", "INT").execute()
    assert spark.table("b").columns == ["c"]
    assert operations(spark, "b") == [
        "CREATE OR REPLACE TABLE", "REPLACE TABLE", "WRITE", "CREATE TABLE"
    ]  # fmt: skip
    with pytest.raises(AnalysisException, match="cannot be found"):
        DeltaTable.replace(spark).tableName("gone").addColumn("r", "INT").execute()
    assert not spark.catalog.tableExists("gone")
    elsewhere = DeltaTable.create(spark).tableName("e").location(str(tmp_path / "e"))
    elsewhere.addColumn("a", "INT").execute()
    spark.sql("DROP TABLE e")
    assert TableLog.open(str(tmp_path / "e")).exists()
    moved = DeltaTable.createOrReplace(spark).tableName("b").location(str(tmp_path / "x"))
    with pytest.raises(AnalysisException, match="doesn't match the specified location"):
        moved.addColumn("a", "INT").execute()


@pytest.mark.thorough
def test_a_frame_cached_by_name_follows_the_table(database: SparkSession) -> None:
    spark = database
    spark.range(3).writeTo("k").using("delta").create()
    cached = spark.table("k").cache()
    assert cached.count() == 3
    spark.sql("INSERT INTO k VALUES (10)")
    assert cached.count() == 4
    assert spark.table("k").select("_metadata.file_path").count() == 4
    spark.table("k").createOrReplaceTempView("shown")
    spark.sql("DELETE FROM shown WHERE id = 10")
    assert cached.count() == 3
    cached.unpersist()


def test_properties_say_where_a_table_is_and_what_it_is(
    active: SparkSession, tmp_path: Path
) -> None:
    spark, place = active, f"{tmp_path}/of its own"
    writer = spark.range(2).writeTo("placed").using("delta")
    writer = writer.tableProperty("location", place).tableProperty("comment", "said")
    writer.tableProperty("kept", "1").create()
    try:
        detail = spark.sql("DESCRIBE DETAIL placed").first()
        assert detail is not None
        assert (detail.location, detail.description) == (f"file:{place}", "said")
        assert detail.properties == {"kept": "1"}
        writer.replace()
        with pytest.raises(AnalysisException, match="doesn't match the specified location"):
            writer.tableProperty("location", f"{tmp_path}/other").createOrReplace()
        spark.sql("DROP TABLE placed")
        assert puredelta.read(spark, place).count() == 2
        of_path = spark.range(2).writeTo(f"delta.`{tmp_path}/path`").using("delta")
        with pytest.raises(AnalysisException, match="two different locations"):
            of_path.tableProperty("location", place).create()
    finally:
        spark.sql("DROP TABLE IF EXISTS placed")


NOT_FOUND = "DELTA_PARTITION_COLUMN_NOT_FOUND"
NO_PARTITION: dict[str, tuple[Callable[[DataFrame, str], object], bool]] = {
    "save": (lambda rows, t: saver(rows, "append").save(t), True),
    "save merging": (lambda rows, t: saver(rows, "append", mergeSchema="true").save(t), True),
    "save over": (lambda rows, t: saver(rows, "overwrite").save(t), True),
    "save over a part": (
        lambda rows, t: saver(rows, "overwrite", replaceWhere="id = 1").save(t),
        True,
    ),
    "save dynamically": (
        lambda rows, t: saver(rows, "overwrite", partitionOverwriteMode="dynamic").save(t),
        True,
    ),
    "write": (lambda rows, t: puredelta.write(rows, t, mode="append"), True),
    "saveAsTable": (lambda rows, t: saver(rows, "append").saveAsTable(f"delta.`{t}`"), False),
    "saveAsTable over": (
        lambda rows, t: saver(rows, "overwrite").saveAsTable(f"delta.`{t}`"),
        True,
    ),
    "append": (lambda rows, t: rows.writeTo(f"delta.`{t}`").append(), False),
    "overwrite": (lambda rows, t: rows.writeTo(f"delta.`{t}`").overwrite(F.lit(True)), False),
    "overwritePartitions": (
        lambda rows, t: rows.writeTo(f"delta.`{t}`").overwritePartitions(),
        True,
    ),
    "by name": (lambda rows, t: insert(rows, f"INTO delta.`{t}` BY NAME"), False),
    "by a list": (lambda rows, t: insert(rows, f"OVERWRITE delta.`{t}` (id, q)"), False),
}
"""Ways of writing, and whether delta-spark 4.4.0 refuses rows without the partition column."""


def saver(rows: DataFrame, mode: str, **options: str) -> DataFrameWriter:
    return rows.write.format("delta").mode(mode).options(**options)


def insert(rows: DataFrame, words: str) -> object:
    return rows.sparkSession.sql(f"INSERT {words} SELECT * FROM {{rows}}", rows=rows)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("way", NO_PARTITION)
@pytest.mark.parametrize("value", [None, "DEFAULT 9", "GENERATED ALWAYS AS (CAST(id AS INT))"])
def test_rows_without_the_partition_column(
    active: SparkSession, tmp_path: Path, way: str, value: str | None
) -> None:
    path = str(tmp_path / "t")
    active.sql(
        f"CREATE TABLE delta.`{path}` (id BIGINT, p INT {value or ''}, q STRING) USING delta "
        "PARTITIONED BY (p) TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported')"
    )
    write, refused = NO_PARTITION[way]
    rows = active.range(5, 6).selectExpr("id", "'x' AS q")
    if refused and value is None:
        with pytest.raises(DeltaError, match="Partition column 'p'") as caught:
            write(rows, path)
        assert caught.value.getCondition() == NOT_FOUND
        assert not TableLog.open(path).snapshot().files.rows.num_rows
    elif way != "save over a part":  # its rows are judged after they are completed
        write(rows, path)
        wanted = {None: None, "DEFAULT 9": 9}.get(value, 5)
        assert active.read.format("delta").load(path).collect() == [(5, wanted, "x")]
