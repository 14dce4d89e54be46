"""A program that streams one table into another and is killed at its n-th step.

``killed_stream ROOT N`` goes on with what is left in the source, a file at a time, until Spark, the
source's answers and every file that is put have come N times together; then it ends itself and its
JVM with SIGKILL. It ends with `RESTART` where the stream asks for that, and well when it is done.
``killed_stream ROOT make`` makes the source, ``killed_stream ROOT look`` prints the rows of the
target as JSON.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from typing import Any

from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

import puredelta
from puredelta.spark.scan.change_scan import TableStream
from puredelta.store.local import LocalStore

RESTART = 3
STEPS = (
    (TableStream, "latest_offset"),
    (TableStream, "batch"),
    (TableStream, "complete"),
    (LocalStore, "put_if_absent"),
)


def session() -> SparkSession:
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.driver.host", "127.0.0.1")
    spark = builder.config("spark.sql.shuffle.partitions", "2").getOrCreate()
    puredelta.activate(spark)
    return spark


def make(spark: SparkSession, root: str) -> None:
    name = f"delta.`{root}/source`"
    mapped = "TBLPROPERTIES ('delta.columnMapping.mode' = 'name')"
    spark.sql(f"CREATE TABLE {name} (id BIGINT, v STRING) USING delta {mapped}")
    for n in range(2):
        rows = spark.range(n * 10, n * 10 + 10, 1, 2).selectExpr("id", "'old' AS v")
        rows.write.format("delta").mode("append").save(f"{root}/source")
    spark.sql(f"ALTER TABLE {name} RENAME COLUMN v TO w")
    rows = spark.range(20, 30, 1, 2).selectExpr("id", "'new' AS w")
    rows.write.format("delta").mode("append").save(f"{root}/source")


def die_at(spark: SparkSession, last: int) -> None:
    """Count what is called and what has returned, on whatever thread."""
    count = 0

    def step() -> None:
        nonlocal count
        count += 1
        if count == last:
            context: Any = spark.sparkContext
            os.kill(context._gateway.proc.pid, signal.SIGKILL)
            os.kill(os.getpid(), signal.SIGKILL)

    def counted(original: Callable[..., Any]) -> Callable[..., Any]:
        def call(*given: Any, **named: Any) -> Any:
            step()
            answer = original(*given, **named)
            step()
            return answer

        return call

    for owner, name in STEPS:
        setattr(owner, name, counted(getattr(owner, name)))


def stream(spark: SparkSession, root: str) -> int:
    checkpoint = f"{root}/checkpoint"
    reader = spark.readStream.format("delta").option("maxFilesPerTrigger", "1")
    reader = reader.option("startingVersion", "0").option("schemaTrackingLocation", checkpoint)
    rows = reader.option("allowSourceColumnRename", "always").load(f"{root}/source")
    writer = rows.writeStream.format("delta").option("mergeSchema", "true")
    writer = writer.option("checkpointLocation", checkpoint).trigger(availableNow=True)
    try:
        writer.start(f"{root}/target").awaitTermination()
    except StreamingQueryException as error:
        if "DELTA_STREAMING_METADATA_EVOLUTION" not in str(error):
            raise
        return RESTART
    return 0


def main(root: str, point: str) -> int:
    spark = session()
    if point == "make":
        make(spark, root)
        return 0
    if point == "look":
        rows = spark.read.format("delta").load(f"{root}/target")
        found = sorted(map(list, rows.select("id", "v", "w").collect()))
        sys.stdout.write(f"{json.dumps(found)}\n")
        return 0
    die_at(spark, int(point))
    return stream(spark, root)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
