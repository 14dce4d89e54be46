"""Streams of a classic session: native scans, limits, restarts, and the tables they read."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import puredelta
from puredelta.tables import DeltaTable

Batches = list[list[tuple[Any, ...]]]


def run(rows: DataFrame, checkpoint: Path, *, fails_at: int | None = None) -> Batches:
    """Deliver what there is, batch by batch; one of them may fail after its work is done."""
    batches: Batches = []

    def take(batch: DataFrame, batch_id: int) -> None:
        batches.append(sorted(map(tuple, batch.collect())))
        if batch_id == fails_at:
            raise RuntimeError("killed")

    writer = rows.writeStream.foreachBatch(take).trigger(availableNow=True)
    query = writer.option("checkpointLocation", str(checkpoint)).start()
    try:
        query.awaitTermination()
    except StreamingQueryException:
        if fails_at is None:
            raise
    return batches


def offsets(checkpoint: Path) -> list[dict[str, Any]]:
    logs = sorted((checkpoint / "offsets").glob("[0-9]*"), key=lambda path: int(path.name))
    return [json.loads(path.read_text().splitlines()[2]) for path in logs]


def reader(spark: SparkSession, **options: object) -> Any:
    known = spark.readStream.format("delta")
    for name, value in options.items():
        known = known.option(name, str(value))
    return known


@pytest.mark.smoke
def test_batches_and_restarts(active: SparkSession, tmp_path: Path) -> None:
    """Killed at every boundary of a batch, before it is committed: each row comes as it did."""
    spark, path = active, str(tmp_path / "t")
    puredelta.write(spark.range(0, 6, 1, 3), path)
    puredelta.write(spark.range(6, 10, 1, 2), path, mode="append")
    rows = reader(spark, maxFilesPerTrigger=2).load(path)
    assert rows.isStreaming
    with pytest.raises(AnalysisException, match="writeStream"):
        rows.collect()
    seen: Batches = []
    for batch_id in range(2):
        found = run(rows, tmp_path / "c", fails_at=batch_id)
        assert found[:-1] == seen[-1:], "the batch that was not committed comes again"
        seen.append(found[-1])
    puredelta.write(spark.range(10, 11), path, mode="append")
    again = run(reader(spark, maxFilesPerTrigger=2).load(path), tmp_path / "c")
    assert again[0] == seen[-1]
    whole = [row[0] for batch in [*seen, *again[1:]] for row in batch]
    assert sorted(whole) == list(range(11))
    assert run(rows, tmp_path / "c") == []
    first = offsets(tmp_path / "c")[0]
    assert list(first) == [
        "sourceVersion",
        "reservoirId",
        "reservoirVersion",
        "index",
        "isStartingVersion",
    ]
    assert (first["reservoirVersion"], first["index"], first["isStartingVersion"]) == (1, 1, True)


@pytest.mark.thorough
def test_every_kind_of_table(active: SparkSession, tmp_path: Path) -> None:
    """What the Python data source refuses: mapping by id, char(n), partitions by timestamp."""
    spark, name = active, f"delta.`{tmp_path / 't'}`"
    spark.sql(
        f"CREATE TABLE {name} (id INT, c CHAR(3), at TIMESTAMP, s STRUCT<x: INT>) USING delta "
        "PARTITIONED BY (at) TBLPROPERTIES ('delta.columnMapping.mode' = 'id', "
        "'delta.enableDeletionVectors' = 'true', 'delta.enableTypeWidening' = 'true')"
    )
    spark.sql(
        f"INSERT INTO {name} SELECT id, 'a', TIMESTAMP '2026-01-01 00:00:00', struct(id) "
        "FROM (SELECT CAST(id AS INT) AS id FROM range(4))"
    )
    spark.sql(f"DELETE FROM {name} WHERE id = 1")
    spark.sql(f"ALTER TABLE {name} ALTER COLUMN id TYPE BIGINT")
    spark.sql(f"INSERT INTO {name} VALUES (5000000000, 'b', NULL, NULL)")
    rows = reader(spark, maxFilesPerTrigger=1).load(str(tmp_path / "t"))
    static = spark.range(3).withColumnRenamed("id", "wanted")
    joined = rows.join(static, rows.id == static.wanted, "left")
    columns = joined.selectExpr("id", "c", "CAST(at AS STRING)", "s.x", "wanted")
    found = [row for batch in run(columns, tmp_path / "c") for row in batch]
    when = "2026-01-01 00:00:00"
    assert sorted(found, key=str) == [
        (0, "a  ", when, 0, 0),
        (2, "a  ", when, 2, 2),
        (3, "a  ", when, 3, None),
        (5000000000, "b  ", None, None, None),
    ]


@pytest.mark.thorough
def test_a_merge_of_each_batch(active: SparkSession, tmp_path: Path) -> None:
    spark, source, target = active, str(tmp_path / "s"), str(tmp_path / "t")
    puredelta.write(spark.sql("SELECT id, id % 3 AS k, 1 AS n FROM range(0, 8, 1, 4)"), source)
    puredelta.write(spark.sql("SELECT 0L AS k, 0L AS n"), target)
    seen: list[int] = []

    def upsert(batch: DataFrame, batch_id: int) -> None:
        seen.append(batch_id)
        counts = batch.groupBy("k").agg(F.sum("n").alias("n"))
        session = batch.sparkSession
        session.conf.set("spark.databricks.delta.write.txnAppId", "counts")
        session.conf.set("spark.databricks.delta.write.txnVersion", str(batch_id))
        merge = DeltaTable.forPath(session, target).alias("t").merge(counts.alias("s"), "t.k = s.k")
        merge = merge.whenMatchedUpdate(set={"n": "t.n + s.n"})
        merge.whenNotMatchedInsertAll().execute()
        if seen == [0, 1]:
            raise RuntimeError("killed after the commit")

    def start() -> Any:
        rows = reader(spark, maxFilesPerTrigger=2).load(source)
        writer = rows.writeStream.foreachBatch(upsert).trigger(availableNow=True)
        return writer.option("checkpointLocation", str(tmp_path / "c")).start()

    with pytest.raises(StreamingQueryException, match="killed after the commit"):
        start().awaitTermination()
    start().awaitTermination()
    assert seen == [0, 1, 1]
    counts = {row.k: row.n for row in puredelta.read(spark, target).collect()}
    assert counts == {0: 3, 1: 3, 2: 2}


@pytest.mark.thorough
def test_state_names_and_errors(active: SparkSession, tmp_path: Path) -> None:
    """A count with state by name and by SQL; the error that ends a query has its class."""
    spark, path = active, str(tmp_path / "t")
    spark.sql(f"CREATE TABLE streamed USING delta LOCATION '{path}' AS SELECT id FROM range(5)")
    try:
        spark.readStream.table("streamed").createOrReplaceTempView("arriving")
        counts = spark.sql("SELECT id % 2 AS p, count(*) AS n FROM arriving GROUP BY 1")
        writer = counts.writeStream.format("memory").queryName("counted").outputMode("complete")
        query = writer.option("checkpointLocation", str(tmp_path / "c")).start()
        query.processAllAvailable()
        assert sorted(map(tuple, spark.table("counted").collect())) == [(0, 3), (1, 2)]
        assert query.lastProgress["sources"][0]["description"] == f"DeltaSource[file:{path}]"
        spark.sql("INSERT INTO streamed VALUES (7)")
        query.processAllAvailable()
        assert query.recentProgress[-1]["sources"][0]["numInputRows"] in {0, 1}
        assert sorted(map(tuple, spark.table("counted").collect())) == [(0, 3), (1, 3)]
        spark.sql("ALTER TABLE streamed ADD COLUMNS (more INT)")
        with pytest.raises(StreamingQueryException, match="DELTA_SCHEMA_CHANGED_WITH_VERSION"):
            query.processAllAvailable()
        assert "Traceback" not in str(query.exception()).split("InvalidRequestError")[1]
    finally:
        spark.sql("DROP TABLE IF EXISTS streamed")
        spark.catalog.dropTempView("arriving")
        spark.catalog.dropTempView("counted")


@pytest.mark.thorough
def test_many_queries_leave_nothing_behind(active: SparkSession, tmp_path: Path) -> None:
    """Queries of one frame and of many, side by side: threads of Python are not kept for each."""
    spark, path = active, str(tmp_path / "t")
    puredelta.write(spark.range(20), path)
    shared = reader(spark).load(path)

    def wave(number: int) -> None:
        queries = []
        for n in range(3):
            rows = shared if n % 2 else reader(spark).load(path)
            writer = rows.writeStream.format("noop").trigger(availableNow=True)
            checkpoint = tmp_path / f"c{number}-{n}"
            queries.append(writer.option("checkpointLocation", str(checkpoint)).start())
        for query in queries:
            query.awaitTermination()
            assert sum(p["numInputRows"] for p in query.recentProgress) == 20

    wave(0)
    wave(1)
    before = threading.active_count()
    wave(2)
    assert threading.active_count() <= before + 4, "those of the few callers"


@pytest.mark.thorough
def test_the_python_source_and_the_native_one_take_turns(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Offsets are the same, so a checkpoint of either is the other's."""
    path, checkpoint = str(tmp_path / "t"), tmp_path / "c"
    puredelta.write(spark.range(0, 4, 1, 2), path)
    found: list[Batches] = []
    for turn in range(3):
        if turn % 2:
            assert puredelta.activate(spark)
        try:
            rows = reader(spark, maxFilesPerTrigger=3).load(path)
            assert ("DeltaSource[" in _plan(rows)) == (turn % 2 == 1)
            found.append(run(rows, checkpoint))
        finally:
            puredelta.deactivate()
        low = 4 * (turn + 1)
        puredelta.write(spark.range(low, low + 4, 1, 4), path, mode="append")
    rows_seen = [row[0] for batches in found for batch in batches for row in batch]
    assert sorted(rows_seen) == list(range(12)), "each row once"
    assert offsets(checkpoint)[-1]["reservoirVersion"] == 3


def _plan(rows: DataFrame) -> str:
    return str(rows._jdf.queryExecution().analyzed().toString())


def test_a_stream_finds_days_that_the_old_calendar_lacks(
    active: SparkSession, tmp_path: Path
) -> None:
    spark, path = active, str(tmp_path / "t")
    days = spark.range(0, 16, 1, 1).selectExpr("id", "DATE'1582-10-01' + CAST(id AS INT) AS d")
    puredelta.write(days, path)
    wanted = reader(spark).load(path).where("d > DATE'1582-10-10' AND d <= DATE'1582-10-14'")
    assert run(wanted.select("id"), tmp_path / "c") == [[(10,), (11,), (12,), (13,)]]
