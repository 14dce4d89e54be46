"""Arrow types of stored values, and the order of values in bounds.

Doubt never skips a file. A constant that cannot be compared exactly with a column has no
thresholds, and then no file is pruned with it (X-72).
"""

from __future__ import annotations

import datetime as dt
import decimal
import math
import struct
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from typing_extensions import assert_never

from puredelta.protocol.schema.predicates import CompareOp
from puredelta.protocol.schema.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGRAL,
    PRIMITIVE_KINDS,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    PrimitiveType,
    StructType,
)

FLOATING = frozenset({FLOAT, DOUBLE})

LONG_MIN, LONG_MAX = -(1 << 63), (1 << 63) - 1
_EXACT_DOUBLE_MAX = 1 << 53
_MICROSECOND = dt.timedelta(microseconds=1)
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc)
_PRECISION_MAX = 38
_EXACT = decimal.Context(prec=400, Emin=-400, Emax=400, traps=[decimal.InvalidOperation])

_NAMED = {
    str(kind): kind
    for kind in (
        *(pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.float32(), pa.float64(), pa.bool_()),
        *(pa.string(), pa.binary(), pa.date32(), pa.timestamp("us"), pa.timestamp("us", "UTC")),
    )
}
_ORDERED = {PrimitiveType(kind.name): _NAMED[kind.order] for kind in PRIMITIVE_KINDS if kind.order}
_STORED = {PrimitiveType(kind.name): _NAMED[kind.arrow] for kind in PRIMITIVE_KINDS if kind.arrow}


ARROW_COMPARISONS = {
    CompareOp.EQUAL: "equal",
    CompareOp.LESS: "less",
    CompareOp.LESS_OR_EQUAL: "less_equal",
    CompareOp.GREATER: "greater",
    CompareOp.GREATER_OR_EQUAL: "greater_equal",
}
"""Arrow's functions of comparisons."""


def order_type(data_type: DataType) -> pa.DataType | None:
    """Return the Arrow type that orders values as Spark does; ``None`` for a type without order.

    Strings compare by their bytes, timestamps as microseconds. NaN must not be in such an
    array: Spark orders it above every number, Arrow does not order it.
    """
    match data_type:
        case DecimalType():
            return pa.decimal128(_PRECISION_MAX, data_type.scale)
        case PrimitiveType():
            return _ORDERED.get(data_type)
        case _:
            return None


@dataclass(frozen=True, slots=True)
class Thresholds:
    """A constant ``c`` as values of a column's order type, one for each way to compare.

    ``x < c`` means ``x < below``, ``x <= c`` means ``x <= at_most``, and so on. A bool is the
    answer itself, where every value of the column or none compares so.
    """

    below: Any
    at_most: Any
    above: Any
    at_least: Any

    @classmethod
    def exactly(cls, value: Any) -> Thresholds:
        """A constant that is a value of the column's type."""
        return cls(value, value, value, value)

    @classmethod
    def between(cls, low: Any, high: Any) -> Thresholds:
        """A constant somewhere in an interval: every comparison that might hold does."""
        return cls(high, high, low, low)

    @classmethod
    def in_gap(cls, floor: Any, ceiling: Any) -> Thresholds:
        """A constant between two neighbouring values; ``None`` means there is no neighbour."""
        return cls(
            below=True if ceiling is None else ceiling,
            at_most=False if floor is None else floor,
            above=True if floor is None else floor,
            at_least=False if ceiling is None else ceiling,
        )


def thresholds(value: Any, data_type: DataType) -> Thresholds | None:
    """Return how a constant compares with a column, ``None`` if it does not compare exactly."""
    match data_type:
        case DecimalType():
            return _decimal(value, data_type)
        case _ if data_type in INTEGRAL:
            return _integer(value)
        case _ if data_type in FLOATING:
            return _floating(value, single=data_type == FLOAT)
        case _:
            exact = order_value(value, data_type)
            return None if exact is None else Thresholds.exactly(exact)


