"""Dates, timestamps and time zones as text, as Spark writes and reads them.

Partition values and statistics use this module. Python has only the years 1 to 9999: other years
are a ``ValueError``, and callers decide what that means.
"""

from __future__ import annotations

import re
from datetime import date, datetime, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

_DAY = r"(\d{4,6})(?:-(\d{1,2})(?:-(\d{1,2}))?)?"
_CLOCK = r"(\d{1,2}):(\d{1,2})(?::(\d{1,2})(?:\.(\d{1,9}))?)?"
_OFFSET = r"(Z|UTC|[+-]\d{1,2}(?::?\d{2}(?::?\d{2})?)?)"
_TIMESTAMP = re.compile(rf"{_DAY}(?:[ T]{_CLOCK}\s*{_OFFSET}?)?")
_OFFSET_PARTS = re.compile(r"([+-])(\d{1,2})(?::?(\d{2})(?::?(\d{2}))?)?")
_ZONE_PREFIX = re.compile(r"(?:UTC|GMT|UT)(?=[+-]\d)")


def parse_timestamp(text: str, zone: tzinfo | None) -> datetime:
    """Parse a date and time; decimals beyond microseconds are cut off.

    With an offset in the text, or with a ``zone``, the result is aware and in UTC. Without
    either it is naive.

    Raises:
        ValueError: no date and time, or outside the years 1 to 9999.

    >>> parse_timestamp("2020-01-01T10:11:12.123-05:00", None).isoformat()
    '2020-01-01T15:11:12.123000+00:00'
    """
    match = _TIMESTAMP.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"no timestamp: {text!r}")
    year, month, day, hour, minute, second, fraction, offset = match.groups()
    local = datetime(  # noqa: DTZ001 - the zone follows
        int(year),
        int(month or 1),
        int(day or 1),
        int(hour or 0),
        int(minute or 0),
        int(second or 0),
        int((fraction or "0").ljust(6, "0")[:6]),
    )
    if offset is not None:
        return shift(local.replace(tzinfo=timezone.utc), -_parse_offset(offset))
    return local if zone is None else _in_utc(local, zone)


def parse_date(text: str) -> date:
    """Parse a date; a time of day after it is ignored."""
    return parse_timestamp(text.strip().partition("T")[0].partition(" ")[0], None).date()


def parse_time_zone(name: str) -> tzinfo:
    """Parse a zone as ``spark.sql.session.timeZone`` does: ``UTC``, ``+01:00``, a region.

    Raises:
        ValueError: there is no such zone.
    """
    if name in {"Z", "UTC", "GMT", "UT", "Etc/UTC"}:
        return timezone.utc
    text = _ZONE_PREFIX.sub("", name)
    if _OFFSET_PARTS.fullmatch(text):
        return timezone(_parse_offset(text))
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise ValueError(f"no time zone: {name!r}") from error


def encode_utc(value: datetime) -> str:
    """Return an aware timestamp as text in UTC with six decimals and a ``Z`` (X-83)."""
    utc = value.astimezone(timezone.utc).replace(tzinfo=None)
    return f"{utc.isoformat(timespec='microseconds')}Z"


def encode_local(value: datetime) -> str:
    """Return date and time as text without a zone and without trailing zeros."""
    text = value.replace(tzinfo=None).isoformat(sep=" ", timespec="microseconds")
    return text.rstrip("0").rstrip(".") if "." in text else text


def shift(value: datetime, by: timedelta) -> datetime:
    """Add a duration; a result outside the years 1 to 9999 is a ``ValueError``."""
    try:
        return value + by
    except OverflowError as error:
        raise ValueError(f"{value} moved by {by} lies outside the years 1 to 9999") from error


def _in_utc(local: datetime, zone: tzinfo) -> datetime:
    try:
        return local.replace(tzinfo=zone).astimezone(timezone.utc)
    except OverflowError as error:
        raise ValueError(f"{local} lies outside the years 1 to 9999 in UTC") from error


def _parse_offset(text: str) -> timedelta:
    match = _OFFSET_PARTS.fullmatch(text)
    if match is None:  # Z or UTC
        return timedelta()
    sign, hours, minutes, seconds = match.groups()
    offset = timedelta(hours=int(hours), minutes=int(minutes or 0), seconds=int(seconds or 0))
    if offset > timedelta(hours=18):
        raise ValueError(f"no offset from UTC: {text!r}")
    return -offset if sign == "-" else offset
