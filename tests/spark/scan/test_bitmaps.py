"""Sets of rows: aggregated, marked, kept and left out, exactly those."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from puredelta.spark.scan.bitmaps import (
    collect_words,
    mark_rows,
    rows_by_file,
    rows_inside,
    rows_outside,
    unpack_word,
)
from puredelta.spark.scan.data_file import ReadLayout
from puredelta.spark.scan.native_scan import native_scan
from puredelta.spark.session.names import FILE_ORDINAL, ROW_INDEX
from puredelta.spark.session.row_bitmap import RowBitmap
from tests.spark.files import executed_plan, write_file

COUNT = 100_000


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
    assert words.hits.sum() == 6


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


@pytest.fixture
def rows(spark: SparkSession, tmp_path: Path) -> DataFrame:
    """Three files of 100,000 rows; the third has no ordinal."""
    table = pa.table({"id": pa.array(range(COUNT), pa.int64())})
    files = [
        write_file(tmp_path / f"{n}.parquet", table, **{FILE_ORDINAL: ordinal})
        for n, ordinal in enumerate(["0", "1", None])
    ]
    return native_scan(
        spark,
        files,
        ReadLayout(
            data_schema=T.StructType.fromDDL("id long"),
            partition_schema=T.StructType([T.StructField(FILE_ORDINAL, T.IntegerType())]),
        ),
    ).withColumn(ROW_INDEX, F.col("_metadata.row_index"))


NEAR = (0, 63, 64, 4095, 4096, 32768, 65535, 99_999)
FAR = (*NEAR, 1_000_000)
"""One more that no file has, so that the words are too many to be part of a plan."""
FARTHER = (*NEAR, 5_000_000)
"""One more yet, so that most words of an array would be empty."""


@pytest.mark.sampled(2)
@pytest.mark.parametrize("gone", [NEAR, FAR, FARTHER], ids=["near", "far", "farther"])
def test_rows_inside_and_outside_split_the_rows(rows: DataFrame, gone: tuple[int, ...]) -> None:
    chosen = {1: bitmap(*gone)}
    inside = rows_inside(rows, chosen)
    assert ("Join" in executed_plan(inside)) == (gone != NEAR)
    assert sorted(map(tuple, inside.collect())) == [(n, 1, n) for n in NEAR]
    outside = rows_outside(rows, chosen)
    assert inside.columns == outside.columns == rows.columns
    assert outside.count() == 3 * COUNT - len(NEAR)
    assert outside.filter(F.col(FILE_ORDINAL).isNull()).count() == COUNT
    assert outside.filter("id = 32768").count() == 2


@pytest.mark.sampled(2)
@pytest.mark.parametrize("far", [5, 1_000_000, 5_000_000], ids=["near", "far", "farther"])
def test_filters_and_metadata_pass_through(rows: DataFrame, far: int) -> None:
    outside = rows_outside(rows, {0: bitmap(5, far)})
    found = outside.filter("id < 6").select("id", FILE_ORDINAL, "_metadata.file_path")
    assert found.count() == 17
    plan = executed_plan(found)
    assert "LessThan(id,6)" in plan
    assert ("BroadcastHashJoin" in plan) == (far != 5)


def test_words_too_many_to_broadcast_are_shuffled(rows: DataFrame, conf: Any) -> None:
    conf("spark.sql.autoBroadcastJoinThreshold", "-1")
    outside = rows_outside(rows, {0: bitmap(5, 5_000_000)}, broadcast_max=1)
    assert "Broadcast" not in executed_plan(outside)
    assert outside.count() == 3 * COUNT - 1


def test_positions_become_sets() -> None:
    positions = {0: np.array([5, 3], np.uint64), 1: np.array([], np.uint64)}
    assert rows_by_file(positions) == {0: bitmap(3, 5)}
