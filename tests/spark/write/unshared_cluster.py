"""What `test_unshared_directory` asks of a cluster of which one executor has a disk of its own.

Run as a program of its own: ``unshared_cluster.py DIRECTORY``. The answers are one JSON object on
the last line.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import puredelta
from puredelta.errors import DeltaError
from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.schema.types import LONG, StructField, StructType
from puredelta.tables import DeltaTable
from tests.spark.tables import TableFiles

_JAVA = """#!/bin/sh
case "$*" in
  *"--executor-id 1 "*) exec unshare -m sh -c '
    mount --make-rprivate / && mount -t tmpfs tmpfs "$0" && exec "$@"' {disk} {java} "$@" ;;
esac
exec {java} "$@"
"""


def unshared(directory: Path, disk: Path) -> str:
    """Return a JAVA_HOME whose second executor has another disk at a path."""
    java = Path(shutil.which("java") or f"{os.environ['JAVA_HOME']}/bin/java").resolve()
    home = directory / "java"
    (home / "bin").mkdir(parents=True)
    script = home / "bin" / "java"
    script.write_text(_JAVA.format(disk=disk, java=java))
    script.chmod(0o755)
    return str(home)


def session(directory: Path, disk: Path) -> SparkSession:
    return (
        SparkSession.builder.master("local-cluster[2,1,1024]")
        .config("spark.ui.enabled", "false")
        .config("spark.executor.memory", "700m")
        .config("spark.executorEnv.JAVA_HOME", unshared(directory, disk))
        .config("spark.executorEnv.PYTHONPATH", os.environ.get("PYTHONPATH", ""))
        .config("spark.sql.shuffle.partitions", "4")
        .config("spark.sql.warehouse.dir", str(disk / "warehouse"))
        .config("spark.scheduler.minRegisteredResourcesRatio", "1.0")
        .config("spark.scheduler.maxRegisteredResourcesWaitingTime", "120s")
        .getOrCreate()
    )


def outcome(action: Callable[[], object]) -> Any:
    try:
        action()
    except DeltaError as error:
        return error.code.name
    return "success"


def slow(spark: SparkSession) -> Any:
    """Return rows whose tasks take so long that both executors get some."""
    wait = F.udf(lambda number: (time.sleep(0.003), number)[1], "long")
    return spark.range(0, 1000, 1, 8).withColumn("x", wait("id"))


def files_below(path: Path) -> list[str]:
    return sorted(str(p.relative_to(path)) for p in path.rglob("*.parquet"))


def main(directory: Path) -> dict[str, Any]:
    disk = directory / "disk"
    disk.mkdir()
    spark = session(directory, disk)
    puredelta.activate(spark)
    answers: dict[str, Any] = {}
    new, table = disk / "new", disk / "table"
    answers["write"] = outcome(lambda: slow(spark).write.format("delta").save(str(new)))
    answers["write left"] = [files_below(new), TableLog.open(str(new)).exists()]
    slow(spark).createOrReplaceTempView("rows")
    answers["ctas"] = outcome(lambda: spark.sql("CREATE TABLE t USING delta AS SELECT * FROM rows"))
    answers["ctas left"] = [files_below(disk / "warehouse"), spark.catalog.tableExists("t")]
    prepared(table)
    before = files_below(table)
    target = DeltaTable.forPath(spark, str(table)).alias("t")
    merge = target.merge(slow(spark).alias("s"), "t.id = s.id").whenNotMatchedBySourceDelete()
    answers["merge"] = outcome(merge.execute)
    answers["merge left"] = files_below(table) == before
    answers["rows"] = pq.read_table(table / "part-0.parquet").num_rows
    answers["version"] = TableLog.open(str(table)).latest_version()
    spark.stop()
    return answers


def prepared(path: Path) -> None:
    """Make a table of all ids on the driver's disk, by the driver alone."""
    ids = pa.array(range(1000), pa.int64())
    columns = StructType((StructField("id", LONG), StructField("x", LONG)))
    TableFiles.create(path, columns).write("part-0.parquet", {"id": ids, "x": ids})


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]))))  # noqa: T201 - the answers
