from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from puredelta.log.replay.action_columns import partition_values_maps, stats_text

UTC = dt.timezone.utc
MOMENT = dt.datetime(2024, 2, 29, 23, 59, 58, 123999, tzinfo=UTC)
BEFORE_EPOCH = dt.datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)


def _stats(**fields: pa.Array) -> list[Any]:
    texts = stats_text(pa.StructArray.from_arrays(list(fields.values()), names=list(fields)))
    return [None if t is None else json.loads(t) for t in texts.to_pylist()]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (pa.array([7, -1, None]), [7, -1, None]),
        (pa.array([True, False, None]), [True, False, None]),
        (pa.array([1.5, 1e300, -0.0, None]), [1.5, 1e300, 0.0, None]),
        (
            pa.array([float("nan"), float("inf"), float("-inf")], pa.float32()),
            ["NaN", "Infinity", "-Infinity"],
        ),
        (pa.array([Decimal("1.20"), Decimal("-0.01"), None]), [1.2, -0.01, None]),
        (pa.array([dt.date(2024, 2, 29), dt.date(1, 1, 1)]), ["2024-02-29", "0001-01-01"]),
        (
            pa.array([MOMENT, BEFORE_EPOCH, None], pa.timestamp("us", "UTC")),
            ["2024-02-29T23:59:58.123Z", "1969-12-31T23:59:59.999Z", None],
        ),
        (pa.array([MOMENT.replace(tzinfo=None)], pa.timestamp("us")), ["2024-02-29T23:59:58.123"]),
        (
            pa.array(["", 'a"b\\c', "tab\tnul\0", "é🙂\u2028", None]),
            ["", 'a"b\\c', "tab\tnul\0", "é🙂\u2028", None],
        ),
        (pa.array([b"x", None]), [None, None]),
        (pa.array([[1], None]), [None, None]),
    ],
    ids=lambda v: str(v.type) if isinstance(v, pa.Array) else "",
)
def test_values(values: pa.Array, expected: list[Any]) -> None:
    rows = _stats(minValues=pa.StructArray.from_arrays([values], names=["c"]))
    assert [row["minValues"].get("c") for row in rows] == expected


def test_nesting_nulls_and_odd_names() -> None:
    inner = pa.array([{"x": 1}, None, {"x": None}], pa.struct([("x", pa.int64())]))
    low = pa.StructArray.from_arrays([inner, pa.array([1, 2, 3])], names=["s.t", 'q"'])
    parsed = pa.StructArray.from_arrays(
        [pa.array([5, None, 7]), low], names=["numRecords", "minValues"]
    )
    texts = stats_text(pa.concat_arrays([parsed, pa.nulls(1, parsed.type)])).to_pylist()
    assert [t and json.loads(t) for t in texts] == [
        {"numRecords": 5, "minValues": {"s.t": {"x": 1}, 'q"': 1}},
        {"minValues": {'q"': 2}},
        {"numRecords": 7, "minValues": {"s.t": {}, 'q"': 3}},
        None,
    ]
    assert texts[0].startswith('{"numRecords":5,')


def test_nothing_but_absent_values() -> None:
    assert _stats(numRecords=pa.array([None, None], pa.int64())) == [{}, {}]


@given(st.lists(st.one_of(st.none(), st.text(max_size=6)), min_size=1, max_size=4))
def test_any_text_survives(values: list[str | None]) -> None:
    rows = _stats(
        minValues=pa.StructArray.from_arrays([pa.array(values, pa.string())], names=["c"])
    )
    assert [row["minValues"].get("c") for row in rows] == values


@given(st.lists(st.floats(), min_size=1, max_size=4))
@example([float("nan"), -0.0])
def test_any_number_survives(values: list[float]) -> None:
    rows = _stats(minValues=pa.StructArray.from_arrays([pa.array(values)], names=["c"]))
    back = [float(row["minValues"]["c"]) for row in rows]
    assert back == pytest.approx(values, rel=0, abs=0, nan_ok=True)  # 0.0 and -0.0 bound alike


def test_partition_values() -> None:
    parsed = pa.StructArray.from_arrays(
        [
            pa.array([1, None]),
            pa.array(["a b", ""]),
            pa.array([dt.date(2024, 2, 29), None]),
            pa.array([True, False]),
            pa.array([Decimal("1.20"), None]),
            pa.array([MOMENT, None], pa.timestamp("us", "UTC")),
            pa.array([MOMENT.replace(tzinfo=None), None], pa.timestamp("us")),
        ],
        names=["i", "s", "d", "b", "m", "t", "n"],
    )
    first, second = (dict(m) for m in partition_values_maps(parsed).to_pylist())
    assert first == {
        "i": "1",
        "s": "a b",
        "d": "2024-02-29",
        "b": "true",
        "m": "1.20",
        "t": "2024-02-29T23:59:58.123999Z",
        "n": "2024-02-29 23:59:58.123999",
    }
    assert second == {"i": None, "s": "", "d": None, "b": "false", "m": None, "t": None, "n": None}


def test_partition_values_of_no_columns_or_rows() -> None:
    assert partition_values_maps(pa.array([{}, {}], pa.struct([]))).to_pylist() == [[], []]
    assert partition_values_maps(pa.array([], pa.struct([("a", pa.int64())]))).to_pylist() == []
