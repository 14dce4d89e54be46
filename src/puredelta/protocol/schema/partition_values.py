"""Partition values as text in the log and as names of directories.

Section "Partition Value Serialization" and X-82, X-83. In the log null is JSON null, and an
empty text reads as null for every type.

Directory names are cosmetic: readers take the values from the log. Only CONVERT parses them,
because a directory of Parquet files has no log. Paths in the log are percent-encoded on top of
this escaping (`puredelta.protocol.actions.paths.encode_path`).
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable, Hashable, Iterable, Mapping
from datetime import MAXYEAR, date, datetime, timedelta, timezone, tzinfo
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation
from functools import lru_cache
from typing import Any

from typing_extensions import assert_never

from puredelta.errors import CorruptTableError, InvalidRequestError, Message
from puredelta.protocol.schema.schema_json import simple_string
from puredelta.protocol.schema.timestamps import (
    encode_local,
    encode_utc,
    parse_date,
    parse_timestamp,
)
from puredelta.protocol.schema.types import (
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    PrimitiveType,
    StructType,
)

_BITS: Mapping[str, int] = {"byte": 8, "short": 16, "integer": 32, "long": 64}
_DECIMALS = Context(prec=80, rounding=ROUND_HALF_UP)


def parse_partition_value(text: str | None, data_type: DataType, time_zone: tzinfo) -> Any:
    """Read one partition value; ``None`` and empty text are null.

    ``time_zone`` is the zone of the writer; a ``timestamp`` without an offset or ``Z`` is in that
    zone. A ``timestamp`` is returned as an aware datetime in UTC, a ``timestamp_ntz`` as a naive
    one.

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
            Message.FAILED_CAST_PARTITION_VALUE_LOG, value=text, type=name
        ) from error


@lru_cache(maxsize=1 << 16)
def partition_identity(
    text: str | None, data_type: DataType, time_zone: tzinfo | None = None
) -> Hashable:
    """Return a key that two texts have in common exactly where they are one value of the type.

    The texts of one log come from many writers: ``01`` and ``1`` are one month, ``-0.0`` is zero,
    and an empty text is null. Years that Python does not have are values, too. A text that is no
    value of the type equals itself alone, as does a time without a zone where no ``time_zone`` is
    given.

    >>> integer = PrimitiveType("integer")
    >>> partition_identity("01", integer) == partition_identity("1", integer)
    True
    """
    if not text:
        return None
    try:
        return _identity(text, data_type, time_zone)
    except (ValueError, InvalidOperation, OverflowError):
        return ("text", text)


