"""Merges and updates that nobody tuned, beside an Arrow copy of the files of the same table.

``python -m benchmarks.untuned [puredelta|delta-spark] [SHAPE ...]`` (delta-spark in the environment
of the reference): 3 million rows of 12 columns in 24 files, whose ids are in no order, and the same
rows in 37 partitions (``UNTUNED_ROWS`` and ``UNTUNED_DIRECTORY`` say otherwise). Every statement
runs three times, each on its own copy of the table. Its figure is the least number of processor
seconds of all processes: workers that end meanwhile count, too. The copy decodes and encodes all
files with Arrow, in this process.
"""

from __future__ import annotations

import importlib
import os
import shutil
import sys
import threading
import time
from pathlib import Path

import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from benchmarks.processes import processes_of_family

ROWS = int(os.environ.get("UNTUNED_ROWS", "3000000"))
ROOT = Path(os.environ.get("UNTUNED_DIRECTORY", "benchmarks/results/untuned")).absolute()
ROUNDS = 3
COLUMNS = [
    "id",
    f"timestamp_micros(1600000000000000 + (id * 7919 % {ROWS}) * 1000003) AS ts",
    "date_add(DATE '1990-01-01', CAST(id % 10000 AS INT)) AS day",
    f"CAST(id * 7919 % {ROWS} AS DECIMAL(20, 2)) AS amount",
    "md5(CAST(id AS STRING)) AS txt",
    "CAST(id % 1000 AS INT) AS grp",
    "CAST(id % 37 AS INT) AS part",
    "named_struct('a', id, 'b', CAST(id AS STRING)) AS nest",
    "rand(1) AS v1",
    "rand(2) AS v2",
    "CAST(hash(id) AS STRING) AS v3",
    "CAST(hash(id, 1) AS BIGINT) AS v4",
]
UPSERT = "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
MOST = ", ".join(f"{name} = s.{name}" for name in ["v1", "v2", "v3", "v4", "day", "part", "nest"])
SHAPES = {
    "upsert by long": ("plain", "one", f"t.id = s.id {UPSERT}"),
    "upsert by timestamp": ("plain", "one", f"t.ts = s.ts {UPSERT}"),
    "upsert by decimal": ("plain", "one", f"t.amount = s.amount {UPSERT}"),
    "upsert by text": ("plain", "one", f"t.txt = s.txt {UPSERT}"),
    "upsert by date and long": ("plain", "one", f"t.day = s.day AND t.id = s.id {UPSERT}"),
    "upsert into partitions": ("parts", "one", f"t.id = s.id {UPSERT}"),
    "source as large as the target": ("plain", "all", f"t.id = s.id {UPSERT}"),
    "few keys, two columns": (
        "plain",
        "few",
        "t.grp = s.grp WHEN MATCHED THEN UPDATE SET v1 = s.v1, v3 = s.v3",
    ),
    "few keys, most columns": (
        "plain",
        "few",
        f"t.grp = s.grp WHEN MATCHED THEN UPDATE SET {MOST}",
    ),
    "range, update": (
        "plain",
        "ranges",
        "t.id BETWEEN s.lo AND s.hi WHEN MATCHED THEN UPDATE SET v4 = s.v4, v3 = 'x'",
    ),
    "range, delete": ("plain", "ranges", "t.id >= s.lo AND t.id < s.hi WHEN MATCHED THEN DELETE"),
    "update of a quarter": ("plain", "", "UPDATE {} SET v1 = v1 * 2, v3 = 'x' WHERE id % 4 = 1"),
    "delete of 1 %": ("plain", "", "DELETE FROM {} WHERE id % 100 = 1"),
    "evolution of a field": ("plain", "nested", f"t.id = s.id {UPSERT}"),
}
"""By name the table, the source if there is one, and the text after ON or of the statement."""


class Processors:
    """Processor seconds of this process and all that it started, also of those that ended."""

    def __init__(self) -> None:
        self._total, self._last = 0.0, dict[int, float]()
        threading.Thread(target=self._watch, daemon=True).start()

    def seconds(self) -> float:
        """Return the seconds so far."""
        for pid, seconds in processes_of_family().items():
            self._total += seconds - self._last.get(pid, 0.0)
            self._last[pid] = seconds
        return self._total

    def _watch(self) -> None:
        while True:
            self.seconds()
            time.sleep(0.5)


