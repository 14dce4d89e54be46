"""Partition values as text (X-82, X-83, X-84, C-42 to C-46)."""

# ruff: noqa: DTZ001 - values without a zone are what timestamp_ntz holds

from __future__ import annotations

import math
import struct
from datetime import date, datetime, timezone
from decimal import Decimal
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from puredelta.errors import CorruptTableError, ErrorCode, InvalidRequestError
from puredelta.protocol.schema.partition_values import (
    encode_partition_value,
    is_partition_type,
    parse_partition_value,
    partition_identity,
)
from puredelta.protocol.schema.types import (
    BINARY,
    BOOLEAN,
    BYTE,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    SHORT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VOID,
    ArrayType,
    DataType,
    DecimalType,
    StructType,
)

UTC = timezone.utc
NEW_YORK = ZoneInfo("America/New_York")
TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)
VALUES: st.SearchStrategy[tuple[DataType, object]] = st.one_of(
    st.tuples(st.just(STRING), TEXT),
    st.tuples(st.just(BINARY), TEXT.map(str.encode)),
    st.tuples(st.just(LONG), st.integers(-(2**63), 2**63 - 1)),
    st.tuples(st.just(BYTE), st.integers(-128, 127)),
    st.tuples(st.just(BOOLEAN), st.booleans()),
    st.tuples(st.just(DATE), st.dates()),
    st.tuples(st.just(DOUBLE), st.floats(allow_nan=False)),
    st.tuples(st.just(FLOAT), st.floats(allow_nan=False, width=32)),
    st.tuples(st.just(TIMESTAMP_NTZ), st.datetimes()),
    st.tuples(
        st.just(TIMESTAMP),
        st.datetimes(datetime(2, 1, 1), datetime(9998, 1, 1), timezones=st.just(UTC)),
    ),
    st.tuples(
        st.just(DecimalType(38, 6)),
        st.integers(-(10**38) + 1, 10**38 - 1).map(lambda n: Decimal(f"{n}E-6")),
    ),
)


@given(VALUES)
def test_a_value_survives_its_text(case: tuple[DataType, object]) -> None:
    data_type, value = case
    text = encode_partition_value(value, data_type)
    parsed = parse_partition_value(text, data_type, NEW_YORK)
    assert type(parsed) is type(value)
    if data_type == FLOAT:
        assert struct.pack("f", parsed) == struct.pack("f", value)
    else:
        assert parsed == value


@pytest.mark.parametrize(
    ("value", "data_type", "text"),
    [
        # As delta-spark 4.4.0 wrote them, session in New York.
        (datetime(2020, 1, 1, 10, 11, 12, 123456, NEW_YORK), TIMESTAMP,
         "2020-01-01T15:11:12.123456Z"),
        (datetime(2020, 1, 1, 10, 11, 12), TIMESTAMP_NTZ, "2020-01-01 10:11:12"),
        (datetime(2021, 11, 18, 2, 30, 0, 123456), TIMESTAMP_NTZ, "2021-11-18 02:30:00.123456"),
        (Decimal("12.5"), DecimalType(10, 2), "12.50"),
        (True, BOOLEAN, "true"),
        ("aé".encode(), BINARY, "aé"),
        ("é%:? x", STRING, "é%:? x"),
        # and the rest of the protocol's list
        (Decimal("1E+3"), DecimalType(10, 0), "1000"),
        (False, BOOLEAN, "false"),
        (date(1, 1, 1), DATE, "0001-01-01"),
        (math.inf, DOUBLE, "Infinity"),
        (-math.inf, FLOAT, "-Infinity"),
        (math.nan, FLOAT, "NaN"),
        (struct.unpack("f", struct.pack("f", 0.1))[0], FLOAT, "0.1"),
        (3.4028234663852886e38, FLOAT, "3.4028235e+38"),
        (-5, SHORT, "-5"),
        (None, LONG, None),
        ("", STRING, None),
        (b"", BINARY, None),
    ],
)  # fmt: skip
def test_the_text_of_a_value(value: object, data_type: DataType, text: str | None) -> None:
    assert encode_partition_value(value, data_type) == text


@pytest.mark.parametrize(
    ("text", "data_type", "value"),
    [
        (None, STRING, None),
        ("", STRING, None),
        ("", LONG, None),
        ("2020-01-01 10:11:12", TIMESTAMP, datetime(2020, 1, 1, 15, 11, 12, tzinfo=UTC)),
        ("2020-01-01T10:11:12.5Z", TIMESTAMP, datetime(2020, 1, 1, 10, 11, 12, 500000, UTC)),
        ("2020-01-01 10:11:12", TIMESTAMP_NTZ, datetime(2020, 1, 1, 10, 11, 12)),
        ("2020-01-01 00:00:00", DATE, date(2020, 1, 1)),
        (" 7 ", INTEGER, 7),
        ("+7", INTEGER, 7),
        ("1.0E10", DOUBLE, 1e10),
        ("12.505", DecimalType(10, 2), Decimal("12.51")),
        ("1E2", DecimalType(10, 2), Decimal("100.00")),
        ("Yes", BOOLEAN, True),
        ("0", BOOLEAN, False),
    ],
)
def test_texts_other_writers_use(text: str | None, data_type: DataType, value: object) -> None:
    assert parse_partition_value(text, data_type, NEW_YORK) == value


