"""What an activated session adds to statements that are not for Delta.

``python -m benchmarks.activation_overhead`` times them in one session before and after
``puredelta.activate``, in turns, and prints the medians in milliseconds.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable

from pyspark.sql import SparkSession

import puredelta

ROUNDS = 8
CALLS = 10
LIMIT_MS = 10.0
"""The most that ``SELECT 1`` may take longer."""


def main() -> int:
    """Print one line per statement; 1 if ``SELECT 1`` became slower than it may."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    with tempfile.TemporaryDirectory() as scratch:
        spark = (
            SparkSession.builder.master("local[2]")
            .config("spark.ui.enabled", "false")
            .config("spark.ui.showConsoleProgress", "false")
            .config("spark.sql.warehouse.dir", f"{scratch}/warehouse")
            .getOrCreate()
        )
        spark.sparkContext.setLogLevel("ERROR")
        try:
            return measure(spark, scratch)
        finally:
            spark.stop()


def measure(spark: SparkSession, scratch: str) -> int:
    """Time every statement with and without the activation."""
    spark.range(100_000).write.parquet(f"{scratch}/rows")
    spark.range(1_000).createOrReplaceTempView("shown")
    spark.sql("CREATE TABLE named USING parquet AS SELECT id FROM range(1000)")
    statements: dict[str, Callable[[], object]] = {
        "spark.sql('SELECT 1')": lambda: spark.sql("SELECT 1"),
        "spark.sql on a view": lambda: spark.sql("SELECT max(id) FROM shown"),
        "spark.sql on a Parquet table": lambda: spark.sql("SELECT max(id) FROM named"),
        "spark.table of a Parquet table": lambda: spark.table("named"),
        "spark.read.parquet": lambda: spark.read.parquet(f"{scratch}/rows"),
        "spark.read.parquet, read": lambda: spark.read.parquet(f"{scratch}/rows").count(),
    }
    plain: dict[str, list[float]] = {name: [] for name in statements}
    active: dict[str, list[float]] = {name: [] for name in statements}
    for call in statements.values():
        _milliseconds(call)  # the first time is compilation
    for turn in range(ROUNDS):
        for name, call in statements.items():
            for is_active in (turn % 2 > 0, turn % 2 == 0):  # neither is always the first
                if is_active:
                    puredelta.activate(spark)
                (active if is_active else plain)[name].append(_milliseconds(call))
                puredelta.deactivate()
    print(f"{'milliseconds a call, medians':<34} {'plain':>8} {'active':>8} {'more':>8}")
    added = {}
    for name in statements:
        before, after = statistics.median(plain[name]), statistics.median(active[name])
        added[name] = after - before
        print(f"{name:<34} {before:>8.2f} {after:>8.2f} {added[name]:>8.2f}")
    return int(added["spark.sql('SELECT 1')"] > LIMIT_MS)


def _milliseconds(call: Callable[[], object]) -> float:
    started = time.perf_counter()
    for _ in range(CALLS):
        call()
    return (time.perf_counter() - started) * 1000 / CALLS


if __name__ == "__main__":
    sys.exit(main())
