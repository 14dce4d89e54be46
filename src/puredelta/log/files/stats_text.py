"""Dates and timestamps of statistics as values to prune with.

Only what is certain is read: a text without the zone it needs, or of a year Python's
calendar lacks, says nothing.
"""

from __future__ import annotations

import datetime as dt

from puredelta.protocol.values.timestamps import parse_date, parse_timestamp

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc)
_MICROSECOND = dt.timedelta(microseconds=1)
_MINUTE_MICROS = 60_000_000
_ZONES_HAVE_WHOLE_MINUTES = dt.datetime(1973, 1, 1, tzinfo=dt.timezone.utc)
"""Before it some zones were off by seconds too, which an offset written as hours and minutes
does not show (Monrovia was the last, in 1972)."""


def find_date(text: str | None) -> dt.date | None:
    """Read a date, ``None`` where there is none."""
    if text is None:
        return None
    try:
        return parse_date(text)
    except ValueError:
        return None


def find_timestamp_span(text: str | None, *, zoned: bool) -> tuple[int, int] | None:
    """Read a timestamp as the first and the last microsecond since 1970 it may mean.

    ``zoned`` timestamps are instants and need ``Z`` or an offset; the others must have
    neither. A date alone is its midnight: that is how the bounds of a column read that was
    widened from date to timestamp_ntz.

    >>> find_timestamp_span("1970-01-01T00:00:01.5Z", zoned=True)
    (1500000, 1500000)
    """
    if text is None:
        return None
    try:
        value = parse_timestamp(text, None)
    except ValueError:
        return None
    if (value.tzinfo is not None) is not zoned:
        return None
    instant = value if zoned else value.replace(tzinfo=dt.timezone.utc)
    micros = (instant - _EPOCH) // _MICROSECOND
    is_offset_exact = not zoned or text.endswith("Z") or instant >= _ZONES_HAVE_WHOLE_MINUTES
    slack = 0 if is_offset_exact else _MINUTE_MICROS
    return micros - slack, micros + slack
