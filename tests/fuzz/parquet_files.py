"""Valid Parquet files of many programs, as bytes: what mutations of data files begin with.

Those of Spark were written once and are kept in ``by_spark``, two of them encrypted with a key that
nobody has any more. All hold the same 60 rows, as far as their writers have the types.
"""

from __future__ import annotations

import datetime as dt
import io
import itertools
import tempfile
from collections.abc import Iterator, Mapping
from decimal import Decimal
from functools import cache
from pathlib import Path
from random import Random

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

NUM_ROWS = 60
SIMPLE = ["id", "i", "t", "d"]
_BY_SPARK = Path(__file__).parent / "by_spark"
_EPOCH = dt.datetime(2024, 1, 1, tzinfo=dt.timezone.utc)


@cache
def rows() -> pa.Table:
    """Return the rows."""
    places = range(NUM_ROWS)
    return pa.table(
        {
            "id": pa.array(places, pa.int64()),
            "i": pa.array([None if n % 7 == 0 else n % 9 for n in places], pa.int32()),
            "t": [None if n % 5 == 0 else f"text{n % 11}" for n in places],
            "d": [n * 1.5 for n in places],
            "b": [n % 3 == 0 for n in places],
            "ts": pa.array(
                [_EPOCH + dt.timedelta(days=n) for n in places], pa.timestamp("us", "UTC")
            ),
            "dec": pa.array([Decimal(n) for n in places], pa.decimal128(20, 2)),
            "l": pa.array([[n, None, n + 1] if n % 4 else None for n in places]),
            "s": [{"x": n, "y": [str(n)] * (n % 3)} if n % 6 else None for n in places],
            "m": pa.array([[(f"k{n}", n)] for n in places], pa.map_(pa.string(), pa.int64())),
        }
    )


@cache
def valid_files() -> Mapping[str, bytes]:
    """Return the files by what they are."""
    return dict(_files())


def any_file(random: Random) -> tuple[str, bytes]:
    """Return one of the valid files, and what it is."""
    return random.choice(sorted(valid_files().items()))


@cache
def large_files() -> Mapping[str, bytes]:
    """Return files above 32 MB by what they are: more than is read of an object at once."""
    numbers = np.random.default_rng(0)
    found = {}
    for kind, count, length, options in _LARGE:
        texts = numbers.integers(97, 123, (count, length), np.uint8).tobytes().decode()
        table = pa.table(
            {
                "id": pa.array(range(count), pa.int64()),
                "i": pa.array(numbers.integers(0, 9, count), pa.int32()),
                "t": [texts[n : n + length] for n in range(0, len(texts), length)],
                "d": numbers.random(count),
            }
        )
        sink = io.BytesIO()
        pq.write_table(table, sink, **options)
        found[kind] = sink.getvalue()
    assert all(len(content) > _LARGE_BYTES for content in found.values())
    return found


_LARGE_BYTES = 32 << 20
_PLAIN = {"use_dictionary": False, "write_page_index": True}
_LARGE = (
    ("large, one row group", 1_000_000, 32, {**_PLAIN, "row_group_size": 1_000_000}),
    ("large, many row groups", 900_000, 30, {**_PLAIN, "row_group_size": 20_000}),
    ("large, long texts", 1_200, 30_000, {"use_dictionary": ["t"], "row_group_size": 400}),
    ("large, pages of version 2", 1_000_000, 32, {**_PLAIN, "data_page_version": "2.0"}),
)
"""Name, number of rows, length of texts and options of Arrow's writer."""


def _files() -> Iterator[tuple[str, bytes]]:
    for codec, version, has_dictionary in itertools.product(
        ("none", "snappy", "gzip", "zstd", "lz4", "brotli"), ("1.0", "2.0"), (False, True)
    ):
        yield (
            f"pyarrow {codec} {version} dictionary={has_dictionary}",
            _arrow(
                compression=codec,
                data_page_version=version,
                use_dictionary=has_dictionary,
                write_page_index=has_dictionary,
                row_group_size=NUM_ROWS if has_dictionary else 25,
                store_schema=has_dictionary,
                write_page_checksum=version == "2.0",
            ),
        )
    encodings = {"id": "DELTA_BINARY_PACKED", "t": "DELTA_BYTE_ARRAY", "d": "BYTE_STREAM_SPLIT"}
    yield "pyarrow delta", _arrow(SIMPLE, use_dictionary=False, column_encoding=encodings)
    lengths = {"t": "DELTA_LENGTH_BYTE_ARRAY"}
    yield "pyarrow lengths", _arrow(SIMPLE, use_dictionary=False, column_encoding=lengths)
    yield "pyarrow one column", _arrow(["id"])
    for path in sorted(_BY_SPARK.iterdir()):
        yield f"spark {path.stem}", path.read_bytes()
    with tempfile.TemporaryDirectory() as directory:
        yield from _others(Path(directory) / "other.parquet")


def _arrow(columns: list[str] | None = None, **options: object) -> bytes:
    sink = io.BytesIO()
    pq.write_table(rows() if columns is None else rows().select(columns), sink, **options)
    return sink.getvalue()


def _others(path: Path) -> Iterator[tuple[str, bytes]]:
    duckdb = pytest.importorskip("duckdb")
    same_rows = rows()  # noqa: F841 - duckdb finds it by its name
    for codec in ("snappy", "zstd"):
        duckdb.sql(f"COPY (FROM same_rows) TO '{path}' (FORMAT parquet, COMPRESSION {codec})")
        yield f"duckdb {codec}", path.read_bytes()
    polars = pytest.importorskip("polars")
    polars.from_arrow(rows().drop_columns(["m"])).write_parquet(path, row_group_size=20)
    yield "polars", path.read_bytes()
    fastparquet = pytest.importorskip("fastparquet")
    fastparquet.write(str(path), rows().select([*SIMPLE, "b"]).to_pandas(), row_group_offsets=25)
    yield "fastparquet", path.read_bytes()
    deltalake = pytest.importorskip("deltalake")
    table_path = path.parent / "table"
    deltalake.write_deltalake(str(table_path), rows())
    yield "delta-rs", next(table_path.glob("*.parquet")).read_bytes()
