"""What one-call upserts cost beside the MERGE that people write by hand for the same rows.

``python -m benchmarks.upserts [ROWS] [CHANGES]``: the table has ROWS rows (2,000,000), the source
CHANGES (20,000), of which nine in ten are in the table. Every statement runs on its own copy of
the table; the statements take turns, and the best of some rounds counts. What is written by hand
brings one row a key by a window where the call does, and refuses nothing: neither NULLs nor ties.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

import puredelta
from puredelta import DeltaTable
from puredelta.tables import DeltaMergeBuilder

ROUNDS = 4
COLUMNS = ["id", "name", "amount", "day", "note", "seq"]
SCOPE = "id < 0 OR seq = 1"
Statement: TypeAlias = Callable[[str], object]
"""Changes the table at a path."""


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
    plain = root / "plain"
    pairs: dict[str, tuple[Path, Statement, Statement]] = {
        "upsert": (
            plain,
            lambda t: upserting(spark, t, source).execute(),
            lambda t: puredelta.upsert(t, source, "id"),
        ),
        "upsert, latest": (
            plain,
            lambda t: upserting(spark, t, newest(source)).execute(),
            lambda t: puredelta.upsert(t, source, "id", order_by="seq"),
        ),
        "sync within a scope": (
            plain,
            lambda t: bare_sync(spark, t, source),
            lambda t: puredelta.sync(t, source, "id", scope=SCOPE),
        ),
        "apply_changes": (
            state,
            lambda t: bare_state(spark, t, newest(source)),
            lambda t: puredelta.apply_changes(t, source, "id", "seq"),
        ),
        "scd2": (
            history,
            lambda t: bare_history(spark, t, newest(source)),
            lambda t: puredelta.scd2(t, source, "id", "seq"),
        ),
    }
    best: dict[tuple[str, int], float] = {}
    for turn in range(ROUNDS):
        for name, (table, *both) in pairs.items():
            for side, statement in enumerate(both):
                seconds = timed(statement, table, root / "copy")
                if turn:  # the first round warms up
                    best[name, side] = min(best.get((name, side), seconds), seconds)
    print(f"{'':22} by hand, one call, ratio")
    for name in pairs:
        by_hand, called = best[name, 0], best[name, 1]
        print(f"{name:22} {by_hand:7.2f} s {called:7.2f} s {called / by_hand:5.2f}")


def timed(statement: Statement, table: Path, copy: Path) -> float:
    """Run a statement on a copy of a table, and return the seconds it took."""
    shutil.copytree(table, copy)
    started = time.monotonic()
    statement(str(copy))
    seconds = time.monotonic() - started
    shutil.rmtree(copy)
    return seconds


def content(ids: DataFrame, seq: int) -> DataFrame:
    return ids.select(
        "id",
        F.concat(F.lit(f"name {seq} "), F.col("id").cast("string")).alias("name"),
        (F.col("id") * 0.25 + seq).alias("amount"),
        F.date_add(F.lit("2026-01-01").cast("date"), (F.col("id") % 90).cast("int")).alias("day"),
        F.sha2(F.col("id").cast("string"), 256).alias("note"),
        F.lit(seq).cast("long").alias("seq"),
    )


def upserting(spark: SparkSession, table: str, source: DataFrame) -> DeltaMergeBuilder:
    """Return the MERGE of every handbook, to be executed or to go on with."""
    return (
        DeltaTable.forPath(spark, table)
        .alias("t")
        .merge(source.alias("s"), "t.id = s.id")
        .whenMatchedUpdateAll()
        .whenNotMatchedInsertAll()
    )


def newest(source: DataFrame) -> DataFrame:
    """Keep the newest row of a key, as handbooks do it."""
    latest_first = Window.partitionBy("id").orderBy(F.col("seq").desc())
    ranked = source.withColumn("rank", F.row_number().over(latest_first))
    return ranked.where("rank = 1").drop("rank")


def bare_sync(spark: SparkSession, table: str, source: DataFrame) -> None:
    deletes = "t.id < 0 OR t.seq = 1"
    upserting(spark, table, source).whenNotMatchedBySourceDelete(deletes).execute()


def bare_state(spark: SparkSession, table: str, source: DataFrame) -> None:
    values = {name: f"s.{name}" for name in COLUMNS}
    values |= {"__SEQUENCE": "s.seq", "__DELETED": "false"}
    (
        DeltaTable.forPath(spark, table)
        .alias("t")
        .merge(source.alias("s"), "t.id = s.id")
        .whenMatchedUpdate("s.seq > t.__SEQUENCE", values)
        .whenNotMatchedInsert(values=values)
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
