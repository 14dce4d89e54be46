"""Reading the JSON of per-file statistics as typed values (X-65 to X-69).

Statistics are a hint: whatever cannot be understood for certain is left out, and a text
that is no statistics at all is ``None``. Nothing here raises.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from puredelta.protocol.stats import Bound, FileStatistics, LeafPath
from puredelta.protocol.timestamps import parse_date, parse_timestamp, shift
from puredelta.protocol.types import DataType, DecimalType, PrimitiveType, StructType

_MILLISECOND = timedelta(milliseconds=1)
_INTEGERS = frozenset({"byte", "short", "integer", "long"})


def parse_statistics(text: str | None, schema: StructType) -> FileStatistics | None:
    """Read the statistics of one file for the columns of ``schema`` (physical names).

    Decimals are exact. The maximum of a timestamp is moved up by the millisecond that
    other writers cut off (X-65). Texts of a narrower type, from before a column was
    widened, are read in the column's type.
    """
    try:
        content = json.loads(text or "", parse_float=Decimal, parse_constant=_no_constant)
    except ValueError:
        return None
    if not isinstance(content, dict):
        return None
    return FileStatistics(
        num_records=_count(content.get("numRecords")),
        minimum=_leaves(schema, content.get("minValues"), _parse_minimum),
        maximum=_leaves(schema, content.get("maxValues"), _parse_maximum),
        null_count=_leaves(schema, content.get("nullCount"), lambda raw, _type: _count(raw)),
        tight_bounds=tight if isinstance(tight := content.get("tightBounds"), bool) else None,
    )


def _no_constant(text: str) -> None:
    """A bare NaN or Infinity is no JSON, but some writers put it: unknown."""


def _leaves(
    schema: StructType, content: Any, parse: Callable[[Any, DataType], Any], prefix: LeafPath = ()
) -> dict[LeafPath, Any]:
    found: dict[LeafPath, Any] = {}
    if not isinstance(content, dict):
        return found
    for field in schema.fields:
        raw, path = content.get(field.name), (*prefix, field.name)
        if isinstance(field.type, StructType):
            found |= _leaves(field.type, raw, parse, path)
        elif raw is not None:
            try:
                value = parse(raw, field.type)
            except (ValueError, OverflowError, ArithmeticError):
                continue
            if value is not None:
                found[path] = value
    return found


def _count(raw: Any) -> int | None:
    is_whole = isinstance(raw, int) and not isinstance(raw, bool) and raw >= 0
    return raw if is_whole else None


def _parse_minimum(raw: Any, data_type: DataType) -> Bound | None:
    return _parse_bound(raw, data_type)


def _parse_maximum(raw: Any, data_type: DataType) -> Bound | None:
    bound = _parse_bound(raw, data_type)
    return shift(bound, _MILLISECOND) if isinstance(bound, datetime) else bound


def _parse_bound(raw: Any, data_type: DataType) -> Bound | None:
    if isinstance(raw, bool):
        return None
    if isinstance(data_type, DecimalType):
        return Decimal(raw) if isinstance(raw, int | Decimal) else None
    if not isinstance(data_type, PrimitiveType):
        return None
    if data_type.name in _INTEGERS:
        return raw if isinstance(raw, int) else None
    parse = _PARSERS.get(data_type.name)
    return None if parse is None else parse(raw)


def _parse_double(raw: Any) -> float | None:
    if isinstance(raw, str):
        return {"Infinity": math.inf, "-Infinity": -math.inf}.get(raw)
    return float(raw) if isinstance(raw, int | Decimal) else None


def _parse_float(raw: Any) -> float | None:
    """Read a single-precision bound: its short text stands for the float next to it."""
    value = _parse_double(raw)
    if value is None:
        return None
    single: float = struct.unpack("<f", struct.pack("<f", value))[0]
    return single


def _parse_text(raw: Any) -> str | None:
    return raw if isinstance(raw, str) else None


def _parse_day(raw: Any) -> Any:
    return parse_date(raw) if isinstance(raw, str) else None


def _parse_instant(raw: Any) -> datetime | None:
    value = parse_timestamp(raw, None) if isinstance(raw, str) else None
    return None if value is None or value.tzinfo is None else value


def _parse_local(raw: Any) -> datetime | None:
    value = parse_timestamp(raw, None) if isinstance(raw, str) else None
    return None if value is None or value.tzinfo is not None else value


_PARSERS: Mapping[str, Callable[[Any], Any]] = {
    "string": _parse_text,
    "float": _parse_float,
    "double": _parse_double,
    "date": _parse_day,
    "timestamp": _parse_instant,
    "timestamp_ntz": _parse_local,
}
