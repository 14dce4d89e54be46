"""Tables in an object store, through a stock PySpark: no JAR, no Hadoop file system for ``s3a``.

The server is moto, or what is installed beside it; credentials are Hadoop's settings of the
session.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

import puredelta
from puredelta.spark.session.data_access import DataIo, data_io
from puredelta.spark.session.storage import open_log
from puredelta.spark.write.parquet_job import temporary_settings
from puredelta.store.base import Store
from puredelta.tables import DeltaTable
from tests.servers import s3
from tests.servers.proxy import Proxy

UNSAFE_VACUUM = "spark.databricks.delta.retentionDurationCheck.enabled"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    name = next((name for name in ("versitygw", "moto") if s3.is_installed(name)), None)
    if name is None:
        pytest.skip("no S3 server is installed: pip install 'moto[server]'")
    with s3.s3_server(name, tmp_path_factory.mktemp("s3")) as endpoint, Proxy(endpoint) as proxy:
        yield proxy


@pytest.fixture
def requests(spark: SparkSession, server: Proxy) -> Iterator[list[Any]]:
    """The session's settings point to the server; the requests it gets."""
    server.requests.clear()
    with temporary_settings(spark, s3.settings(server.endpoint)):
        yield server.requests


@pytest.fixture
def path(requests: list[Any], tmp_path: Path) -> str:
    return f"s3a://{s3.BUCKET}/{tmp_path.name}"


def store_at(spark: SparkSession, path: str) -> Store:
    return open_log(spark, path).store


def data_names(spark: SparkSession, path: str) -> set[str]:
    return {file.path for file in store_at(spark, path).walk("") if "_delta_log" not in file.path}


def ids(spark: SparkSession, path: str) -> list[int]:
    return sorted(row[0] for row in puredelta.read(spark, path).select("id").collect())


def test_spark_has_no_way_of_its_own(spark: SparkSession) -> None:
    assert data_io(spark, [f"s3a://{s3.BUCKET}/t"]) is DataIo.ARROW


def test_a_table_lives_in_a_bucket(spark: SparkSession, path: str) -> None:
    rows = spark.sql("SELECT id, id % 3 p, concat('v', id) v FROM range(100)")
    puredelta.write(rows, path, partition_by=["p"])
    table = DeltaTable.forPath(spark, path)
    source = spark.sql("SELECT id, 7 p, 'new' v FROM range(95, 105)").alias("s")
    merge = table.alias("t").merge(source, "t.id = s.id")
    merge.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
    table.update("id = 50", {"v": "'changed'"})
    table.delete("id < 10")
    assert ids(spark, path) == list(range(10, 105))
    assert table.toDF().where("v = 'new'").count() == 10
    before = data_names(spark, path)
    table.optimize().executeCompaction()
    assert data_names(spark, path) > before
    with temporary_settings(spark, {UNSAFE_VACUUM: "false"}):
        table.vacuum(0)
    live = {add.path for add in open_log(spark, path).snapshot().files.adds()}
    assert len(data_names(spark, path)) == len(live) == 4
    assert ids(spark, path) == list(range(10, 105))


@pytest.mark.thorough
def test_deletion_vectors_and_changes(spark: SparkSession, path: str) -> None:
    puredelta.write(spark.range(50).coalesce(1), path)
    for name in ("enableDeletionVectors", "enableChangeDataFeed"):
        puredelta.sql(
            spark, f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES ('delta.{name}' = 'true')"
        )
    table = DeltaTable.forPath(spark, path)
    table.delete("id % 10 = 3")
    source = spark.range(48, 52).alias("s")
    merge = table.alias("t").merge(source, "t.id = s.id")
    merge.whenMatchedDelete().whenNotMatchedInsertAll().execute()
    assert ids(spark, path) == [*(n for n in range(48) if n % 10 != 3), 50, 51]
    changes = puredelta.read_changes(spark, path, starting_version=3)
    counts = {row[0]: row[1] for row in changes.groupBy("_change_type").count().collect()}
    assert counts == {"delete": 7, "insert": 2}


