"""``python -m tests.fuzz.with_spark --examples 500``: statements over damaged files, beside Spark.

CONVERT, reads, DELETE, OPTIMIZE and MERGE, with the file as source and in the target, in one local
session. What a statement makes of a damaged file is an error that names it, or the rows that Spark
itself reads of it. Where Spark reads nothing, Arrow may still read rows: they are counted.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

from pyspark.sql import SparkSession

import puredelta
from puredelta.errors import DeltaError
from tests.fuzz.parquet_files import SIMPLE, valid_files
from tests.fuzz.parquet_mutations import mutated_file

_NAME = "mutated"
_Rows = Counter[tuple[Any, ...]]


def main() -> int:
    """Return 1 if a statement was a violation."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--examples", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", "UTC")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("OFF")
    puredelta.activate(spark)
    started = time.monotonic()
    counts = run(spark, options.examples, options.seed)
    for result, number in sorted(counts.items()):
        print(f"{number:8}  {result}")  # noqa: T201
    print(f"{options.examples} files in {time.monotonic() - started:.0f} s")  # noqa: T201
    spark.stop()
    return 1 if any("VIOLATION" in result for result in counts) else 0


def run(spark: SparkSession, examples: int, seed: int) -> Counter[str]:
    """Use the files of some seeds; print violations with their seeds."""
    counts: Counter[str] = Counter()
    for number in range(seed, seed + examples):
        with tempfile.TemporaryDirectory() as directory:
            try:
                counts.update(_outcomes(spark, Path(directory), Random(number)))
            except Exception:  # noqa: BLE001 - that is what is looked for
                counts["VIOLATION"] += 1
                print(f"seed {number}\n{traceback.format_exc()}", flush=True)  # noqa: T201
    return counts


def _outcomes(spark: SparkSession, directory: Path, random: Random) -> list[str]:
    kind, content = mutated_file(random)
    while "one column" in kind or "encrypted" in kind or "fastparquet" in kind:
        kind, content = mutated_file(random)
    files = directory / "files"
    files.mkdir()
    (files / f"{_NAME}.parquet").write_bytes(content)
    (directory / "sound").mkdir()
    (directory / "sound" / "sound.parquet").write_bytes(valid_files()[kind])
    known = _rows(lambda: spark.read.parquet(str(files)))
    sound = _rows(lambda: spark.read.parquet(str(directory / "sound")))
    if isinstance(sound, str):
        return [f"{kind}: no file for Spark"]
    table = directory / "table"
    shutil.copytree(files, table)
    uses: list[tuple[str, Callable[[], object], Path, Callable[[_Rows], _Rows]]] = [
        ("convert", lambda: spark.sql(f"CONVERT TO DELTA parquet.`{table}`"), table, lambda r: r),
        (
            "delete",
            lambda: spark.sql(f"DELETE FROM delta.`{table}` WHERE id = 5"),
            table,
            lambda r: Counter({row: n for row, n in r.items() if row[0] != 5}),
        ),
        (
            "merge target",
            lambda: spark.sql(
                f"MERGE INTO delta.`{table}` t USING (SELECT 6L id) s ON t.id = s.id "
                "WHEN MATCHED THEN DELETE"
            ),
            table,
            lambda r: Counter({row: n for row, n in r.items() if row[0] not in (5, 6)}),
        ),
        (
            "optimize",
            lambda: spark.sql(f"OPTIMIZE delta.`{table}`"),
            table,
            lambda r: Counter({row: n for row, n in r.items() if row[0] not in (5, 6)}),
        ),
    ]
    found = []
    expected = known
    for name, use, at, change in uses:
        result = _tried(use)
        if result is None:
            expected = known if isinstance(known, str) else change(known)
            result = _compared(_rows(lambda: spark.read.format("delta").load(str(at))), expected)  # noqa: B023
            found.append(f"{name}: {result}")
        else:
            found.append(f"{name}: {result}")
            break
    found.append(f"merge source: {_merged(spark, directory, files, known, sound)}")
    return found


def _merged(
    spark: SparkSession, directory: Path, files: Path, known: _Rows | str, sound: _Rows
) -> str:
    target = directory / "target"
    spark.read.parquet(str(directory / "sound")).select(*SIMPLE).where("id < 10").write.format(
        "delta"
    ).save(str(target))
    names = ", ".join(SIMPLE)
    result = _tried(
        lambda: spark.sql(
            f"MERGE INTO delta.`{target}` t USING (SELECT {names} FROM parquet.`{files}`) s "
            f"ON t.id = s.id WHEN NOT MATCHED THEN INSERT ({names}) VALUES ({names})"
        )
    )
    if result is not None:
        return result
    before = Counter({row: n for row, n in sound.items() if row[0] < 10})
    expected: _Rows | str = known
    if not isinstance(known, str):
        ids = {row[0] for row in before}
        expected = before + Counter({row: n for row, n in known.items() if row[0] not in ids})
    return _compared(_rows(lambda: spark.read.format("delta").load(str(target))), expected)


def _tried(use: Callable[[], Any]) -> str | None:
    try:
        use()
    except DeltaError as refusal:
        return f"refused {refusal.code.name}"
    except Exception as failure:  # noqa: BLE001 - any of Spark
        is_named = _NAME in str(failure) or "parquet" in str(failure).lower()
        return "an error of Spark" if is_named else f"VIOLATION no file is named: {failure}"[:300]
    return None


def _compared(found: _Rows | str, expected: _Rows | str) -> str:
    if isinstance(expected, str):
        return "Spark reads neither" if isinstance(found, str) else "read by Arrow alone"
    if isinstance(found, str):
        return "an error of Spark"
    assert found == expected, (found - expected, expected - found)
    return "the rows of Spark"


def _rows(frame: Callable[[], Any]) -> _Rows | str:
    """Return the rows, as far as columns are plain; the error as a text."""
    try:
        return Counter(
            map(
                tuple,
                frame()
                .selectExpr("id", "i", "cast(t as string) t", "cast(d as string) d")
                .collect(),
            )
        )
    except Exception as failure:  # noqa: BLE001 - any of Spark
        return str(failure)[:200]


if __name__ == "__main__":
    sys.exit(main())
