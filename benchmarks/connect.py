"""Spark Connect beside a classic session: the queries of `benchmarks.queries`, and merges.

    python -m benchmarks.connect

Each kind of session runs in a process of its own, in turns. Queries name tables of the catalog:
over Connect a temporary view shows all files of its version. Merges go into a copy of the sales of
each process: tickets from all files, from one, and rows of a frame of Python's. The variables are
those of `benchmarks.queries`.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks import queries
from benchmarks.queries import OTHER_TABLES, REPEATS, ROWS, TURNS
from benchmarks.streams import CONNECT, started

ENGINES = (CONNECT, "puredelta")
_SALE = (
    "id * {step} + {first} AS ss_ticket_number, id % 7 AS ss_sold_date_sk, id AS ss_item_sk, "
    "id AS ss_customer_sk, id % 12 AS ss_store_sk, int(id % 100) AS ss_quantity, 0.1D AS "
    "ss_sales_price, 0.3D AS ss_ext_sales_price, 0.2D AS ss_net_profit"
)
_MERGE = (
    "MERGE INTO target t USING {} s ON t.ss_ticket_number = s.ss_ticket_number "
    "WHEN MATCHED AND s.ss_store_sk = 3 THEN DELETE WHEN MATCHED THEN UPDATE SET * "
    "WHEN NOT MATCHED THEN INSERT *"
)
_SCATTERED, _NEAR, _LOCAL = 10_000, 5_000, 1_000


def named_queries(spark: Any, root: Path) -> dict[str, Any]:
    """Return by query its times in seconds, and its rows; its tables are found by name."""
    found = {}
    for sales in ("store_sales", "deleted_sales"):
        spark.sql(f"CREATE DATABASE IF NOT EXISTS names_{sales}")
        for name in (*OTHER_TABLES, "sales"):
            path = root / (sales if name == "sales" else name)
            spark.sql(
                f"CREATE TABLE IF NOT EXISTS names_{sales}.{name} USING delta LOCATION '{path}'"
            )
    for name, (sales, text) in queries.statements().items():
        spark.sql(f"USE names_{sales}")
        found[name] = queries.timed(lambda text=text: spark.sql(text).collect())  # type: ignore[misc]
    spark.sql("USE default")
    return found


def sources(spark: Any, n: int) -> dict[str, Any]:
    """Return by name the rows of the merges of one repeat."""
    step, first = ROWS // _SCATTERED + 1, n * ROWS // (REPEATS + 2)
    local = [(first + k, 1, k, k, 5, k, 0.1, 0.3, 0.2) for k in range(_LOCAL)]
    columns = spark.table("target").columns
    return {
        "merge into all files": spark.range(_SCATTERED).selectExpr(
            *_SALE.format(step=step, first=n).split(", ")
        ),
        "merge into one file": spark.range(_NEAR).selectExpr(
            *_SALE.format(step=1, first=first).split(", ")
        ),
        "merge of Python's rows": spark.createDataFrame(local, columns),
    }


def merges(spark: Any, root: Path) -> dict[str, Any]:
    """Return by merge its times in seconds, and the rows that it counted."""
    found: dict[str, Any] = {}
    spark.sql("DROP TABLE IF EXISTS target")
    spark.sql(f"CREATE TABLE target USING delta AS SELECT * FROM delta.`{root}/store_sales`")
    for n in range(REPEATS + 1):
        for name, source in sources(spark, n).items():
            source.createOrReplaceTempView("source")
            before = time.perf_counter()
            counts = spark.sql(_MERGE.format("source")).collect()
            kept = found.setdefault(name, {"times": [], "rows": []})
            kept["rows"].append([int(count) for count in counts[0]])
            if n:
                kept["times"].append(time.perf_counter() - before)
    spark.sql("DROP TABLE target")
    return found


def main() -> None:
    if len(sys.argv) > 1:
        root, spark = Path(sys.argv[2]), started(sys.argv[1])
        print(json.dumps({**named_queries(spark, root), **merges(spark, root)}))
        spark.stop()
        return
    root = Path(tempfile.mkdtemp(prefix="connect-bench-"))
    try:
        queries.make_tables(root)
        module = "benchmarks.connect"
        queries.report([{e: queries.run(module, e, root) for e in ENGINES} for _ in range(TURNS)])
    finally:
        shutil.rmtree(root, ignore_errors=True)


if __name__ == "__main__":
    main()
