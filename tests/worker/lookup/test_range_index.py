"""Ranges by the values that they hold: every value finds the rows of the source around it."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from puredelta.worker.lookup import range_index
from puredelta.worker.lookup.range_index import KeyRange, RangeIndex
from puredelta.worker.read_rows import OnlySparkError

FIRST = dt.datetime(2024, 1, 1, tzinfo=dt.timezone.utc)
EDGES = st.sampled_from([-(2**63), -(2**63) + 1, 2**63 - 2, 2**63 - 1])
NUMBERS = st.one_of(st.integers(-9, 9), st.integers(-(2**63), 2**63 - 1), EDGES, st.none())
RANGES = st.lists(st.tuples(NUMBERS, NUMBERS), max_size=30)


def within(low: str | None = "lo", high: str | None = "hi", **opens: bool) -> KeyRange:
    return KeyRange(target="x", low=low, high=high, **opens)


def index_of(one: KeyRange, ranges: list[tuple[Any, Any]], kind: pa.DataType) -> RangeIndex:
    lows, highs = ([pair[side] for pair in ranges] for side in (0, 1))
    columns = {"lo": pa.array(lows, kind), "hi": pa.array(highs, kind)}
    return RangeIndex(one, [columns[name] for name in one.sources])


def holds(one: KeyRange, pair: tuple[Any, Any], value: Any) -> bool:
    low, high = pair
    if value is None:
        return False
    if one.low and (low is None or value < low or (one.low_open and value == low)):
        return False
    return not (one.high and (high is None or value > high or (one.high_open and value == high)))


@given(ranges=RANGES, values=st.lists(NUMBERS, max_size=30), sides=st.integers(1, 3),
       low_open=st.booleans(), high_open=st.booleans())  # fmt: skip
def test_the_answer_is_that_of_a_join(
    ranges: list[tuple[Any, Any]],
    values: list[int | None],
    sides: int,
    *,
    low_open: bool,
    high_open: bool,
) -> None:
    one = within(
        "lo" if sides & 1 else None,
        "hi" if sides & 2 else None,
        low_open=low_open,
        high_open=high_open,
    )
    bounds = [bound for pair in ranges for bound in pair]
    values = [*values, *bounds, *(n - 1 for n in bounds if n is not None and n > -(2**63))]
    index = index_of(one, ranges, pa.int64())
    rows, segments = index.lookup([pa.array(values, pa.int64())])
    at, source_rows = index.source_rows(segments)
    wanted = [
        (v, s) for v, x in enumerate(values) for s, r in enumerate(ranges) if holds(one, r, x)
    ]
    assert sorted(zip(rows[at].tolist(), source_rows.tolist(), strict=True)) == wanted
    assert len(source_rows) == int(index.counts[segments].sum())
    some = np.array(sorted(x for x in values if x is not None), np.int64)
    for low, high in zip(some[:5], some[-5:], strict=False):
        met = any(holds(one, r, x) for r in ranges for x in some[(some >= low) & (some <= high)])
        assert index.might_meet(np.array([low]), np.array([high]))[0] >= met


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (pa.date32(), [dt.date(2024, 1, n) for n in range(1, 8)]),
        (pa.timestamp("us", "UTC"), [FIRST + dt.timedelta(n) for n in range(7)]),
        (pa.decimal128(18, 2), [Decimal(n) / 4 - 1 for n in range(7)]),
        (pa.int16(), list(range(7))),
    ],
)  # fmt: skip
def test_other_types_are_whole_numbers(kind: pa.DataType, values: list[Any]) -> None:
    index = index_of(within(high_open=True), [(values[1], values[3]), (values[5], None)], kind)
    column = pa.chunked_array([pa.array([None, *values], kind), pa.array([], kind)])
    assert index.lookup([column])[0].tolist() == [2, 3]


def test_old_times_of_the_target_are_not_compared() -> None:
    index = index_of(within(low=None), [(None, dt.date(2024, 1, 1))], pa.date32())
    with pytest.raises(OnlySparkError, match="days from 1970"):
        index.lookup([pa.array([dt.date(1582, 10, 4)])])


def test_ranges_that_overlap_much_are_left_to_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(range_index, "COVERS_MIN", 100)
    nested = [(n, 99 - n) for n in range(40)]
    with pytest.raises(OnlySparkError, match="40 ranges of the source overlap in"):
        index_of(within(), nested, pa.int64())
    assert len(index_of(within(), [(n, n) for n in range(40)], pa.int64())) == 41
