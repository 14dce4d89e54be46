"""Per-file statistics (X-60 to X-68, X-72)."""

# ruff: noqa: DTZ001 - values without a zone are what timestamp_ntz holds

from __future__ import annotations

import json
import math
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from puredelta.protocol.actions import Metadata, Protocol
from puredelta.protocol.column_mapping import assign_columns
from puredelta.protocol.properties import TableProperties
from puredelta.protocol.schema_json import encode_schema
from puredelta.protocol.stats import (
    FileStatistics,
    ceil_to_millisecond,
    encode_statistics,
    floor_to_millisecond,
    indexed_columns,
    indexed_leaves,
    truncate_maximum,
    truncate_minimum,
)
from puredelta.protocol.stats_parse import parse_statistics
from puredelta.protocol.table_config import TableConfig
from puredelta.protocol.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    StructField,
    StructType,
)

UTC = timezone.utc
MAX = "\U0010ffff"
SMILE = "\U0001f600"


def struct(**types: DataType) -> StructType:
    return StructType(tuple(StructField(name, t) for name, t in types.items()))


# --- which columns --------------------------------------------------------------------------

SCHEMA = struct(
    a=LONG,
    s=struct(x=LONG, t=struct(y=STRING, z=LONG)),
    l=ArrayType(struct(q=LONG)),
    m=MapType(STRING, LONG),
    b=BINARY,
)
LEAVES = (("a",), ("s", "x"), ("s", "t", "y"), ("s", "t", "z"), ("l",), ("m",), ("b",))


@pytest.mark.parametrize(
    ("configuration", "leaves"),
    [
        ({}, LEAVES),
        ({"delta.dataSkippingNumIndexedCols": "-1"}, LEAVES),
        ({"delta.dataSkippingNumIndexedCols": "0"}, ()),
        ({"delta.dataSkippingNumIndexedCols": "3"}, LEAVES[:3]),
        ({"delta.dataSkippingStatsColumns": "s.T, b"}, (*LEAVES[2:4], ("b",))),
        (
            {"delta.dataSkippingStatsColumns": "b", "delta.dataSkippingNumIndexedCols": "2"},
            (("b",),),
        ),
        ({"delta.dataSkippingStatsColumns": ""}, ()),
    ],
)
def test_indexed_columns(
    configuration: dict[str, str], leaves: tuple[tuple[str, ...], ...]
) -> None:
    """X-61."""
    assert indexed_columns(SCHEMA, TableProperties.of(configuration)) == leaves


def test_only_the_first_32_leaves_are_indexed() -> None:
    schema = struct(**{f"c{n}": LONG for n in range(40)})
    assert len(indexed_columns(schema, TableProperties.of({}))) == 32


def test_leaves_of_a_mapped_table_are_physical_and_without_partition_columns() -> None:
    """X-60."""
    numbers = iter(range(100))
    mapped, _ = assign_columns(SCHEMA, max_column_id=0, new_name=lambda: f"c{next(numbers)}")
    config = TableConfig.of(
        Protocol(min_reader_version=2, min_writer_version=5),
        Metadata(
            id="t",
            schema_string=encode_schema(mapped),
            partition_columns=("a",),
            configuration={
                "delta.columnMapping.mode": "name",
                "delta.dataSkippingStatsColumns": "s.x,l",
            },
        ),
    )
    assert indexed_leaves(config) == (("c1", "c2"), ("c6",))


