"""``_metadata.row_id`` and ``_metadata.row_commit_version`` of tables that track their rows."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

import puredelta
from puredelta.log.replay.table_log import TableLog
from puredelta.spark.jvm.frames import analyzed_plan
from puredelta.spark.scan.plain_scan import PlainScan, plain_scan
from puredelta.spark.scan.table_rows import find_origin, table_rows
from puredelta.spark.session.session import NotApplicable
from puredelta.tables import DeltaTable

IDS = ("id", "_metadata.row_id", "_metadata.row_commit_version")
TRACKED = {"delta.enableRowTracking": "true", "delta.enableDeletionVectors": "true"}


@pytest.fixture
def path(spark: SparkSession, tmp_path: Path) -> str:
    """``id`` 0 to 5 in three files, of which rows were updated, deleted and inserted."""
    path = str(tmp_path / "t")
    rows = spark.range(0, 6, 1, 3).withColumn("p", F.col("id") % 2)
    puredelta.write(rows, path, properties=TRACKED)
    table = DeltaTable.forPath(spark, path)
    table.update("id = 2", {"p": F.lit(9)})
    table.delete("id = 4")
    puredelta.write(spark.range(10, 11).withColumn("p", F.col("id")), path, mode="append")
    return path


def by_id(rows: DataFrame) -> dict[int, tuple[int, ...]]:
    return {row[0]: tuple(row[1:]) for row in rows.collect()}


def test_rows_keep_their_ids(spark: SparkSession, path: str) -> None:
    before = by_id(puredelta.read(spark, path).select(*IDS))
    assert {key: row[1] for key, row in before.items()} == {0: 0, 1: 0, 2: 1, 3: 0, 5: 0, 10: 3}
    assert [before[key][0] for key in (0, 1, 2, 3, 5)] == [0, 1, 2, 3, 5]
    DeltaTable.forPath(spark, path).optimize().executeCompaction()
    rows = puredelta.read(spark, path)
    assert by_id(rows.select(*IDS)) == before
    assert by_id(rows.where("_metadata.row_commit_version > 0").select(*IDS)).keys() == {2, 10}
    old = puredelta.read(spark, path, version=0).select(*IDS)
    assert by_id(old) == {n: (n, 0) for n in range(6)}


def test_nothing_shows_that_is_not_named(spark: SparkSession, path: str) -> None:
    rows = puredelta.read(spark, path)
    assert rows.columns == rows.select("*").columns == ["id", "p"]
    assert find_origin(analyzed_plan(rows)) is not None
    assert rows.count() == rows.where("id >= 0").count() == 6
    plan = rows.select("id")._jdf.queryExecution().optimizedPlan().toString()
    assert "row_id" not in plan.split("Relation")[0]
    assert rows.withColumn("x", rows.id + 1).where("x = 4").select(*IDS).collect() == [
        Row(id=3, row_id=3, row_commit_version=0)
    ]
    fields = rows.select("_metadata").schema["_metadata"].dataType.fieldNames()
    assert fields[-5:] == [
        "row_index", "row_id", "base_row_id", "default_row_commit_version", "row_commit_version"
    ]  # fmt: skip


@pytest.mark.thorough
def test_what_is_not_named_costs_nothing(spark: SparkSession, path: str) -> None:
    rows = puredelta.read(spark, path)
    plain = rows.where("id = 3").select("id")
    text = plain._jdf.queryExecution().executedPlan().toString()
    assert "named_struct" not in text, text
    with_name = rows.where("id = 3").select("_metadata.file_name")
    assert len(with_name.collect()) == 1
    assert len(with_name.inputFiles()) <= len(rows.inputFiles())


def test_fields_of_files_are_those_of_spark(spark: SparkSession, tmp_path: Path) -> None:
    """But for blocks, which are not known; whatever the names of files and folders are."""
    path = str(tmp_path / "odd %23 ä#?[x]{y}'&")
    rows = spark.range(0, 6, 1, 2).withColumn("p", F.lit("a b/ü:%"))
    puredelta.write(rows, path, partition_by=["p"], properties=TRACKED)
    fields = ["file_path", "file_name", "file_size", "file_modification_time", "row_index"]
    names = ["id", *(f"_metadata.{field}" for field in fields)]
    snapshot = TableLog.open(path).snapshot()
    expected = table_rows(spark, snapshot, time_travel=False).select(*names)
    found = puredelta.read(spark, path)
    assert sorted(found.select(*names).collect()) == sorted(expected.collect())
    assert found.select("_metadata.file_block_start").distinct().collect() == [
        Row(file_block_start=None)
    ]


def test_a_source_that_tracks_rows_is_read_in_place(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "source")
    only_tracked = {"delta.enableRowTracking": "true"}
    puredelta.write(spark.range(0, 6, 1, 2), path, properties=only_tracked)
    rows = puredelta.read(spark, path)
    found = plain_scan(spark, rows)
    assert isinstance(found, PlainScan)
    assert (len(found.files), [field.name for field in found.fields]) == (2, ["id"])
    for hidden in ("_metadata.row_id", "_metadata"):
        named = plain_scan(spark, rows.select("id", hidden))
        assert isinstance(named, NotApplicable)
        assert "is computed" in named.reason


@pytest.mark.thorough
def test_sql_over_paths(spark: SparkSession, path: str) -> None:
    table, expected = f"delta.`{path}`", by_id(puredelta.read(spark, path).select(*IDS))
    for text in (
        f"SELECT id, _metadata.row_id, _metadata.row_commit_version FROM {table}",
        f"SELECT t.id, t._metadata.row_id, _metadata.row_commit_version FROM {table} AS t",
        (
            "WITH c AS (SELECT id, _metadata.row_id, _metadata.row_commit_version "
            f"FROM {table}) SELECT * FROM c"
        ),
        (
            "SELECT t.id, u._metadata.row_id, t._metadata.row_commit_version "
            f"FROM {table} t JOIN {table} u ON t._metadata.row_id = u._metadata.row_id"
        ),
    ):
        assert by_id(puredelta.sql(spark, text)) == expected, text
    [row] = puredelta.sql(
        spark, f"SELECT count(*) FROM {table} VERSION AS OF 0 WHERE _metadata.row_id < 3"
    ).collect()
    assert row[0] == 3


def test_tables_without_tracking_have_what_spark_knows(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "plain")
    puredelta.write(spark.range(2), path)
    text = f"SELECT id, t._metadata.file_name FROM delta.`{path}` t"
    assert puredelta.sql(spark, text).count() == 2
    with pytest.raises(AnalysisException, match="row_id"):
        puredelta.read(spark, path).select("_metadata.row_id")


def test_a_column_of_the_name_that_spark_keeps_for_row_indexes(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Spark fills such a column with row indexes, whatever files hold; other columns are read."""
    path = str(tmp_path / "t")
    rows = spark.range(3).selectExpr("id", "id * 10 AS _tmp_metadata_row_index")
    puredelta.write(rows, path, properties=TRACKED)
    found = puredelta.read(spark, path)
    assert found.columns == rows.columns
    assert sorted(row.id for row in found.select("id").collect()) == [0, 1, 2]


@pytest.mark.thorough
def test_mapped_and_partitioned_tables(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    properties = TRACKED | {"delta.columnMapping.mode": "name"}
    rows = spark.range(0, 4, 1, 1).selectExpr("id", "id % 2 AS p", "named_struct('x', id) AS s")
    puredelta.write(rows, path, partition_by=["p"], properties=properties)
    ids = puredelta.read(spark, path).select("id", "s.x", "_metadata.row_id").collect()
    assert sorted(row.row_id for row in ids) == [0, 1, 2, 3]
    assert all(row.x == row.id for row in ids)
    one = puredelta.read(spark, path).where("p = 1 AND id = 3").select("_metadata.row_id")
    assert one.count() == 1
