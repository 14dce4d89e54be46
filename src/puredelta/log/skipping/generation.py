"""Generation expressions that keep order, read from their text.

A partition column that is computed from another column says something of that column's values.
The shapes are those that delta-spark knows: years to hours of a moment, a day, a text of digits,
a moment cut off, the start of a text, the column itself. Any other text is not understood, and
then nothing is known.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from puredelta.protocol.schema.traversal import find_fields
from puredelta.protocol.schema.types import (
    DATE,
    INTEGRAL,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    DataType,
    StructField,
    StructType,
)

PARTS = ("YEAR", "MONTH", "DAY", "HOUR")
"""Together, from the first on, they keep the order of what they are parts of."""
_PART_NAMES = {"DAYOFMONTH": "DAY", **{part: part for part in PARTS}}
_FORMATS = {"yyyy-MM": 7, "yyyy-MM-dd": 10, "yyyy-MM-dd-HH": 13}
"""Texts whose order is that of the moments, and how long they are."""
_ZONE_OFFSET_MAX = dt.timedelta(hours=18)
"""A moment was made a day or an hour in the time zone of whoever wrote it."""
_UNIT_DAYS = {
    **dict.fromkeys(("YEAR", "YYYY", "YY"), 366),
    "QUARTER": 92,
    **dict.fromkeys(("MONTH", "MM", "MON"), 31),
    "WEEK": 7,
    **dict.fromkeys(("DAY", "DD"), 1),
    **dict.fromkeys(("HOUR", "MINUTE", "SECOND", "MILLISECOND", "MICROSECOND"), 1),
}
"""Units of ``date_trunc`` and ``trunc``, and how many days are cut off at most."""

_NAME = r"(?P<name>(?:`(?:[^`]|``)+`|\w+)(?:\.(?:`(?:[^`]|``)+`|\w+))*)"
_TEXT = r"""(?:'(?P<text>[^'\\]*)'|"(?P<text2>[^"\\]*)")"""
_DAY_OF = rf"(?i:CAST)\(\s*{_NAME}\s+(?i:AS\s+DATE)\s*\)"
_NAME_2, _DAY_OF_2 = (text.replace("<name>", "<name2>") for text in (_NAME, _DAY_OF))
_SHAPES = {
    "day": re.compile(rf"(?:{_DAY_OF}|(?i:(?:TO_)?DATE)\(\s*{_NAME_2}\s*\))"),
    "part": re.compile(rf"(?P<part>[A-Za-z]+)\(\s*(?:{_NAME}|{_DAY_OF_2})\s*\)"),
    "format": re.compile(rf"(?i:DATE_FORMAT)\(\s*{_NAME}\s*,\s*{_TEXT}\s*\)"),
    "date_trunc": re.compile(rf"(?i:DATE_TRUNC)\(\s*{_TEXT}\s*,\s*{_NAME}\s*\)"),
    "trunc": re.compile(rf"(?i:TRUNC)\(\s*{_NAME}\s*,\s*{_TEXT}\s*\)"),
    "substring": re.compile(
        rf"(?i:SUBSTR(?:ING)?)\(\s*{_NAME}\s*,\s*(?P<start>\d+)\s*,\s*(?P<length>\d+)\s*\)"
    ),
    "same": re.compile(_NAME),
}
_NAME_PART = re.compile(r"`((?:[^`]|``)+)`|(\w+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Generation:
    """One column that is computed from another one, in a way that keeps order."""

    column: StructField
    source: tuple[str, ...]
    source_type: DataType
    low: Callable[[Any], Any]
    """The smallest value of the column in a row whose source is the value or above it."""
    high: Callable[[Any], Any]
    """The largest value of the column in a row whose source is the value or below it."""
    part: str | None = None
    """One of `PARTS`, which keeps no order by itself unless it is the first."""
    prefix_length: int | None = None
    """The column is so many first characters of a text; 0: any stretch of it, without order."""
    has_signs: bool = False
    """Texts of years with other than four digits have a sign, and stand before all others."""

    @property
    def is_exact(self) -> bool:
        """Whether a value of the source tells that of the column."""
        return self.source_type != TIMESTAMP


def find_generations(
    expressions: Mapping[str, str], schema: StructType, columns: tuple[str, ...]
) -> list[Generation]:
    """Return what is understood of the expressions of some columns."""
    found = []
    for name in columns:
        field = schema.find(name)
        if field is not None and name in expressions:
            generation = _read(expressions[name], field, schema)
            if generation is not None:
                found.append(generation)
    return found


def _read(text: str, column: StructField, schema: StructType) -> Generation | None:
    text = text.strip()
    while text.startswith("(") and text.endswith(")"):
        text = text[1:-1].strip()
    for shape, pattern in _SHAPES.items():
        match = pattern.fullmatch(text)
        if match is None:
            continue
        given = match.groupdict()
        path = _path(given.get("name") or given["name2"] or "")
        fields = find_fields(schema, path)
        if not fields:
            return None
        source = fields[-1].type
        found = _functions(shape, given, source, column.type)
        if found is None:
            return None
        names = tuple(field.name for field in fields)
        return Generation(column=column, source=names, source_type=source, **found)
    return None


def _path(name: str) -> tuple[str, ...]:
    parts = _NAME_PART.findall(name)
    return tuple(quoted.replace("``", "`") if quoted else plain for quoted, plain in parts)


def _functions(
    shape: str, given: Mapping[str, str | None], source: DataType, target: DataType
) -> dict[str, Any] | None:
    """Return what a shape makes of a source of a type; None if it keeps no order there."""
    text = given.get("text") if given.get("text") is not None else given.get("text2")
    is_time = source in (DATE, TIMESTAMP, TIMESTAMP_NTZ)
    match shape:
        case "day" if is_time and target == DATE:
            return _both(source, lambda value: _moment(value).date())
        case "part" if is_time and target in INTEGRAL:
            part = _PART_NAMES.get(str(given["part"]).upper())
            if part is None:
                return None
            return {
                **_both(source, lambda value: getattr(_moment(value), part.lower())),
                "part": part,
            }
        case "format" if is_time and target == STRING and text in _FORMATS:
            length = _FORMATS[text]
            return {**_both(source, lambda value: _digits(value)[:length]), "has_signs": True}
        case "date_trunc" | "trunc" if is_time and str(text).upper() in _UNIT_DAYS:
            return _truncated(source, target, _UNIT_DAYS[str(text).upper()])
        case "substring" if source == target == STRING:
            return _substring(int(given["start"] or 0), int(given["length"] or 0))
        case "same" if source == target and (is_time or source in INTEGRAL):
            return {"low": _itself, "high": _itself}
        case "same" if source == target == STRING:
            return {"low": _itself, "high": _itself, "prefix_length": 1 << 30}
        case _:
            return None


def _both(source: DataType, function: Callable[[Any], Any]) -> dict[str, Any]:
    """Return a function of a moment, which another time zone may have made another value."""
    if source != TIMESTAMP:
        return {"low": function, "high": function}
    return {
        "low": lambda value: function(value - _ZONE_OFFSET_MAX),
        "high": lambda value: function(value + _ZONE_OFFSET_MAX),
    }


def _part(source: DataType, name: str) -> dict[str, Any]:
    return _both(source, lambda value: getattr(_moment(value), name))


def _truncated(source: DataType, target: DataType, days: int) -> dict[str, Any] | None:
    """A moment is cut off to one that is not later, and not earlier by more than a unit."""
    # A day more, for the moments that a change of clocks leaves out or repeats.
    length = dt.timedelta(days=days + (target != DATE))
    if target == DATE and source == DATE:
        return {"low": lambda value: value - length, "high": _itself}
    if target == source and source in (TIMESTAMP, TIMESTAMP_NTZ):
        return {"low": lambda value: value - length, "high": _itself}
    return None


def _substring(start: int, length: int) -> dict[str, Any] | None:
    if length == 0:
        return None
    begin = max(start - 1, 0)
    return {
        "low": lambda value: value[begin : begin + length],
        "high": lambda value: value[begin : begin + length],
        "prefix_length": length if begin == 0 else 0,
    }


def _itself(value: Any) -> Any:
    return value


def _moment(value: dt.date) -> dt.datetime:
    if isinstance(value, dt.datetime):
        return value.astimezone(dt.timezone.utc) if value.tzinfo else value
    return dt.datetime(value.year, value.month, value.day)  # noqa: DTZ001 - a day has no zone


def _digits(value: dt.date) -> str:
    moment = _moment(value)
    return f"{moment.year:04d}-{moment.month:02d}-{moment.day:02d}-{moment.hour:02d}"
