"""Streams that follow renamed, dropped and wider columns by a log of schemas."""

from __future__ import annotations

import shutil
import threading
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

import puredelta
from puredelta.errors import DeltaError, ErrorCode
from puredelta.spark.jvm.streams import require_under
from puredelta.tables import DeltaTable

Batches = list[tuple[tuple[str, ...], list[tuple[Any, ...]]]]


def followed(spark: SparkSession, path: str, checkpoint: Path, **options: str) -> DataFrame:
    reader = spark.readStream.format("delta").options(**options)
    return reader.option("schemaTrackingLocation", str(checkpoint)).load(path)


def run(rows: DataFrame, checkpoint: Path) -> tuple[Batches, str]:
    """Deliver what there is; return the batches with rows, and why the query ended."""
    batches: Batches = []

    def take(batch: DataFrame, _: int) -> None:
        if found := sorted(map(tuple, batch.collect()), key=str):
            batches.append((tuple(batch.columns), found))

    writer = rows.writeStream.foreachBatch(take).trigger(availableNow=True)
    query = writer.option("checkpointLocation", str(checkpoint)).start()
    try:
        query.awaitTermination()
    except StreamingQueryException as error:
        return batches, str(error)
    return batches, ""


@pytest.fixture
def table(active: SparkSession, tmp_path: Path) -> str:
    path = str(tmp_path / "t")
    active.sql(
        f"CREATE TABLE delta.`{path}` (id INT, v STRING) USING delta TBLPROPERTIES "
        "('delta.columnMapping.mode' = 'name', 'delta.enableTypeWidening' = 'true', "
        "'delta.enableChangeDataFeed' = 'true')"
    )
    active.sql(f"INSERT INTO delta.`{path}` VALUES (1, 'a')")
    return path


@pytest.mark.smoke
def test_rename_drop_and_widening(active: SparkSession, tmp_path: Path, table: str) -> None:
    spark, name, checkpoint = active, f"delta.`{table}`", tmp_path / "c"
    assert run(followed(spark, table, checkpoint), checkpoint) == (
        [(("id", "v"), [(1, "a")])],
        "",
    )
    spark.sql(f"INSERT INTO {name} VALUES (2, 'b')")
    spark.sql(f"ALTER TABLE {name} RENAME COLUMN v TO w")
    spark.sql(f"ALTER TABLE {name} ALTER COLUMN id TYPE BIGINT")
    spark.sql(f"INSERT INTO {name} VALUES ({1 << 40}, 'c')")
    rows = followed(spark, table, checkpoint)
    found, why = run(rows, checkpoint)
    assert found == [(("id", "v"), [(2, "b")])]
    assert "DELTA_STREAMING_METADATA_EVOLUTION" in why
    assert "DELTA_STREAMING_SCHEMA_MISMATCH_ON_RESTART" in run(rows, checkpoint)[1]
    blocked = run(followed(spark, table, checkpoint), checkpoint)[1]
    assert "DELTA_STREAMING_CANNOT_CONTINUE_PROCESSING_POST_SCHEMA_EVOLUTION" in blocked
    assert "RENAME AND TYPE WIDENING" in blocked
    spark.sql(f"ALTER TABLE {name} DROP COLUMN w")
    spark.sql(f"INSERT INTO {name} VALUES (4)")
    key = "spark.databricks.delta.streaming.allowSourceColumnTypeChange"
    spark.conf.set(key, "always")
    try:
        allowed = followed(spark, table, checkpoint, allowSourceColumnRename="always")
        found, why = run(allowed, checkpoint)
    finally:
        spark.conf.unset(key)
    assert found == [(("id", "w"), [(1 << 40, "c")])]
    assert "METADATA_EVOLUTION" in why
    allowed = followed(spark, table, checkpoint, allowSourceColumnDrop="always")
    assert run(allowed, checkpoint) == ([(("id",), [(4,)])], "")