@pytest.mark.parametrize(
    ("text", "data_type"),
    [
        ("x", INTEGER),
        ("1_000", INTEGER),
        ("1.5", INTEGER),
        ("128", BYTE),
        ("-9223372036854775809", LONG),
        ("1_0", DOUBLE),
        ("NaN", DecimalType(10, 2)),
        ("123456789.00", DecimalType(10, 2)),
        ("maybe", BOOLEAN),
        ("2020-02-30", DATE),
        ("late", TIMESTAMP),
        ("x", VOID),
        ("x", ArrayType(LONG)),
    ],
)
def test_a_text_that_is_no_value_is_named(text: str, data_type: DataType) -> None:
    """C-44."""
    with pytest.raises(CorruptTableError, match=f"partition value `{text}` to ") as caught:
        parse_partition_value(text, data_type, UTC)
    assert caught.value.code is ErrorCode.FAILED_CAST_PARTITION_VALUE


@pytest.mark.parametrize(
    ("value", "data_type"),
    [(b"\xff\x00", BINARY), ([1], ArrayType(LONG)), ({}, StructType(())), (1, VOID)],
)
def test_a_value_without_text_is_refused(value: object, data_type: DataType) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        encode_partition_value(value, data_type)
    assert caught.value.code is ErrorCode.INVALID_PARTITION_COLUMN_TYPE


def test_only_atomic_columns_partition_a_table() -> None:
    """X-07."""
    assert all(is_partition_type(t) for t in (STRING, LONG, DATE, DecimalType(5, 1), BINARY))
    assert not any(is_partition_type(t) for t in (VOID, ArrayType(LONG), StructType(())))


# --- identity -------------------------------------------------------------------------------

SPELLINGS: list[tuple[DataType, list[list[str | None]]]] = [
    (INTEGER, [["1", "01", "+1", " 1", "1.0", "1.9"], ["-1"], ["0", "-0"], [None, ""], ["x"]]),
    (LONG, [["9223372036854775807", "+9223372036854775807"], ["9223372036854775806"]]),
    (DOUBLE, [["1", "1.0", "1E0", "1.00", "1d"], ["0.0", "-0.0", "0", "-0"], ["NaN", "nan"]]),
    (DOUBLE, [["Infinity", "inf", "1e999"], ["-Infinity"], ["0.1"], ["0.100000001"], ["1_0"]]),
    (FLOAT, [["0.1", "0.10", "0.100000001"], ["-0.0", "0.0"], ["Infinity", "3.5e38"], ["NaN"]]),
    (DecimalType(10, 2), [["1.5", "1.50", "01.50", "1.5E0"], ["1.51"], ["0", "-0.00"]]),
    (BOOLEAN, [["true", "TRUE", "t", "yes", "1"], ["false", "F", "0"], ["maybe"]]),
    (DATE, [["2024-01-01", "2024-1-1", "2024", "2024-01-01T00:00:00"], ["2024-01-02"]]),
    (DATE, [["+10000-01-01", "10000-1-1"], ["10000-01-02"], ["9999-12-31"], ["0001-01-01"]]),
    (DATE, [["+123456-02-29"], ["-0001-01-01", "-0001-1-1"], ["0000-01-01"]]),
    (
        TIMESTAMP,
        [
            ["2024-01-01T00:00:00.000000Z", "2024-01-01T01:00:00+01:00", "2024-01-01 01:00:00"],
            ["2024-01-01 00:00:00", "2024-01-01", "2024-1-1 00:00:00.000"],
            ["+10000-01-01T00:00:00Z", "10000-01-01 01:00:00"],
            ["9999-12-31 23:59:59"],
        ],
    ),
    (TIMESTAMP_NTZ, [["2024-01-01 00:00:00", "2024-01-01T00:00:00.000", "2024"], ["2024-01-02"]]),
    (STRING, [["a"], ["A"], ["a "], ["1"], ["01"], ["", None], ["__HIVE_DEFAULT_PARTITION__"]]),
    (BINARY, [["a"], ["A"], ["", None]]),
]


@pytest.mark.parametrize(("data_type", "values"), SPELLINGS)
def test_texts_of_one_value_are_one_partition(
    data_type: DataType, values: list[list[str | None]]
) -> None:
    zone = ZoneInfo("Europe/Paris")
    keys = [{partition_identity(text, data_type, zone) for text in texts} for texts in values]
    assert [len(found) for found in keys] == [1] * len(values), keys
    assert len(set().union(*keys)) == len(values), keys


def test_a_time_without_a_zone_is_a_value_of_its_own() -> None:
    local, utc = "2024-01-01 00:00:00", "2024-01-01T00:00:00.000000Z"
    assert partition_identity(local, TIMESTAMP) != partition_identity(utc, TIMESTAMP)
    zone = timezone.utc
    assert partition_identity(local, TIMESTAMP, zone) == partition_identity(utc, TIMESTAMP, zone)


@given(st.dates() | st.datetimes(timezones=st.just(timezone.utc)) | st.floats() | st.integers())
def test_what_is_written_has_the_identity_of_its_text(value: object) -> None:
    kind = {date: DATE, datetime: TIMESTAMP, float: DOUBLE}.get(type(value), DecimalType(38, 0))
    if kind == DecimalType(38, 0) and abs(int(str(value))) >= 10**38:
        return
    text = encode_partition_value(value, kind)
    again = encode_partition_value(parse_partition_value(text, kind, timezone.utc), kind)
    assert partition_identity(text, kind) == partition_identity(again, kind)
    assert partition_identity(text, kind) != ("text", text)
