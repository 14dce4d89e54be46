"""Streams from and into tables, and batches of a stream that are merged."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.errors import (
    AnalysisException,
    IllegalArgumentException,
    StreamingQueryException,
)
from pyspark.sql import DataFrame, SparkSession

import puredelta
from puredelta.log.replay.table_log import TableLog
from puredelta.tables import DeltaTable


def contents(rows: Any) -> list[tuple[Any, ...]]:
    return sorted(map(tuple, rows.collect()), key=str)


def run(start: Callable[[], Any]) -> None:
    """Let a query take everything that is there."""
    query = start()
    try:
        query.processAllAvailable()
    finally:
        query.stop()


@pytest.mark.smoke
def test_from_table_to_table(active: SparkSession, tmp_path: Path) -> None:
    spark, source, sink = active, str(tmp_path / "source"), str(tmp_path / "sink")
    puredelta.write(spark.sql("SELECT id, id % 2 AS p FROM range(4)"), source, partition_by="p")
    DeltaTable.forPath(spark, source).delete("id = 3")

    def start() -> Any:
        rows = spark.readStream.format("delta").load(source)
        writer = rows.writeStream.format("delta").partitionBy("p").trigger(availableNow=True)
        return writer.option("checkpointLocation", str(tmp_path / "c")).start(sink)

    run(start)
    assert contents(puredelta.read(spark, sink)) == [(0, 0), (1, 1), (2, 0)]
    puredelta.write(spark.sql("SELECT 9L AS id, 9L AS p"), source, mode="append")
    run(start)
    run(start)
    assert contents(puredelta.read(spark, sink)) == [(0, 0), (1, 1), (2, 0), (9, 9)]
    history = TableLog.open(sink).history()
    assert [entry.commit_info.operation for entry in history] == ["STREAMING UPDATE"] * 2
    DeltaTable.forPath(spark, source).update("id = 9", {"id": "10"})
    with pytest.raises(StreamingQueryException, match="SOURCE_TABLE_IGNORE_CHANGES"):
        run(start)


@pytest.mark.thorough
def test_from_and_into_tables_that_keep_iceberg_compat(
    active: SparkSession, tmp_path: Path
) -> None:
    """Batches of a stream write partition columns and the ids of elements, as every write."""
    spark, source, sink = active, str(tmp_path / "source"), str(tmp_path / "sink")
    for path in (source, sink):
        puredelta.sql(
            spark,
            f"CREATE TABLE delta.`{path}` (id BIGINT, a ARRAY<INT>, p STRING) USING delta "
            "PARTITIONED BY (p) TBLPROPERTIES ('delta.enableIcebergCompatV2' = 'true')",
        )

    def start() -> Any:
        rows = spark.readStream.format("delta").load(source)
        writer = rows.writeStream.format("delta").trigger(availableNow=True)
        return writer.option("checkpointLocation", str(tmp_path / "c")).start(sink)

    for first in (0, 4):
        rows = spark.range(first, first + 4).selectExpr("id", "array(1, id) a", "'x' p")
        puredelta.write(rows.withColumn("a", rows["a"].cast("array<int>")), source, mode="append")
        run(start)
    assert contents(puredelta.read(spark, sink)) == [(n, [1, n], "x") for n in range(8)]
    adds = list(TableLog.open(sink).snapshot().files.adds())
    assert len(adds) >= 2
    for add in adds:
        assert add.tags == {"ICEBERG_COMPAT_VERSION": "2"}
        schema = pq.read_schema(tmp_path / "sink" / add.path)
        element = schema.field(1).type.value_field
        assert len(schema) == 3
        assert [f.metadata[b"PARQUET:field_id"] for f in (*schema, element)] == [
            b"1", b"2", b"3", b"4"
        ]  # fmt: skip


def test_a_batch_that_comes_again_changes_nothing(active: SparkSession, tmp_path: Path) -> None:
    spark, path = active, str(tmp_path / "t")
    puredelta.write(spark.sql("SELECT id, 0L AS n FROM range(2)"), path)

    def upsert(batch: DataFrame, batch_id: int) -> None:
        session = batch.sparkSession
        session.conf.set("spark.databricks.delta.write.txnAppId", "counts")
        session.conf.set("spark.databricks.delta.write.txnVersion", str(batch_id))
        merge = DeltaTable.forPath(session, path).alias("t").merge(batch.alias("s"), "t.id = s.id")
        merge = merge.whenMatchedUpdate(set={"n": "t.n + 1"})
        merge.whenNotMatchedInsert(values={"id": "s.id", "n": "1"}).execute()

    batch, source = spark.range(1, 3), str(tmp_path / "source")
    try:
        for batch_id in (0, 0, 1):
            upsert(batch, batch_id)
    finally:
        spark.conf.unset("spark.databricks.delta.write.txnAppId")
        spark.conf.unset("spark.databricks.delta.write.txnVersion")
    assert contents(puredelta.read(spark, path)) == [(0, 0), (1, 2), (2, 2)]
    puredelta.write(spark.range(2, 4), source)
    writer = spark.readStream.format("delta").load(source).writeStream
    writer = writer.option("checkpointLocation", str(tmp_path / "c"))
    run(lambda: writer.foreachBatch(lambda rows, n: upsert(rows, n + 2)).start())
    assert contents(puredelta.read(spark, path)) == [(0, 0), (1, 2), (2, 3), (3, 1)]


@pytest.mark.thorough
def test_complete_mode_into_a_named_table(active: SparkSession, tmp_path: Path) -> None:
    spark, source = active, str(tmp_path / "source")
    puredelta.write(spark.range(6), source)
    counts = spark.readStream.format("delta").option("startingVersion", 0).load(source)
    counts = counts.selectExpr("id % 2 AS p").groupBy("p").count()
    writer = counts.writeStream.outputMode("complete")
    try:
        run(
            lambda: writer.option("checkpointLocation", str(tmp_path / "c")).toTable(
                "counted", format="delta"
            )
        )
        assert contents(spark.table("counted")) == [(0, 3), (1, 3)]
        assert spark.readStream.table("counted").columns == ["p", "count"]
    finally:
        spark.sql("DROP TABLE IF EXISTS counted")
    updates = counts.writeStream.format("delta").outputMode("update")
    with pytest.raises(AnalysisException, match="does not support update output mode"):
        updates.option("checkpointLocation", "/nowhere").start(source)
    with pytest.raises(AnalysisException, match="checkpointLocation must be specified"):
        counts.writeStream.format("delta").outputMode("complete").start(source)


def changed(stream: DataFrame, checkpoint: Path) -> list[tuple[Any, ...]]:
    """What a stream of changes delivers until there is no more, without the times."""
    found: list[tuple[Any, ...]] = []

    def take(batch: DataFrame, _: int) -> None:
        found.extend(map(tuple, batch.drop("_commit_timestamp").collect()))

    writer = stream.writeStream.foreachBatch(take).trigger(availableNow=True)
    run(lambda: writer.option("checkpointLocation", str(checkpoint)).start())
    return sorted(found, key=str)


def test_the_change_data_feed(active: SparkSession, tmp_path: Path) -> None:
    spark, path = active, str(tmp_path / "t")
    spark.sql(
        f"CREATE TABLE delta.`{path}` (id BIGINT, p INT) USING delta PARTITIONED BY (p) "
        "TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true', 'delta.enableDeletionVectors' = "
        "'true', 'delta.columnMapping.mode' = 'name')"
    )
    puredelta.write(spark.sql("SELECT id, 0 AS p FROM range(3)"), path, mode="append")
    table = DeltaTable.forPath(spark, path)
    table.delete("id = 1")
    reader = spark.readStream.format("delta").option("readChangeFeed", "true")
    stream = reader.load(path)
    assert stream.columns == ["id", "p", "_change_type", "_commit_version", "_commit_timestamp"]
    found = changed(stream, tmp_path / "c")
    assert found == [(0, 0, "insert", 2), (2, 0, "insert", 2)]
    table.update("id = 2", {"id": "20"})
    table.delete("p = 0")
    later = [
        (0, 0, "delete", 4),
        (2, 0, "update_preimage", 3),
        (20, 0, "delete", 4),
        (20, 0, "update_postimage", 3),
    ]
    assert changed(stream, tmp_path / "c") == later
    created = TableLog.open(path).snapshot(version=2).timestamp_ms
    spark.sql("SET TIME ZONE '+05:00'")
    try:
        at = spark.sql(f"SELECT CAST(timestamp_millis({created}) AS STRING)").first()[0]
        since = reader.option("startingTimestamp", at).load(path)
        assert changed(since, tmp_path / "d") == sorted([(1, 0, "delete", 2), *later], key=str)
    finally:
        spark.sql("SET TIME ZONE 'UTC'")


@pytest.mark.thorough
def test_a_feed_that_cannot_be(active: SparkSession, tmp_path: Path) -> None:
    spark, path = active, str(tmp_path / "t")
    puredelta.write(spark.range(3), path)

    def reader(**options: str) -> Any:
        return spark.readStream.format("delta").options(readChangeFeed="true", **options)

    for options, condition in (
        ({"startingVersion": "0", "startingTimestamp": "2020-01-01"}, "BOTH_SET"),
        ({"startingVersion": "-1"}, "DELTA_ILLEGAL_OPTION"),
        ({"versionAsOf": "0"}, "DELTA_UNSUPPORTED_TIME_TRAVEL_VIEWS"),
    ):
        with pytest.raises((AnalysisException, IllegalArgumentException), match=condition):
            reader(**options).load(path)
    for options, condition in (
        ({}, "DELTA_MISSING_CHANGE_DATA"),
        ({"startingVersion": "1"}, "DELTA_VERSION_NOT_FOUND"),
    ):
        with pytest.raises(StreamingQueryException, match=condition):
            changed(reader(**options).load(path), tmp_path / condition)