def session(engine: str) -> SparkSession:
    builder = (
        SparkSession.builder.master("local[2]")
        .config("spark.sql.shuffle.partitions", "4")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", "4g")
    )
    if engine == "delta-spark":
        catalog = "org.apache.spark.sql.delta.catalog.DeltaCatalog"
        extension = "io.delta.sql.DeltaSparkSessionExtension"
        builder = builder.config("spark.sql.catalog.spark_catalog", catalog)
        builder = builder.config("spark.sql.extensions", extension)
        builder = importlib.import_module("delta").configure_spark_with_delta_pip(builder)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    if engine == "puredelta":
        importlib.import_module("puredelta").activate(spark)
    return spark


def build(spark: SparkSession) -> None:
    """Write tables and sources, unless they are there."""
    if (ROOT / "done").exists():
        return
    shutil.rmtree(ROOT, ignore_errors=True)
    ROOT.mkdir(parents=True)
    base = spark.range(0, ROWS, 1, 24).selectExpr(f"id * 7919 % {ROWS} AS id").selectExpr(*COLUMNS)
    base.write.format("delta").save(str(ROOT / "plain"))
    base.repartition(24).write.format("delta").partitionBy("part").save(str(ROOT / "parts"))
    keys = f"CASE WHEN id % 10 = 0 THEN {ROWS} + id ELSE id * 97 % {ROWS} END AS id"
    one = spark.range(ROWS // 100).selectExpr(keys).selectExpr(*COLUMNS)
    one.write.parquet(str(ROOT / "one"))
    spark.range(0, ROWS, 1, 4).selectExpr(*COLUMNS).write.parquet(str(ROOT / "all"))
    few = spark.range(5).selectExpr("id * 3 AS id").selectExpr(*COLUMNS)
    few.write.parquet(str(ROOT / "few"))
    low, length = f"id * {ROWS // 300}", ROWS // 30_000
    ranges = spark.range(300).selectExpr(f"{low} AS lo", f"{low} + {length} AS hi", "id AS v4")
    ranges.write.parquet(str(ROOT / "ranges"))
    wider = "named_struct('a', nest.a, 'b', nest.b, 'c', 1) AS nest"
    nested = [wider if name == "nest" else name for name in one.columns]
    one.selectExpr(*nested).write.parquet(str(ROOT / "nested"))
    (ROOT / "done").touch()


def run(spark: SparkSession, name: str, processors: Processors) -> None:
    table, source, text = SHAPES[name]
    seconds: list[float] = []
    for _ in range(ROUNDS):
        copy = ROOT / "copy"
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(ROOT / table, copy, copy_function=os.link)
        evolves = str(name.startswith("evolution")).lower()
        spark.conf.set("spark.databricks.delta.schema.autoMerge.enabled", evolves)
        statement = text.format(f"delta.`{copy}`")
        if source:
            spark.read.parquet(str(ROOT / source)).createOrReplaceTempView("s")
            statement = f"MERGE INTO delta.`{copy}` t USING s ON {text}"
        before = processors.seconds()
        spark.sql(statement).collect()
        seconds.append(processors.seconds() - before)
    shown = ", ".join(f"{one:.1f}" for one in seconds)
    print(f"{name:30} {min(seconds):6.2f} ({shown})", flush=True)


def copy_by_arrow(table: str, processors: Processors) -> None:
    before = processors.seconds()
    for file in sorted((ROOT / table).rglob("*.parquet")):
        rows = pq.read_table(file, use_threads=False, partitioning=None)
        pq.write_table(rows, ROOT / "copied.parquet")
    print(f"Arrow copies {table:17} {processors.seconds() - before:6.2f}", flush=True)


def main() -> None:
    engine, *shapes = sys.argv[1:] or ["puredelta"]
    processors = Processors()
    spark = session(engine)
    build(spark)
    for table in ("plain", "parts"):
        copy_by_arrow(table, processors)
    for name in shapes or SHAPES:
        run(spark, name, processors)
    spark.stop()


if __name__ == "__main__":
    main()
