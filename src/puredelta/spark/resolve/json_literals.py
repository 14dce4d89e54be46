"""Literals of Catalyst's JSON as Python values.

A timestamp literal is printed in the session's zone; in the hour that autumn repeats it is
ambiguous. Binary literals are printed as Java object names. The elements of an ``InSet`` are
left out. Nodes of a scan's conditions bring what is missing as ``micros`` and ``elements``
(`puredelta.spark.jvm.file_index`).
"""

from __future__ import annotations

import datetime as dt
import decimal
import math
import zoneinfo
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from puredelta.protocol.schema.types import STRING, DataType, DecimalType, PrimitiveType

Node: TypeAlias = Mapping[str, Any]

INTEGERS = ("byte", "short", "integer", "long")
"""Types of whole numbers, the narrowest first."""

_EPOCH = dt.datetime(1970, 1, 1)  # noqa: DTZ001 - timestamp_ntz has no zone


def literal_value(node: Node, time_zone: str) -> object:
    """Return the value of a ``Literal`` that is not NULL, ``None`` if Python has none like it."""
    text, kind = node["value"], str(node["dataType"])
    try:
        if "micros" in node:
            return _instant(node["micros"])
        return _timestamp(text, time_zone) if kind == "timestamp" else _value(text, kind)
    except (ValueError, ArithmeticError, zoneinfo.ZoneInfoNotFoundError):
        return None  # the year 10000, a zone this machine does not know


def element_values(texts: Sequence[str] | None, data_type: DataType) -> tuple[Any, ...] | None:
    """Return the elements of an ``InSet`` from the texts of Catalyst's own values."""
    if texts is None:
        return None
    try:
        return tuple(_element(text, data_type) for text in texts)
    except (ValueError, ArithmeticError):
        return None


def _element(text: str, data_type: DataType) -> object:
    if text == "null":
        if data_type == STRING:
            raise ValueError(text)  # or the word
        return None
    match data_type:
        case PrimitiveType("date"):
            return _EPOCH.date() + dt.timedelta(days=int(text))
        case PrimitiveType("timestamp"):
            return _instant(int(text))
        case PrimitiveType("float" | "double") if math.isnan(float(text)):
            raise ValueError(text)
        case PrimitiveType(kind):
            value = _value(text, kind)
        case DecimalType():
            value = decimal.Decimal(text)
        case _:
            value = None
    if value is None:
        raise ValueError(text)
    return value


def _value(text: str, kind: str) -> object:
    """Return the literal as a Python value, ``None`` for a type without one."""
    match kind:
        case _ if kind in INTEGERS:
            return int(text)
        case "boolean":
            return text == "true"
        case "string":
            return text
        case "float" | "double":
            return float(text)
        case "date":
            return dt.date.fromisoformat(text)
        case "timestamp_ntz":
            return _EPOCH + dt.timedelta(microseconds=int(text))
        case _ if kind.startswith("decimal"):
            return decimal.Decimal(text)
        case _:
            return None


def _timestamp(text: str, time_zone: str) -> dt.datetime | None:
    """Return a timestamp printed in a zone, ``None`` in the hour that comes twice."""
    seconds, _, fraction = text.partition(".")
    local = dt.datetime.fromisoformat(seconds).replace(
        microsecond=int(fraction.ljust(6, "0") or 0), tzinfo=zoneinfo.ZoneInfo(time_zone)
    )
    if local.utcoffset() != local.replace(fold=1).utcoffset():
        return None
    return local.astimezone(dt.timezone.utc)


def _instant(micros: int) -> dt.datetime:
    return (_EPOCH + dt.timedelta(microseconds=micros)).replace(tzinfo=dt.timezone.utc)
