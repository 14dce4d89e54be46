"""Rows of every type, written as Parquet by many programs."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Mapping
from decimal import Decimal
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

deltalake = pytest.importorskip("deltalake")
duckdb = pytest.importorskip("duckdb")
fastparquet = pytest.importorskip("fastparquet")
pl = pytest.importorskip("polars")

_EPOCH = dt.datetime(1900, 1, 1)  # noqa: DTZ001 - a time without a zone
SCHEMA = pa.schema(
    [
        ("i", pa.int32()),
        ("l", pa.int64()),
        ("f", pa.float32()),
        ("d", pa.float64()),
        ("s", pa.string()),
        ("day", pa.date32()),
        ("t", pa.timestamp("us")),
        ("z", pa.timestamp("us", tz="UTC")),
        ("dec", pa.decimal128(20, 3)),
        ("b", pa.bool_()),
    ]
)

_TEXTS = ("", "a", "a" * 100, "\x7f" * 40, "\U0010ffff" * 33, "é" * 70, "x\U0010ffff" * 20)
_DOUBLES = (math.nan, -0.0, 0.0, math.inf, -math.inf, 5e-324, 1e308)
_FLOATS = (math.nan, -0.0, 0.0, math.inf, -math.inf, 1.5, -3.25)
_NULL_CHANCES = (0.0, 0.4, 1.0)


def _time(random: Random) -> dt.datetime:
    return _EPOCH + dt.timedelta(microseconds=random.randrange(300 * 365 * 86400 * 10**6))


_VALUES: Mapping[str, Callable[[Random], object]] = {
    "i": lambda r: r.choice([-(2**31), 2**31 - 1, r.randrange(1000)]),
    "l": lambda r: r.choice([-(2**63), 2**63 - 1, r.randrange(1000)]),
    "f": lambda r: r.choice([*_FLOATS, float(r.randrange(1000))]),
    "d": lambda r: r.choice([*_DOUBLES, r.random()]),
    "s": lambda r: r.choice(_TEXTS) + chr(r.randrange(0x21, 0xD7FF)) * r.choice([0, 1, 40]),
    "day": lambda r: _time(r).date(),
    "t": _time,
    "z": lambda r: _time(r).replace(tzinfo=dt.timezone.utc),
    "dec": lambda r: Decimal(r.choice([-(10**19), 10**19, r.randrange(-(10**6), 10**6)])).scaleb(
        -3
    ),
    "b": lambda r: r.random() < 0.5,
}


def random_table(random: Random) -> pa.Table:
    """Draw a few rows; each column has its own chance of NULLs."""
    size = random.randint(1, 12)
    columns = {}
    for name, draw in _VALUES.items():
        is_null = random.choice(_NULL_CHANCES)
        columns[name] = [None if random.random() < is_null else draw(random) for _ in range(size)]
    return pa.table(columns, SCHEMA)


def _pyarrow(table: pa.Table, path: Path) -> None:
    pq.write_table(table, path, row_group_size=5)


def _pyarrow_int96(table: pa.Table, path: Path) -> None:
    pq.write_table(table, path, use_deprecated_int96_timestamps=True, version="1.0")


def _duckdb(table: pa.Table, path: Path) -> None:
    connection = duckdb.connect()
    connection.register("rows", table)
    connection.execute(f"copy rows to '{path}' (format parquet, row_group_size 2048)")


def _polars(table: pa.Table, path: Path) -> None:
    pl.from_arrow(table).write_parquet(path, statistics="full")


def _delta_rs(table: pa.Table, path: Path) -> None:
    deltalake.write_deltalake(path.with_suffix(""), table)


def _fastparquet(table: pa.Table, path: Path) -> None:
    """pandas has no NULL of an integer, a truth value or a date."""
    table = table.drop_columns(["dec", "day"])
    for name, value in (("i", 7), ("l", 7), ("b", True), ("s", "")):
        place = table.schema.get_field_index(name)
        table = table.set_column(place, table.schema.field(name), table[name].fill_null(value))
    fastparquet.write(str(path), table.to_pandas(), stats=True, object_encoding={"s": "utf8"})


FROM_ARROW: Mapping[str, Callable[[pa.Table, Path], None]] = {
    "pyarrow": _pyarrow,
    "pyarrow-int96": _pyarrow_int96,
    "duckdb": _duckdb,
    "polars": _polars,
    "delta-rs": _delta_rs,
    "fastparquet": _fastparquet,
}
