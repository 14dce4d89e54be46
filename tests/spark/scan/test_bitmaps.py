from __future__ import annotations

import numpy as np
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from puredelta.spark.scan.bitmaps import collect_words, mark_rows, unpack_word
from puredelta.spark.session.row_bitmap import RowBitmap


def bitmap(*rows: int) -> RowBitmap:
    return RowBitmap.of_rows(np.array(rows, np.int64))


@pytest.fixture(scope="module")
def far() -> int:
    return 2**43 + 5


def test_records_become_words_by_set_and_file(spark: SparkSession, far: int) -> None:
    records = spark.createDataFrame(
        [(0, 0, 0), (0, 0, 63), (0, 0, 64), (0, 3, far), (1, 0, 1), (1, 0, 1), (1, 9, None)],
        "s int, f int, r long",
    )
    words = collect_words(records, row_set=F.col("s"), file=F.col("f"), row=F.col("r"))
    assert words.select(0).files() == {0: bitmap(0, 63, 64), 3: bitmap(far)}
    assert words.select(1).files() == {0: bitmap(1)}
    assert words.files() == {0: bitmap(0, 1, 63, 64), 3: bitmap(far)}
    assert words.num_hits == 6


def test_a_row_that_comes_twice_shows_in_any_set(spark: SparkSession) -> None:
    """M-70: two clauses that fire for two source rows of one target row are two hits."""
    records = spark.createDataFrame(
        [(0, 0, 5), (1, 0, 5), (0, 0, 6), (1, 2, 70), (0, 2, 71)], "s int, f int, r long"
    )
    words = collect_words(records, row_set=F.col("s"), file=F.col("f"), row=F.col("r"))
    assert [unpack_word(w) for w in words.repeated().tolist()] == [(0, 0)]
    assert len(words.select(0).repeated()) == 0


def test_nothing_aggregates_to_nothing(spark: SparkSession) -> None:
    records = spark.createDataFrame([], "s int, f int, r long")
    words = collect_words(records, row_set=F.col("s"), file=F.col("f"), row=F.col("r"))
    assert words.files() == {}
    assert len(words.repeated()) == 0


@pytest.mark.parametrize("far", [5_000, 2**43 + 5], ids=["near", "far"])
def test_rows_are_marked_by_set(spark: SparkSession, far: int) -> None:
    """Few words near the first are part of the plan, others are joined."""
    rows = spark.createDataFrame(
        [(0, 0), (0, 63), (1, 63), (1, far), (1, 5), (2, 1)], "f int, r long"
    )
    sets = {"a": {0: bitmap(0, 63), 1: bitmap(far)}, "b": {1: bitmap(63)}, "none": {}}
    marked = mark_rows(rows, sets, file="f", row="r")
    assert marked.columns == ["f", "r", "a", "b", "none"]
    plan = marked._jdf.queryExecution().optimizedPlan().toString()
    assert ("Join" in plan) == (far > 5_000)
    assert "split" not in plan, "the words are folded once, not for every row"
    got = {(row.f, row.r): (row.a, row.b, row.none) for row in marked.collect()}
    assert got == {
        (0, 0): (True, False, False),
        (0, 63): (True, False, False),
        (1, 63): (False, True, False),
        (1, far): (True, False, False),
        (1, 5): (False, False, False),
        (2, 1): (False, False, False),
    }