@pytest.mark.thorough
def test_versions_and_clones(spark: SparkSession, path: str, tmp_path: Path) -> None:
    puredelta.write(spark.range(3), path)
    puredelta.write(spark.range(3, 5), path, mode="append")
    assert puredelta.read(spark, path, version=0).count() == 3
    puredelta.sql(spark, f"CREATE TABLE delta.`{path}-c` SHALLOW CLONE delta.`{path}`")
    assert ids(spark, f"{path}-c") == [0, 1, 2, 3, 4]
    local = tmp_path / "c"
    puredelta.sql(spark, f"CREATE TABLE delta.`{local}` SHALLOW CLONE delta.`{path}`")
    DeltaTable.forPath(spark, path).restoreToVersion(0)
    assert ids(spark, path) == [0, 1, 2]


def test_plain_parquet_is_converted(spark: SparkSession, path: str) -> None:
    store = store_at(spark, path)
    for n in range(3):
        out = pa.BufferOutputStream()
        pq.write_table(pa.table({"id": [n, n + 10]}), out)
        store.put(f"p={n}/x.parquet", out.getvalue().to_pybytes())
    DeltaTable.convertToDelta(spark, f"parquet.`{path}`", "p INT")
    assert ids(spark, path) == [0, 1, 2, 10, 11, 12]


def test_a_table_is_opened_and_read_in_few_requests(
    spark: SparkSession, path: str, requests: list[Any]
) -> None:
    puredelta.write(spark.range(1000).coalesce(1), path)
    requests.clear()
    assert puredelta.read(spark, path).count() == 1000
    of_data = [one for one in requests if ".parquet" in one.path]
    assert [one.verb for one in of_data] == ["GET"]  # footer and rows at once, and no HEAD
    requests.clear()
    puredelta.write(spark.range(1000).coalesce(1), path, mode="append")
    assert [one.verb for one in requests if ".parquet" in one.path] == ["PUT"]


@pytest.mark.thorough
def test_a_query_reads_its_columns_of_its_files(
    spark: SparkSession, path: str, server: Proxy, requests: list[Any]
) -> None:
    """Four files of 1 MB that hardly compresses, and a column of numbers."""
    payload = "array_join(transform(sequence(1, 32), k -> sha2(concat(id, '-', k), 512)), '')"
    rows = spark.range(0, 1000, 1, 4).selectExpr("id", f"{payload} AS payload")
    puredelta.write(rows, path)
    size_bytes = sum(f.size_bytes for f in open_log(spark, path).snapshot().files.adds())
    assert size_bytes > 2_000_000

    def asked(rows: DataFrame) -> tuple[list[Any], int, int]:
        requests.clear()
        server.answered_bytes = 0
        found = rows.collect()
        files = {one.path.partition("?")[0] for one in requests if ".parquet" in one.path}
        return [tuple(row) for row in found], len(files), server.answered_bytes

    table = puredelta.read(spark, path)
    found, num_files, num_bytes = asked(table.selectExpr("sum(id)"))
    assert (found, num_files) == ([(499_500,)], 4)
    assert num_bytes < size_bytes / 4
    found, num_files, num_bytes = asked(table.where("id < 10").selectExpr("count(*)"))
    assert (found, num_files) == ([(10,)], 1)
    assert num_bytes < size_bytes / 16
    (row,), num_files, _ = asked(table.where("id = 999"))
    assert (row[0], len(row[1]), num_files) == (999, 4096, 1)
    with_text = puredelta.sql(spark, f"SELECT max(id) FROM delta.`{path}` WHERE id > 990")
    assert asked(with_text)[:2] == ([(999,)], 1)


