"""Rows changed by both implementations in turn: feed, deletion vectors and row ids are one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from puredelta.commands.changes import read_changes
from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.actions.actions import Add, AddChangeFile
from puredelta.tables import DeltaTable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FEED = {"delta.enableChangeDataFeed": "true", "delta.enableDeletionVectors": "false"}
VECTORS = {"delta.enableDeletionVectors": "true"}
TRACKING = {"delta.enableRowTracking": "true"}
MAPPED = {"delta.columnMapping.mode": "name"}


def counted(rows: DataFrame) -> Counter[str]:
    return Counter(map(repr, rows.collect()))


def source(spark: SparkSession, start: int) -> DataFrame:
    return spark.range(start, start + 30, 5).selectExpr("id", "concat('m', id) AS v", "id % 3 AS p")


def merge_by_us(spark: SparkSession, path: str, start: int) -> None:
    (
        DeltaTable.forPath(spark, path)
        .alias("t")
        .merge(source(spark, start).alias("s"), "t.id = s.id")
        .whenMatchedDelete("s.id % 10 = 0")
        .whenMatchedUpdate(set={"v": "s.v", "p": "s.p"})
        .whenNotMatchedInsertAll()
        .whenNotMatchedBySourceUpdate("t.id = 1", {"v": "'alone'"})
        .execute()
    )


def merge_by_reference(spark: SparkSession, path: str, start: int) -> None:
    source(spark, start).createOrReplaceTempView("s")
    spark.sql(
        f"""MERGE INTO delta.`{path}` t USING s ON t.id = s.id
        WHEN MATCHED AND s.id % 10 = 0 THEN DELETE
        WHEN MATCHED THEN UPDATE SET v = s.v, p = s.p
        WHEN NOT MATCHED THEN INSERT *
        WHEN NOT MATCHED BY SOURCE AND t.id = 2 THEN UPDATE SET v = 'alone'"""
    )


@pytest.mark.parametrize(
    ("properties", "partition_by"),
    [
        pytest.param({**FEED, **MAPPED}, ["p"], id="feed, mapped, partitioned"),
        pytest.param({**VECTORS, "delta.enableChangeDataFeed": "true"}, [], id="vectors, feed"),
        pytest.param({**TRACKING, **FEED}, [], id="row ids, feed"),
        pytest.param({**TRACKING, **VECTORS, **MAPPED}, ["p"], id="row ids, vectors, mapped"),
    ],
)
def test_both_change_one_table_in_turn(
    spark: SparkSession,
    tmp_path: Path,
    properties: Mapping[str, str],
    partition_by: Sequence[str],
) -> None:
    path = str(tmp_path / "table")
    given = ", ".join(f"'{key}' = '{value}'" for key, value in properties.items())
    partitioned = f"PARTITIONED BY ({', '.join(partition_by)})" if partition_by else ""
    spark.sql(
        f"CREATE TABLE delta.`{path}` (id LONG, v STRING, p LONG) USING delta {partitioned} "
        f"TBLPROPERTIES ({given})"
    )
    spark.sql(
        f"INSERT INTO delta.`{path}` SELECT /*+ COALESCE(1) */ id, concat('v', id), id % 3 "
        "FROM range(40)"
    )
    tracked = "delta.enableRowTracking" in properties
    ids = row_ids(spark, path) if tracked else {}
    log = TableLog.open(path)
    for start, merge in ((0, merge_by_us), (13, merge_by_reference), (7, merge_by_us)):
        merge(spark, path, start)
        version = log.snapshot().version
        ours = DeltaTable.forPath(spark, path).toDF()
        assert counted(ours) == counted(spark.read.format("delta").load(path))
        if tracked:
            now = row_ids(spark, path)
            kept = ids.keys() & now.keys()
            assert {key: now[key] for key in kept} == {key: ids[key] for key in kept}
            assert len(set(now.values())) == len(now)
            ids = now
        (commit,) = log.commits_after(version - 1)
        if "delta.enableChangeDataFeed" in properties:
            assert any(isinstance(a, AddChangeFile) for a in commit.actions)
            theirs = (
                spark.read.format("delta")
                .option("readChangeFeed", "true")
                .option("startingVersion", version)
                .load(path)
            )
            assert counted(read_changes(spark, log, starting_version=version)) == counted(theirs)
        has_vector = [a.deletion_vector is not None for a in commit.actions if isinstance(a, Add)]
        assert any(has_vector) == (properties.get("delta.enableDeletionVectors") == "true")


def row_ids(spark: SparkSession, path: str) -> dict[int, int]:
    """Row id by key as delta-spark reads them."""
    rows = spark.read.format("delta").load(path).selectExpr("id", "_metadata.row_id")
    return {row[0]: row[1] for row in rows.collect()}
