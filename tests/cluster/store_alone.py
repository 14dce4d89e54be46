"""What `test_cluster` asks of a cluster that shares nothing but an object store.

Run as a program of its own: ``store_alone.py DIRECTORY RUNS SERVER``. No worker sees the driver's
folder, nor the sources of puredelta. The answers are one JSON object on the last line.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
from pyspark import cloudpickle
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import puredelta
from puredelta.errors import DeltaError
from tests.connect_session import ROOT
from tests.servers import cluster as spark_cluster
from tests.servers import s3
from tests.servers.cluster import Cluster
from tests.spark.write import killed_executors
from tests.spark.write.killed_executors import Killer, Workload, slow

cloudpickle.register_pickle_by_value(killed_executors)  # type: ignore[no-untyped-call]
cloudpickle.register_pickle_by_value(sys.modules[__name__])  # type: ignore[no-untyped-call]

STATEMENTS = ("append", "merge", "merge", "optimize", "delete")
_DELAYS_S = (0.0, 0.1, 0.3, 0.8, 1.5)
_ATTEMPTS = 3
"""A kill may come after the last task of a statement: then another one is tried."""
_SERVERS = ("versitygw", "minio", "moto")
_CHANGING = {
    "spark.dynamicAllocation.enabled": "true",
    "spark.dynamicAllocation.shuffleTracking.enabled": "true",
    "spark.dynamicAllocation.initialExecutors": "2",
    "spark.dynamicAllocation.minExecutors": "1",
    "spark.dynamicAllocation.maxExecutors": "2",
    "spark.dynamicAllocation.executorIdleTimeout": "15s",
    "spark.dynamicAllocation.schedulerBacklogTimeout": "1s",
    "spark.speculation": "true",
    "spark.speculation.interval": "50ms",
    "spark.speculation.multiplier": "1.1",
    "spark.speculation.quantile": "0.1",
}
"""Executors come and go, and slow tasks run twice."""


def seen(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Tell what a worker sees: Spark's folder of it, and whether it could import puredelta."""
    try:
        has_it = importlib.util.find_spec("puredelta.api") is not None
    except ModuleNotFoundError:  # not even an empty folder of its name
        has_it = False
    for _ in batches:
        yield pa.RecordBatch.from_pydict({"folder": [str(Path.cwd())], "has_it": [has_it]})


def installed() -> list[Path]:
    """Return the folders from which a worker of the same Python would import puredelta."""
    ask = "import importlib.util, sys; print(importlib.util.find_spec(sys.argv[1]).origin)"
    folders = {ROOT / "src"}
    for package in ("puredelta", "pyspark_puredelta"):
        command = [sys.executable, "-P", "-c", ask, package]
        environment = {**os.environ, "PYTHONPATH": ""}
        asked = subprocess.run(
            command, env=environment, text=True, cwd="/", capture_output=True, check=False
        )
        folders |= {Path(asked.stdout.strip()).parent} if asked.returncode == 0 else set()
    return sorted(folders)


def outcome(action: Callable[[], object]) -> str:
    try:
        action()
    except DeltaError as error:
        return error.code.name
    return "success"


def session(cluster: Cluster, endpoint: str) -> SparkSession:
    more = {f"spark.hadoop.{key}": value for key, value in s3.settings(endpoint).items()}
    more |= _CHANGING
    more["spark.databricks.delta.retentionDurationCheck.enabled"] = "false"
    builder = SparkSession.builder.appName("cluster")
    for key, value in {**spark_cluster.settings(cluster), **more}.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def numbers(spark: SparkSession) -> DataFrame:
    return spark.range(0, 2000, 1, 8).withColumn("x", F.col("id"))


def workers(spark: SparkSession) -> list[Any]:
    """Return which workers ran a task, and whether they have puredelta."""
    rows = slow(numbers(spark)).mapInArrow(seen, "folder string, has_it boolean").collect()
    names = {(Path(row.folder).parts, row.has_it) for row in rows}
    return sorted({(name, has) for parts, has in names for name in ("one", "two") if name in parts})


def _statements(work: Workload, runs: int) -> None:
    """Run statements until so many executors died with tasks of theirs."""
    delays, kills = Random(7), work.killer.kills
    for number in range(_ATTEMPTS * runs):
        name, delay_s = STATEMENTS[number % len(STATEMENTS)], delays.choice(_DELAYS_S)
        began, before = time.monotonic(), len(kills)
        work.run(name, delay_s)
        took = f"{name}, kill after {delay_s} s, {time.monotonic() - began:.0f} s"
        print(f"{took}: {kills[before:]}", file=sys.stderr, flush=True)  # noqa: T201 - how far it is
        if len(kills) == runs:
            break


def main(directory: Path, runs: int, server: str) -> dict[str, Any]:
    driver = directory / "driver"
    driver.mkdir()
    answers: dict[str, Any] = {}
    name = server or next(name for name in _SERVERS if s3.is_installed(name))
    hidden = [driver, *installed()]
    with (
        s3.s3_server(name, directory / "s3") as endpoint,
        Cluster(directory / "workers") as cluster,
    ):
        cluster.add_workers(["one", "two"], hidden)
        spark = session(cluster, endpoint)
        spark.sparkContext.setLogLevel("OFF")
        answers["workers"] = workers(spark)
        puredelta.activate(spark)
        answers["own disk"] = outcome(
            lambda: puredelta.write(
                slow(spark.range(1000).withColumn("x", F.col("id"))), str(driver / "t")
            )
        )
        answers["own disk left"] = [str(path) for path in driver.rglob("*.parquet")]
        killer = Killer(spark)
        work = Workload(spark, f"s3a://{s3.BUCKET}/table", killer)
        _statements(work, runs)
        answers |= {"kills": killer.kills, "wrong": work.wrong, "left": work.left()}
        spark.stop()
    return answers


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3])))  # noqa: T201 - the answers
