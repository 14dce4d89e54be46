"""Rows that keep their ids when they move to another file (M-110)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from puredelta.log.commit.row_ids import PRESERVED_TAG, high_water_mark
from puredelta.log.replay.table_log import TableLog
from tests.commands.dml.features import (
    FEED,
    MAPPED,
    TRACKING,
    VECTORS,
    is_explained,
    make_table,
    source,
    tracked_rows,
)
from tests.commands.dml.tables import delete, insert, merge, update

A, B = "a", "b"


def upsert(spark: SparkSession, log: TableLog) -> None:
    """Delete 1, update 2 and 5, insert 9; 3, 4 and 6 are copied or stay."""
    merge(
        spark,
        log,
        source(spark, (1, "", A), (2, "y", B), (5, "y", B), (9, "y", B)),
        "t.k = s.k",
        delete("t.k = 1"),
        update(v="s.v", p="s.p"),
        insert(),
    )


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "properties",
    [{}, {**MAPPED, **FEED}, VECTORS],
    ids=["copied", "copied, mapped, with the feed", "hidden"],
)
def test_ids_survive_two_merges(
    spark: SparkSession, tmp_path: Path, properties: Mapping[str, str]
) -> None:
    old = [(n, "x", A) for n in range(1, 7)]
    log = make_table(spark, tmp_path, old[:3], old[3:], properties={**TRACKING, **properties})
    first = tracked_rows(spark, log)
    assert first == {n: (n - 1, 0) for n in range(1, 7)}
    upsert(spark, log)
    second = tracked_rows(spark, log)
    assert second.pop(9)[0] >= 6
    assert second == {**{n: first[n] for n in (3, 4, 6)}, 2: (1, 1), 5: (4, 1)}
    merge(spark, log, source(spark, (3, "z", A)), "t.k = s.k", update())
    third = tracked_rows(spark, log)
    assert {n: third[n] for n in (2, 3, 4, 5, 6)} == {**second, 3: (2, 2)}
    snapshot = log.snapshot()
    assert high_water_mark(snapshot.domain_metadata.values()) >= max(i for i, _ in third.values())
    assert [e.commit_info.tags for e in log.history(limit=2)] == [{PRESERVED_TAG: "true"}] * 2
    if FEED.items() <= properties.items():
        assert is_explained(spark, log, 1)


@pytest.mark.usefixtures("without_workers")
def test_the_copy_by_spark_keeps_ids_too(spark: SparkSession, tmp_path: Path) -> None:
    old = [(n, "x", A if n % 2 else B) for n in range(1, 7)]
    files = [[row for row in old if row[2] == part] for part in (A, B)]
    log = make_table(spark, tmp_path, *files, properties=TRACKING, partition_by=["p"])
    first = tracked_rows(spark, log)
    upsert(spark, log)
    second = tracked_rows(spark, log)
    assert {n: second[n] for n in (3, 4, 6)} == {n: first[n] for n in (3, 4, 6)}
    assert [second[n] for n in (2, 5)] == [(first[n][0], 1) for n in (2, 5)]
