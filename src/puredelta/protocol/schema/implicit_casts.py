"""Which casts Spark does implicitly: they decide whether a column keeps its type (M-52)."""

from __future__ import annotations

from puredelta.protocol.schema.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGRAL,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VOID,
    DataType,
    DecimalType,
)

_NUMBERS = INTEGRAL | {FLOAT, DOUBLE}
_TIMES = (DATE, TIMESTAMP, TIMESTAMP_NTZ)


def is_implicit_cast(given: DataType, to: DataType) -> bool:
    """Return whether Spark's classic coercion turns a leaf of one type into the other.

    The answer is about types, not values: a text that is no number fails later, in the cast.

    >>> from puredelta.protocol.schema.types import INTEGER
    >>> is_implicit_cast(STRING, INTEGER), is_implicit_cast(STRING, BOOLEAN)
    (True, False)
    """
    if given in (to, VOID):
        return True
    if to == STRING:
        return _is_number(given) or given in (*_TIMES, BOOLEAN, BINARY)
    if given == STRING:
        return _is_number(to) or to in (*_TIMES, BINARY)
    return (_is_number(given) and _is_number(to)) or (given in _TIMES and to in _TIMES)


def _is_number(data_type: DataType) -> bool:
    return isinstance(data_type, DecimalType) or data_type in _NUMBERS
