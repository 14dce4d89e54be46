"""Columns of files that are older than their table, or of other writers."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from puredelta.worker.file_columns import ColumnRules, as_stored
from puredelta.worker.read_rows import OnlySparkError

BY_NAME = ColumnRules()
UTC = dt.timezone.utc


@pytest.mark.parametrize(
    ("stored", "wanted", "expected"),
    [
        (pa.array([1, None], pa.int8()), pa.int64(), [1, None]),
        (pa.array([1, None], pa.int32()), pa.float64(), [1.0, None]),
        (pa.array([1.5], pa.float32()), pa.float64(), [1.5]),
        (pa.array([7], pa.int32()), pa.decimal128(12, 2), [Decimal("7.00")]),
        (
            pa.array([Decimal("1.5")], pa.decimal128(5, 1)),
            pa.decimal128(12, 3),
            [Decimal("1.500")],
        ),
        (
            pa.array([3], pa.date32()),
            pa.timestamp("us"),
            [dt.datetime(1970, 1, 4)],  # noqa: DTZ001 - has no zone
        ),
        (pa.array(["a", None]).dictionary_encode(), pa.string(), ["a", None]),
        (pa.array(["a"], pa.large_string()), pa.string(), ["a"]),
        (pa.array([b"a"], pa.binary(1)), pa.binary(), [b"a"]),
        (pa.array([b"a"], pa.binary()), pa.string(), ["a"]),
        (
            pa.array([1_999], pa.timestamp("ns", "UTC")),
            pa.timestamp("us", "UTC"),
            [dt.datetime(1970, 1, 1, 0, 0, 0, 1, UTC)],
        ),
        (  # INT96 has no zone of its own
            pa.array([1], pa.timestamp("us")),
            pa.timestamp("us", "UTC"),
            [dt.datetime(1970, 1, 1, 0, 0, 0, 1, UTC)],
        ),
    ],
)
def test_values_in_another_type(stored: pa.Array, wanted: pa.DataType, expected: Any) -> None:
    column = as_stored(stored, wanted, BY_NAME)
    assert (column.type, column.to_pylist()) == (wanted, expected)


@pytest.mark.parametrize(
    ("stored", "wanted"),
    [
        (pa.array(["1"]), pa.int32()),
        (pa.array([1]), pa.string()),
        (pa.array([1 << 40]), pa.int32()),
        (pa.array([[1]]), pa.int64()),
        (pa.array([1]), pa.list_(pa.int64())),
        (pa.array([{"a": 1}]), pa.map_(pa.string(), pa.int64())),
        (pa.array([b"\xff"]), pa.string()),
    ],
)
def test_values_that_are_none_of_a_type(stored: pa.Array, wanted: pa.DataType) -> None:
    with pytest.raises(OnlySparkError):
        as_stored(stored, wanted, BY_NAME)


STORED = pa.struct([("B", pa.int32()), ("a", pa.list_(pa.struct([("x", pa.int16())])))])
WANTED = pa.struct(
    [
        ("a", pa.list_(pa.field("element", pa.struct([("x", pa.int64()), ("new", pa.string())])))),
        ("b", pa.int64()),
        ("m", pa.map_(pa.string(), pa.int64())),
    ]
)
ROWS = [
    {"B": 1, "a": [{"x": 1}, None, {"x": None}]},
    None,
    {"B": None, "a": None},
    {"B": 4, "a": []},
    {"B": 5, "a": [{"x": 5}]},
]
EXPECTED = [
    {"a": [{"x": 1, "new": None}, None, {"x": None, "new": None}], "b": 1, "m": None},
    None,
    {"a": None, "b": None, "m": None},
    {"a": [], "b": 4, "m": None},
    {"a": [{"x": 5, "new": None}], "b": 5, "m": None},
]


@pytest.mark.parametrize(("start", "length"), [(0, 5), (1, 3), (2, 3), (4, 1), (5, 0)])
def test_fields_are_found_at_any_depth_in_slices_too(start: int, length: int) -> None:
    stored = pa.array(ROWS, STORED).slice(start, length)
    column = as_stored(stored, WANTED, BY_NAME)
    column.validate(full=True)
    assert column.to_pylist() == EXPECTED[start : start + length]


@pytest.mark.parametrize(("start", "length"), [(0, 4), (1, 2), (3, 1)])
def test_maps_keep_their_entries_in_slices_too(start: int, length: int) -> None:
    rows = [[("a", 1), ("b", None)], None, [], [("c", 3)]]
    stored = pa.array(rows, pa.map_(pa.string(), pa.int32())).slice(start, length)
    column = as_stored(stored, pa.map_(pa.string(), pa.int64()), BY_NAME)
    column.validate(full=True)
    assert column.to_pylist() == rows[start : start + length]


def field(name: str, number: int | None) -> pa.Field:
    metadata = None if number is None else {"PARQUET:field_id": str(number)}
    return pa.field(name, pa.int32(), metadata=metadata)


def test_fields_are_found_by_id() -> None:
    stored = pa.array([{"old": 1, "other": 2}], pa.struct([field("old", 7), field("other", 8)]))
    wanted = pa.struct([field("other", 7), field("new", 9)])
    rules = ColumnRules(by_field_id=True)
    assert as_stored(stored, wanted, rules).to_pylist() == [{"other": 1, "new": None}]


def test_names_that_differ_in_case_only() -> None:
    present = [pa.field("a", pa.int32()), pa.field("A", pa.int32())]
    assert ColumnRules(case_sensitive=True).find(pa.field("A", pa.int32()), present) == 1
    assert ColumnRules(case_sensitive=True).find(pa.field("b", pa.int32()), present) is None
    with pytest.raises(OnlySparkError, match="several columns could be A"):
        BY_NAME.find(pa.field("A", pa.int32()), present)


def test_old_dates_of_the_hybrid_calendar_are_refused() -> None:
    rules = ColumnRules(hybrid_calendar=True)
    old = pa.array([[dt.date(1500, 1, 1)]], pa.list_(pa.date32()))
    with pytest.raises(OnlySparkError, match="days from 1970"):
        as_stored(old, old.type, rules)
    assert as_stored(old, old.type, BY_NAME) == old


@pytest.mark.parametrize(("start", "length"), [(0, 5), (1, 3), (2, 0)])
def test_lists_with_long_offsets_are_lists(start: int, length: int) -> None:
    values = [[1, 2], None, [], [3, None], [4]]
    column = pa.array(values, pa.large_list(pa.int32())).slice(start, length)
    wanted = pa.list_(pa.int64())
    found = as_stored(column, wanted, ColumnRules())
    assert found.type == wanted
    assert found.to_pylist() == values[start : start + length]


def test_lists_that_are_too_long_are_refused() -> None:
    offsets = pa.array([0, 1 << 31], pa.int64())
    column = pa.LargeListArray.from_arrays(offsets, pa.nulls(1 << 31))
    with pytest.raises(OnlySparkError, match="lists are too long"):
        as_stored(column, pa.list_(pa.null()), ColumnRules())
