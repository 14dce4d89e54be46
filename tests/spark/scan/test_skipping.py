"""Which files a query reads: Spark's planner asks with the query's conditions."""

from __future__ import annotations

import gc
import logging
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

import puredelta
from puredelta.spark.scan import skippable_files
from puredelta.spark.scan.plain_scan import PlainScan, plain_scan
from puredelta.spark.write.parquet_job import temporary_settings
from puredelta.tables import DeltaTable
from tests.spark.scan.skipping_cases import (
    FILES_AND_ROWS,
    KINDS,
    PARTITIONED_BY,
    conditions,
    files_read,
    many_types,
)


@pytest.fixture(scope="module")
def ten(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A table of ten files: ``id`` 0 to 99 in the first, and so on."""
    path = str(tmp_path_factory.mktemp("ten") / "t")
    rows = spark.range(0, 1000, 1, 10).selectExpr("id", "id % 7 AS k", "string(id) AS s")
    puredelta.write(rows, path)
    return path


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[list[str] | None]:
    """The names of the files that each question was answered with."""
    answers: list[list[str] | None] = []
    original = skippable_files.SkippableFiles.files_for

    def recorded(self: Any, nodes: Any, **how: Any) -> Any:
        some = original(self, nodes, **how)
        answers.append(None if some is None else [file.name for file in some])
        return some

    monkeypatch.setattr(skippable_files.SkippableFiles, "files_for", recorded)
    return answers


# --- the property ---------------------------------------------------------------------------


def _plain(spark: SparkSession, path: str) -> None:
    puredelta.write(many_types(spark), path)


def _partitioned(spark: SparkSession, path: str) -> None:
    puredelta.write(many_types(spark), path, partition_by=PARTITIONED_BY)


def _mapped_with_vectors(spark: SparkSession, path: str) -> None:
    properties = {
        "delta.columnMapping.mode": "name",
        "delta.enableDeletionVectors": "true",
        "delta.dataSkippingNumIndexedCols": "-1",
    }
    puredelta.write(many_types(spark), path, partition_by=["p_day"], properties=properties)
    DeltaTable.forPath(spark, path).delete("id % 30 IN (0, 29) OR id BETWEEN 60 AND 89")


@pytest.mark.sampled(3)
@pytest.mark.parametrize("num_conditions", [12, pytest.param(200, marks=pytest.mark.thorough)])
@pytest.mark.parametrize("make", [_plain, _partitioned, _mapped_with_vectors])
def test_no_row_is_skipped(
    spark: SparkSession,
    tmp_path: Path,
    asked: list[list[str] | None],
    make: Callable[[SparkSession, str], None],
    num_conditions: int,
) -> None:
    path = str(tmp_path / "t")
    make(spark, path)
    rows = puredelta.read(spark, path)
    tried = list(conditions(num_conditions, seed=26))
    counted = rows.groupBy("_metadata.file_name").agg(
        *(_count_if(condition, n) for n, condition in enumerate(tried))
    )
    by_file = {row["file_name"]: row for row in counted.collect()}
    asked.clear()
    total = 0
    for n, condition in enumerate(tried):
        wanted = {name for name, row in by_file.items() if row[f"c{n}"]}
        before = len(asked)
        read = files_read(rows.where(condition))
        total += read
        answers = asked[before:]
        assert len(wanted) <= read, condition
        for answer in answers:
            assert answer is None or wanted <= set(answer), condition
    assert total < 0.7 * len(tried) * len(by_file)


def test_kinds_of_conditions(spark: SparkSession, tmp_path: Path) -> None:
    """The same numbers as over Connect (`tests.spark.scan.test_connect_skipping`)."""
    path = str(tmp_path / "t")
    _plain(spark, path)
    rows = puredelta.read(spark, path)
    with temporary_settings(spark, {"spark.sql.session.timeZone": "America/New_York"}):
        read = {kind: files_read(rows.where(condition)) for kind, condition in KINDS.items()}
    assert read == {kind: files for kind, (files, _) in FILES_AND_ROWS.items()}


def _count_if(condition: str, n: int) -> Column:
    return F.expr(f"count_if({condition})").alias(f"c{n}")


# --- where queries read ---------------------------------------------------------------------


def test_a_condition_reads_the_files_it_can_reach(spark: SparkSession, ten: str) -> None:
    rows = puredelta.read(spark, ten)
    assert files_read(rows) == 10
    assert files_read(rows.where("id BETWEEN 110 AND 120")) == 1
    assert files_read(rows.where("id < 0")) == 0
    assert files_read(rows.where("k = 3")) == 10
    assert rows.where("id BETWEEN 110 AND 120").count() == 11
    assert rows.where("id < 0").count() == 0
    assert rows.where(F.col("s") == "777").collect()[0].id == 777


def test_joins_views_subqueries_and_unions_read_what_they_need(
    spark: SparkSession, ten: str, asked: list[list[str] | None]
) -> None:
    puredelta.read(spark, ten).createOrReplaceTempView("ten_files")
    joined = spark.sql(
        "SELECT count(*) FROM ten_files a JOIN ten_files b ON a.id = b.id WHERE a.id < 50"
    )
    assert joined.collect() == [(50,)]
    assert [len(answer or range(10)) for answer in asked] == [1, 1]  # Spark infers b.id < 50
    asked.clear()
    nested = spark.sql(
        "SELECT count(*) FROM ten_files WHERE id = (SELECT max(id) FROM ten_files WHERE id < 250) "
        "UNION ALL SELECT count(*) FROM ten_files WHERE id IN (1, 999)"
    )
    assert sorted(nested.collect()) == [(1,), (2,)]
    assert {2, 3} <= {len(answer or range(10)) for answer in asked}


def test_a_version_and_a_cached_frame(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    puredelta.write(spark.range(0, 100, 1, 4), path)
    puredelta.write(spark.range(100, 200, 1, 4), path, mode="append")
    old = puredelta.read(spark, path, version=0)
    assert files_read(old.where("id >= 75")) == 1
    assert old.where("id >= 75").count() == 25
    new = puredelta.read(spark, path).where("id >= 75")
    cached = new.cache()
    try:
        assert (cached.count(), files_read(cached)) == (125, 0)
        puredelta.write(spark.range(200, 210, 1, 1), path, mode="append")
        assert cached.count() == 135
    finally:
        cached.unpersist()


def test_what_a_query_knows_of_its_files(spark: SparkSession, ten: str) -> None:
    rows = puredelta.read(spark, ten)
    assert len(rows.inputFiles()) == 10
    one = rows.where("id = 5").select(
        F.input_file_name().alias("name"), "_metadata.file_path", "_metadata.file_size", "id"
    )
    [row] = one.collect()
    assert row["name"] == row["file_path"]
    assert row["file_size"] > 0
    by_name = rows.where(F.col("_metadata.file_path") == row["file_path"])
    assert (files_read(by_name), by_name.count()) == (1, 100)
    assert "10-files" in _plan_text(rows.where("id = 5"))


def test_a_field_of_metadata_is_no_column(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    rows = spark.range(0, 100, 1, 4).selectExpr("id", "string(id) AS file_name")
    puredelta.write(rows, path)
    read = puredelta.read(spark, path)
    name = read.select("_metadata.file_name").first()[0]  # type: ignore[index]
    assert read.where(F.col("_metadata.file_name") == name).count() == 25
    assert read.where("file_name = '5'").count() == 1


def test_equal_scans_are_exchanged_once(spark: SparkSession, ten: str) -> None:
    one, other = puredelta.read(spark, ten), puredelta.read(spark, ten)
    with temporary_settings(spark, {"spark.sql.adaptive.enabled": "false"}):
        sums = [rows.where("id < 500").groupBy("k").agg(F.sum("id")) for rows in (one, other)]
        assert "ReusedExchange" in _plan_text(sums[0].union(sums[1]))
        different = one.where("id < 500").groupBy("k").count()
        unlike = puredelta.read(spark, ten).where("id < 400").groupBy("k").count()
        assert "ReusedExchange" not in _plan_text(different.union(unlike))


def test_dynamic_partition_pruning(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    rows = spark.range(0, 800, 1, 1).selectExpr("id", "id % 8 AS p")
    puredelta.write(rows, path, partition_by=["p"])
    keys = spark.range(0, 800).selectExpr("id % 8 AS p", "id AS n").where("n = 3")
    settings = {"spark.sql.optimizer.dynamicPartitionPruning.reuseBroadcastOnly": "false"}
    with temporary_settings(spark, settings):
        joined = puredelta.read(spark, path).join(F.broadcast(keys), "p").where("id > 10")
        assert joined.count() == 99
        assert "dynamicpruning" in _plan_text(joined)


def test_partition_conditions_that_only_spark_understands(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = str(tmp_path / "t")
    rows = spark.range(0, 80, 1, 1).selectExpr("id", "concat('p', id % 8) AS p")
    puredelta.write(rows, path, partition_by=["p"])
    read = puredelta.read(spark, path)
    assert files_read(read.where("upper(p) = 'P3'")) == 1
    assert read.where("upper(p) = 'P3' AND id > 40").count() == 5


def test_statistics_are_left_alone_where_a_setting_says_so(spark: SparkSession, ten: str) -> None:
    rows = puredelta.read(spark, ten)
    with temporary_settings(spark, {"spark.databricks.delta.stats.skipping": "false"}):
        assert files_read(rows.where("id = 5")) == 10
    assert files_read(rows.where("id = 5")) == 1


def test_bounds_tell_of_nan_where_a_setting_says_so(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    double = "IF(id = 55, double('NaN'), double(id)) AS d"
    puredelta.write(spark.range(0, 100, 1, 10).selectExpr("id", double), path)
    above = puredelta.read(spark, path).where("d > 72")
    assert files_read(above) == 10
    with temporary_settings(spark, {"spark.puredelta.boundsTellNaN": "true"}):
        above = puredelta.read(spark, path).where("d > 72")
        assert files_read(above) == 4  # three, and the one with NaN
        assert above.count() == 28


def test_a_file_alone_is_not_asked_for(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    puredelta.write(spark.range(10).coalesce(1), path)
    assert "InMemoryFileIndex" in _plan_text(puredelta.read(spark, path))


# --- what goes wrong ------------------------------------------------------------------------


def test_the_source_of_a_merge_is_still_read_in_place(
    spark: SparkSession, ten: str, tmp_path: Path
) -> None:
    path = str(tmp_path / "t")
    puredelta.write(spark.range(5).selectExpr("id", "0L AS k", "'' AS s"), path)
    merge = (
        DeltaTable.forPath(spark, path)
        .alias("t")
        .merge(puredelta.read(spark, ten).alias("s"), "t.id = s.id")
    )
    scanned = plain_scan(spark, puredelta.read(spark, ten))
    assert isinstance(scanned, PlainScan)
    assert len(scanned.files) == 10
    merge.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
    assert puredelta.read(spark, path).count() == 1000


def test_a_failure_reads_all_files_and_is_logged(
    spark: SparkSession,
    ten: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("no statistics today")

    monkeypatch.setattr(skippable_files, "prune", fail)
    with caplog.at_level(logging.WARNING):
        assert puredelta.read(spark, ten).where("id = 5").count() == 1
    assert "no statistics today" in caplog.text


def test_why_files_are_skipped_is_logged(
    spark: SparkSession, ten: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, logger=skippable_files.__name__):
        puredelta.read(spark, ten).where("id = 5").collect()
    assert "1 of 10 files are read (skipped: 9 by statistics)" in caplog.text


# --- many queries ---------------------------------------------------------------------------


@pytest.mark.thorough
def test_threads_ask_at_the_same_time(spark: SparkSession, ten: str) -> None:
    held = puredelta.read(spark, ten)
    wrong: list[object] = []

    def ask(worker: int) -> None:
        for n in range(4):
            low = (worker * 131 + n * 57) % 900
            rows = held if n % 2 else puredelta.read(spark, ten)
            found = rows.where(f"id BETWEEN {low} AND {low + 9}").agg(F.sum("id")).first()
            if found is None or found[0] != 10 * low + 45:
                wrong.append((low, found))

    before = threading.active_count()
    workers = [threading.Thread(target=ask, args=(n,)) for n in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert wrong == []
    assert threading.active_count() <= before + 8


@pytest.mark.thorough
def test_a_thousand_frames_leave_nothing(spark: SparkSession, ten: str) -> None:
    jvm: Any = spark
    for _ in range(1000):
        puredelta.read(spark, ten)
    kept = [key for key in skippable_files._shared if key[0].endswith(ten)]
    assert len(kept) == 1  # whatever the JVM still holds shares it
    for _ in range(20):  # the JVM says what it has let go when it collects garbage
        gc.collect()
        jvm._jvm.java.lang.System.gc()
        jvm._jvm.java.lang.System.runFinalization()
        if _live_indexes() < 100:
            break
        time.sleep(0.2)
    assert _live_indexes() < 100


def _live_indexes() -> int:
    kinds = Counter(type(thing).__name__ for thing in gc.get_objects())
    return kinds["AskedIndex"]


def _plan_text(rows: DataFrame) -> str:
    frame: Any = rows
    return str(frame._jdf.queryExecution().executedPlan().toString())
