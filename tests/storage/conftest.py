"""Servers, and places of tables in them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from pyspark.sql import SparkSession

from puredelta.spark.jvm.hadoop import has_file_system
from puredelta.spark.session.storage import open_log
from puredelta.spark.write.parquet_job import temporary_settings
from tests.servers import hdfs, s3

_numbers = itertools.count()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(__file__.rpartition("/")[0]):
            item.add_marker(pytest.mark.storage)


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A directory of a server, by the URI that users write."""

    spark: SparkSession
    uri: str

    def new(self, name: str = "t") -> str:
        return f"{self.uri}/{name} {next(_numbers)}%20é"

    def files(self, location: str) -> set[str]:
        return {f.path for f in open_log(self.spark, location).store.walk("")}


@pytest.fixture(scope="session")
def hdfs_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[hdfs.Hdfs]:
    if hdfs.minicluster() is None:
        pytest.skip("SERVERS_JARS has no hadoop-client-minicluster: run scripts/servers")
    with hdfs.hdfs(tmp_path_factory.mktemp("hdfs")) as started:
        yield started


@pytest.fixture(scope="session")
def hdfs_uri(hdfs_server: hdfs.Hdfs) -> str:
    return hdfs_server.uri


@pytest.fixture(scope="session")
def s3_endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    name = next((name for name in ("versitygw", "minio", "moto") if s3.is_installed(name)), None)
    if name is None:
        pytest.skip("no S3 server is installed: run scripts/servers, or pip install moto[server]")
    with s3.s3_server(name, tmp_path_factory.mktemp("s3")) as endpoint:
        yield endpoint


@pytest.fixture(params=["hdfs", "s3a", "s3"])
def place(request: pytest.FixtureRequest, spark: SparkSession) -> Iterator[Place]:
    if request.param == "hdfs":
        uri = f"{request.getfixturevalue('hdfs_uri')}/tables"
        settings = {"dfs.replication": "1"}
    else:
        if request.param == "s3a" and not has_file_system(spark, "s3a"):
            pytest.skip("the session has no hadoop-aws: see tests/servers/s3a.py")
        uri = f"s3a://{s3.BUCKET}/{request.param}"
        way = "spark" if request.param == "s3a" else "arrow"
        endpoint = request.getfixturevalue("s3_endpoint")
        settings = {**s3.settings(endpoint), "spark.puredelta.io": way}
    with temporary_settings(spark, settings):
        yield Place(spark=spark, uri=uri)
