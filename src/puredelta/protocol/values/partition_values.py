"""Partition values as text: the values of ``add.partitionValues`` and directory names.

Section "Partition Value Serialization" and X-82, X-83. In the log null is JSON null, and
an empty text reads as null for every type. Directory names are cosmetic and never read
back, except by CONVERT, which finds nothing else.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, tzinfo
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation
from typing import Any

from typing_extensions import assert_never

from puredelta.errors import CorruptTableError, ErrorCode, InvalidRequestError
from puredelta.protocol.schema.schema_json import simple_string
from puredelta.protocol.schema.types import (
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    PrimitiveType,
    StructType,
)
from puredelta.protocol.values.timestamps import (
    encode_local,
    encode_utc,
    parse_date,
    parse_timestamp,
)

HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"
"""The directory name that stands for null, as Hive and Spark write it (C-43)."""

_BITS: Mapping[str, int] = {"byte": 8, "short": 16, "integer": 32, "long": 64}
_DECIMALS = Context(prec=80, rounding=ROUND_HALF_UP)


def parse_partition_value(text: str | None, data_type: DataType, time_zone: tzinfo) -> Any:
    """Read one partition value; ``None`` and empty text are null.

    ``time_zone`` is the writer's zone, in which a ``timestamp`` without zone is meant;
    one with an offset or ``Z`` needs none. Timestamps come back aware, in UTC;
    ``timestamp_ntz`` naive.

    Raises:
        CorruptTableError: the text is no value of the type (DELTA_FAILED_CAST_PARTITION_VALUE).

    >>> from datetime import timezone
    >>> parse_partition_value("2020-01-31", PrimitiveType("date"), timezone.utc)
    datetime.date(2020, 1, 31)
    """
    if not text:
        return None
    try:
        return _parse(text, data_type, time_zone)
    except (ValueError, InvalidOperation) as error:
        name = simple_string(data_type)
        raise CorruptTableError(
            f"Failed to cast partition value `{text}` to {name}.",
            code=ErrorCode.FAILED_CAST_PARTITION_VALUE,
            value=text,
            type=name,
        ) from error


def encode_partition_value(value: Any, data_type: DataType) -> str | None:
    """Write one partition value as the log spells it; null is ``None``.

    Timestamps are written in UTC with a ``Z``, so that no reader needs our zone. An empty
    string or binary becomes null: the format cannot tell them apart (X-82, M-108).

    Raises:
        InvalidRequestError: the type cannot partition a table, or the value has no text.

    >>> encode_partition_value(Decimal("1.5"), DecimalType(10, 2))
    '1.50'
    """
    if value is None:
        return None
    match data_type:
        case DecimalType(_, scale):
            return f"{Decimal(value):.{scale}f}"
        case PrimitiveType(name) if name in _ENCODERS:
            return _ENCODERS[name](value) or None
        case PrimitiveType() | ArrayType() | MapType() | StructType():
            raise InvalidRequestError(
                f"A column of type {simple_string(data_type)} cannot partition a table.",
                code=ErrorCode.INVALID_PARTITION_COLUMN_TYPE,
            )
        case _:
            assert_never(data_type)


def is_partition_type(data_type: DataType) -> bool:
    """Tell whether a column of this type may partition a table: atomic types only (X-07)."""
    return isinstance(data_type, DecimalType) or (
        isinstance(data_type, PrimitiveType) and data_type.name in _ENCODERS
    )


# --- reading --------------------------------------------------------------------------------

_INTEGER = re.compile(r"[+-]?\d+")
_TRUE = frozenset({"t", "true", "y", "yes", "1"})
_FALSE = frozenset({"f", "false", "n", "no", "0"})


def _parse(text: str, data_type: DataType, zone: tzinfo) -> Any:
    match data_type:
        case DecimalType():
            return _parse_decimal(text, data_type)
        case PrimitiveType("timestamp"):
            return parse_timestamp(text, zone)
        case PrimitiveType(name) if name in _PARSERS:
            return _PARSERS[name](text)
        case PrimitiveType(name) if name in _BITS:
            return _parse_integer(text, _BITS[name])
        case PrimitiveType() | ArrayType() | MapType() | StructType():
            raise ValueError("the type cannot partition a table")
        case _:
            assert_never(data_type)


def _parse_integer(text: str, bits: int) -> int:
    if not _INTEGER.fullmatch(text.strip()):
        raise ValueError("no whole number")
    value = int(text)
    if not -(1 << (bits - 1)) <= value < 1 << (bits - 1):
        raise ValueError(f"more than {bits} bits")
    return value


def _parse_decimal(text: str, data_type: DecimalType) -> Decimal:
    value = Decimal(text.strip())
    if not value.is_finite():
        raise ValueError("no number")
    rounded = value.quantize(Decimal(1).scaleb(-data_type.scale), context=_DECIMALS)
    if len(rounded.as_tuple().digits) > data_type.precision:
        raise ValueError(f"more than {data_type.precision} digits")
    return rounded


def _parse_boolean(text: str) -> bool:
    lowered = text.strip().lower()
    if lowered not in _TRUE | _FALSE:
        raise ValueError("neither true nor false")
    return lowered in _TRUE


def _parse_local(text: str) -> datetime:
    return parse_timestamp(text, None).replace(tzinfo=None)


def _parse_float(text: str) -> float:
    if "_" in text:
        raise ValueError("no number")
    return float(text)


_PARSERS: Mapping[str, Callable[[str], Any]] = {
    "string": str,
    "binary": str.encode,
    "boolean": _parse_boolean,
    "date": parse_date,
    "timestamp_ntz": _parse_local,
    "float": _parse_float,
    "double": _parse_float,
}


# --- writing --------------------------------------------------------------------------------


def _encode_boolean(value: bool) -> str:  # noqa: FBT001 - the value itself
    return "true" if value else "false"


def _encode_double(value: float) -> str:
    """Write a float as Java reads it: ``NaN``, ``Infinity``, else Python's shortest text."""
    if math.isfinite(value):
        return repr(float(value))
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _encode_float(value: float) -> str:
    """Write a single-precision float with no more digits than tell it apart."""
    if not math.isfinite(value):
        return _encode_double(value)
    texts = (f"{value:.{digits}g}" for digits in range(1, 18))
    return repr(float(next(text for text in texts if _single(text) == struct.pack("<f", value))))