def order_value(value: Any, data_type: DataType) -> Any | None:
    """Return a value of the column's own Python type as one of its order type.

    ``None`` for NaN and for values of another type.
    """
    match value:
        case bool():
            return int(value) if data_type == BOOLEAN else None
        case int():
            return value if data_type in INTEGRAL and LONG_MIN <= value <= LONG_MAX else None
        case float():
            return value if data_type in FLOATING and not math.isnan(value) else None
        case str():
            return value if data_type == STRING and _is_text(value) else None
        case bytes():
            return value if data_type == BINARY else None
        case dt.datetime():
            return _micros(value) if data_type == _timestamp_type(value) else None
        case dt.date():
            return value if data_type == DATE else None
        case decimal.Decimal():
            return value if isinstance(data_type, DecimalType) and value.is_finite() else None
        case _:
            return None


def compares_as_stored(value: Any, data_type: DataType | None) -> bool:
    """Return whether a constant is compared with a column's values as they are stored.

    ``0.1`` beside a float may be the float's own nearest value or the double's.
    """
    return data_type != FLOAT or not isinstance(value, float) or float(np.float32(value)) == value


def single_precision(value: float) -> float:
    """Return the nearest 32-bit float, or the value itself if it is too large for one."""
    try:
        nearest: float = struct.unpack("<f", struct.pack("<f", value))[0]
    except OverflowError:
        return value
    return nearest


def _integer(value: Any) -> Thresholds | None:
    match value:
        case bool():
            return None
        case int():
            floor = ceiling = value
        case decimal.Decimal() if value.is_finite() and abs(value.adjusted()) <= _PRECISION_MAX:
            floor, ceiling = math.floor(value), math.ceil(value)
        case float() if abs(value) < _EXACT_DOUBLE_MAX:
            # Beyond 2**53 Spark rounds the values of the column, too.
            floor, ceiling = math.floor(value), math.ceil(value)
        case _:
            return None
    return Thresholds.in_gap(
        None if floor < LONG_MIN else min(floor, LONG_MAX),
        None if ceiling > LONG_MAX else max(ceiling, LONG_MIN),
    )


def _decimal(value: Any, data_type: DecimalType) -> Thresholds | None:
    if isinstance(value, bool) or not isinstance(value, int | decimal.Decimal):
        return None
    number = decimal.Decimal(value)
    if not number.is_finite() or abs(number.adjusted()) > 2 * _PRECISION_MAX:
        return None
    step = decimal.Decimal(1).scaleb(-data_type.scale)
    floor = number.quantize(step, rounding=decimal.ROUND_FLOOR, context=_EXACT)
    ceiling = number.quantize(step, rounding=decimal.ROUND_CEILING, context=_EXACT)
    largest = decimal.Decimal(10**_PRECISION_MAX - 1).scaleb(-data_type.scale, context=_EXACT)
    return Thresholds.in_gap(
        None if floor < -largest else min(floor, largest),
        None if ceiling > largest else max(ceiling, -largest),
    )


def _floating(value: Any, *, single: bool) -> Thresholds | None:
    if isinstance(value, bool) or not isinstance(value, int | float | decimal.Decimal):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    if math.isnan(number):
        return None
    if not single:
        return Thresholds.exactly(number)
    # The literal 0.1 against a float column may mean either the double or the float.
    nearest = single_precision(number)
    return Thresholds.between(min(number, nearest), max(number, nearest))


def _timestamp_type(value: dt.datetime) -> DataType:
    return TIMESTAMP_NTZ if value.tzinfo is None else TIMESTAMP


def _micros(value: dt.datetime) -> int:
    aware = value.replace(tzinfo=dt.timezone.utc) if value.tzinfo is None else value
    return (aware - _EPOCH) // _MICROSECOND


def _is_text(value: str) -> bool:
    """Return whether the text has bytes to compare by: a lone surrogate has none."""
    return not any("\ud800" <= c <= "\udfff" for c in value)


def stored_type(data_type: DataType) -> pa.DataType | None:
    """Return the one Arrow type in which a file of Spark holds values of a type.

    ``None`` for nested types, and for those that only Spark knows.

    >>> stored_type(DATE), stored_type(DecimalType(7, 2)), stored_type(PrimitiveType("variant"))
    (DataType(date32[day]), Decimal128Type(decimal128(7, 2)), None)
    """
    match data_type:
        case DecimalType(precision=precision, scale=scale):
            return pa.decimal128(precision, scale)
        case PrimitiveType():
            return _STORED.get(data_type)
        case ArrayType() | MapType() | StructType():
            return None
        case _:
            assert_never(data_type)
