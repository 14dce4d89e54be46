"""Row positions as bitmaps: the table is exact, and the joins keep or drop exactly those rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from puredelta.spark.scan import dv_filter
from puredelta.spark.scan.data_file import ReadLayout
from puredelta.spark.scan.dv_filter import (
    BITMAP_SCHEMA,
    BUCKET_ROWS,
    RowIndexes,
    bitmap_rows,
    bitmap_table,
    rows_inside,
    rows_outside,
)
from puredelta.spark.scan.native_scan import native_scan
from puredelta.spark.session.helper_columns import BITMAP, BUCKET, FILE_ORDINAL, ROW_INDEX
from tests.spark.files import executed_plan, write_file

COUNT = 100_000


def positions(*rows: int) -> RowIndexes:
    return np.array(rows, np.uint64)


def unpack(table: pa.Table) -> dict[int, set[int]]:
    found: dict[int, set[int]] = {}
    for row in table.to_pylist():
        words = np.array(row[BITMAP], np.int64).view(np.uint8)
        bits = np.flatnonzero(np.unpackbits(words, bitorder="little"))
        found.setdefault(row[FILE_ORDINAL], set()).update(
            int(b) + row[BUCKET] * BUCKET_ROWS for b in bits
        )
    return found


@settings(deadline=None)
@given(st.dictionaries(st.integers(0, 5), st.sets(st.integers(0, 2**33), min_size=1, max_size=50)))
def test_bitmaps_hold_exactly_the_positions(rows: dict[int, set[int]]) -> None:
    table = bitmap_table({n: positions(*sorted(some)) for n, some in rows.items()})
    assert table.schema == BITMAP_SCHEMA
    assert unpack(table) == rows


def test_no_positions_give_no_rows() -> None:
    assert bitmap_table({}).num_rows == 0
    assert bitmap_table({3: positions()}).num_rows == 0


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


def test_rows_inside_and_outside_split_the_rows(spark: SparkSession, rows: DataFrame) -> None:
    gone = positions(0, 63, 64, 4095, 4096, 32768, 65535, 99_999)
    bitmaps = bitmap_rows(spark, bitmap_table({1: gone}))
    inside = rows_inside(rows, bitmaps)
    assert sorted(map(tuple, inside.collect())) == [(int(n), 1, int(n)) for n in gone]
    outside = rows_outside(rows, bitmaps)
    assert outside.columns == rows.columns
    assert outside.count() == 3 * COUNT - len(gone)
    assert outside.filter(F.col(FILE_ORDINAL).isNull()).count() == COUNT
    assert outside.filter("id = 32768").count() == 2


def test_filters_and_metadata_pass_through(spark: SparkSession, rows: DataFrame) -> None:
    outside = rows_outside(rows, bitmap_rows(spark, bitmap_table({0: positions(5)})))
    found = outside.filter("id < 6").select("id", FILE_ORDINAL, "_metadata.file_path")
    assert found.count() == 17
    plan = executed_plan(found)
    assert "LessThan(id,6)" in plan
    assert "BroadcastHashJoin" in plan


def test_bitmaps_too_large_to_broadcast_are_shuffled(
    spark: SparkSession, rows: DataFrame, conf: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dv_filter, "BROADCAST_BYTES_MAX", 1)
    conf("spark.sql.autoBroadcastJoinThreshold", "-1")
    outside = rows_outside(rows, bitmap_rows(spark, bitmap_table({0: positions(5)})))
    assert "Broadcast" not in executed_plan(outside)
    assert outside.count() == 3 * COUNT - 1
