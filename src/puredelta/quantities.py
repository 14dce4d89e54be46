"""Numbers with nouns and sizes for people, and durations for a log."""

from __future__ import annotations

from datetime import timedelta

_MILLISECOND = timedelta(milliseconds=1)


def counted(number: int, one: str, many: str | None = None) -> str:
    """Return a number with its noun.

    >>> counted(1, "file"), counted(1200, "file"), counted(2, "entry", "entries")
    ('1 file', '1,200 files', '2 entries')
    """
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def size_text(size_bytes: float) -> str:
    """Return a size in the unit that people read.

    >>> size_text(0), size_text(1536), size_text(3 << 30)
    ('0 B', '1.5 KiB', '3.0 GiB')
    """
    size, units = float(size_bytes), ["B", "KiB", "MiB", "GiB", "TiB", "PiB"]
    unit = units.pop(0)
    while abs(size) >= 1024 and units:  # noqa: PLR2004 - what a KiB is
        size, unit = size / 1024, units.pop(0)
    return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"


def in_milliseconds(duration: timedelta) -> int:
    """Return a duration in whole milliseconds, the unit of every time in a Delta log.

    >>> in_milliseconds(timedelta(days=7)), in_milliseconds(timedelta(microseconds=1999))
    (604800000, 1)
    """
    return duration // _MILLISECOND
