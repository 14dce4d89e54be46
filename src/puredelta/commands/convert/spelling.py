"""Tells whether a text is a partition value in the spelling the log asks for (X-83).

Spark casts far more than that (``yes`` is true, ``2024-1-1`` a date), but other readers of
a Delta table need not.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import timezone

from puredelta.errors import CorruptTableError
from puredelta.protocol.schema.types import DataType, DecimalType, PrimitiveType
from puredelta.protocol.values.partition_values import parse_partition_value

_WHOLE = re.compile(r"[+-]?[0-9]+")
_FRACTION = re.compile(r"[+-]?[0-9]+(?:\.([0-9]+))?")
_FLOAT = re.compile(r"[+-]?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?|NaN|-?Infinity")
_DATE = r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
_TIME = r"[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,6})?"

_SPELLINGS: Mapping[str, re.Pattern[str]] = {
    "string": re.compile(r".*", re.DOTALL),
    "binary": re.compile(r".*", re.DOTALL),
    "byte": _WHOLE,
    "short": _WHOLE,
    "integer": _WHOLE,
    "long": _WHOLE,
    "float": _FLOAT,
    "double": _FLOAT,
    "boolean": re.compile(r"true|false"),
    "date": re.compile(_DATE),
    "timestamp": re.compile(rf"{_DATE} {_TIME}|{_DATE}T{_TIME}Z"),
    "timestamp_ntz": re.compile(rf"{_DATE} {_TIME}"),
}


def is_log_spelling(text: str, data_type: DataType) -> bool:
    """Return whether every reader will take ``text`` for a value of the type.

    >>> is_log_spelling("007", PrimitiveType("byte")), is_log_spelling("300", PrimitiveType("byte"))
    (True, False)
    """
    return _is_plain(text, data_type) and _is_value(text, data_type)


def _is_plain(text: str, data_type: DataType) -> bool:
    match data_type:
        case DecimalType(_, scale):
            match = _FRACTION.fullmatch(text)
            return match is not None and len(match[1] or "") <= scale
        case PrimitiveType(name):
            spelling = _SPELLINGS.get(name)
            return spelling is not None and spelling.fullmatch(text) is not None
        case _:
            return False


def _is_value(text: str, data_type: DataType) -> bool:
    """Return whether it is in range: month 13 and the byte 300 are spelt well."""
    try:
        parse_partition_value(text, data_type, timezone.utc)
    except CorruptTableError:
        return False
    return True