# --- text -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "maximum"),
    [
        # Printed by delta-spark 4.4.0 for these values.
        ("a" * 32, "a" * 32),
        ("a" * 33, "a" * 32 + "\x7f"),
        ("a" * 31 + SMILE + "b", "a" * 31 + SMILE + "\x7f"),
        ("a" * 32 + "\x7fc", "a" * 32 + MAX),
        ("a" * 32 + MAX * 3 + "z", "a" * 32 + MAX * 3 + "\x7f"),
        ("a" * 32 + MAX * 20, None),
        ("é" * 40, "é" * 32 + MAX),
        (SMILE * 40, SMILE * 16 + MAX),
        ("a" * 32 + "é", "a" * 32 + MAX),
        ("a" * 32 + "~x", "a" * 32 + "\x7f"),
        ("a" * 31 + MAX * 5 + "b", "a" * 31 + MAX * 5 + "\x7f"),
        ("a" * 32 + MAX, "a" * 32 + MAX),
        ("a" * 32 + MAX * 16, "a" * 32 + MAX * 16),
        ("a" * 32 + MAX * 15 + "b", "a" * 32 + MAX * 15 + "\x7f"),
        ("a" * 32 + MAX * 16 + "b", "a" * 32 + MAX * 16 + "\x7f"),
        ("a" * 32 + "~", "a" * 32 + "\x7f"),
        ("a" * 32 + "\x7f", "a" * 32 + MAX),
        ("a" * 32 + "\uffff\uffff", "a" * 32 + MAX),
        (MAX * 40, None),
        ("", ""),
    ],
)
def test_the_maximum_of_long_text_is_the_reference_s(text: str, maximum: str | None) -> None:
    """X-63."""
    assert truncate_maximum(text) == maximum


@pytest.mark.parametrize(
    ("text", "minimum"),
    [
        ("a" * 33, "a" * 32),
        ("a" * 31 + SMILE + "b", "a" * 31 + SMILE),
        (SMILE * 40, SMILE * 32),
        ("short", "short"),
    ],
)
def test_the_minimum_of_long_text_is_a_prefix_of_code_points(text: str, minimum: str) -> None:
    """X-63; printed by delta-spark 4.4.0."""
    assert truncate_minimum(text) == minimum


TRICKY = st.text(
    st.sampled_from(["a", "~", "\x7f", "\x80", "é", "\ud7ff", "\ue000", "\uffff", SMILE, MAX]),
    max_size=20,
)


@given(TRICKY, st.integers(1, 6))
def test_bounds_of_text_hold_and_stay_short(text: str, length: int) -> None:
    low, high = truncate_minimum(text, length), truncate_maximum(text, length)
    # Spark and the other readers compare UTF-8 bytes, whose order is that of code points.
    assert low.encode() <= text.encode()
    assert len(low) <= length
    if high is not None:
        assert high.encode() >= text.encode()
        assert len(high.encode("utf-16-le")) // 2 <= 2 * length + 3


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_a_maximum_is_missing_only_where_nothing_is_above(text: str) -> None:
    assert truncate_maximum(text) is not None or MAX in text


# --- writing --------------------------------------------------------------------------------


def test_the_text_is_the_reference_s() -> None:
    """As printed by delta-spark 4.4.0, apart from the maximum of the timestamps (X-65)."""
    bounds = {
        ("id",): 9007199254740993,
        ("d",): 1.5,
        ("ts",): datetime(2020, 1, 1, 10, 11, 12, 123456, timezone(timedelta(hours=-5))),
        ("ntz",): datetime(2020, 1, 1, 10, 11, 12, 123456),
        ("x",): Decimal("123456789012345678.12345"),
        ("g",): math.inf,
        ("dt",): date(2020, 2, 3),
        ("st", "a"): 1,
        ("s",): "x" + "z" * 31,
    }
    statistics = FileStatistics(
        num_records=1,
        minimum=bounds,
        maximum=bounds,
        null_count={("id",): 0, ("st", "a"): 0, ("st", "b"): 1},
    )
    assert encode_statistics(statistics) == (
        '{"numRecords":1,'
        '"minValues":{"id":9007199254740993,"d":1.5,"ts":"2020-01-01T15:11:12.123Z",'
        '"ntz":"2020-01-01T10:11:12.123","x":123456789012345678.12345,"g":"Infinity",'
        '"dt":"2020-02-03","st":{"a":1},"s":"xzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz"},'
        '"maxValues":{"id":9007199254740993,"d":1.5,"ts":"2020-01-01T15:11:12.124Z",'
        '"ntz":"2020-01-01T10:11:12.124","x":123456789012345678.12345,"g":"Infinity",'
        '"dt":"2020-02-03","st":{"a":1},"s":"xzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz"},'
        '"nullCount":{"id":0,"st":{"a":0,"b":1}}}'
    )


