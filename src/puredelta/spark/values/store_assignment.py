"""Store assignment: values cast to the columns that they are written to (M-42 to M-63).

Structs are matched by field name at every depth, inside arrays and maps too; what remains
different is cast by the session's store assignment policy:

* ``ANSI``: a value that does not fit is an error, whatever ``spark.sql.ansi.enabled`` says.
* ``LEGACY``: it wraps around or becomes NULL.
* ``STRICT``: only casts that cannot lose anything are allowed at all.

Which types may be cast is Spark's to say, when the values are analyzed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T

from puredelta.errors import InvalidRequestError, Message
from puredelta.spark.session.names import quote
from puredelta.spark.session.session import SessionInfo, StoreAssignment
from puredelta.spark.session.types import as_nullable, holds_struct

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


class CastMode(Enum):
    """The treatment of a value that does not fit."""

    CHECKED = "checked"
    """An error that names the column."""
    ANSI = "ansi"
    """Spark's own error."""
    LEGACY = "legacy"
    """NULL, or the low bits of a number."""
    UP_CAST = "up cast"
    """Nothing: only casts that always fit are allowed."""


def cast_mode(session: SessionInfo, *, follows_ansi_flag: bool) -> CastMode:
    """Return how values are cast in this session.

    ``follows_ansi_flag`` is delta-spark's
    ``updateAndMergeCastingFollowsAnsiEnabledFlag`` (M-61): the policy is ignored then.
    """
    if follows_ansi_flag:
        return CastMode.ANSI if session.ansi else CastMode.LEGACY
    match session.store_assignment:
        case StoreAssignment.ANSI:
            return CastMode.CHECKED
        case StoreAssignment.LEGACY:
            return CastMode.LEGACY
        case StoreAssignment.STRICT:
            return CastMode.UP_CAST


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrayCall:
    """A function of arrays that compares their elements: ``array_distinct`` and its kin.

    Which elements are equal may change with their type, so its operands are cast, not its
    result (M-51).
    """

    arrays: tuple[Value, ...]
    element: Value | None
    """What ``array_remove`` removes."""
    of: Callable[[Sequence[Column]], Column]
    """The same function of other operands."""


