"""A copy without one row is no larger than its share, whatever made the old file small."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from puredelta.spark.session.row_bitmap import RowBitmap
from puredelta.worker.data_files.rewrite_file import RewriteTask, rewrite_together

ROWS = 6_000
GROWTH_MAX = 1.3
BOUNDS_BYTES = 8_192
"""The room of bounds in the footer and in pages, which not every writer gives."""
LONG = [str(n) * 9_000 for n in range(9)]

Writer = Callable[[pa.Table, Path], None]


def texts(kinds: int, length: int) -> pa.Array:
    """Return texts in no order, as many different ones as asked for."""
    some = random.Random(kinds * length)
    values = pa.array([some.randbytes(length // 2 + 1).hex()[:length] for _ in range(kinds)])
    return values.take(pa.array([some.randrange(kinds) for _ in range(ROWS)]))


def by_arrow(**options: Any) -> Writer:
    return lambda table, path: pq.write_table(table, path, **options)


def by_duckdb(table: pa.Table, path: Path) -> None:
    duckdb.from_arrow(table).write_parquet(str(path), compression="snappy")


def by_polars(table: pa.Table, path: Path) -> None:
    frame = pl.from_arrow(table)
    assert isinstance(frame, pl.DataFrame)
    frame.write_parquet(path, compression="snappy")


WRITERS: dict[str, Writer] = {
    "arrow": by_arrow(),
    "arrow without compression": by_arrow(compression="none"),
    "arrow, large dictionaries": by_arrow(dictionary_pagesize_limit=64 << 20),
    "arrow, pages of version 2": by_arrow(data_page_version="2.0", compression="none"),
    "arrow, many row groups": by_arrow(row_group_size=500),
    "arrow, zstd": by_arrow(compression="zstd"),
    "duckdb": by_duckdb,
    "polars": by_polars,
}
COLUMNS: dict[str, Callable[[], pa.Array]] = {
    "few long texts": lambda: pa.array([LONG[n % 9] for n in range(ROWS)]),
    "a large dictionary": lambda: texts(400, 4_000),
    "half are different": lambda: texts(ROWS // 2, 32),
    "all are different": lambda: texts(ROWS * 50, 24),
    "long texts after short ones": lambda: pa.concat_arrays(
        [texts(600, 32)[:600], pa.array(LONG * 600)]
    ),
    "numbers in order": lambda: pa.array(range(ROWS)),
    "few numbers": lambda: pa.array([n % 7 for n in range(ROWS)]),
    "flags": lambda: pa.array([True] * ROWS),
    "lists of texts": lambda: pa.array([["w" * 200 + str(n % 7), "z" * 300] for n in range(ROWS)]),
    "texts in structs": lambda: pa.array([{"a": "w" * 2_000 + str(n % 7)} for n in range(ROWS)]),
}


def grown(path: Path) -> float:
    """Return how much larger the copy of a file without its first row is."""
    bitmap = RowBitmap.of_rows(np.array([0], np.int64))
    (answer,) = rewrite_together(
        [
            RewriteTask(
                ordinal=0,
                source=str(path),
                directory=str(path.parent),
                name_prefix="copy",
                words=bitmap.words.tobytes(),
                bits=bitmap.bits.tobytes(),
            )
        ]
    )
    assert answer.refusal is None
    rows = pq.read_table(path)
    assert pq.read_table(path.parent / str(answer.name)).equals(rows.slice(1).cast(rows.schema))
    return (answer.size_bytes - BOUNDS_BYTES) / path.stat().st_size


@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("column", COLUMNS)
def test_a_copy_is_as_small_as_the_file(column: str, writer: str, tmp_path: Path) -> None:
    WRITERS[writer](pa.table({"a": COLUMNS[column]()}), tmp_path / "a.parquet")
    assert grown(tmp_path / "a.parquet") <= GROWTH_MAX


@pytest.mark.parametrize(
    ("encoding", "column"),
    [
        ("DELTA_BINARY_PACKED", "numbers in order"),
        ("DELTA_BYTE_ARRAY", "few long texts"),
        ("DELTA_LENGTH_BYTE_ARRAY", "all are different"),
        ("PLAIN", "few long texts"),
    ],
)
@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_encodings_without_dictionaries_are_repeated(
    encoding: str, column: str, codec: str, tmp_path: Path
) -> None:
    by_arrow(use_dictionary=False, column_encoding={"a": encoding}, compression=codec)(
        pa.table({"a": COLUMNS[column]()}), tmp_path / "a.parquet"
    )
    assert grown(tmp_path / "a.parquet") <= GROWTH_MAX


def test_every_column_keeps_its_codec(tmp_path: Path) -> None:
    table = pa.table({"a": list(range(ROWS)), "b": ["x" * 100 + str(n) for n in range(ROWS)]})
    options = {"compression": {"a": "none", "b": "zstd"}, "use_dictionary": False}
    by_arrow(**options)(table, tmp_path / "a.parquet")
    assert grown(tmp_path / "a.parquet") <= GROWTH_MAX