def _single(text: str) -> bytes | None:
    """Return the bits of a number in single precision; the largest ones may round too far up."""
    try:
        return struct.pack("<f", float(text))
    except OverflowError:
        return None


def _encode_binary(value: bytes) -> str:
    """Write binary as the text its bytes spell, as the reference casts it.

    Bytes that are no UTF-8 have no text: the reference replaces them and loses the value.
    """
    try:
        return bytes(value).decode("utf-8")
    except UnicodeDecodeError as error:
        raise InvalidRequestError(
            f"The binary partition value {bytes(value).hex()} (hex) is no UTF-8 and cannot "
            "be written into the log.",
            code=ErrorCode.INVALID_PARTITION_COLUMN_TYPE,
        ) from error


_ENCODERS: Mapping[str, Callable[[Any], str]] = {
    "string": str,
    "byte": str,
    "short": str,
    "integer": str,
    "long": str,
    "boolean": _encode_boolean,
    "date": lambda value: str(value.isoformat()),
    "timestamp": encode_utc,
    "timestamp_ntz": encode_local,
    "float": _encode_float,
    "double": _encode_double,
    "binary": _encode_binary,
}


# --- directories ----------------------------------------------------------------------------

_ESCAPED = re.compile(r"""[\x01-\x1f"#%'*/:=?\\\x7f{\[\]^]""")
_ESCAPE = re.compile(r"%([0-9a-fA-F]{2})")


def hive_escape(text: str) -> str:
    """Spell a column name or value inside a directory name, as Hive and Spark do.

    >>> hive_escape("10:30 a/b")
    '10%3A30 a%2Fb'
    """
    return _ESCAPED.sub(lambda m: f"%{ord(m[0]):02X}", text)


def hive_unescape(text: str) -> str:
    """Undo `hive_escape`; a ``%`` without two hex digits stands for itself (C-42)."""
    return _ESCAPE.sub(lambda m: chr(int(m[1], 16)), text)


def partition_directory(values: Iterable[tuple[str, str | None]]) -> str:
    """Return ``col=value/...`` for column names and values in partitioning order (X-84).

    >>> partition_directory([("p", "a b"), ("q", None)])
    'p=a b/q=__HIVE_DEFAULT_PARTITION__'
    """
    return "/".join(
        f"{hive_escape(name)}={hive_escape(text) if text else HIVE_NULL}" for name, text in values
    )