@pytest.mark.parametrize("tight", [True, False])
def test_tight_bounds_are_said_only_when_known(tight: bool) -> None:
    """X-60."""
    known = FileStatistics(num_records=1, tight_bounds=tight)
    assert json.loads(encode_statistics(known))["tightBounds"] is tight
    assert "tightBounds" not in encode_statistics(FileStatistics(num_records=1))


@pytest.mark.parametrize(
    "value", [math.nan, True, b"x", Decimal("NaN"), datetime(9999, 12, 31, 23, 59, 59, 999999)]
)
def test_a_bound_without_a_safe_text_is_left_out(value: object) -> None:
    """X-62, X-67, X-72."""
    text = encode_statistics(FileStatistics(num_records=1, maximum={("a",): value}))
    assert json.loads(text)["maxValues"] == {}


def test_an_instant_outside_the_calendar_in_utc_is_left_out() -> None:
    early = datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=5)))
    text = encode_statistics(FileStatistics(num_records=1, minimum={("a",): early}))
    assert json.loads(text)["minValues"] == {}


def test_long_text_is_cut_to_the_length_asked_for() -> None:
    """X-64."""
    bounds = {("a",): "abcdef"}
    statistics = FileStatistics(num_records=1, minimum=bounds, maximum=bounds)
    content = json.loads(encode_statistics(statistics, string_prefix_length=3))
    assert content["minValues"] == {"a": "abc"}
    assert content["maxValues"] == {"a": "abc\x7f"}


def test_a_leaf_has_no_fields() -> None:
    with pytest.raises(ValueError, match="runs through a leaf"):
        encode_statistics(FileStatistics(num_records=1, null_count={("a",): 1, ("a", "b"): 1}))


@given(st.datetimes(max_value=datetime(9999, 12, 31)))
def test_milliseconds_enclose_a_timestamp(value: datetime) -> None:
    """X-65."""
    low, high = floor_to_millisecond(value), ceil_to_millisecond(value)
    assert low <= value <= high
    assert high - low in {timedelta(0), timedelta(milliseconds=1)}


# --- reading --------------------------------------------------------------------------------

TYPED = struct(
    i=INTEGER,
    l=LONG,
    d=DOUBLE,
    f=FLOAT,
    x=DecimalType(38, 5),
    s=STRING,
    dt=DATE,
    ts=TIMESTAMP,
    ntz=TIMESTAMP_NTZ,
    st=struct(a=LONG),
    bo=BOOLEAN,
    arr=ArrayType(LONG),
)


def parse(text: str | None) -> FileStatistics | None:
    return parse_statistics(text, TYPED)


def parsed_bound(raw: str, name: str, side: str = "minValues") -> object:
    statistics = parse(f'{{"numRecords":1,"{side}":{{"{name}":{raw}}}}}')
    assert statistics is not None
    bounds = statistics.minimum if side == "minValues" else statistics.maximum
    return bounds.get((name,))


def test_statistics_of_delta_spark_are_read() -> None:
    """Printed by delta-spark 4.4.0 in New York."""
    statistics = parse(
        '{"numRecords":1,"minValues":{"l":9007199254740993,"d":1.0E10,"f":0.1,'
        '"ts":"2020-01-01T10:11:12.123-05:00","ntz":"2020-01-01T10:11:12.123",'
        '"x":123456789012345678.12345,"dt":"2020-02-03","st":{"a":1},"unknown":{"b":1}},'
        '"maxValues":{"d":"Infinity","f":"NaN","ts":"2020-01-01T10:11:12.123-05:00"},'
        '"nullCount":{"l":0,"st":{"a":1},"arr":0,"bo":1},"tightBounds":true}'
    )
    assert statistics is not None
    assert statistics.num_records == 1
    assert statistics.tight_bounds is True
    assert statistics.minimum == {
        ("l",): 9007199254740993,
        ("d",): 1e10,
        ("f",): 0.10000000149011612,
        ("x",): Decimal("123456789012345678.12345"),
        ("dt",): date(2020, 2, 3),
        ("ts",): datetime(2020, 1, 1, 15, 11, 12, 123000, UTC),
        ("ntz",): datetime(2020, 1, 1, 10, 11, 12, 123000),
        ("st", "a"): 1,
    }
    assert statistics.maximum == {
        ("d",): math.inf,
        ("ts",): datetime(2020, 1, 1, 15, 11, 12, 124000, UTC),
    }
    assert statistics.null_count == {("l",): 0, ("st", "a"): 1, ("arr",): 0, ("bo",): 1}


