"""Dictionaries go where they save room: they cost more than half of the time of writing."""

from __future__ import annotations

import datetime as dt
import random
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from puredelta.worker.data_files.write_file import new_encodings, saving_dictionaries

ROWS = 30_000
TEXTS = pa.array([f"{n:020x}" for n in range(ROWS)])


def new_dictionaries(rows: pa.Table) -> list[str]:
    """Return the columns of a new file that get a dictionary by its first rows."""
    return new_encodings(rows)["use_dictionary"] or []


def column(kind: pa.DataType, kinds: int) -> pa.Array:
    """Return values in no order, as many different ones as asked for."""
    numbers = [n % kinds for n in random.Random(1).sample(range(ROWS), ROWS)]
    if pa.types.is_decimal(kind):
        return pa.array([Decimal(n) for n in numbers], kind)
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        return TEXTS.take(pa.array(numbers)).cast(kind)
    if pa.types.is_timestamp(kind):
        start = dt.datetime(2024, 1, 1, tzinfo=dt.timezone.utc)
        return pa.array([start + dt.timedelta(seconds=n) for n in numbers], kind)
    if pa.types.is_date(kind):
        return pa.array(numbers, pa.int32()).cast(kind)
    return pa.array(numbers, kind)


KINDS = [
    pa.int32(),
    pa.int64(),
    pa.float32(),
    pa.float64(),
    pa.date32(),
    pa.timestamp("us", "UTC"),
    pa.decimal128(7, 2),
    pa.decimal128(18, 2),
    pa.decimal128(38, 2),
    pa.string(),
    pa.binary(),
]


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize(("kinds", "saves"), [(ROWS, False), (100, True)])
def test_what_differs_from_row_to_row_gets_none(
    kind: pa.DataType, kinds: int, saves: bool, tmp_path: Path
) -> None:
    table = pa.table({"a": column(kind, kinds)})
    expected = ["a"] if saves else []
    assert new_dictionaries(table) == expected
    pq.write_table(table, tmp_path / "a.parquet", store_decimal_as_integer=True)
    footer = pq.read_metadata(tmp_path / "a.parquet")
    assert saving_dictionaries(footer, table) == expected


def test_what_was_given_up_or_never_made_saves_nothing(tmp_path: Path) -> None:
    texts = column(pa.string(), ROWS)
    table = pa.table({"full": texts, "none": texts, "ok": ["a"] * ROWS})
    pq.write_table(
        table,
        tmp_path / "a.parquet",
        use_dictionary=["full", "ok"],
        dictionary_pagesize_limit=1000,
        version="1.0",  # as parquet-mr names encodings
    )
    footer = pq.read_metadata(tmp_path / "a.parquet")
    assert saving_dictionaries(footer, table) == ["ok"]


@pytest.mark.parametrize("present", [0, 3_000])
def test_nulls_take_no_room(present: int, tmp_path: Path) -> None:
    """A tenth of the values, all different, are as bad a dictionary as all of them."""
    values = [n if n < present else None for n in range(ROWS)]
    table = pa.table({"a": pa.array(values, pa.int64())})
    assert new_dictionaries(table) == []
    pq.write_table(table, tmp_path / "a.parquet")
    assert saving_dictionaries(pq.read_metadata(tmp_path / "a.parquet"), table) == []


@pytest.mark.parametrize("kind", [pa.int8(), pa.int16()], ids=str)
def test_small_numbers_take_four_bytes_in_a_file(kind: pa.DataType, tmp_path: Path) -> None:
    table = pa.table({"a": column(kind, 100)})
    pq.write_table(table, tmp_path / "a.parquet")
    assert new_dictionaries(table) == ["a"]
    assert saving_dictionaries(pq.read_metadata(tmp_path / "a.parquet"), table) == ["a"]


def test_without_statistics_every_value_counts(tmp_path: Path) -> None:
    table = pa.table({"a": column(pa.int64(), 100)})
    pq.write_table(table, tmp_path / "a.parquet", write_statistics=False)
    assert saving_dictionaries(pq.read_metadata(tmp_path / "a.parquet"), table) == ["a"]


def test_only_the_first_rows_are_looked_at() -> None:
    numbers = [*([7] * 20_000), *range(20_000)]
    assert new_dictionaries(pa.table({"a": numbers})) == ["a"]
    assert new_dictionaries(pa.table({"a": numbers[::-1]})) == []


def test_columns_within_columns_are_measured_and_flags_are_not() -> None:
    values: dict[str, Any] = {
        "s": [{"x": n, "y": n % 3} for n in range(100)],
        "l": [[n, n] for n in range(100)],
        "m": pa.array([[(f"{n}", "one")] for n in range(100)], pa.map_(pa.string(), pa.string())),
        "flag": [True] * 100,
        "none": pa.nulls(100),
        "key": range(100),
    }
    table = pa.table(values)
    assert new_dictionaries(table) == ["s.y", "l.list.element", "m.key_value.value"]


def test_of_no_row_nothing_is_chosen() -> None:
    assert new_dictionaries(pa.table({"a": pa.array([], pa.int64())})) == []