@pytest.mark.thorough
def test_changes_of_rows(active: SparkSession, tmp_path: Path, table: str) -> None:
    """The change data feed, from the first version on: each version in its own columns."""
    spark, name, checkpoint = active, f"delta.`{table}`", tmp_path / "c"
    spark.sql(f"UPDATE {name} SET v = 'z'")
    spark.sql(f"ALTER TABLE {name} RENAME COLUMN v TO w")
    spark.sql(f"DELETE FROM {name}")
    given = {"readChangeFeed": "true", "startingVersion": "0", "allowSourceColumnRename": "always"}
    seen: list[tuple[Any, ...]] = []
    for ending in ("METADATA_EVOLUTION", "METADATA_EVOLUTION", ""):
        found, why = run(followed(spark, table, checkpoint, **given), checkpoint)
        assert ending in why
        seen += [(columns[1], *row[1:4]) for columns, rows in found for row in rows]
        if not ending:
            assert not why
    assert sorted(seen) == [
        ("v", "a", "insert", 1),
        ("v", "a", "update_preimage", 2),
        ("v", "z", "update_postimage", 2),
        ("w", "z", "delete", 4),
    ]


@pytest.mark.thorough
def test_a_merge_of_each_batch_by_a_query_that_waits(
    active: SparkSession, tmp_path: Path, table: str
) -> None:
    """The target evolves with the source; the query ends by itself when the change has come."""
    spark, name, checkpoint = active, f"delta.`{table}`", tmp_path / "c"
    target = str(tmp_path / "target")
    puredelta.write(spark.createDataFrame([], "id INT, v STRING"), target)

    def merge(batch: DataFrame, _: int) -> None:
        into = DeltaTable.forPath(spark, target).alias("t")
        clauses = into.merge(batch.alias("s"), "t.id = s.id").withSchemaEvolution()
        clauses.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()

    def start() -> Any:
        writer = followed(spark, table, checkpoint).writeStream.foreachBatch(merge)
        return writer.option("checkpointLocation", str(checkpoint)).start()

    query = start()
    query.processAllAvailable()
    spark.sql(f"ALTER TABLE {name} ADD COLUMN n INT")
    spark.sql(f"INSERT INTO {name} VALUES (2, 'b', 3)")
    with pytest.raises(StreamingQueryException, match="METADATA_EVOLUTION"):
        query.awaitTermination(60)
    query = start()
    query.processAllAvailable()
    query.stop()
    merged = sorted(map(tuple, spark.read.format("delta").load(target).collect()))
    assert merged == [(1, "a", None), (2, "b", 3)]


@pytest.mark.thorough
def test_where_a_log_may_be(active: SparkSession, tmp_path: Path, table: str) -> None:
    spark, checkpoint, elsewhere = active, tmp_path / "c ü%20", tmp_path / "elsewhere"
    outside = "DELTA_STREAMING_SCHEMA_LOCATION_NOT_UNDER_CHECKPOINT"
    for place in (elsewhere, tmp_path / "c ü%20-2", checkpoint / ".." / "elsewhere"):
        assert outside in run(followed(spark, table, place), checkpoint)[1]
    assert not elsewhere.exists(), "nothing was written"
    with pytest.raises(DeltaError, match=outside):
        require_under(spark, "nowhere://a/b", "file:/c")
    require_under(spark, "file:///c/d", "file:/c/")
    assert run(followed(spark, table, checkpoint), checkpoint)[1] == ""
    key = "spark.databricks.delta.streaming.allowSchemaLocationOutsideCheckpointLocation"
    spark.conf.set(key, "true")
    try:
        assert run(followed(spark, table, elsewhere), tmp_path / "d")[1] == ""
    finally:
        spark.conf.unset(key)
    assert len(list(elsewhere.glob("_schema_log_*/0"))) == 1