@pytest.mark.parametrize("text", [None, "", "{", "[]", '"x"', "7", '{"numRecords":1'])
def test_what_is_no_statistics_is_none(text: str | None) -> None:
    assert parse(text) is None


@pytest.mark.parametrize(
    ("name", "raw"),
    [
        ("i", '"1"'),
        ("i", "1.5"),
        ("i", "true"),
        ("l", "null"),
        ("d", '"NaN"'),
        ("d", "NaN"),
        ("d", "{}"),
        ("f", "1e300"),
        ("x", '"1"'),
        ("s", "1"),
        ("dt", '"+12345-01-01"'),
        ("dt", '"soon"'),
        ("ts", '"2020-01-01T10:11:12"'),
        ("ntz", '"2020-01-01T10:11:12Z"'),
        ("st", "7"),
        ("bo", "true"),
        ("arr", "[1]"),
    ],
)
def test_a_bound_that_is_not_certain_is_left_out(name: str, raw: str) -> None:
    """X-72."""
    assert parsed_bound(raw, name) is None


def test_a_broken_count_is_unknown() -> None:
    statistics = parse('{"numRecords":"many","nullCount":{"i":-1,"l":1.5,"s":2},"minValues":7}')
    assert statistics == FileStatistics(num_records=None, null_count={("s",): 2})


def test_a_maximum_at_the_end_of_time_is_left_out() -> None:
    assert parsed_bound('"9999-12-31T23:59:59.999"', "ntz", "maxValues") is None


def test_a_date_from_before_widening_is_a_midnight() -> None:
    assert parsed_bound('"2020-02-03"', "ntz") == datetime(2020, 2, 3)


LEAF_VALUES = st.fixed_dictionaries(
    {},
    optional={
        ("i",): st.integers(-(2**31), 2**31 - 1),
        ("l",): st.integers(-(2**63), 2**63 - 1),
        ("d",): st.floats(allow_nan=False),
        ("f",): st.floats(allow_nan=False, width=32),
        ("x",): st.integers(-(10**38) + 1, 10**38 - 1).map(lambda n: Decimal(f"{n}E-5")),
        ("s",): st.text(st.characters(exclude_categories=["Cs"])),
        ("dt",): st.dates(),
        ("ts",): st.datetimes(datetime(2, 1, 1), datetime(9998, 1, 1), timezones=st.just(UTC)),
        ("ntz",): st.datetimes(datetime(2, 1, 1), datetime(9998, 1, 1)),
        ("st", "a"): st.integers(-(2**63), 2**63 - 1),
    },
)


@given(LEAF_VALUES, st.integers(0, 2**40))
def test_what_is_read_back_still_encloses_the_values(
    values: dict[tuple[str, ...], object], num_records: int
) -> None:
    written = FileStatistics(
        num_records=num_records,
        minimum=values,
        maximum=values,
        null_count=dict.fromkeys(values, num_records),
        tight_bounds=True,
    )
    read = parse(encode_statistics(written))
    assert read is not None
    assert read.num_records == num_records
    assert read.null_count == written.null_count
    assert read.minimum.keys() == values.keys()
    assert read.maximum.keys() | {("s",)} == values.keys() | {("s",)}
    for path, value in values.items():
        assert read.minimum[path] <= value
        if path in read.maximum:
            assert read.maximum[path] >= value
    exact = {path for path in values if path[0] not in {"s", "ts", "ntz"}}
    assert all(read.minimum[p] == values[p] == read.maximum[p] for p in exact)
