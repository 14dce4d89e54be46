"""Sets of rows in Spark: aggregated from positions, used to mark rows, and to filter a scan.

All use the words of `puredelta.spark.session.row_bitmap`. A word of a file is one long, file
ordinal and word index packed together, so that aggregation and join hash one long. Few words are
part of an expression. More are broadcast: an array for each file if few of its words are empty,
else a row for each word, unless there are too many: then Spark may shuffle.

``_metadata.row_index`` is the row's position in its file under row group and page skipping, small
splits and both Parquet readers, so filters above may still be pushed down. Spark's own
``bitmap_construct_agg`` is not used: its buffer is 4 KiB for a single row and forces a sort;
``bit_or`` over longs is hash-aggregated in generated code.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from puredelta.spark.connect.messages import local_rows, with_known_columns, with_more_columns
from puredelta.spark.session.names import (
    FILE_ORDINAL,
    ROW_INDEX,
    ROW_SET,
    WORD,
    WORD_BITS,
    WORD_HITS,
)
from puredelta.spark.session.row_bitmap import RowBitmap, popcount
from puredelta.spark.session.session import is_connect

WORD_INDEX_BITS = 38
"""Bits of the word index in a packed key: 2**44 rows a file, 2**25 files."""
_WORD_INDEX_MASK = (1 << WORD_INDEX_BITS) - 1
BROADCAST_WORDS_MAX = 4_000_000
"""More would have to be held by every executor."""
_LITERAL_WORDS_MAX = 4_096
_ARRAY_WORDS = 65_536
"""Words of arrays that are broadcast even if most of them are empty: half of a megabyte."""
_COUNTED_WORDS = T.StructType([
    T.StructField(ROW_SET, T.IntegerType()),
    *(T.StructField(name, T.LongType()) for name in (WORD, WORD_BITS, WORD_HITS)),
])  # fmt: skip
"""Of one set, gaps included: more would swell the plans that Spark prints and keeps."""

RowsByFile = Mapping[int, RowBitmap]
"""Rows by file ordinal; a file without a row is absent."""


@dataclass(frozen=True, slots=True, eq=False)
class CountedWords:
    """What an aggregation returned: per set and word the bits seen and how often a row came.

    A row that came twice leaves one bit and two hits. Arrays run parallel; a packed word may
    occur in several sets.
    """

    row_sets: np.ndarray[tuple[int], np.dtype[np.int32]]
    words: np.ndarray[tuple[int], np.dtype[np.int64]]
    bits: np.ndarray[tuple[int], np.dtype[np.uint64]]
    hits: np.ndarray[tuple[int], np.dtype[np.int64]]

    def select(self, *row_sets: int) -> CountedWords:
        """Keep the words of these sets."""
        chosen = np.isin(self.row_sets, row_sets)
        return CountedWords(
            self.row_sets[chosen], self.words[chosen], self.bits[chosen], self.hits[chosen]
        )

    def files(self) -> dict[int, RowBitmap]:
        """Return the rows of all sets together, by file ordinal."""
        return _by_file(RowBitmap.of_words(self.words, self.bits))

    def repeated(self) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        """Return the packed words with a row that came more than once, all sets together."""
        united = RowBitmap.of_words(self.words, self.bits)
        hits = np.zeros(len(united.words), np.int64)
        np.add.at(hits, np.searchsorted(united.words, self.words), self.hits)
        return united.words[hits > popcount(united.bits)]


def collect_words(
    records: DataFrame, *, row_set: Column, file: Column, row: Column
) -> CountedWords:
    """Aggregate records to words and bring them to the driver. Runs one query.

    ``row_set`` (int) names the set a record belongs to; a record whose ``row`` is NULL is
    left out. What arrives costs 28 bytes a word.
    """
    keyed = records.select(
        row_set.alias(ROW_SET), packed_word(file, row).alias(WORD), _bit(row).alias(WORD_BITS)
    )
    grouped = (
        keyed.where(F.col(WORD).isNotNull())
        .groupBy(ROW_SET, WORD)
        .agg(F.bit_or(WORD_BITS).alias(WORD_BITS), F.count(F.lit(1)).alias(WORD_HITS))
    )
    words = with_known_columns(grouped, _COUNTED_WORDS).toArrow()
    return CountedWords(
        words[ROW_SET].to_numpy(),
        words[WORD].to_numpy(),
        words[WORD_BITS].to_numpy().view(np.uint64),
        words[WORD_HITS].to_numpy(),
    )


def packed_word(file: Column, row: Column) -> Column:
    """Return the long that names the word of a row in its file."""
    return F.shiftleft(file.cast("long"), WORD_INDEX_BITS).bitwiseOR(F.shiftright(row, 6))


def unpack_word(word: int) -> tuple[int, int]:
    """Return (file ordinal, word index) of a packed word."""
    return word >> WORD_INDEX_BITS, word & _WORD_INDEX_MASK


def _bit(row: Column) -> Column:
    position = row.bitwiseAND(F.lit(63)).cast("int")
    return F.call_function("shiftleft", F.lit(1).cast("long"), position)


def rows_by_file(positions: Mapping[int, npt.NDArray[np.integer]]) -> RowsByFile:
    """Return row indices by file ordinal as sets."""
    return {file: RowBitmap.of_rows(rows) for file, rows in positions.items() if len(rows)}


def rows_inside(rows: DataFrame, chosen: RowsByFile) -> DataFrame:
    """Keep the rows at (`FILE_ORDINAL`, `ROW_INDEX`) that are chosen. Runs nothing.

    Columns and ``_metadata`` stay.
    """
    if _fits_into_plan(chosen):
        return rows.where(_is_in(chosen, FILE_ORDINAL, ROW_INDEX))
    return _joined(rows, chosen, "left_semi", BROADCAST_WORDS_MAX)


def rows_outside(
    rows: DataFrame, deleted: RowsByFile, *, broadcast_max: int = BROADCAST_WORDS_MAX
) -> DataFrame:
    """Leave out the rows at (`FILE_ORDINAL`, `ROW_INDEX`) that are deleted. Runs nothing.

    Columns and ``_metadata`` stay, and rows whose ordinal is NULL.
    """
    if _fits_into_plan(deleted):
        return rows.where(f"NOT {_is_in(deleted, FILE_ORDINAL, ROW_INDEX)}")
    return _joined(rows, deleted, "left_anti", broadcast_max)


def _joined(rows: DataFrame, chosen: RowsByFile, how: str, broadcast_max: int) -> DataFrame:
    if _dense_words(chosen) <= min(_array_words_max(chosen), broadcast_max):
        sets = F.broadcast(_array_frame(rows.sparkSession, chosen))
        row = rows[ROW_INDEX]
        word = F.get(sets[WORD_BITS], F.shiftright(row, 6).cast("int"))
        is_in = F.getbit(word, row.bitwiseAND(F.lit(63)).cast("int")) == 1
        return rows.join(sets, (rows[FILE_ORDINAL] == sets[WORD]) & is_in, how)
    words = _word_frame(rows.sparkSession, [chosen], [WORD_BITS], broadcast_max)
    row = rows[ROW_INDEX]
    is_in = words[WORD_BITS].bitwiseAND(_bit(row)) != 0
    return rows.join(words, (packed_word(rows[FILE_ORDINAL], row) == words[WORD]) & is_in, how)


def mark_rows(
    rows: DataFrame,
    sets: Mapping[str, RowsByFile],
    *,
    file: str,
    row: str,
) -> DataFrame:
    """Add one boolean column per set: is the row at (``file``, ``row``) in it. Never NULL.

    Runs nothing.
    """
    flag_fields = [T.StructField(mark, T.BooleanType()) for mark in sets]
    if all(map(_fits_into_plan, sets.values())):
        # One expression of text: a Column costs many round trips to the JVM.
        marked = (f"{_is_in(some, file, row)} AS {mark}" for mark, some in sets.items())
        return with_more_columns(rows, rows.selectExpr("*", *marked), flag_fields)
    names = [f"{WORD_BITS}_{n}" for n in range(len(sets))]
    words = _word_frame(rows.sparkSession, list(sets.values()), names, BROADCAST_WORDS_MAX)
    keyed = rows.withColumn(WORD, packed_word(F.col(file), F.col(row)))
    flags = {
        mark: F.coalesce(F.col(name).bitwiseAND(_bit(F.col(row))) != 0, F.lit(False))  # noqa: FBT003
        for mark, name in zip(sets, names, strict=True)
    }
    marked_rows = keyed.join(words, on=WORD, how="left").withColumns(flags).drop(WORD, *names)
    return with_more_columns(rows, marked_rows, flag_fields)


def _is_in(files: RowsByFile, file: str, row: str) -> str:
    """Look a row up in arrays that Spark folds to literals: no join, no broadcast.

    Words lie densely, file after file, each file's followed by an empty one that stands for
    every later row.
    """
    if not files:
        return "false"
    every = range(max(files) + 1)
    lasts = [int(files[n].words[-1]) + 1 if n in files else 0 for n in every]
    starts = np.cumsum([0, *(last + 1 for last in lasts)])
    words = np.zeros(starts[-1], np.int64)
    for n, bitmap in files.items():
        words[bitmap.words + starts[n]] = bitmap.bits.view(np.int64)
    place = f"least(shiftright({row}, 6), get({_literal(lasts)}, {file}))"
    start = f"get({_literal(starts[:-1])}, {file})"
    word = f"get({_literal(words.tolist())}, cast({start} + {place} AS int))"
    return f"coalesce(getbit({word}, cast({row} & 63 AS int)) = 1, false)"


def _fits_into_plan(files: RowsByFile) -> bool:
    return _dense_words(files) + max(files, default=0) <= _LITERAL_WORDS_MAX


def _dense_words(files: RowsByFile) -> int:
    """Return how many words files have up to the last one that is not empty, and one more each."""
    return sum(int(bitmap.words[-1]) + 2 for bitmap in files.values())


def _array_words_max(files: RowsByFile) -> int:
    return max(_ARRAY_WORDS, 4 * sum(len(bitmap.words) for bitmap in files.values()))


def _array_frame(spark: SparkSession, files: RowsByFile) -> DataFrame:
    """Return one row per file, its ordinal and all its words."""
    arrays = []
    for bitmap in files.values():
        dense = np.zeros(int(bitmap.words[-1]) + 1, np.int64)
        dense[bitmap.words] = bitmap.bits.view(np.int64)
        arrays.append(dense)
    columns = [pa.array(list(files), pa.int32()), pa.array(arrays, pa.list_(pa.int64()))]
    table = pa.table(columns, [WORD, WORD_BITS])
    fields = [
        T.StructField(WORD, T.IntegerType(), nullable=False),
        T.StructField(WORD_BITS, T.ArrayType(T.LongType())),
    ]
    return _local_frame(spark, table, T.StructType(fields))


def _local_frame(spark: SparkSession, table: pa.Table, schema: T.StructType) -> DataFrame:
    make = local_rows if is_connect(spark) else SparkSession.createDataFrame
    return make(spark, table, schema)


def _literal(values: Iterable[int]) -> str:
    """Return an array of longs; as a list of literals it would take the parser far longer."""
    return f"cast(split('{','.join(map(str, values))}', ',') AS array<bigint>)"


def _word_frame(
    spark: SparkSession, sets: list[RowsByFile], names: list[str], broadcast_max: int
) -> DataFrame:
    """Lay sets side by side: one row per packed word, one column of bits per set.

    They are marked for broadcast, unless they are too large for it.
    """
    packed = [_packed(rows) for rows in sets]
    words = np.unique(np.concatenate([np.empty(0, np.int64), *(p.words for p in packed)]))
    columns: list[np.ndarray[tuple[int], np.dtype[np.int64]]] = []
    for bitmap in packed:
        bits = np.zeros(len(words), np.uint64)
        bits[np.searchsorted(words, bitmap.words)] = bitmap.bits
        columns.append(bits.view(np.int64))
    fields = [T.StructField(name, T.LongType(), nullable=False) for name in (WORD, *names)]
    frame = _local_frame(spark, pa.table([words, *columns], [WORD, *names]), T.StructType(fields))
    return F.broadcast(frame) if len(words) <= broadcast_max else frame


def _packed(files: RowsByFile) -> RowBitmap:
    parts = [
        RowBitmap((rows.words | (file << WORD_INDEX_BITS)).astype(np.int64), rows.bits)
        for file, rows in sorted(files.items())
    ]
    return RowBitmap(
        np.concatenate([np.empty(0, np.int64), *(p.words for p in parts)]),
        np.concatenate([np.empty(0, np.uint64), *(p.bits for p in parts)]),
    )


def _by_file(packed: RowBitmap) -> dict[int, RowBitmap]:
    files = packed.words >> WORD_INDEX_BITS
    starts = np.flatnonzero(np.diff(files, prepend=-1))
    words, edges = packed.words & _WORD_INDEX_MASK, [*starts.tolist(), len(files)]
    return {
        file: RowBitmap(words[start:end], packed.bits[start:end])
        for file, start, end in zip(files[starts].tolist(), edges[:-1], edges[1:], strict=True)
    }