@pytest.mark.thorough
def test_two_streams_over_one_table(active: SparkSession, tmp_path: Path, table: str) -> None:
    spark, conflict = active, "DELTA_STREAMING_SCHEMA_LOCATION_CONFLICT"
    checkpoint = tmp_path / "c"
    pair = [followed(spark, table, checkpoint) for _ in range(2)]
    assert conflict in run(pair[0].union(pair[1]), checkpoint)[1]
    assert not list(checkpoint.glob("_schema_log_*")), "nothing was written"
    ids = [followed(spark, table, checkpoint, streamingSourceTrackingId=i) for i in "ab"]
    static = spark.createDataFrame([(9, "s")], "id INT, v STRING")
    both = ids[0].join(static, "id", "left_anti").union(ids[1])
    found, why = run(both, checkpoint)
    assert (found, why) == ([(("id", "v"), [(1, "a"), (1, "a")])], "")
    entries = sorted(path.parent.name[-2:] for path in checkpoint.glob("_schema_log_*/0"))
    assert entries == ["_a", "_b"]
    paths = [
        path.read_text().partition('"sourceMetadataPath":"')[2].partition('"')[0]
        for path in sorted(checkpoint.glob("_schema_log_*/0"))
    ]
    assert [path[-10:] for path in paths] == ["/sources/0", "/sources/1"]
    swapped = ids[1].union(ids[0])
    assert conflict in run(swapped, checkpoint)[1]


def test_one_frame_in_two_queries(active: SparkSession, tmp_path: Path, table: str) -> None:
    """They would share one log: the second one ends, and the first one may go on."""
    checkpoint, runs, waits = tmp_path / "c", threading.Event(), threading.Event()
    rows = followed(active, table, checkpoint)

    def take(_: DataFrame, __: int) -> None:
        runs.set()
        waits.wait(60)

    writer = rows.writeStream.foreachBatch(take).option("checkpointLocation", str(checkpoint))
    query = writer.start()
    assert runs.wait(60)
    try:
        why = run(rows, checkpoint / "inside")[1]
        assert "DELTA_STREAMING_SCHEMA_LOCATION" in why
        waits.set()
        query.processAllAvailable()
    finally:
        waits.set()
        query.stop()


def test_a_damaged_log_is_told_when_the_stream_is_made(
    active: SparkSession, tmp_path: Path, table: str
) -> None:
    checkpoint = tmp_path / "c"
    run(followed(active, table, checkpoint), checkpoint)
    [entry] = checkpoint.glob("_schema_log_*/0")
    entry.write_text("")
    with pytest.raises(DeltaError) as told:
        followed(active, table, checkpoint)
    assert told.value.code is ErrorCode.STREAMING_SCHEMA_LOG_DESERIALIZE_FAILED


@pytest.mark.thorough
def test_a_table_that_was_made_anew(active: SparkSession, tmp_path: Path, table: str) -> None:
    """Its checkpoint is that of another table, and no log of schemas begins."""
    checkpoint = tmp_path / "c"
    assert run(followed(active, table, checkpoint), checkpoint)[1] == ""
    shutil.rmtree(table)
    puredelta.write(active.range(3), table)
    why = run(followed(active, table, checkpoint), checkpoint)[1]
    assert "DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE" in why
    assert len(list(checkpoint.glob("_schema_log_*"))) == 1


def test_without_the_log_again(active: SparkSession, tmp_path: Path, table: str) -> None:
    """A checkpoint that stands at a change goes on without a log, in the columns of now."""
    name, checkpoint = f"delta.`{table}`", tmp_path / "c"
    assert run(followed(active, table, checkpoint), checkpoint)[1] == ""
    active.sql(f"ALTER TABLE {name} ADD COLUMN n INT")
    active.sql(f"INSERT INTO {name} VALUES (2, 'b', 3)")
    assert "METADATA_EVOLUTION" in run(followed(active, table, checkpoint), checkpoint)[1]
    plain = active.readStream.format("delta").load(table)
    assert run(plain, checkpoint) == ([(("id", "v", "n"), [(2, "b", 3)])], "")


@pytest.mark.thorough
def test_the_python_source_keeps_no_log(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    puredelta.write(spark.range(3), path)
    found, why = run(followed(spark, path, tmp_path / "c"), tmp_path / "c")
    assert not found
    assert "schemaTrackingLocation is not supported" in why
