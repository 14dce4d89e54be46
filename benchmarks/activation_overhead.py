"""What an activated session adds to statements that are not for Delta.

``python -m benchmarks.activation_overhead [ROUNDS]`` runs them in one session before and after
``puredelta.activate``, in turns, while a frame of a Delta table lives. It prints the medians of
the processor time that a call takes (this process and its JVM together, so that other processes
count for little) and how many calls into the JVM it makes. Planning is measured alone, without
jobs: ``explain`` of plans as wide, as deep and as long as people have them.
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
from dataclasses import dataclass
from pathlib import Path

from py4j.java_gateway import GatewayClient
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


def main(rounds: int = ROUNDS) -> int:
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
            return measure(spark, scratch, rounds=rounds)
        finally:
            spark.stop()


def measure(spark: SparkSession, scratch: str, *, rounds: int) -> int:
    """Measure every statement with and without the activation; 1 if one became slower."""
    puredelta.activate(spark)
    spark.range(10).write.format("delta").save(f"{scratch}/table")
    table = spark.read.format("delta").load(f"{scratch}/table")  # it lives until the end
    puredelta.deactivate()
    statements = _statements(spark, scratch)
    jvm = int(spark.sparkContext._jvm.ProcessHandle.current().pid())  # noqa: SLF001
    plain: dict[str, list[Cost]] = {name: [] for name in statements}
    active: dict[str, list[Cost]] = {name: [] for name in statements}
    for call in statements.values():
        _cost(call, jvm)  # the first time is compilation
    for turn in range(rounds):
        for name, call in statements.items():
            for is_active in (turn % 2 > 0, turn % 2 == 0):  # neither is always the first
                if is_active:
                    puredelta.activate(spark)
                (active if is_active else plain)[name].append(_cost(call, jvm))
                puredelta.deactivate()
    print(
        f"{'processor time of a call, ms':<34} {'plain':>8} {'active':>8} {'ratio':>8} "
        f"{'calls':>6} {'active':>6}"
    )
    slow = []
    for name in statements:
        before, after = _median_ms(plain[name]), _median_ms(active[name])
        calls, with_ours = (min(one.calls for one in costs[name]) for costs in (plain, active))
        print(
            f"{name:<34} {before:>8.2f} {after:>8.2f} {after / before:>8.3f} "
            f"{calls:>6.1f} {with_ours:>6.1f}",
            flush=True,
        )
        if after > before * RATIO_MAX + SLACK_MS:
            slow.append(name)
    print(
        f"{len(slow)} of {len(statements)} take longer than they may: {', '.join(slow) or 'none'}"
    )
    return int(bool(slow) or not table.columns)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """The price of one call."""

    processor_ms: float
    calls: float
    """Into the JVM."""


def _median_ms(costs: list[Cost]) -> float:
    return statistics.median(cost.processor_ms for cost in costs)


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
        "sql: Parquet files": lambda: spark.sql(f"SELECT max(id) FROM parquet.`{scratch}/rows`"),
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


def _cost(call: Callable[[], object], jvm: int) -> Cost:
    counted = 0
    send = GatewayClient.send_command

    def counting(self: GatewayClient, *args: object, **kwargs: object) -> object:
        nonlocal counted
        counted += 1
        return send(self, *args, **kwargs)

    GatewayClient.send_command = counting
    started = _processor_seconds(jvm)
    try:
        for _ in range(CALLS):
            call()
    finally:
        GatewayClient.send_command = send
    spent = _processor_seconds(jvm) - started
    return Cost(processor_ms=spent * 1000 / CALLS, calls=counted / CALLS)


def _processor_seconds(jvm: int) -> float:
    """Return what this process and the JVM have used; the JVM's is in hundredths of a second."""
    fields = Path(f"/proc/{jvm}/stat").read_text(encoding="utf-8").rpartition(") ")[2].split()
    user, kernel = int(fields[11]), int(fields[12])
    return time.process_time() + (user + kernel) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
