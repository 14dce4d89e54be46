"""Streams beside delta-spark: a table into a table, and a MERGE of each batch.

    python -m benchmarks.streams

Each engine runs in a process of its own, in turns, over the same source table, which delta-spark's
reader and ours take the same batches of. The rows of both targets are counted and summed after
each run. The first run of a process is over a few rows, untimed.

PUREDELTA_BENCH_ROWS: rows of the source (5,000,000); PUREDELTA_BENCH_FILES: its files (40);
PUREDELTA_BENCH_BATCH: files of a batch (10); PUREDELTA_BENCH_REPEATS (2).
"""

from __future__ import annotations

import importlib
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

PREFIX = "PUREDELTA_BENCH_"
ROWS = int(os.environ.get(f"{PREFIX}ROWS", "5000000"))
FILES = int(os.environ.get(f"{PREFIX}FILES", "40"))
BATCH = int(os.environ.get(f"{PREFIX}BATCH", "10"))
REPEATS = int(os.environ.get(f"{PREFIX}REPEATS", "2"))
ENGINES = ("puredelta", "delta-spark")
CONNECT = "puredelta over Connect"
KEYS = 200_000
"""Of the target that batches are merged into: half of the keys of the source."""


def started(engine: str) -> Any:
    """Return a session of an engine; over Connect its server is a JVM of this process, too.

    Workers are this Python: ``python3`` on the PATH may lack pyarrow.
    """
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = importlib.import_module("pyspark.sql").SparkSession.builder
    of_kind = builder.remote if engine == CONNECT else builder.master
    builder = (
        of_kind("local[2]")
        .config("spark.driver.memory", "3g")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "4")
        .config("spark.sql.session.timeZone", "UTC")
    )
    if engine == "delta-spark":
        builder = builder.config(
            "spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension"
        ).config(
            "spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog"
        )
        builder = importlib.import_module("delta").configure_spark_with_delta_pip(builder)
    spark = builder.getOrCreate()
    if engine != CONNECT:
        spark.sparkContext.setLogLevel("OFF")
    if engine != "delta-spark":
        importlib.import_module("puredelta").activate(spark)
    return spark


def source_rows(spark: Any, rows: int, files: int) -> Any:
    return spark.range(0, rows, 1, files).selectExpr(
        "id", f"id % {2 * KEYS} AS key", "id * 0.5 AS value", "cast(id AS string) AS name"
    )


def make_source(path: Path, rows: int, files: int) -> None:
    spark = started("puredelta")
    source_rows(spark, rows, files).write.format("delta").save(str(path))
    spark.stop()


def copied(spark: Any, source: Path, work: Path) -> Any:
    rows = spark.readStream.format("delta").option("maxFilesPerTrigger", BATCH).load(str(source))
    writer = rows.writeStream.format("delta").trigger(availableNow=True)
    writer.option("checkpointLocation", str(work / "c")).start(str(work / "t")).awaitTermination()
    found = spark.read.format("delta").load(str(work / "t"))
    return found.selectExpr("count(*)", "sum(id)").first()


def merged(spark: Any, engine: str, source: Path, work: Path) -> Any:
    module = "puredelta.tables" if engine == "puredelta" else "delta.tables"
    tables, target = importlib.import_module(module), str(work / "t")
    keys = spark.range(0, KEYS, 1, 4).selectExpr("id AS key", "0L AS n", "0.0D AS value")
    keys.write.format("delta").save(target)

    def upsert(batch: Any, _: int) -> None:
        sums = batch.groupBy("key").agg({"*": "count", "value": "sum"})
        sums = sums.toDF("key", *(["n", "value"] if "count" in sums.columns[1] else ["value", "n"]))
        merge = tables.DeltaTable.forPath(batch.sparkSession, target).alias("t")
        merge = merge.merge(sums.alias("s"), "t.key = s.key")
        merge = merge.whenMatchedUpdate(set={"n": "t.n + s.n", "value": "t.value + s.value"})
        merge.whenNotMatchedInsert(
            values={"key": "s.key", "n": "s.n", "value": "s.value"}
        ).execute()

    rows = spark.readStream.format("delta").option("maxFilesPerTrigger", BATCH).load(str(source))
    writer = rows.writeStream.foreachBatch(upsert).trigger(availableNow=True)
    writer.option("checkpointLocation", str(work / "c")).start().awaitTermination()
    return spark.read.format("delta").load(target).selectExpr("sum(n)", "count(*)").first()


def measure(engine: str, source: Path, small: Path) -> dict[str, list[float]]:
    spark, times = started(engine), dict[str, list[float]]()
    runs = {"copy": copied, "merge": lambda s, f, w: merged(s, engine, f, w)}
    for kind, run in runs.items():
        for n in range(REPEATS + 1):
            work = Path(tempfile.mkdtemp(prefix="stream-bench-"))
            before = time.perf_counter()
            found = run(spark, small if n == 0 else source, work)
            if n:
                times.setdefault(kind, []).append(time.perf_counter() - before)
                if found[0] != ROWS:
                    raise SystemExit(f"{engine} {kind}: {found} instead of {ROWS} rows")
            shutil.rmtree(work)
    spark.stop()
    return times


def main() -> None:
    if len(sys.argv) > 1:
        print(json.dumps(measure(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]))))
        return
    root = Path(tempfile.mkdtemp(prefix="stream-bench-"))
    try:
        for name, rows, files in (("source", ROWS, FILES), ("small", 20_000, 4)):
            make_source(root / name, rows, files)
        times: dict[str, dict[str, list[float]]] = {}
        for engine in ENGINES:
            command = [sys.executable, "-m", "benchmarks.streams", engine]
            answer = subprocess.run(
                [*command, str(root / "source"), str(root / "small")],
                stdout=subprocess.PIPE,
                text=True,
                check=True,
            )
            times[engine] = json.loads(answer.stdout.splitlines()[-1])
            print(engine, {k: [round(t, 2) for t in v] for k, v in times[engine].items()})
        for kind in times["puredelta"]:
            mine, other = (statistics.median(times[engine][kind]) for engine in ENGINES)
            print(f"{kind}: {mine:.2f} s, delta-spark {other:.2f} s: {mine / other:.2f}")
    finally:
        shutil.rmtree(root, ignore_errors=True)


if __name__ == "__main__":
    main()
