"""Queries beside delta-spark: ten of the kind of TPC-DS, and one for a file of 10,000.

    python -m benchmarks.queries

Each engine runs in a process of its own, in turns, over the same tables: sales in the order of
their dates, so that a condition on a date leaves files out, and the same with deletion vectors.
The rows of both must be equal. The first run of a query is untimed; a frame is made for each run,
so finding the files is part of the time.

PUREDELTA_BENCH_ROWS: rows of the sales (3,000,000); PUREDELTA_BENCH_FILES: files of the table of
which one is wanted (10,000); PUREDELTA_BENCH_REPEATS (5); PUREDELTA_BENCH_TURNS (2).
"""

from __future__ import annotations

import json
import math
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.streams import ENGINES, PREFIX, started

ROWS = int(os.environ.get(f"{PREFIX}ROWS", "3000000"))
FILES = int(os.environ.get(f"{PREFIX}FILES", "10000"))
REPEATS = int(os.environ.get(f"{PREFIX}REPEATS", "5"))
TURNS = int(os.environ.get(f"{PREFIX}TURNS", "2"))
DAYS, ITEMS, CUSTOMERS, STORES = 1826, 18_000, 100_000, 12
ROWS_OF_A_FILE = 20
TABLES = {
    "date_dim": (
        f"SELECT id AS d_date_sk, date_add(DATE'1998-01-01', int(id)) AS d_date, "
        "year(date_add(DATE'1998-01-01', int(id))) AS d_year, "
        "month(date_add(DATE'1998-01-01', int(id))) AS d_moy, "
        "dayofweek(date_add(DATE'1998-01-01', int(id))) AS d_dow "
        f"FROM range(0, {DAYS}, 1, 1)"
    ),
    "item": (
        "SELECT id AS i_item_sk, concat('brand', id % 500) AS i_brand, id % 500 AS i_brand_id, "
        "concat('category', id % 10) AS i_category, id % 100 AS i_manager_id, "
        f"id % 200 AS i_manufact_id, id * 0.01D AS i_current_price FROM range(0, {ITEMS}, 1, 1)"
    ),
    "customer": (
        "SELECT id AS c_customer_sk, concat('name', id) AS c_last_name, "
        f"id % 50 AS c_state FROM range(0, {CUSTOMERS}, 1, 1)"
    ),
    "store": (
        "SELECT id AS s_store_sk, concat('store', id) AS s_store_name, id % 4 AS s_state "
        f"FROM range(0, {STORES}, 1, 1)"
    ),
    "store_sales": (
        f"SELECT id AS ss_ticket_number, id * {DAYS} DIV {ROWS} AS ss_sold_date_sk, "
        f"id * 7919 % {ITEMS} AS ss_item_sk, id * 104729 % {CUSTOMERS} AS ss_customer_sk, "
        f"id % {STORES} AS ss_store_sk, int(id % 100) AS ss_quantity, "
        "id % 1000 * 0.1D AS ss_sales_price, id % 977 * 0.3D AS ss_ext_sales_price, "
        f"id % 331 * 0.2D AS ss_net_profit FROM range(0, {ROWS}, 1, 24)"
    ),
}
OTHER_TABLES = ("date_dim", "item", "customer", "store", "many")
QUERIES = {
    "brands of a month": (
        "SELECT d_year, i_brand, sum(ss_ext_sales_price) s FROM date_dim JOIN sales "
        "ON d_date_sk = ss_sold_date_sk JOIN item ON ss_item_sk = i_item_sk "
        "WHERE i_manufact_id = 128 AND d_moy = 11 GROUP BY ALL ORDER BY d_year, s DESC, 2 LIMIT 100"
    ),
    "categories of a year": (
        "SELECT i_category, sum(ss_ext_sales_price) s FROM date_dim JOIN sales "
        "ON d_date_sk = ss_sold_date_sk JOIN item ON ss_item_sk = i_item_sk "
        "WHERE i_manager_id = 1 AND d_moy = 12 AND d_year = 2000 GROUP BY ALL ORDER BY s DESC, 1"
    ),
    "weekdays of stores": (
        "SELECT s_store_name, d_dow, sum(ss_sales_price) s FROM date_dim JOIN sales "
        "ON d_date_sk = ss_sold_date_sk JOIN store ON ss_store_sk = s_store_sk "
        "WHERE d_year = 1999 GROUP BY ALL ORDER BY ALL"
    ),
    "averages of items": (
        "SELECT i_item_sk, avg(ss_quantity) a, avg(ss_sales_price) b FROM sales JOIN item "
        "ON ss_item_sk = i_item_sk JOIN store ON ss_store_sk = s_store_sk "
        "WHERE s_state = 1 AND i_category = 'category3' GROUP BY ALL ORDER BY i_item_sk LIMIT 100"
    ),
    "a week": (
        "SELECT ss_store_sk, count(*) n, sum(ss_net_profit) s FROM sales "
        "WHERE ss_sold_date_sk BETWEEN 700 AND 706 GROUP BY ALL ORDER BY 1"
    ),
    "one ticket": f"SELECT * FROM sales WHERE ss_ticket_number = {ROWS // 2 + 1}",
    "best customers": (
        "SELECT c_last_name, sum(ss_net_profit) s FROM sales JOIN customer "
        "ON ss_customer_sk = c_customer_sk WHERE c_state = 7 AND ss_sold_date_sk < 365 "
        "GROUP BY ALL ORDER BY s DESC, 1 LIMIT 100"
    ),
    "bands of quantity": (
        "SELECT ss_quantity DIV 20 band, count(*) n, avg(ss_ext_sales_price) a, "
        "avg(ss_net_profit) p FROM sales GROUP BY ALL ORDER BY 1"
    ),
    "above the average": (
        "SELECT count(*) n FROM sales JOIN (SELECT ss_item_sk k, 1.2 * avg(ss_sales_price) a "
        "FROM sales WHERE ss_sold_date_sk > 1500 GROUP BY 1) ON ss_item_sk = k "
        "WHERE ss_sales_price > a AND ss_sold_date_sk > 1500"
    ),
    "rows and bounds": (
        "SELECT count(*) n, min(ss_sold_date_sk) a, max(ss_sold_date_sk) b FROM sales"
    ),
}
ONE_FILE = f"SELECT count(*) n, sum(value) s FROM many WHERE id = {FILES * ROWS_OF_A_FILE // 2}"


