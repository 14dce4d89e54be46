"""Many queries at once, cancelled queries and interrupted ones: the session stays usable."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from pyspark import InheritableThread
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import puredelta
from puredelta.spark.jvm.gateway import JVM_ERRORS
from puredelta.spark.scan import skippable_files


@pytest.fixture
def active(spark: SparkSession) -> Iterator[SparkSession]:
    assert puredelta.activate(spark)
    yield spark
    puredelta.deactivate()


@pytest.fixture(scope="module")
def ten(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A table of ten files: ``id`` 0 to 99 in the first, and so on."""
    path = str(tmp_path_factory.mktemp("ten") / "t")
    puredelta.write(spark.range(0, 1000, 1, 10).selectExpr("id", "id % 7 AS k"), path)
    return path


@pytest.mark.parametrize("queries", [16, pytest.param(100, marks=pytest.mark.thorough)])
def test_queries_in_eight_threads_leave_nothing(
    active: SparkSession, ten: str, queries: int
) -> None:
    """Aggregates that the log answers, limits, conditions and joins, by frames and by text."""
    spark = active
    wrong: list[object] = []
    puredelta.read(spark, ten).createOrReplaceTempView("ten_hundred")

    def ask(n: int) -> None:
        low = n * 57 % 900
        text = f"FROM delta.`{ten}` WHERE id BETWEEN {low} AND {low + 9}"
        match n % 4:
            case 0:
                found, want = (
                    spark.sql("SELECT count(*), max(id) FROM ten_hundred").first(),
                    (1000, 999),
                )
            case 1:
                found, want = (
                    spark.sql(f"SELECT count(*), sum(id) {text}").first(),
                    (10, 10 * low + 45),
                )
            case 2:
                rows = puredelta.read(spark, ten).where(f"id < {low}")
                found, want = (rows.count(), len(rows.limit(1).collect())), (low, min(low, 1))
            case _:
                found, want = (
                    (len(spark.sql(f"SELECT * FROM delta.`{ten}` LIMIT {low + 1}").collect()),),
                    (low + 1,),
                )
        if found is None or tuple(found) != want:
            wrong.append((n, found))

    ask(0)
    before = threading.active_count()
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(ask, range(queries)))
    assert wrong == []
    until = time.monotonic() + 20
    while threading.active_count() > before + 8 and time.monotonic() < until:
        time.sleep(0.1)
    assert threading.active_count() <= before + 8  # those that the index is asked by


def test_a_cancelled_query_leaves_the_session_usable(
    spark: SparkSession, ten: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    context = spark.sparkContext
    rows = puredelta.read(spark, ten).where("id < 500")
    raised: list[BaseException] = []

    def endless() -> None:
        context.addJobTag("endless")
        try:
            rows.crossJoin(spark.range(10**12)).agg(F.sum(F.col("k"))).collect()
        except JVM_ERRORS as error:
            raised.append(error)

    thread = InheritableThread(target=endless, session=spark)
    thread.start()
    # Its first jobs are short ones, so one call may come before the endless job or after another.
    until = time.monotonic() + 120
    while thread.is_alive() and time.monotonic() < until:
        thread.join(0.2)
        context.cancelAllJobs()
    assert not thread.is_alive()
    assert len(raised) == 1
    assert "cancelled" in str(raised[0])
    assert rows.count() == 500
    # cancelled while its files are being chosen: there is no job yet, and the query goes on
    original = skippable_files.SkippableFiles.files_for

    def cancelled(self: Any, nodes: Any, **how: Any) -> Any:
        context.cancelAllJobs()
        return original(self, nodes, **how)

    monkeypatch.setattr(skippable_files.SkippableFiles, "files_for", cancelled)
    assert rows.where("id >= 490").agg(F.sum("id")).collect() == [(4945,)]


@pytest.mark.thorough
def test_an_interrupt_while_files_are_chosen_leaves_the_session_usable(tmp_path: Path) -> None:
    program = [sys.executable, "-m", "tests.spark.scan.interrupted_query", str(tmp_path / "t")]
    done = subprocess.run(program, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert json.loads(done.stdout.splitlines()[-1]) == {
        "asked": True,
        "raised": "KeyboardInterrupt",
        "rows": [55, 5],
        "left threads": 0,
    }
