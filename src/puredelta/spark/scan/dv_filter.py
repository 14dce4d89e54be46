"""Deleted rows as bitmaps that Spark can join with: how a scan applies deletion vectors.

A bitmap row is (file ordinal, bucket, 64 words): one bit for each of the 4,096 rows of a
bucket, 512 bytes. A dense vector costs about one bit a row, a sparse one at most 512 bytes
a deleted row. A frame that carries `FILE_ORDINAL` and `ROW_INDEX` is filtered by one
broadcast join on (ordinal, bucket), two ints that Spark packs into one long key; the bit
itself is the join's condition. Rows whose ordinal is NULL have no bitmap and stay.

``_metadata.row_index`` is the row's position in its file under row group and page skipping,
small splits and both Parquet readers, so filters above may still be pushed down.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from puredelta.spark.session.helper_columns import BITMAP, BUCKET, FILE_ORDINAL, ROW_INDEX
from puredelta.spark.session.row_bitmap import RowBitmap

RowIndexes: TypeAlias = npt.NDArray[np.uint64]
"""Row positions of one file."""

BUCKET_BITS = 12
BUCKET_ROWS = 1 << BUCKET_BITS
_WORDS_BITS = BUCKET_BITS - 6
_WORDS = 1 << _WORDS_BITS

BROADCAST_BYTES_MAX = 256 * 1024 * 1024
"""Above this the executors would have to hold too much: Spark decides, and may shuffle."""

BITMAP_SCHEMA = pa.schema(
    [(FILE_ORDINAL, pa.int32()), (BUCKET, pa.int32()), (BITMAP, pa.list_(pa.int64()))]
)
_SPARK_BITMAP_SCHEMA = T.StructType(
    [
        T.StructField(FILE_ORDINAL, T.IntegerType()),
        T.StructField(BUCKET, T.IntegerType()),
        T.StructField(BITMAP, T.ArrayType(T.LongType())),
    ]
)


def bitmap_table(positions: Mapping[int, RowIndexes]) -> pa.Table:
    """Return one row per file and bucket that holds a position (`BITMAP_SCHEMA`)."""
    parts = [_file_bitmaps(ordinal, rows) for ordinal, rows in positions.items()]
    return pa.concat_tables([BITMAP_SCHEMA.empty_table(), *parts])


def _file_bitmaps(ordinal: int, positions: RowIndexes) -> pa.Table:
    rows = RowBitmap.of_rows(positions)
    buckets, rank = np.unique(rows.words >> _WORDS_BITS, return_inverse=True)
    flat = np.zeros(len(buckets) * _WORDS, np.uint64)
    flat[rank * _WORDS + (rows.words & (_WORDS - 1))] = rows.bits
    offsets = np.arange(0, len(flat) + 1, _WORDS, dtype=np.int32)
    return pa.table(
        [
            pa.array(np.full(len(buckets), ordinal, np.int32)),
            pa.array(buckets.astype(np.int32)),
            pa.ListArray.from_arrays(offsets, pa.array(flat.view(np.int64))),
        ],
        schema=BITMAP_SCHEMA,
    )


def bitmap_rows(spark: SparkSession, bitmaps: pa.Table) -> DataFrame:
    """Hand bitmaps to Spark, marked for broadcast unless they are too large for it."""
    rows = spark.createDataFrame(bitmaps, _SPARK_BITMAP_SCHEMA)
    return F.broadcast(rows) if bitmaps.nbytes <= BROADCAST_BYTES_MAX else rows


def rows_outside(rows: DataFrame, bitmaps: DataFrame) -> DataFrame:
    """Keep the rows whose position is in no bitmap; columns and ``_metadata`` stay."""
    return rows.join(bitmaps, _in_bitmap(rows, bitmaps), "left_anti")


def rows_inside(rows: DataFrame, bitmaps: DataFrame) -> DataFrame:
    """Keep the rows whose position is in a bitmap; columns and ``_metadata`` stay."""
    return rows.join(bitmaps, _in_bitmap(rows, bitmaps), "left_semi")


def _in_bitmap(rows: DataFrame, bitmaps: DataFrame) -> Column:
    row = rows[ROW_INDEX]
    bit = row.bitwiseAND(BUCKET_ROWS - 1).cast("int")
    word = bitmaps[BITMAP][F.shiftright(bit, 6)]
    return (
        (rows[FILE_ORDINAL] == bitmaps[FILE_ORDINAL])
        & (F.shiftright(row, BUCKET_BITS).cast("int") == bitmaps[BUCKET])
        & (F.getbit(word, bit.bitwiseAND(63)) == 1)
    )