class Caster(Protocol):
    """Casts one value without looking at the session's settings."""

    def cast(self, value: Column, to: T.DataType, *, mode: CastMode, column: str) -> Column:
        """Return the value as ``to``; ``column`` is what an error of a row names."""
        ...

    def array_call(self, value: Column) -> ArrayCall | None:
        """Return the call that makes this array out of others, where the session can tell."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """An expression with its type, and its text for messages."""

    column: Column
    type: T.DataType
    sql: str | Callable[[], str]
    """Its text, or what tells it: few values ever need one."""

    @property
    def text(self) -> str:
        """How messages show it."""
        return self.sql if isinstance(self.sql, str) else self.sql()

    def field(self, field: T.StructField) -> Value:
        """Return a field of a struct."""
        column = self.column.getField(field.name)
        return Value(column=column, type=field.dataType, sql=f"{self.text}.{quote(field.name)}")

    def find(self, name: str) -> Value | None:
        """Return a field by name, case ignored; ``None`` if this is no struct that has it."""
        if not isinstance(self.type, T.StructType):
            return None
        found = (f for f in self.type.fields if f.name.lower() == name.lower())
        return next(map(self.field, found), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreAssigner:
    """Assigns values to columns under one policy."""

    caster: Caster
    mode: CastMode
    fills_missing: bool = False
    """Fields that a struct lacks become NULL (schema evolution, M-42, M-50), or what they were."""
    by_name: bool = True
    """Structs are matched field by field (M-44); otherwise cast as they are, by position."""
    keeps_null_structs: bool = True
    """A struct that is NULL stays NULL when its fields are cast (M-45)."""
    expands_stars: bool = False
    """Structs that keep fields (``kept``) are always taken apart, and so are never NULL (M-45)."""

    def assign(
        self, value: Value, to: T.DataType, *, column: str, kept: Value | None = None
    ) -> Column:
        """Return the value with exactly the type ``to``, nullability apart.

        ``column`` is the column or field that is written, for the errors of rows. ``kept``
        is what it held before: fields that a struct lacks, those inside arrays and maps
        apart, are taken from there (M-41).
        """
        match value.type, to:
            case T.StructType(), T.StructType() if self.expands_stars and kept is not None:
                return self._struct(value, value.type, to, kept)
            case _ if is_same_type(value.type, to):
                return value.column
            case T.NullType(), _:
                return value.column.cast(as_nullable(to))
            case T.StructType(), T.StructType() if self.by_name:
                return self._struct(value, value.type, to, kept)
            case T.ArrayType(), T.ArrayType() if self.by_name and holds_struct(to):
                return self._array(value, value.type, to, column)
            case T.MapType(), T.MapType() if self.by_name and holds_struct(to):
                return self._map(value, value.type, to, column)
            case _:
                return self._cast(value, to, column)

    def _struct(
        self, value: Value, given: T.StructType, to: T.StructType, kept: Value | None
    ) -> Column:
        by_name = {f.name.lower(): f for f in given.fields}
        known = {f.name.lower() for f in to.fields}
        missing = known - by_name.keys()
        if by_name.keys() - known or (missing and not self.fills_missing):
            raise InvalidRequestError(
                Message.UPDATE_SCHEMA_MISMATCH_EXPRESSION,
                given=given.simpleString(),
                wanted=to.simpleString(),
            )
        fields = [
            self._field(value, by_name.get(f.name.lower()), f, kept).alias(f.name)
            for f in to.fields
        ]
        if self.expands_stars if kept is not None else not self.keeps_null_structs:
            return F.struct(*fields)
        present = value.column.isNotNull()
        if kept is not None and lacks_fields(given, to):
            present |= kept.column.isNotNull()  # M-45: there may be something to keep
        return F.when(present, F.struct(*fields))

    def _field(
        self, value: Value, given: T.StructField | None, to: T.StructField, kept: Value | None
    ) -> Column:
        old = None if kept is None else kept.find(to.name)
        if given is not None:
            return self.assign(value.field(given), to.dataType, column=to.name, kept=old)
        return self.carry(old, to)

    def carry(self, value: Value | None, to: T.StructField) -> Column:
        """Return a column's own value in the type it has now; ``None`` is a new column (M-58)."""
        if value is None:
            return F.lit(None).cast(as_nullable(to.dataType))
        return self.assign(value, to.dataType, column=to.name)

    def _array(self, value: Value, given: T.ArrayType, to: T.ArrayType, column: str) -> Column:
        call = self.caster.array_call(value.column)
        if call is not None:
            operands = [self.assign(array, to, column=column) for array in call.arrays]
            if call.element is not None:
                operands.append(self.assign(call.element, to.elementType, column=column))
            return call.of(operands)

        def element(item: Column) -> Column:
            inner = Value(column=item, type=given.elementType, sql=f"{value.text}.element")
            return self.assign(inner, to.elementType, column=column)

        return F.transform(value.column, element)

    def _map(self, value: Value, given: T.MapType, to: T.MapType, column: str) -> Column:
        def key(item: Column, _: Column) -> Column:
            inner = Value(column=item, type=given.keyType, sql=f"{value.text}.key")
            return self.assign(inner, to.keyType, column=column)

        def item(_: Column, item: Column) -> Column:
            inner = Value(column=item, type=given.valueType, sql=f"{value.text}.value")
            return self.assign(inner, to.valueType, column=column)

        made = value.column
        if not is_same_type(given.valueType, to.valueType):
            made = F.transform_values(made, item)
        if not is_same_type(given.keyType, to.keyType):
            made = F.transform_keys(made, key)
        return made

    def _cast(self, value: Value, to: T.DataType, column: str) -> Column:
        if self.mode is CastMode.UP_CAST and not can_up_cast(value.type, to):
            raise InvalidRequestError(
                Message.CANNOT_UP_CAST_DATATYPE,
                expression=value.text,
                source_type=sql_type(value.type),
                target_type=sql_type(to),
            )
        return self.caster.cast(value.column, as_nullable(to), mode=self.mode, column=column)


def is_same_type(one: T.DataType, other: T.DataType) -> bool:
    """Return whether two types hold the same values: names count, nullability does not."""
    match one, other:
        case T.StructType(), T.StructType():
            return len(one.fields) == len(other.fields) and all(
                a.name == b.name and is_same_type(a.dataType, b.dataType)
                for a, b in zip(one.fields, other.fields, strict=True)
            )
        case T.ArrayType(), T.ArrayType():
            return is_same_type(one.elementType, other.elementType)
        case T.MapType(), T.MapType():
            return is_same_type(one.keyType, other.keyType) and is_same_type(
                one.valueType, other.valueType
            )
        case _:
            return one == other


def lacks_fields(given: T.DataType, to: T.DataType) -> bool:
    """Return whether a struct lacks a field of another, or a struct inside it does."""
    if not isinstance(given, T.StructType) or not isinstance(to, T.StructType):
        return False
    by_name = {f.name.lower(): f.dataType for f in given.fields}
    return any(
        f.name.lower() not in by_name or lacks_fields(by_name[f.name.lower()], f.dataType)
        for f in to.fields
    )


def sql_type(data_type: T.DataType) -> str:
    """Return a type as messages show it: ``"BIGINT"``."""
    return f'"{data_type.simpleString().upper()}"'