def encode_partition_value(value: Any, data_type: DataType) -> str | None:
    """Return one partition value as text for the log; null is ``None``.

    Timestamps are in UTC with a ``Z``, so that readers need no other zone. An empty string or
    binary becomes null, because the format cannot distinguish them (X-82, M-108).

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
                Message.INVALID_PARTITION_COLUMN_TYPE_NESTED, data_type=simple_string(data_type)
            )
        case _:
            assert_never(data_type)


def is_partition_type(data_type: DataType) -> bool:
    """Return whether a column of this type may partition a table: atomic types only (X-07)."""
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


# --- identity -------------------------------------------------------------------------------

_FRACTION = re.compile(r"([+-]?\d+)\.\d*")
_JAVA_SUFFIX = re.compile(r"(?<=[\d.])[dDfF]$")
_YEAR = re.compile(r"\s*([+-]?\d{4,7})(.*)", re.DOTALL)
_CYCLE_YEARS, _CYCLE_DAYS = 400, 146_097
"""After so many years the calendar repeats itself, days of the week included."""
_LATE_YEAR, _EARLY_YEAR = 5600, 400
"""The first years of the cycles that stand for all later and all earlier ones."""


def _identity(text: str, data_type: DataType, zone: tzinfo | None) -> Hashable:
    match data_type:
        case PrimitiveType("float" | "double" as name):
            return _float_identity(_parse_float(_JAVA_SUFFIX.sub("", text)), name)
        case PrimitiveType("date"):
            return _moved_to_python_years(text, lambda moved: _days(parse_date(moved)))
        case PrimitiveType("timestamp"):
            # Without a zone a time is naive here, which no aware one is taken for.
            return _moved_to_python_years(text, lambda moved: _moment(parse_timestamp(moved, zone)))
        case PrimitiveType("timestamp_ntz"):
            return _moved_to_python_years(text, lambda moved: _moment(_parse_local(moved)))
        case PrimitiveType(name) if name in _BITS:
            # Spark's readers cut a fraction off.
            whole = _FRACTION.fullmatch(text.strip())
            return _parse_integer(text if whole is None else whole[1], _BITS[name])
        case PrimitiveType() | DecimalType() | ArrayType() | MapType() | StructType():
            value: Hashable = _parse(text, data_type, timezone.utc)
            return value
        case _:
            assert_never(data_type)


def _float_identity(value: float, name: str) -> Hashable:
    if math.isnan(value):
        return "NaN"
    if name == "float" and math.isfinite(value):
        # The nearest number of single precision, infinite where there is no finite one.
        bits = _single(repr(value))
        value = math.copysign(math.inf, value) if bits is None else struct.unpack("<f", bits)[0]
    return value + 0.0  # -0.0 is 0.0


_Time = tuple[bool, int, timedelta]
"""Whether it is in UTC, the number of its day, and the time since midnight."""


def _days(value: date) -> _Time:
    return False, value.toordinal(), timedelta()


def _moment(value: datetime) -> _Time:
    midnight = value.replace(hour=0, minute=0, second=0, microsecond=0)
    return value.tzinfo is not None, value.toordinal(), value - midnight


def _moved_to_python_years(text: str, parse: Callable[[str], _Time]) -> _Time:
    """Parse a text of any year: in the year of the same calendar that Python can count."""
    year = _YEAR.fullmatch(text)
    if year is None:
        return parse(text)
    number, rest = int(year[1]), year[2]
    is_early = number < _EARLY_YEAR
    if _EARLY_YEAR <= number < MAXYEAR:
        cycles = 0
    else:
        cycles = (number - (_EARLY_YEAR if is_early else _LATE_YEAR)) // _CYCLE_YEARS
    is_utc, day, time = parse(f"{number - cycles * _CYCLE_YEARS:04d}{rest}")
    return is_utc, day + cycles * _CYCLE_DAYS, time


# --- writing --------------------------------------------------------------------------------


def _encode_boolean(value: bool) -> str:  # noqa: FBT001 - the value itself
    return "true" if value else "false"


def _encode_double(value: float) -> str:
    """Return a float as Java reads it: ``NaN``, ``Infinity``, else Python's shortest text."""
    if math.isfinite(value):
        return repr(float(value))
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _encode_float(value: float) -> str:
    """Return a single-precision float with as few digits as identify it."""
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
    """Return binary as the text that its bytes are in UTF-8, as delta-spark casts it.

    Other bytes have no text: delta-spark replaces them and loses the value.
    """
    try:
        return bytes(value).decode("utf-8")
    except UnicodeDecodeError as error:
        raise InvalidRequestError(
            Message.INVALID_PARTITION_COLUMN_TYPE_BINARY, value=bytes(value).hex()
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


HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"
"""The directory name that stands for null, as Hive and Spark write it (C-43)."""

_ESCAPED = re.compile(r"""[\x01-\x1f"#%'*/:=?\\\x7f{\[\]^]""")
_ESCAPE = re.compile(r"%([0-9a-fA-F]{2})")


def escape_partition_text(text: str) -> str:
    """Return a column name or value as it stands inside a directory name.

    >>> escape_partition_text("10:30 a/b")
    '10%3A30 a%2Fb'
    """
    return _ESCAPED.sub(lambda m: f"%{ord(m[0]):02X}", text)


def unescape_partition_text(text: str) -> str:
    """Undo `escape_partition_text`; a ``%`` without two hex digits is kept (C-42)."""
    return _ESCAPE.sub(lambda m: chr(int(m[1], 16)), text)


def partition_directory(values: Iterable[tuple[str, str | None]]) -> str:
    """Return ``col=value/...`` for column names and values in partitioning order (X-84).

    >>> partition_directory([("p", "a b"), ("q", None)])
    'p=a b/q=__HIVE_DEFAULT_PARTITION__'
    """
    return "/".join(
        f"{escape_partition_text(name)}={escape_partition_text(text) if text else HIVE_NULL}"
        for name, text in values
    )
