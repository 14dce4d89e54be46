"""A sample of the faults of every command on S3 and HDFS; all of them with PUREDELTA_EVERY=1."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from puredelta.spark.jvm.hadoop import has_file_system
from puredelta.spark.session.data_access import DataIo
from puredelta.spark.write.parquet_job import temporary_settings
from tests.storage.bucket_sweep import RETRIES, SETTINGS, SUBJECTS, BucketSweep
from tests.storage.hdfs_sweep import HdfsSweep

EVERY = int(os.environ.get("PUREDELTA_EVERY", "67"))
"""Which part of the faults is tried: each so-manieth."""
POINTS = [
    *((name, DataIo.ARROW) for name in SUBJECTS),
    *((name, DataIo.SPARK) for name in ("insert", "merge", "checkpoint", "vacuum")),
]
"""Commands, and who reads and writes their data files."""


@pytest.fixture
def silent(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr("puredelta.store.location.RETRIES_MAX", RETRIES)
    logger = logging.getLogger("puredelta")
    level = logger.level
    logger.setLevel(logging.CRITICAL + 1)
    spark.sparkContext.setLogLevel("OFF")
    yield
    spark.sparkContext.setLogLevel("ERROR")
    logger.setLevel(level)


@pytest.mark.usefixtures("silent")
@pytest.mark.parametrize(("name", "way"), POINTS)
def test_a_fault_leaves_the_old_table_or_the_new_one(
    spark: SparkSession, tmp_path: Path, s3_endpoint: str, name: str, way: DataIo
) -> None:
    if way is DataIo.SPARK and not has_file_system(spark, "s3a"):
        pytest.skip("the session has no hadoop-aws: see tests/servers/s3a.py")
    sweep = BucketSweep(spark, tmp_path, s3_endpoint, way)
    sweep.run(name, EVERY)
    print("\n".join(sweep.lines()))  # noqa: T201 - with -s
    assert not sweep.violations
    assert sweep.tried.total() >= 3


@pytest.mark.usefixtures("silent")
@pytest.mark.parametrize("name", SUBJECTS)
def test_a_fault_on_hdfs_leaves_the_old_table_or_the_new_one(
    spark: SparkSession, tmp_path: Path, hdfs_uri: str, name: str
) -> None:
    with temporary_settings(spark, {**SETTINGS, "dfs.replication": "1"}):
        sweep = HdfsSweep(spark, tmp_path, f"{hdfs_uri}/sweep")
        sweep.run(name, EVERY)
    print("\n".join(sweep.lines()))  # noqa: T201 - with -s
    assert not sweep.violations
    assert sweep.tried.total() >= 3