@pytest.mark.thorough
@pytest.mark.parametrize("num_touched", [1, 3])
def test_an_upsert_takes_as_many_requests_as_it_touches_files(
    spark: SparkSession, path: str, requests: list[Any], num_touched: int
) -> None:
    puredelta.write(spark.range(0, 40_000, 1, 8).selectExpr("id", "'old' v"), path)
    table = DeltaTable.forPath(spark, path)
    ids = [n * 10_000 for n in range(num_touched)]
    source = spark.createDataFrame([(n, "new") for n in ids], "id LONG, v STRING").coalesce(1)
    merge = table.alias("t").merge(source.alias("s"), "t.id = s.id")
    requests.clear()
    merge.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
    of_data = [one.verb for one in requests if ".parquet" in one.path and "staging" not in one.path]
    assert of_data.count("GET") <= 5 * num_touched  # keys, then rows; footers come with either
    assert of_data.count("PUT") <= num_touched + 1
    assert set(of_data) == {"GET", "PUT"}  # no HEAD: sizes are in the log
    assert len([one for one in requests if one.verb == "PUT" and "_delta_log" in one.path]) == 1
    assert table.toDF().where("v = 'new'").count() == num_touched


def test_a_job_that_fails_leaves_nothing(spark: SparkSession, path: str) -> None:
    puredelta.write(spark.range(3), path)
    before = data_names(spark, path)
    bad = spark.sql("SELECT if(id = 90, raise_error('no'), id) id FROM range(0, 100, 1, 4)")
    with pytest.raises(PySparkException, match="no"):
        puredelta.write(bad, path, mode="append")
    assert data_names(spark, path) == before


def test_a_lost_object_is_named(spark: SparkSession, path: str) -> None:
    puredelta.write(spark.range(3).coalesce(1), path)
    (name,) = data_names(spark, path)
    rows = puredelta.read(spark, path)
    store_at(spark, path).delete(name)
    with pytest.raises(PySparkException, match=name) as failure:
        rows.collect()
    assert s3.SECRET not in str(failure.value)


def test_plans_show_no_secret(spark: SparkSession, path: str) -> None:
    puredelta.write(spark.range(3), path)
    plan = puredelta.read(spark, path)._jdf.queryExecution().toString()
    assert "by Arrow in Python workers" in plan
    assert s3.SECRET not in plan


def test_delta_rs_reads_what_is_there(spark: SparkSession, server: Proxy, path: str) -> None:
    deltalake = pytest.importorskip("deltalake")
    puredelta.write(spark.sql("SELECT id, id % 2 p FROM range(9)"), path, partition_by=["p"])
    options = {
        "AWS_ENDPOINT_URL": server.endpoint,
        "AWS_ALLOW_HTTP": "true",
        "AWS_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": s3.KEY,
        "AWS_SECRET_ACCESS_KEY": s3.SECRET,
    }
    found = deltalake.DeltaTable(path.replace("s3a:", "s3:"), storage_options=options)
    rows = found.to_pyarrow_table().to_pylist()
    assert sorted(row["id"] for row in rows) == list(range(9))


@pytest.mark.thorough
def test_streams_and_plain_readers_take_the_settings_as_options(
    spark: SparkSession, server: Proxy, path: str, tmp_path: Path
) -> None:
    """They run where no session is in reach."""
    puredelta.write(spark.range(20).coalesce(1), path)
    puredelta.sql(
        spark,
        f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')",
    )
    DeltaTable.forPath(spark, path).delete("id < 5")
    options = s3.settings(server.endpoint)
    assert spark.read.format("delta").options(**options).load(path).count() == 15
    stream = spark.readStream.format("delta").options(**options).load(path).writeStream
    stream = stream.format("parquet").option("checkpointLocation", str(tmp_path / "state"))
    query = stream.trigger(availableNow=True).start(str(tmp_path / "out"))
    assert query.awaitTermination(120)
    assert spark.read.parquet(str(tmp_path / "out")).count() == 15
