"""Records what delta-spark makes of the cases of the corpus, as a program.

``python -m tests.reference.record`` runs every case of ``tests/corpus/cases`` through
delta-spark and writes its outcome into its line; with ``--new`` only the cases that have none.
``--seeds 0:240:4`` adds the random statements of these seeds first.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import delta
import delta.tables
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from tests.corpus.case import CASES, read_cases
from tests.corpus.run import Engine, LocalPlace, Run
from tests.reference.random_cases import random_case
from tests.reference.session_start import started_in_turn

_AROUND = frozenset({"INTERNAL_ERROR", "TASK_WRITE_FAILED", "FAILED_READ_FILE.NO_HINT"})
"""Errors that say only where another one happened."""


def main(arguments: argparse.Namespace) -> None:
    """Record the cases of every file."""
    with tempfile.TemporaryDirectory() as scratch:
        spark = start_session(scratch)
        tables = Path(scratch) / "tables"
        run = Run(
            spark=spark, directory=tables, engine=delta_spark(spark), place=LocalPlace(tables)
        )
        add_random(spark, arguments.seeds)
        for path in sorted(CASES.glob("*.jsonl")):
            if not arguments.files or path.stem in arguments.files:
                record(run, path, only_new=arguments.new)
        spark.stop()


def add_random(spark: SparkSession, seeds: range) -> None:
    """Add the random statements of these seeds that are not there yet."""
    path = CASES / "random.jsonl"
    known = {case.id for case in read_cases(path)} if path.exists() else set()
    with path.open("a") as file:
        for seed in seeds:
            try:
                case = random_case(spark, seed)
            except AnalysisException as error:  # its rows are none of their types
                sys.stderr.write(f"no case of seed {seed}: {error}\n")
                continue
            if case.id not in known:
                file.write(f"{case.line()}\n")


def record(run: Run, path: Path, *, only_new: bool) -> None:
    """Write the outcomes into the lines of one file, one by one."""
    cases = read_cases(path)
    for number, case in enumerate(cases):
        if only_new and case.outcome is not None:
            continue
        started = time.monotonic()
        try:
            cases[number] = replace(case, outcome=run.outcome(case))
        except Exception as error:  # noqa: BLE001 - the next case may do
            sys.stderr.write(f"{case.id} was not recorded: {error}\n")
            continue
        path.write_text("".join(f"{case.line()}\n" for case in cases))
        sys.stdout.write(f"{case.id}: {time.monotonic() - started:.1f} s\n")
        sys.stdout.flush()


def start_session(scratch: str) -> SparkSession:
    """A session with delta-spark that is set up as the one that the tests share."""
    os.environ["TZ"] = "UTC"
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    # As for the tests: Java's second compiler does not pay for itself within minutes.
    os.environ.setdefault("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
    time.tzset()
    builder = (
        SparkSession.builder.master("local[1]")
        .config("spark.driver.memory", "1500m")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
        .config(
            "spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog"
        )
        .config("spark.driver.extraJavaOptions", "-Duser.timezone=UTC")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "1")
        .config("spark.sql.adaptive.enabled", "false")
        .config("spark.sql.codegen.wholeStage", "false")
        .config("spark.databricks.delta.snapshotPartitions", "1")
        .config("spark.sql.warehouse.dir", f"{scratch}/warehouse")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
    )
    spark = started_in_turn(delta.configure_spark_with_delta_pip(builder))
    spark.sparkContext.setLogLevel("OFF")
    return spark


def delta_spark(spark: SparkSession) -> Engine:
    """delta-spark as an engine of the corpus."""
    reader = spark.read.format("delta")
    feed = spark.read.format("delta").option("readChangeFeed", "true")
    return Engine(
        open=lambda path: delta.tables.DeltaTable.forPath(spark, path),
        run_sql=spark.sql,
        read=reader.load,
        append=lambda rows, path: rows.write.format("delta").mode("append").save(path),
        changes=lambda path, version: feed.option("startingVersion", version).load(path),
        explain=explain,
    )


def explain(error: Exception) -> dict[str, Any]:
    """Class and SQLSTATE of the first error in the chain that says what went wrong."""
    found = list(_java_classes(error))
    condition = getattr(error, "getCondition", lambda: None)()
    if condition and not found:
        found.append((condition, error.getSqlState()))
    pattern = r"\[([A-Z][A-Z0-9_]+(?:\.[A-Z0-9_]+)*)\].*?SQLSTATE: (\w{5})"
    found += re.findall(pattern, str(error), re.DOTALL)
    if not found:
        return {"class": None, "sqlstate": None, "type": type(error).__name__}
    name, state = next((pair for pair in found if pair[0] not in _AROUND), found[0])
    return {"class": name, "sqlstate": state}


def _java_classes(error: BaseException) -> Iterator[tuple[str, str | None]]:
    """Classes and SQLSTATEs of a Java exception and its causes, outermost first.

    The exception is the innermost Python one's: PySpark fails to translate some of Delta's.
    """
    while error.__context__ is not None:
        error = error.__context__
    thrown = getattr(error, "java_exception", None) or getattr(error, "_origin", None)
    for _ in range(20):
        if thrown is None:
            return
        if "getCondition" in dir(thrown) and thrown.getCondition():
            yield thrown.getCondition(), thrown.getSqlState()
        thrown = thrown.getCause()


def seed_range(text: str) -> range:
    """Seeds as a slice is written: the first, the one after the last, and perhaps the step."""
    return range(*map(int, text.split(":")))


def parsed() -> argparse.Namespace:
    """The arguments of the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--new", action="store_true", help="only cases without an outcome")
    parser.add_argument("--seeds", type=seed_range, default=range(0), help="first:last:step")
    parser.add_argument("files", nargs="*", help="names of files, without .jsonl")
    return parser.parse_args()


if __name__ == "__main__":
    main(parsed())
