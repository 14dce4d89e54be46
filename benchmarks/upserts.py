"""What one-call upserts cost beside a bare MERGE of the same rows.

``python -m benchmarks.upserts [ROWS] [CHANGES]``: the table has ROWS rows (2,000,000), the source
CHANGES (20,000), of which nine in ten are in the table. Every statement runs on its own copy of
the table; the statements take turns, and the best of some rounds counts.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import puredelta
from puredelta import DeltaTable

ROUNDS = 4
COLUMNS = ["id", "name", "amount", "day", "note", "seq"]


def main() -> None:
    rows, changes = (int(text) for text in [*sys.argv[1:], 2_000_000, 20_000][:2])
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.sql.shuffle.partitions", "4")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", "3g")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    root = Path(tempfile.mkdtemp())
    try:
        measure(spark, root, rows, changes)
    finally:
        shutil.rmtree(root)
        spark.stop()


def measure(spark: SparkSession, root: Path, rows: int, changes: int) -> None:
    base = content(spark.range(rows), 0).repartitionByRange(16, "id")
    puredelta.write(base, root / "plain")
    source_path = str(root / "source")
    ids = spark.range(changes).select((F.col("id") * (rows // changes) + rows // 10).alias("id"))
    content(ids, 1).write.parquet(source_path)
    source = spark.read.parquet(source_path)
    state, history = root / "state", root / "history"
    puredelta.apply_changes(state, base, "id", "seq", create=True)
    puredelta.scd2(history, base, "id", "seq", create=True)
    statements: dict[str, tuple[Path, Callable[[str], object]]] = {
        "bare MERGE": (root / "plain", lambda t: bare(spark, t, source)),
        "upsert": (root / "plain", lambda t: puredelta.upsert(t, source, "id")),
        "upsert, latest": (
            root / "plain",
            lambda t: puredelta.upsert(t, source, "id", order_by="seq"),
        ),
        "sync within a scope": (
            root / "plain",
            lambda t: puredelta.sync(t, source, "id", scope="id < 0 OR seq = 1"),
        ),
        "apply_changes": (state, lambda t: puredelta.apply_changes(t, source, "id", "seq")),
        "bare MERGE, type 2": (history, lambda t: bare_history(spark, t, source)),
        "scd2": (history, lambda t: puredelta.scd2(t, source, "id", "seq")),
    }
    best = {name: float("inf") for name in statements}
    for turn in range(ROUNDS):
        for name, (table, statement) in statements.items():
            copy = str(root / "copy")
            shutil.copytree(table, copy)
            started = time.monotonic()
            statement(copy)
            if turn:  # the first round warms up
                best[name] = min(best[name], time.monotonic() - started)
            shutil.rmtree(copy)
    for name, seconds in best.items():
        beside = best["bare MERGE, type 2" if name == "scd2" else "bare MERGE"]
        print(f"{name:22} {seconds:7.2f} s  {seconds / beside:5.2f}")


def content(ids: DataFrame, seq: int) -> DataFrame:
    return ids.select(
        "id",
        F.concat(F.lit(f"name {seq} "), F.col("id").cast("string")).alias("name"),
        (F.col("id") * 0.25 + seq).alias("amount"),
        F.date_add(F.lit("2026-01-01").cast("date"), (F.col("id") % 90).cast("int")).alias("day"),
        F.sha2(F.col("id").cast("string"), 256).alias("note"),
        F.lit(seq).cast("long").alias("seq"),
    )


def bare(spark: SparkSession, table: str, source: DataFrame) -> None:
    (
        DeltaTable.forPath(spark, table)
        .alias("t")
        .merge(source.alias("s"), "t.id = s.id")
        .whenMatchedUpdateAll()
        .whenNotMatchedInsertAll()
        .execute()
    )


def bare_history(spark: SparkSession, table: str, source: DataFrame) -> None:
    """The MERGE of every handbook: rows to close, and rows to insert, in one source."""
    delta = DeltaTable.forPath(spark, table)
    current = delta.toDF().where("is_current").alias("c")
    changed = source.alias("u").join(current, "id").where("u.name <> c.name").select("u.*")
    staged = changed.withColumn("key", F.lit(None).cast("long")).unionByName(
        source.withColumn("key", F.col("id"))
    )
    values = {name: f"s.{name}" for name in COLUMNS if name != "seq"}
    (
        delta.alias("t")
        .merge(staged.alias("s"), "t.id = s.key AND t.is_current")
        .whenMatchedUpdate("t.name <> s.name", {"valid_to": "s.seq", "is_current": "false"})
        .whenNotMatchedInsert(values={**values, "valid_from": "s.seq", "is_current": "true"})
        .execute()
    )


if __name__ == "__main__":
    main()
