"""Every command once, on tables that are not on the driver's disk."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

import puredelta
from puredelta.errors import UnsupportedError
from puredelta.spark.jvm.hadoop import HadoopFiles, has_file_system
from puredelta.spark.session.storage import open_log, session_storage
from puredelta.spark.write.parquet_job import temporary_settings
from puredelta.tables import DeltaTable
from tests.servers import hdfs, s3
from tests.storage.conftest import Place


def _sum(spark: SparkSession, location: str) -> tuple[int, int]:
    row = puredelta.read(spark, location).selectExpr("count(*)", "sum(p)").first()
    assert row is not None
    return row[0], row[1]


def test_rows_change(spark: SparkSession, place: Place) -> None:
    t = place.new()
    rows = "id", "id % 3 AS p"
    puredelta.write(spark.range(100).selectExpr(*rows), t, partition_by=["p"])
    assert _sum(spark, t) == (100, 99)
    source = spark.range(90, 120).selectExpr("id", "id % 3 + 10 AS p").alias("s")
    merge = DeltaTable.forPath(spark, t).alias("t").merge(source, "t.id = s.id")
    counts = merge.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute().first()
    assert counts is not None
    assert (counts.num_updated_rows, counts.num_inserted_rows) == (10, 20)
    assert _sum(spark, t)[0] == 120
    puredelta.sql(spark, f"DELETE FROM delta.`{t}` WHERE id % 2 = 0")
    puredelta.sql(spark, f"UPDATE delta.`{t}` SET p = 0 WHERE id < 50")
    assert _sum(spark, t)[0] == 60
    log = puredelta.sql(spark, f"DESCRIBE HISTORY delta.`{t}`").collect()
    assert [e.operation for e in log] == ["UPDATE", "DELETE", "MERGE", "WRITE"]


def test_deletion_vectors_and_changes(spark: SparkSession, place: Place) -> None:
    t = place.new()
    properties = {"delta.enableDeletionVectors": "true", "delta.enableChangeDataFeed": "true"}
    puredelta.write(spark.range(100).selectExpr("id", "1 AS p"), t, properties=properties)
    puredelta.sql(spark, f"DELETE FROM delta.`{t}` WHERE id < 10")
    puredelta.sql(
        spark,
        f"MERGE INTO delta.`{t}` t USING (SELECT 50L AS id) s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET p = 5",
    )
    assert _sum(spark, t) == (90, 94)
    assert any("deletion_vector" in path for path in place.files(t))
    changes = puredelta.read_changes(spark, t, starting_version=1)
    assert changes.filter("_change_type = 'delete'").count() == 10
    assert changes.count() == 12


def test_files_are_compacted_cleaned_and_brought_back(spark: SparkSession, place: Place) -> None:
    t, other = place.new(), place.new("clone")
    for first in (0, 10):
        puredelta.write(spark.range(first, first + 10).selectExpr("id", "1 AS p"), t, mode="append")
    puredelta.sql(spark, f"OPTIMIZE delta.`{t}`")
    before = place.files(t)
    with pytest.MonkeyPatch.context():
        spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
        puredelta.sql(spark, f"CREATE TABLE delta.`{other}` SHALLOW CLONE delta.`{t}`")
        assert _sum(spark, other) == (20, 20)
        puredelta.sql(spark, f"RESTORE delta.`{t}` TO VERSION AS OF 1")
        puredelta.sql(spark, f"DELETE FROM delta.`{other}` WHERE id = 0")
        assert _sum(spark, other) == (19, 19)
        puredelta.sql(spark, f"VACUUM delta.`{t}` RETAIN 0 HOURS")
        spark.conf.unset("spark.databricks.delta.retentionDurationCheck.enabled")
    assert {p for p in before if p.endswith(".parquet")} > {
        p for p in place.files(t) if p.endswith(".parquet")
    }
    assert _sum(spark, t) == (20, 20)


def test_a_directory_is_converted(spark: SparkSession, place: Place, tmp_path: Path) -> None:
    t = place.new()
    plain = tmp_path / "plain"
    spark.range(20).selectExpr("id", "id % 4 AS p").write.partitionBy("p").parquet(str(plain))
    for file in plain.rglob("*.parquet"):
        open_log(spark, t).store.put(file.relative_to(plain).as_posix(), file.read_bytes())
    puredelta.sql(spark, f"CONVERT TO DELTA parquet.`{t}` PARTITIONED BY (p BIGINT)")
    assert _sum(spark, t) == (20, 30)
    assert puredelta.read(spark, t).filter("p = 1").count() == 5


def test_versions_and_streams(spark: SparkSession, place: Place, tmp_path: Path) -> None:
    source, target = place.new(), place.new("streamed")
    for first, mode in ((0, "error"), (5, "append")):
        puredelta.write(spark.range(first, first + 5), source, mode=mode)
    assert puredelta.read(spark, source, version=0).count() == 5
    puredelta.activate(spark)
    try:
        old = spark.read.format("delta").option("versionAsOf", 0).load(source)
        assert (old.count(), spark.read.format("delta").load(source).count()) == (5, 10)
        rows = spark.readStream.format("delta").load(source)
        _streamed(rows, target, tmp_path / "c")
        puredelta.write(spark.range(10, 11), source, mode="append")
        _streamed(rows, target, tmp_path / "c")
        assert _numbers(spark, target) == list(range(11))
    finally:
        puredelta.deactivate()


def test_a_write_that_fails_leaves_nothing(spark: SparkSession, place: Place) -> None:
    t = place.new()
    puredelta.write(spark.range(4).selectExpr("id", "1 AS p"), t)
    before = place.files(t)
    with pytest.raises(Exception, match="boom"):
        puredelta.write(
            spark.range(4).selectExpr("id", "if(id = 3, raise_error('boom'), 1) AS p"),
            t,
            mode="append",
        )
    assert place.files(t) == before


def test_a_vacuum_removes_what_stands_for_directories(
    spark: SparkSession, s3_endpoint: str
) -> None:
    """A writer through s3a that is killed leaves objects whose names end with a slash."""
    if not has_file_system(spark, "s3a"):
        pytest.skip("the session has no hadoop-aws: see tests/servers/s3a.py")
    t, job = f"s3a://{s3.BUCKET}/killed", "job-20250131-120000-0123456789ab"
    settings = s3.settings(s3_endpoint) | {
        "spark.databricks.delta.retentionDurationCheck.enabled": "false"
    }
    with temporary_settings(spark, settings):
        puredelta.write(spark.range(4), t)
        for directory in (f"{job}/_temporary/0", "empty", "full/inner"):
            HadoopFiles(spark, f"{t}/{directory}").make_directories("")
        store = open_log(spark, t).store
        store.put(f"{job}/_temporary/0/part-0.parquet", b"1")
        store.put("full/_hidden", b"1")
        puredelta.sql(spark, f"VACUUM delta.`{t}` RETAIN 0 HOURS")
        left = {file.path for file in store.walk("") if "_delta_log" not in file.path}
        assert {path for path in left if not path.endswith(".parquet")} == {"full/_hidden"}
        assert puredelta.read(spark, t).count() == 4


def test_a_path_without_a_scheme_is_one_of_the_default_file_system(
    spark: SparkSession, hdfs_uri: str
) -> None:
    other = spark.newSession()
    other.conf.set("fs.defaultFS", hdfs_uri)
    other.conf.set("dfs.replication", "1")
    puredelta.write(other.range(3), "/default/t")
    puredelta.write(other.range(2), "relative/t")
    assert puredelta.read(spark, f"{hdfs_uri}/default/t").count() == 3
    location = DeltaTable.forPath(other, "relative/t").detail().first()
    assert location is not None
    assert location.location.startswith(f"{hdfs_uri}/user/")


def test_storage_that_no_client_is_there_for(spark: SparkSession) -> None:
    with pytest.raises(UnsupportedError, match="'oss' storage"):
        puredelta.read(spark, "oss://bucket/t")


def test_a_stream_reads_a_bucket_and_shows_no_secret(
    spark: SparkSession, s3_endpoint: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = s3.settings(s3_endpoint) | {"fs.s3a.secret.key": "top-secret-value"}
    place = f"s3://{s3.BUCKET}/stream"
    with temporary_settings(spark, s3.settings(s3_endpoint)):
        puredelta.write(spark.range(5), place)
        puredelta.activate(spark)
        try:
            rows = spark.readStream.format("delta").load(place)
            writer = rows.writeStream.format("delta").trigger(availableNow=True)
            query = writer.option("checkpointLocation", str(tmp_path / "c")).start(
                str(tmp_path / "t")
            )
            query.processAllAvailable()
            shown = json.dumps(query.lastProgress, default=str)
            query.explain(extended=True)
            query.stop()
        finally:
            puredelta.deactivate()
    assert puredelta.read(spark, str(tmp_path / "t")).count() == 5
    assert s3.SECRET not in shown + capsys.readouterr().out
    assert "top-secret-value" not in repr(session_storage(spark).with_options(settings))


def _streamed(rows: DataFrame, target: str, checkpoint: Path) -> None:
    """Write what a stream has by now into a table."""
    writer = rows.writeStream.format("delta").trigger(availableNow=True)
    query = writer.option("checkpointLocation", str(checkpoint)).start(target)
    query.processAllAvailable()
    query.stop()


@pytest.mark.parametrize("names_hdfs", [True, False])
def test_a_stream_reads_and_writes_hdfs(
    spark: SparkSession, hdfs_server: hdfs.Hdfs, tmp_path: Path, names_hdfs: bool
) -> None:
    own = spark.newSession()
    for key, value in {**hdfs_server.settings, "fs.defaultFS": hdfs_server.uri}.items():
        own.conf.set(key, value)
    start = hdfs_server.uri if names_hdfs else ""
    source, target = (f"{start}/streams/{tmp_path.name} {end}" for end in ("a", "b%20c"))
    properties = {"delta.enableChangeDataFeed": "true", "delta.enableDeletionVectors": "true"}
    puredelta.write(own.range(50), source, properties=properties)
    puredelta.activate(own)
    try:
        rows = own.readStream.format("delta").load(source)
        _streamed(rows, target, tmp_path / "c")
        assert _numbers(own, target) == list(range(50))
        puredelta.write(own.range(50, 60), source, mode="append")
        _streamed(rows, target, tmp_path / "c")
        assert _numbers(own, target) == list(range(60))
        puredelta.sql(own, f"DELETE FROM delta.`{source}` WHERE id < 3")
        feed = own.readStream.format("delta").option("readChangeFeed", "true")
        changes = feed.option("startingVersion", "2").load(source)
        deleted = changes.where("_change_type = 'delete'")
        _streamed(deleted, f"file:{tmp_path}/d", tmp_path / "e")
        assert _numbers(own, f"file:{tmp_path}/d") == [0, 1, 2]
    finally:
        puredelta.deactivate()


def test_a_session_that_is_not_activated_reads_hdfs(
    spark: SparkSession, hdfs_server: hdfs.Hdfs
) -> None:
    location = f"{hdfs_server.uri}/plain/t 1%20"
    with temporary_settings(spark, hdfs_server.settings):
        puredelta.write(spark.range(20).selectExpr("id", "id % 2 p"), location, partition_by=["p"])
    web = hdfs_server.settings[hdfs.WEB_ADDRESS]
    reader = spark.read.format("delta").option(hdfs.WEB_ADDRESS, web)
    assert reader.load(location).where("p = 1").count() == 10
    port, web_port = (uri.rpartition(":")[2] for uri in (hdfs_server.uri, web))
    by_http = location.replace("hdfs:", "webhdfs:").replace(f":{port}/", f":{web_port}/")
    assert spark.read.format("delta").load(by_http).count() == 20


def _numbers(spark: SparkSession, location: str) -> list[int]:
    return sorted(row.id for row in puredelta.read(spark, location).collect())
