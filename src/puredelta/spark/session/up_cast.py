"""Which casts can never lose anything: Spark's ``Cast.canUpCast``, without a JVM."""

from __future__ import annotations

from pyspark.sql import types as T

_WIDTH: tuple[type[T.DataType], ...] = (
    T.ByteType,
    T.ShortType,
    T.IntegerType,
    T.LongType,
    T.FloatType,
    T.DoubleType,
)
_DIGITS: dict[type[T.DataType], int] = {
    T.ByteType: 3,
    T.ShortType: 5,
    T.IntegerType: 10,
    T.LongType: 20,
}
_OTHERS: frozenset[tuple[type[T.DataType], type[T.DataType]]] = frozenset(
    {
        (T.DateType, T.TimestampType),
        (T.DateType, T.TimestampNTZType),
        (T.TimestampNTZType, T.TimestampType),
        (T.TimestampType, T.TimestampNTZType),
        (T.TimestampType, T.LongType),
        (T.LongType, T.TimestampType),
    }
)


def can_up_cast(given: T.DataType, to: T.DataType) -> bool:
    """Return whether every value of one type is a value of the other (STRICT, M-60)."""
    match given, to:
        case T.ArrayType(), T.ArrayType():
            return can_up_cast(given.elementType, to.elementType)
        case T.MapType(), T.MapType():
            return can_up_cast(given.keyType, to.keyType) and can_up_cast(
                given.valueType, to.valueType
            )
        case _:
            return given == to or _can_up_cast_atom(given, to)


def _can_up_cast_atom(given: T.DataType, to: T.DataType) -> bool:
    match given, to:
        case T.NullType(), _:
            return True
        case T.DecimalType(), T.DecimalType():
            whole = to.precision - to.scale >= given.precision - given.scale
            return whole and to.scale >= given.scale
        case _, T.DecimalType() if type(given) in _DIGITS:
            return to.precision - to.scale >= _DIGITS[type(given)]
        case T.DecimalType(), _ if type(to) in _DIGITS:
            return given.scale == 0 and given.precision < _DIGITS[type(to)]
        case _, T.StringType():
            return isinstance(given, T.AtomicType) and not isinstance(given, T.VariantType)
        case _ if type(given) in _WIDTH and type(to) in _WIDTH:
            return _WIDTH.index(type(given)) <= _WIDTH.index(type(to))
        case _:
            return (type(given), type(to)) in _OTHERS
