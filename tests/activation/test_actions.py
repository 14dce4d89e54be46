"""Actions of frames of Delta tables: what the log knows takes no job."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from puredelta.spark.scan.skippable_files import SkippableFiles
from puredelta.tables import DeltaTable


@pytest.fixture
def path(active: SparkSession, tmp_path: Path) -> str:
    path = str(tmp_path / "t")
    rows = active.range(0, 1000, 1, 10).selectExpr("id", "id DIV 500 AS p")
    rows.write.format("delta").partitionBy("p").save(path)
    return path


@pytest.fixture
def num_jobs(active: SparkSession) -> Iterator[Callable[[], int]]:
    """Return how many jobs were run in the test so far."""
    context = active.sparkContext
    context.setJobGroup("actions", "")
    yield lambda: len(context.statusTracker().getJobIdsForGroup("actions"))
    context.setLocalProperty("spark.jobGroup.id", None)


_ACTIONS: dict[str, Callable[[DataFrame], Any]] = {
    "collect": lambda rows: tuple(rows.collect()[0]),
    "first": lambda rows: tuple(rows.first() or ()),
    "toPandas": lambda rows: tuple(rows.toPandas().iloc[0]),
    "toArrow": lambda rows: tuple(rows.toArrow().to_pylist()[0].values()),
    "toLocalIterator": lambda rows: tuple(next(rows.toLocalIterator())),
}


@pytest.mark.thorough
def test_answers_read_no_file(
    active: SparkSession, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed: list[object] = []
    monkeypatch.setattr(SkippableFiles, "every_file", lambda *_: listed.append(1))
    monkeypatch.setattr(SkippableFiles, "files_for", lambda *_, **__: listed.append(2))
    text = f"SELECT count(*) AS n, max(id) AS top FROM delta.`{path}` WHERE p = 0"
    by_sql, by_frame = active.sql(text), active.read.format("delta").load(path).agg(F.min("id"))
    for run in _ACTIONS.values():
        assert run(by_sql) == (500, 499)
        assert run(by_frame) == (0,)
    assert listed == []


def test_counts_take_no_job(
    active: SparkSession, path: str, num_jobs: Callable[[], int], capsys: Any
) -> None:
    rows = active.read.format("delta").load(path)
    before = num_jobs()
    assert rows.count() == 1000
    assert rows.where("p = 1").count() == 500
    assert not rows.isEmpty()
    assert rows.where("p = 7").isEmpty()
    rows.agg(F.count("*").alias("rows")).explain()
    assert "LocalTableScan [rows" in capsys.readouterr().out
    assert num_jobs() == before
    assert rows.where("id < 10").count() == 10
    assert num_jobs() > before


@pytest.mark.thorough
def test_a_table_of_the_catalog_is_counted(
    active: SparkSession, path: str, num_jobs: Callable[[], int]
) -> None:
    active.sql(f"CREATE TABLE counted_rows USING delta LOCATION '{path}'")
    try:
        before = num_jobs()
        assert active.table("counted_rows").count() == 1000
        assert active.sql("SELECT max(id) AS m FROM counted_rows").collect() == [(999,)]
        assert num_jobs() == before
        active.sql("INSERT INTO counted_rows VALUES (5000, 3)")
        assert active.sql("SELECT max(id) FROM counted_rows").collect() == [(5000,)]
    finally:
        active.sql("DROP TABLE counted_rows")


@pytest.mark.thorough
def test_the_first_rows_are_shown(active: SparkSession, path: str, capsys: Any) -> None:
    rows = active.read.format("delta").load(path)
    rows.show(2)
    rows.show(truncate=False)
    rows.select("id").show(n=3, vertical=True)
    out = capsys.readouterr().out
    assert "only showing top 2 rows" in out
    assert "only showing top 20 rows" in out
    assert "-RECORD 2-" in out
    assert len(rows.take(7)) == len(rows.head(7)) == 7


def test_rows_that_a_write_counts_are_read_by_it(active: SparkSession, path: str) -> None:
    """A frame stays what it is: a write of it still reads the table that it is written to."""
    count = active.sql(f"SELECT count(*) AS id, 9L AS p FROM delta.`{path}`")
    assert count.count() == 1
    count.write.format("delta").mode("append").save(path)
    rows = active.read.format("delta").load(path)
    assert rows.where("p = 9").collect() == [(1000, 9)]
    (last,) = DeltaTable.forPath(active, path).history(1).collect()
    assert last.isBlindAppend is False
