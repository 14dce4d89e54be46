"""MERGE of 1 % of the rows of 64 files, beside Spark's own copy of the same files.

The copy (read and write, no search, no join, no log) is what a rewrite through Spark cannot
beat. Prints both times, their ratio, the Spark jobs of the MERGE, and the memory of the driver:
its Python process, and the heap of its JVM while it merges (garbage included, so an upper bound).

    python benchmarks/merge_vs_copy.py [--rows 10000000] [--files 64] [--repeats 2]
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

os.environ.setdefault("PYSPARK_PYTHON", sys.executable)

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from puredelta.tables import DeltaTable

COLUMNS = (
    "id",
    "id % 1000 AS store",
    "cast(id * 0.37 AS decimal(12, 2)) AS amount",
    "concat('customer-', id % 100000) AS customer",
    "timestamp_seconds(1600000000 + id) AS sold_at",
    "id * 1.5D AS weight",
    "date_add(date'2020-01-01', cast(id % 1500 AS int)) AS day",
    "concat('note ', hash(id)) AS note",
)


def main() -> None:
    options = parsed()
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.driver.memory", "3g")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    with tempfile.TemporaryDirectory(dir=options.directory) as scratch:
        base = Path(scratch) / "base"
        lay_table(spark, base, options.rows, options.files)
        measure(spark, base, Path(scratch), options)
    spark.stop()


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--files", type=int, default=64)
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--directory", default=None)
    parser.add_argument("--keep-columns", action="store_true", help="update two columns, keep six")
    return parser.parse_args()


def lay_table(spark: SparkSession, base: Path, rows: int, files: int) -> None:
    spark.range(0, rows, 1, files).selectExpr(*COLUMNS).write.parquet(str(base))
    DeltaTable.convertToDelta(spark, f"parquet.`{base}`")


def changes(spark: SparkSession, rows: int) -> DataFrame:
    """Every hundredth row, in every file, with another amount and weight."""
    picked = spark.range(0, rows // 100, 1, 2).select((F.col("id") * 100 + 7).alias("id"))
    return picked.selectExpr(*COLUMNS).withColumns(
        {"amount": F.expr("cast(amount + 1 AS decimal(12, 2))"), "weight": F.expr("-weight")}
    )


def measure(spark: SparkSession, base: Path, scratch: Path, options: argparse.Namespace) -> None:
    merges: list[float] = []
    copies: list[float] = []
    jobs, heap_mb = 0, 0.0
    for turn in range(options.repeats + 1):
        table = scratch / f"table-{turn}"
        shutil.copytree(base, table, copy_function=os.link)
        spark.sparkContext.setJobGroup(f"merge-{turn}", "counted")
        heap = HeapPeak(spark)
        seconds = timed(partial(merge, spark, table, options))
        heap_mb = max(heap_mb, heap.read_mb())
        jobs = len(spark.sparkContext.statusTracker().getJobIdsForGroup(f"merge-{turn}"))
        spark.sparkContext.setJobGroup("other", "not counted")
        check(spark, table, options.rows)
        copied = timed(partial(copy, spark, base, scratch / f"copy-{turn}"))
        print(f"turn {turn}: merge {seconds:.2f} s, copy {copied:.2f} s", flush=True)
        if turn:  # the first one warms up
            merges.append(seconds)
            copies.append(copied)
        shutil.rmtree(table)
        shutil.rmtree(scratch / f"copy-{turn}")
    merged, copied = statistics.median(merges), statistics.median(copies)
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"merge {merged:.2f} s, Spark copy {copied:.2f} s, ratio {merged / copied:.2f}")
    print(
        f"{jobs} Spark jobs, peak memory of the driver's Python {peak_mb:.0f} MB, "
        f"of the JVM's heap {heap_mb:.0f} MB"
    )


class HeapPeak:
    """The most heap the driver's JVM has used since this was made; executors share it here."""

    def __init__(self, spark: SparkSession) -> None:
        jvm: Any = spark._jvm  # noqa: SLF001 - no public way to its memory
        jvm.java.lang.System.gc()  # what is left of the turn before does not count
        self._pools = [
            pool
            for pool in jvm.java.lang.management.ManagementFactory.getMemoryPoolMXBeans()
            if pool.getType().toString() == "Heap memory"
        ]
        for pool in self._pools:
            pool.resetPeakUsage()

    def read_mb(self) -> float:
        """Return the sum over the pools of the heap; each has its peak at its own time."""
        return sum(pool.getPeakUsage().getUsed() for pool in self._pools) / 2**20


def merge(spark: SparkSession, table: Path, options: argparse.Namespace) -> None:
    source = changes(spark, options.rows).alias("s")
    merging = DeltaTable.forPath(spark, str(table)).alias("t").merge(source, "t.id = s.id")
    if options.keep_columns:
        merging = merging.whenMatchedUpdate(set={"amount": "s.amount", "weight": "s.weight"})
    else:
        merging = merging.whenMatchedUpdateAll()
    merging.execute()


def copy(spark: SparkSession, base: Path, target: Path) -> None:
    spark.read.parquet(str(base)).write.parquet(str(target))


def check(spark: SparkSession, table: Path, rows: int) -> None:
    found = (
        DeltaTable.forPath(spark, str(table))
        .toDF()
        .selectExpr("count(*)", "count(distinct id)", "count_if(weight < 0)")
    )
    assert tuple(found.first() or ()) == (rows, rows, rows // 100)


def timed(work: Callable[[], None]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


if __name__ == "__main__":
    main()
