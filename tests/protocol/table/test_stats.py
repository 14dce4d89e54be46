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

from puredelta.protocol.actions.actions import Metadata, Protocol
from puredelta.protocol.features.column_mapping import assign_columns
from puredelta.protocol.features.properties import TableProperties
from puredelta.protocol.schema.schema_json import encode_schema
from puredelta.protocol.schema.types import (
    BINARY,
    LONG,
    STRING,
    ArrayType,
    DataType,
    MapType,
    StructField,
    StructType,
)
from puredelta.protocol.table.stats import (
    LeafStatistics,
    encode_statistics,
    indexed_columns,
    indexed_leaves,
    truncate_text_maximum,
    truncate_text_minimum,
    truncate_timestamp_maximum,
    truncate_timestamp_minimum,
)
from puredelta.protocol.table.table_config import TableConfig

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
    assert truncate_text_maximum(text) == maximum


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
    assert truncate_text_minimum(text) == minimum


TRICKY = st.text(
    st.sampled_from(["a", "~", "\x7f", "\x80", "é", "\ud7ff", "\ue000", "\uffff", SMILE, MAX]),
    max_size=20,
)


@given(TRICKY, st.integers(1, 6))
def test_bounds_of_text_hold_and_stay_short(text: str, length: int) -> None:
    low, high = truncate_text_minimum(text, length), truncate_text_maximum(text, length)
    # Spark and the other readers compare UTF-8 bytes, whose order is that of code points.
    assert low.encode() <= text.encode()
    assert len(low) <= length
    if high is not None:
        assert high.encode() >= text.encode()
        assert len(high.encode("utf-16-le")) // 2 <= 2 * length + 3


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_a_maximum_is_missing_only_where_nothing_is_above(text: str) -> None:
    assert truncate_text_maximum(text) is not None or MAX in text


# --- writing --------------------------------------------------------------------------------


def test_the_text_is_the_reference_s() -> None:
    """As printed by delta-spark 4.4.0, apart from the maximum of the timestamps (X-65, X-66)."""
    nulls: dict[tuple[str, ...], int] = {("id",): 0, ("st", "a"): 0, ("st", "b"): 1}
    bounds = {
        ("id",): 9007199254740993,
        ("d",): 1.5,
        ("ts",): datetime(2020, 1, 1, 10, 11, 12, 123456, timezone(timedelta(hours=-5))),
        ("ntz",): datetime(2020, 1, 1, 10, 11, 12, 123456),
        ("x",): Decimal("123456789012345678.12345"),
        ("dt",): date(2020, 2, 3),
        ("st", "a"): 1,
        ("s",): "x" + "z" * 31,
    }
    leaves = {
        path: LeafStatistics(bounds.get(path), bounds.get(path), nulls.get(path))
        for path in (*bounds, ("st", "b"))
    }
    assert encode_statistics(leaves, num_records=1) == (
        '{"numRecords":1,'
        '"minValues":{"id":9007199254740993,"d":1.5,"ts":"2020-01-01T15:11:12.123Z",'
        '"ntz":"2020-01-01T10:11:12.123","x":123456789012345678.12345,'
        '"dt":"2020-02-03","st":{"a":1},"s":"xzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz"},'
        '"maxValues":{"id":9007199254740993,"d":1.5,"ts":"2020-01-01T15:11:12.124Z",'
        '"ntz":"2020-01-01T10:11:12.124","x":123456789012345678.12345,'
        '"dt":"2020-02-03","st":{"a":1},"s":"xzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz"},'
        '"nullCount":{"id":0,"st":{"a":0,"b":1}}}'
    )


@pytest.mark.parametrize("tight", [True, False])
def test_tight_bounds_are_said_only_when_known(tight: bool) -> None:
    """X-60."""
    known = encode_statistics({}, num_records=1, tight_bounds=tight)
    assert json.loads(known)["tightBounds"] is tight
    assert "tightBounds" not in encode_statistics({}, num_records=1)


@pytest.mark.parametrize(
    "value",
    [
        math.nan,
        math.inf,
        -math.inf,
        True,
        b"x",
        Decimal("NaN"),
        datetime(9999, 12, 31, 23, 59, 59, 999999),
    ],
)
def test_a_bound_without_a_safe_text_is_left_out(value: object) -> None:
    """X-62, X-67, X-72."""
    text = encode_statistics({("a",): LeafStatistics(maximum=value)}, num_records=1)  # type: ignore[arg-type]
    assert json.loads(text)["maxValues"] == {}


def test_an_instant_outside_the_calendar_in_utc_is_left_out() -> None:
    early = datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=5)))
    text = encode_statistics({("a",): LeafStatistics(minimum=early)}, num_records=1)
    assert json.loads(text)["minValues"] == {}


def test_long_text_is_cut_to_the_length_asked_for() -> None:
    """X-64."""
    leaves = {("a",): LeafStatistics("abcdef", "abcdef")}
    content = json.loads(encode_statistics(leaves, num_records=1, string_prefix_length=3))
    assert content["minValues"] == {"a": "abc"}
    assert content["maxValues"] == {"a": "abc\x7f"}


def test_a_leaf_has_no_fields() -> None:
    leaf = LeafStatistics(null_count=1)
    with pytest.raises(ValueError, match="runs through a leaf"):
        encode_statistics({("a",): leaf, ("a", "b"): leaf}, num_records=1)


@given(st.datetimes(max_value=datetime(9999, 12, 31)))
def test_milliseconds_enclose_a_timestamp(value: datetime) -> None:
    """X-65."""
    low, high = truncate_timestamp_minimum(value), truncate_timestamp_maximum(value)
    assert low <= value <= high
    assert high - low in {timedelta(0), timedelta(milliseconds=1)}
