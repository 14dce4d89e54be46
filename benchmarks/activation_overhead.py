"""What an activated session adds to statements that are not for Delta.

``python -m benchmarks.activation_overhead`` times them in one session before and after
``puredelta.activate``, in turns, while a frame of a Delta table lives. It prints the medians in
milliseconds and what the medians of all turns differ by. Planning is measured alone, without jobs:
``explain`` of plans as wide, as deep and as long as people have them.
"""

from __future__ import annotations

import contextlib
import io
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import puredelta

ROUNDS = 8
CALLS = 4
RATIO_MAX = 1.02
SLACK_MS = 1.0
"""Less is noise, and the price of a look at a plan."""
WIDTH = 620
DEPTH = 20


def main() -> int:
    """Print one line per statement; 1 if one became slower than it may."""
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
    """Time every statement with and without the activation; 1 if one takes longer than it may."""
    puredelta.activate(spark)
    spark.range(10).write.format("delta").save(f"{scratch}/table")
    table = spark.read.format("delta").load(f"{scratch}/table")  # it lives until the end
    puredelta.deactivate()
    statements = _statements(spark, scratch)
    plain: dict[str, list[float]] = {name: [] for name in statements}
    active: dict[str, list[float]] = {name: [] for name in statements}
    for call in statements.values():
        _milliseconds(call, 3)  # the first time is compilation
    for turn in range(ROUNDS):
        for name, call in statements.items():
            for is_active in (turn % 2 > 0, turn % 2 == 0):  # neither is always the first
                if is_active:
                    puredelta.activate(spark)
                (active if is_active else plain)[name].append(_milliseconds(call, CALLS))
                puredelta.deactivate()
    print(f"{'milliseconds a call, medians':<34} {'plain':>8} {'active':>8} {'ratio':>8}")
    slow = []
    for name in statements:
        before, after = statistics.median(plain[name]), statistics.median(active[name])
        print(f"{name:<34} {before:>8.2f} {after:>8.2f} {after / before:>8.3f}")
        if after > before * RATIO_MAX and min(active[name]) > min(plain[name]) + SLACK_MS:
            slow.append(name)
    print(
        f"{len(slow)} of {len(statements)} take longer than they may: {', '.join(slow) or 'none'}"
    )
    return int(bool(slow) or not table.columns)


def _statements(spark: SparkSession, scratch: str) -> dict[str, Callable[[], object]]:
    spark.range(100_000).write.parquet(f"{scratch}/rows")
    spark.range(1_000).write.csv(f"{scratch}/csv")
    spark.range(1_000).createOrReplaceTempView("shown")
    spark.sql("CREATE TABLE named USING parquet AS SELECT id FROM range(1000)")
    wide = spark.range(10).select(*[(F.col("id") + n).alias(f"c{n}") for n in range(WIDTH)])
    for _ in range(DEPTH):
        wide = wide.select(*[(F.col(name) + 1).alias(name) for name in wide.columns])
    union, join = spark.range(1), spark.range(100)
    for n in range(200):
        union = union.union(spark.range(n))
    for n in range(6):
        join = join.join(spark.range(100).withColumnRenamed("id", f"id{n}"), F.expr(f"id = id{n}"))
    cached = spark.range(1_000).cache()
    cached.count()
    one, rows = spark.sql("SELECT 1"), spark.read.parquet(f"{scratch}/rows")
    numbers = ", ".join(map(str, range(10_000)))
    words = "SELECT " + ", ".join(f"'delta of {n}' AS delta{n}" for n in range(500))
    return {
        "sql: SELECT 1": lambda: spark.sql("SELECT 1"),
        "sql: a view": lambda: spark.sql("SELECT max(id) FROM shown"),
        "sql: a Parquet table": lambda: spark.sql("SELECT max(id) FROM named"),
        "sql: 10,000 numbers in IN": lambda: spark.sql(
            f"SELECT 1 FROM shown WHERE id IN ({numbers})"
        ),
        "sql: 500 columns called delta": lambda: spark.sql(words),
        "table of the catalog": lambda: spark.table("named"),
        "read.parquet": lambda: spark.read.parquet(f"{scratch}/rows"),
        "read.csv": lambda: spark.read.schema("id LONG").csv(f"{scratch}/csv"),
        "explain, 620 columns": lambda: _explained(wide),
        "look, 620 columns": lambda: _looked(wide),
        "look, SELECT 1": lambda: _looked(one),
        "look, 6 joins": lambda: _looked(join),
        "look, union of 200": lambda: _looked(union),
        "SELECT 1, collect": one.collect,
        "Parquet, count": rows.count,
        "Parquet, limit": lambda: rows.limit(3).collect(),
        "Parquet, toPandas": lambda: rows.limit(10).toPandas(),
        "Parquet, isEmpty": rows.isEmpty,
        "joins, count": join.count,
        "cached, count": cached.count,
        "Parquet, write": lambda: rows.limit(10).write.mode("overwrite").parquet(f"{scratch}/new"),
    }


def _explained(rows: DataFrame) -> None:
    with contextlib.redirect_stdout(io.StringIO()):
        rows.select("*").explain()


def _looked(rows: DataFrame) -> None:
    """Make a plan as an action does, without a job: nothing is left to read."""
    rows.where("1 = 0").collect()


def _milliseconds(call: Callable[[], object], times: int) -> float:
    started = time.perf_counter()
    for _ in range(times):
        call()
    return (time.perf_counter() - started) * 1000 / times


if __name__ == "__main__":
    sys.exit(main())
