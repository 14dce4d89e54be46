"""Statistics as they are written still enclose the values when they are read (X-62 to X-65)."""

# ruff: noqa: DTZ001 - values without a zone are what timestamp_ntz holds

from __future__ import annotations

from datetime import date, datetime, timedelta, timezone
from decimal import Context, Decimal
from typing import Any

import pyarrow as pa
from hypothesis import example, given
from hypothesis import strategies as st

from puredelta.log.files.stats_columns import read_stats_columns
from puredelta.protocol.schema.types import (
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    DecimalType,
)
from puredelta.protocol.table.stats import LeafStatistics, encode_statistics

UTC = timezone.utc
LEAVES = {
    ("i",): INTEGER,
    ("l",): LONG,
    ("d",): DOUBLE,
    ("f",): FLOAT,
    ("x",): DecimalType(38, 5),
    ("s",): STRING,
    ("dt",): DATE,
    ("ts",): TIMESTAMP,
    ("ntz",): TIMESTAMP_NTZ,
    ("st", "a"): LONG,
}
EXACT = (INTEGER, LONG, DATE, DecimalType(38, 5))
LONGS = st.integers(-(2**63), 2**63 - 1)
VALUES = st.fixed_dictionaries(
    {},
    optional={
        ("i",): st.integers(-(2**31), 2**31 - 1),
        ("l",): LONGS,
        ("d",): st.floats(allow_nan=False),
        ("f",): st.floats(allow_nan=False, width=32),
        ("x",): st.integers(-(10**38) + 1, 10**38 - 1).map(lambda n: Decimal(f"{n}E-5")),
        ("s",): st.text(st.characters(exclude_categories=["Cs"])),
        ("dt",): st.dates(),
        ("ts",): st.datetimes(datetime(2, 1, 1), datetime(9998, 1, 1), timezones=st.just(UTC)),
        ("ntz",): st.datetimes(datetime(2, 1, 1), datetime(9998, 1, 1)),
        ("st", "a"): LONGS,
    },
)


@given(VALUES, st.integers(0, 2**40))
@example({("x",): Decimal("5629499534.21311")}, 0)
@example({("x",): Decimal("5629499534.21312")}, 0)
def test_what_is_read_back_still_encloses_the_values(
    values: dict[tuple[str, ...], Any], num_records: int
) -> None:
    leaves = {path: LeafStatistics(value, value, num_records) for path, value in values.items()}
    written = encode_statistics(leaves, num_records=num_records, tight_bounds=True)
    read = read_stats_columns(pa.array([written]), LEAVES)
    assert read.num_records.to_pylist() == [num_records]
    for path, leaf in read.leaves.items():
        assert leaf.null_count.to_pylist() == [num_records if path in values else None]
        low, high = leaf.low[0].as_py(), leaf.high[0].as_py()
        if path not in values:
            assert (low, high) == (None, None)
            continue
        value = _ordered(values[path])
        assert low is None or low <= value
        assert high is None or high >= value
        if LEAVES[path] in EXACT and not _may_be_a_double(value):
            assert low == value == high
        elif LEAVES[path] in EXACT and low is not None and high is not None:
            assert high - low <= abs(value) / 2**48 + Decimal("0.00002")


def _may_be_a_double(value: Any) -> bool:
    """Return whether a decimal is long, and has the digits of a double that lost some of its own.

    Its bounds are moved outward by what may have been lost.
    """
    if not isinstance(value, Decimal) or abs(value) < Decimal(2**49).scaleb(-5):
        return False
    return (
        len(Context(prec=80).normalize(value).as_tuple().digits) <= 17
        or Decimal(float(value)) == value
    )


def test_statistics_of_delta_spark_are_read() -> None:
    """Printed by delta-spark 4.4.0 in New York."""
    text = (
        '{"numRecords":1,"minValues":{"l":9007199254740993,"d":1.0E10,"f":0.1,'
        '"ts":"2020-01-01T10:11:12.123-05:00","ntz":"2020-01-01T10:11:12.123",'
        '"x":123456789012345678.12345,"dt":"2020-02-03","st":{"a":1},"unknown":{"b":1}},'
        '"maxValues":{"d":"Infinity","f":"NaN","ts":"2020-01-01T10:11:12.123-05:00"},'
        '"nullCount":{"l":0,"st":{"a":1},"arr":0,"bo":1},"tightBounds":true}'
    )
    leaves = read_stats_columns(pa.array([text]), LEAVES).leaves
    low = {path: leaf.low[0].as_py() for path, leaf in leaves.items()}
    assert low[("l",)] == 9007199254740993
    assert low[("x",)] == Decimal("123456789012345678.12345")
    assert low[("dt",)] == date(2020, 2, 3)
    assert low[("st", "a")] == 1
    moment = _ordered(datetime(2020, 1, 1, 15, 11, 12, 123000, UTC))
    assert low[("ts",)] == moment
    assert leaves[("ts",)].high[0].as_py() == moment + 1000


def _ordered(value: Any) -> Any:
    """Moments are compared as microseconds since 1970."""
    if not isinstance(value, datetime):
        return value
    return (value.replace(tzinfo=UTC) - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(
        microseconds=1
    )
