"""The share of a statement that its export to Iceberg takes, on a table of many files.

    python -m benchmarks.exports [--files 10000] [--statements 20] [--directory DIR]

The table has one row in each file, and ``puredelta.iceberg.export`` is set. Each statement inserts,
updates or deletes one row, and exports after its commit. The shares are medians: of the seconds on
the clock that one statement takes. The commit is read before the clock of the export starts: the
next statement would read it. The first three statements of each kind are not counted.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from unittest import mock

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

import puredelta
from puredelta.iceberg import exporting
from puredelta.iceberg.entry import Exported
from puredelta.log.replay.table_log import TableLog

WARM_UP = 3


def _laid(root: Path, num_files: int) -> None:
    root.mkdir()
    for number in range(num_files):
        rows = {"id": [number], "name": [f"name {number}"], "value": [number / 7]}
        pq.write_table(pa.table(rows), root / f"part-{number:05d}.parquet")


def _statements(target: str, num_files: int, many: int) -> Iterator[tuple[str, str]]:
    step = max(1, num_files // (2 * many))
    for number in range(many):
        new = num_files + number
        yield "INSERT", f"INSERT INTO {target} VALUES ({new}, 'name {new}', {new / 7}D)"
    for number in range(many):
        yield "UPDATE", f"UPDATE {target} SET value = 0 WHERE id = {2 * number * step}"
    for number in range(many):
        yield "DELETE", f"DELETE FROM {target} WHERE id = {(2 * number + 1) * step}"


def _timed(seconds: list[float]) -> Callable[..., Exported]:
    export = exporting.export_version

    def timed(log: TableLog, *, expire_before_ms: int | None) -> Exported:
        log.snapshot()
        started = time.perf_counter()
        exported = export(log, expire_before_ms=expire_before_ms)
        seconds.append(time.perf_counter() - started)
        return exported

    return timed


def measure(directory: Path, num_files: int, many: int) -> None:
    """Print the median times of statements and of their exports, and the median shares."""
    root = directory / "table"
    _laid(root, num_files)
    spark = SparkSession.builder.master("local[2]").appName("exports").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    puredelta.activate(spark)
    target = f"delta.`{root}`"
    spark.sql(f"CONVERT TO DELTA parquet.`{root}`")
    properties = "'puredelta.iceberg.export' = 'true'"
    spark.sql(f"ALTER TABLE {target} SET TBLPROPERTIES ({properties})")
    taken: dict[str, list[tuple[float, float]]] = {}
    for kind, text in _statements(target, num_files, many + WARM_UP):
        exports: list[float] = []
        with mock.patch.object(exporting, "export_version", _timed(exports)):
            started = time.perf_counter()
            spark.sql(text)
            taken.setdefault(kind, []).append((time.perf_counter() - started, sum(exports)))
        if len(exports) != 1:
            raise SystemExit(f"{len(exports)} exports of: {text}")
    for kind, measured in taken.items():
        whole, exported = zip(*measured[WARM_UP:], strict=True)
        shares = [part / all_ for all_, part in measured[WARM_UP:]]
        print(
            f"{kind}: export {1e3 * statistics.median(exported):.1f} of "
            f"{1e3 * statistics.median(whole):.0f} ms, {100 * statistics.median(shares):.2f} %"
        )


def main() -> None:
    """Measure in a directory that is removed afterwards."""
    parser = argparse.ArgumentParser(prog="benchmarks.exports")
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--statements", type=int, default=20)
    parser.add_argument("--directory", default=None)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.directory) as directory:
        measure(Path(directory), options.files, options.statements)


if __name__ == "__main__":
    main()
