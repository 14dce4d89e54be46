"""M-13: what is cached over a table shows its new version; one session, few jobs."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import puredelta
from puredelta.log.replay.table_log import TableLog
from puredelta.spark.catalog.relation_cache import refresh_cached_frames
from puredelta.tables import DeltaTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def table(spark: SparkSession, tmp_path: Path) -> Iterator[str]:
    """The ids 0 to 3."""
    path = str(tmp_path / "table")
    puredelta.write(spark.range(4), path)
    yield path
    spark.catalog.clearCache()


def test_cached_frames_show_the_new_version(spark: SparkSession, table: str) -> None:
    rows = puredelta.read(spark, table)
    rows.createOrReplaceTempView("shown")
    some = rows.where("id > 1").cache()
    joined = spark.sql(
        "SELECT x.id FROM shown x JOIN shown USING (id) WHERE id IN (SELECT id FROM shown)"
    ).cache()
    old = puredelta.read(spark, table, version=0).cache()
    held = DeltaTable.forPath(spark, table).toDF().cache()
    spark.sql("CACHE TABLE shown")
    counts = [frame.count() for frame in (some, joined, old, held, spark.table("shown"))]
    assert counts == [2, 4, 4, 4, 4]
    for added in (1, 2):  # the second time what is cached is not what the plans say
        puredelta.write(spark.range(10 * added, 10 * added + 1), table, mode="append")
        counts = [frame.count() for frame in (some, joined, old, held, spark.table("shown"))]
        assert counts == [2 + added, 4 + added, 4, 4 + added, 4 + added]
    assert spark.catalog.isCached("shown")
    assert some.storageLevel.useMemory


@pytest.mark.thorough
def test_a_merge_refreshes_whatever_the_new_version_is_made_of(
    spark: SparkSession, table: str
) -> None:
    """New columns and deletion vectors: the frame keeps its columns and gets the rows."""
    held = puredelta.read(spark, table).cache()
    assert held.count() == 4
    source = spark.sql("SELECT id, 'x' AS note FROM range(3, 6)")
    merging = DeltaTable.forPath(spark, table).alias("t").merge(source.alias("s"), "t.id = s.id")
    merging.withSchemaEvolution().whenMatchedDelete().whenNotMatchedInsertAll().execute()
    assert sorted(map(tuple, held.select("*").collect())) == [(0,), (1,), (2,), (4,), (5,)]


def test_a_frame_whose_column_changed_leaves_the_cache(spark: SparkSession, table: str) -> None:
    held = puredelta.read(spark, table).cache()
    options = {"overwriteSchema": "true"}
    puredelta.write(spark.sql("SELECT 'a' AS id"), table, mode="overwrite", options=options)
    assert held.storageLevel.useMemory is False
    assert held.count() == 4


def test_nothing_is_run_for_it(spark: SparkSession, table: str) -> None:
    context = spark.sparkContext
    context.setJobGroup("refresh", "counted")
    try:
        refresh_cached_frames(spark, TableLog.open(table))
        puredelta.read(spark, table).cache()
        refresh_cached_frames(spark, TableLog.open(table))
        assert not context.statusTracker().getJobIdsForGroup("refresh")
    finally:
        context.setLocalProperty("spark.jobGroup.id", None)


def test_what_other_threads_cache_meanwhile_stays(spark: SparkSession, table: str) -> None:
    """A list that another thread has set is never overwritten with an older one."""
    held = puredelta.read(spark, table).cache()
    kept = [spark.range(n, n + 1) for n in range(10_000, 10_200)]
    gone = [spark.range(n, n + 1).cache() for n in range(20_000, 20_100)]

    def cache_and_uncache() -> None:
        for n, frame in enumerate(kept):
            frame.cache()
            if n % 2:
                gone[n // 2].unpersist()

    with ThreadPoolExecutor(1) as pool:
        caching = pool.submit(cache_and_uncache)
        commits = 0
        while not caching.done() or not commits:
            puredelta.write(spark.range(1), table, mode="append")
            commits += 1
        caching.result()
    assert all(frame.storageLevel.useMemory for frame in kept)
    assert not any(frame.storageLevel.useMemory for frame in gone)
    assert held.count() == 4 + commits
