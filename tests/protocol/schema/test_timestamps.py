"""Timestamps and zones as text."""

# ruff: noqa: DTZ001 - values without a zone are what timestamp_ntz holds

from __future__ import annotations

from datetime import date, datetime, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from puredelta.protocol.schema.timestamps import (
    encode_local,
    encode_utc,
    parse_date,
    parse_time_zone,
    parse_timestamp,
)

UTC = timezone.utc
NEW_YORK = ZoneInfo("America/New_York")


@pytest.mark.parametrize(
    ("text", "zone", "value"),
    [
        ("2020-01-01 10:11:12", NEW_YORK, datetime(2020, 1, 1, 15, 11, 12, tzinfo=UTC)),
        ("2020-07-01 10:11:12", NEW_YORK, datetime(2020, 7, 1, 14, 11, 12, tzinfo=UTC)),
        ("2020-01-01T10:11:12.5Z", NEW_YORK, datetime(2020, 1, 1, 10, 11, 12, 500000, UTC)),
        ("2020-01-01 10:11:12.123456789+05:30", UTC, datetime(2020, 1, 1, 4, 41, 12, 123456, UTC)),
        ("1850-01-01T00:00:00.000-04:56:02", UTC, datetime(1850, 1, 1, 4, 56, 2, tzinfo=UTC)),
        ("2020-01-01 1:2 UTC", UTC, datetime(2020, 1, 1, 1, 2, tzinfo=UTC)),
        ("2020-01-01", UTC, datetime(2020, 1, 1, tzinfo=UTC)),
        ("2020", UTC, datetime(2020, 1, 1, tzinfo=UTC)),
        ("2020-01-01 10:11:12", None, datetime(2020, 1, 1, 10, 11, 12)),
    ],
)
def test_texts_of_spark_are_read(text: str, zone: tzinfo | None, value: datetime) -> None:
    assert parse_timestamp(text, zone) == value


@pytest.mark.parametrize(
    "text",
    [
        "",
        "yesterday",
        "2020-13-01",
        "2020-01-01 25:00:00",
        "12345-01-01",
        "0001-01-01T00:00:00+01",
        "2020-01-01 10:11:12+25:00",
        "2020-01-01T",
        "20-01-01",
        "2020-01-01 10",
    ],
)
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        parse_timestamp(text, UTC)


@given(st.datetimes())
def test_a_local_time_survives_its_text(value: datetime) -> None:
    assert parse_timestamp(encode_local(value), None) == value


@given(
    st.datetimes(
        timezones=st.sampled_from([UTC, timezone(timedelta(hours=-5)), NEW_YORK]),
        min_value=datetime(2, 1, 1),
        max_value=datetime(9998, 1, 1),
    )
)
def test_an_instant_survives_its_text(value: datetime) -> None:
    # In UTC, because a local time that the clocks skip equals nothing in another zone.
    assert parse_timestamp(encode_utc(value), NEW_YORK) == value.astimezone(UTC)


@given(st.dates())
def test_a_date_survives_its_text(value: date) -> None:
    assert parse_date(value.isoformat()) == value
    assert parse_date(f"{value.isoformat()} 10:00:00") == value
    assert parse_date(f"{value.isoformat()}T10:00:00Z") == value


@pytest.mark.parametrize(
    ("name", "offset"),
    [
        ("UTC", timedelta()),
        ("Z", timedelta()),
        ("+01:00", timedelta(hours=1)),
        ("GMT-8", timedelta(hours=-8)),
        ("UTC+05:30", timedelta(hours=5, minutes=30)),
        ("America/New_York", timedelta(hours=-5)),
    ],
)
def test_zones_as_spark_names_them(name: str, offset: timedelta) -> None:
    assert parse_time_zone(name).utcoffset(datetime(2020, 1, 1)) == offset


@pytest.mark.parametrize("name", ["Mars/Olympus", "", "+99:00", "../etc/passwd"])
def test_zones_that_are_none(name: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        parse_time_zone(name)