def make_tables(root: Path) -> None:
    spark = started("puredelta")
    for name, text in TABLES.items():
        spark.sql(text).write.format("delta").save(str(root / name))
    spark.sql(TABLES["store_sales"]).write.format("delta").option(
        "delta.enableDeletionVectors", "true"
    ).save(str(root / "deleted_sales"))
    spark.sql(f"DELETE FROM delta.`{root}/deleted_sales` WHERE ss_ticket_number % 50 = 3")
    many = root / "many"
    many.mkdir()
    for n in range(FILES):
        ids = range(n * ROWS_OF_A_FILE, (n + 1) * ROWS_OF_A_FILE)
        table = pa.table({"id": list(ids), "value": [float(n)] * ROWS_OF_A_FILE})
        pq.write_table(table, many / f"part-{n:05}.parquet")
    spark.sql(f"CONVERT TO DELTA parquet.`{many}`")
    spark.stop()


def statements() -> dict[str, tuple[str, str]]:
    """Return by name the table that stands for the sales, and the text."""
    sales = {name: ("store_sales", text) for name, text in QUERIES.items()}
    deleted = {f"{name}, vectors": ("deleted_sales", text) for name, text in QUERIES.items()}
    return {**sales, **deleted, "one file of many": ("store_sales", ONE_FILE)}


def measure(spark: Any, root: Path) -> dict[str, Any]:
    """Return by query its times in seconds, and its rows."""

    def query(sales: str, text: str) -> list[Any]:
        for table in (*OTHER_TABLES, sales):
            view = "sales" if table == sales else table
            if view in text:
                frame = spark.read.format("delta").load(str(root / table))
                frame.createOrReplaceTempView(view)
        rows: list[Any] = spark.sql(text).collect()
        return rows

    return {name: timed(partial(query, *one)) for name, one in statements().items()}


def timed(query: Callable[[], list[Any]]) -> dict[str, Any]:
    """Return the times of a query in seconds, and its rows."""
    times, rows = [], []
    for n in range(REPEATS + 1):
        before = time.perf_counter()
        rows = query()
        if n:
            times.append(time.perf_counter() - before)
    return {"times": times, "rows": [[_rounded(v) for v in row] for row in rows]}


def _rounded(value: Any) -> Any:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def run(module: str, engine: str, root: Path) -> dict[str, Any]:
    """Return what an engine measures in a process of its own."""
    command = [sys.executable, "-m", module, engine, str(root)]
    answer = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    found: dict[str, Any] = json.loads(answer.stdout.splitlines()[-1])
    return found


def main() -> None:
    if len(sys.argv) > 1:
        spark = started(sys.argv[1])
        print(json.dumps(measure(spark, Path(sys.argv[2]))))
        spark.stop()
        return
    root = Path(tempfile.mkdtemp(prefix="query-bench-"))
    try:
        make_tables(root)
        module = "benchmarks.queries"
        report([{engine: run(module, engine, root) for engine in ENGINES} for _ in range(TURNS)])
    finally:
        shutil.rmtree(root, ignore_errors=True)


def report(turns: list[dict[str, dict[str, Any]]]) -> None:
    """Print the medians of two engines and their ratio; stop at rows that differ."""
    first, second = turns[0]
    ratios: dict[str, list[float]] = {"plain": [], "vectors": []}
    for name, run_first in turns[0][first].items():
        times = []
        for engine in (first, second):
            runs = [turn[engine][name] for turn in turns]
            if any(run["rows"] != run_first["rows"] for run in runs):
                raise SystemExit(f"{name}: {engine} has other rows")
            times.append(statistics.median(t for run in runs for t in run["times"]))
        ratio = times[0] / times[1]
        if name in statements() and name != "one file of many":
            ratios["vectors" if name.endswith("vectors") else "plain"].append(ratio)
        print(f"{name}: {first} {times[0]:.3f} s, {second} {times[1]:.3f} s: {ratio:.2f}")
    for kind, some in ratios.items():
        mean = math.exp(statistics.fmean(map(math.log, some)))
        print(f"{kind}: geometric mean {mean:.2f}, worst {max(some):.2f}")


if __name__ == "__main__":
    main()
