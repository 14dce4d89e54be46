"""Odd Parquet files of several writers, readers that tell what a file holds, and faulty sinks."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from puredelta.worker.data_files.spliced_file import SplicedFile

NAN = float("nan")
FAULTS = ("fails", "is cut", "is lost")
"""What becomes of the n-th write: the last two without an error."""


def odd_table(draw: random.Random, num_rows: int, *, nested: bool) -> pa.Table:
    """Return a table with NULLs, constants, long texts and, if asked for, nested values."""
    some: Callable[[Any], Any] = lambda value: None if draw.random() < 0.2 else value  # noqa: E731
    numbers = range(num_rows)
    columns: dict[str, pa.Array] = {
        "id": pa.array(numbers, pa.int64()),
        "i": pa.array([some(draw.randrange(100)) for _ in numbers], pa.int32()),
        "x": pa.array([some(draw.random() - 0.5) for _ in numbers], pa.float64()),
        "flag": pa.array([some(n % 3 == 0) for n in numbers], pa.bool_()),
        "text": pa.array([some(f"t{draw.randrange(9)}") for _ in numbers], pa.string()),
        "long": pa.array([f"{draw.random()}" * 20 for _ in numbers], pa.string()),
        "nothing": pa.nulls(num_rows, pa.int64()),
        "same": pa.repeat("constant", num_rows),
        "ts": pa.array([n * 1_000_001 for n in numbers], pa.timestamp("us", "UTC")),
        "d": pa.array([some(Decimal(n) / 4) for n in numbers], pa.decimal128(12, 2)),
        "big": pa.array([Decimal(n) for n in numbers], pa.decimal128(38, 4)),
    }
    if nested:
        columns |= {
            "list": pa.array(
                [some([some(n)] * draw.randrange(4)) for n in numbers], pa.list_(pa.int64())
            ),
            "st": pa.array([some({"a": some(n / 7), "b": f"s{n % 4}"}) for n in numbers]),
            "m": pa.array([some([("k", n)]) for n in numbers], pa.map_(pa.string(), pa.int64())),
            "deep": pa.array(
                [[{"v": [n] * draw.randrange(3)}] * draw.randrange(3) for n in numbers],
                pa.list_(pa.struct([("v", pa.list_(pa.int32()))])),
            ),
        }
    return pa.table(columns)


def write_by_arrow(table: pa.Table, path: Path, draw: random.Random) -> None:
    options: dict[str, Any] = {
        "compression": draw.choice(["none", "snappy", "zstd", "gzip"]),
        "data_page_version": draw.choice(["1.0", "2.0"]),
        "write_page_index": draw.random() < 0.5,
        "store_schema": draw.random() < 0.5,
        "use_dictionary": draw.random() < 0.7,
        "data_page_size": draw.choice([64, 1 << 20]),
        "dictionary_pagesize_limit": draw.choice([128, 1 << 20]),
        "row_group_size": draw.choice([1, 7, 40, 1000]),
    }
    pq.write_table(table, path, **options)


def write_by_duckdb(table: pa.Table, path: Path, draw: random.Random) -> None:
    """DuckDB writes Bloom filters."""
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect() as connection:
        left_out = {"big", "nothing", "m"}
        connection.register("t", table.drop_columns([*left_out.intersection(table.column_names)]))
        connection.execute(f"COPY t TO '{path}' (FORMAT parquet, ROW_GROUP_SIZE 2048)")


def write_by_polars(table: pa.Table, path: Path, draw: random.Random) -> None:
    polars = pytest.importorskip("polars")
    frame = polars.from_arrow(table.drop_columns([n for n in ("m",) if n in table.column_names]))
    frame.write_parquet(path, row_group_size=draw.choice([10, 45]), statistics="full")


def write_by_fastparquet(table: pa.Table, path: Path, draw: random.Random) -> None:
    fastparquet = pytest.importorskip("fastparquet")
    flat = table.select(["id", "x", "text", "same", "ts"]).to_pandas()
    fastparquet.write(str(path), flat, row_group_offsets=draw.choice([10, 50]))


WRITERS: dict[str, Callable[[pa.Table, Path, random.Random], None]] = {
    "arrow": write_by_arrow,
    "duckdb": write_by_duckdb,
    "polars": write_by_polars,
    "fastparquet": write_by_fastparquet,
}


def rows_of(path: Path) -> list[str]:
    """Return the rows as texts: NaN is not equal to itself."""
    return [repr(row) for row in pq.read_table(path).to_pylist()]


def rows_by_reader(path: Path) -> Iterator[tuple[str, Any]]:
    """Yield what each installed reader makes of the flat columns."""
    flat = ["id", "x", "text", "same"]
    yield "arrow", [repr(row) for row in pq.read_table(path, columns=flat).to_pylist()]
    try:
        import duckdb  # noqa: PLC0415
    except ImportError:
        pass
    else:
        with duckdb.connect() as connection:
            found = connection.execute(f"SELECT id, x, text, same FROM '{path}'").fetchall()
            yield "duckdb", [repr(dict(zip(flat, row, strict=True))) for row in found]
            filtered = f"SELECT count(*) FROM '{path}' WHERE same = 'constant' AND text = 't3'"
            yield "duckdb, filtered", connection.execute(filtered).fetchall()
    try:
        import polars as pl  # noqa: PLC0415
    except ImportError:
        pass
    else:
        yield "polars", [repr(row) for row in pl.read_parquet(path, columns=flat).to_dicts()]
    try:
        import fastparquet  # noqa: PLC0415
    except ImportError:
        pass
    else:
        yield "fastparquet", fastparquet.ParquetFile(str(path)).to_pandas(["id", "x"]).to_csv()


class FaultySink:
    """A sink whose n-th write goes wrong."""

    def __init__(self, sink: IO[bytes], number: int, fault: str) -> None:
        self._sink, self._left, self._fault = sink, number, fault

    def write(self, content: bytes) -> int:
        self._left -= 1
        if self._left != -1:
            return self._sink.write(content)
        if self._fault == "fails":
            raise OSError(28, "No space left on device")
        self._sink.write(content[: len(content) // 2] if self._fault == "is cut" else b"")
        return len(content)


def num_writes_that_matter(
    run: Callable[[], object], fault: str, monkeypatch: pytest.MonkeyPatch, directory: Path
) -> int:
    """Run with a fault in the first write of spliced files, in the second, and so on, until a run
    has fewer; return how many failed. Each must raise, and leave nothing in the directory."""
    before = sorted(directory.iterdir())
    plain = SplicedFile.__init__
    for number in itertools.count():

        def faulty(self: Any, footer: Any, sink: Any, columns: Any, number: int = number) -> None:
            plain(self, footer, FaultySink(sink, number, fault), columns)  # type: ignore[arg-type]

        monkeypatch.setattr(SplicedFile, "__init__", faulty)
        try:
            run()
        except OSError:
            assert sorted(directory.iterdir()) == before
        else:
            break
    monkeypatch.setattr(SplicedFile, "__init__", plain)
    return number
