"""Comparing values null-safely, whatever their type, as SQL text and as Columns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce
from operator import and_, or_
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from puredelta.spark.session.identifiers import quote
from puredelta.spark.session.types import as_nullable

_NOT_COMPARABLE = frozenset({"map", "variant"})
_EQUAL_AND_DIFFERENT = (
    T.FloatType,
    T.DoubleType,
    T.StringType,
    T.CharType,
    T.VarcharType,
    T.StructType,
    T.ArrayType,
)
"""Types of which equal values may be different ones: -0.0, other cases of a collation, blanks."""
_KEY_BOUNDS = (T.IntegralType, T.StringType, T.DateType, T.TimestampType, T.DecimalType)


def same_text(name: str, target: T.DataType | None, source: T.DataType) -> str:
    """Return SQL that tells whether a column has one value on both sides, NULL being a value.

    ``target`` is None where the table lacks the column: it is NULL there. Structs of different
    fields are never the same.
    """
    one, two = f"t.{quote(name)}", f"s.{quote(name)}"
    if target is None:
        return f"{two} IS NULL"
    if as_nullable(target) != as_nullable(source) and _is_nested(target):
        return "false"
    return same_values(one, two, source)


def same_values(one: str, two: str, kind: T.DataType) -> str:
    """Return SQL that tells whether two values of a type are one, as `same`."""
    if _holds(kind, _NOT_COMPARABLE):
        return f"to_json(struct({one} AS v)) <=> to_json(struct({two} AS v))"
    return f"{one} <=> {two}"


def same(one: Column, two: Column, kind: T.DataType) -> Column:
    """Return whether two values of a type are one, NULL being a value."""
    if _holds(kind, _NOT_COMPARABLE):
        return F.to_json(F.struct(one.alias("v"))).eqNullSafe(F.to_json(F.struct(two.alias("v"))))
    return one.eqNullSafe(two)


def same_as_next(name: str, kind: T.DataType, window: str) -> str:
    """Return SQL that tells whether the next row of a window has the same value, as `same`."""
    return same_values(f"lead({quote(name)}) {window}", quote(name), kind)


def equal_is_same(target: T.DataType | None, source: T.DataType) -> bool:
    """Tell whether values of a table and a source that are equal cannot be told apart."""
    return target == source and not isinstance(source, _EQUAL_AND_DIFFERENT)


def all_true(conditions: Iterable[str]) -> str:
    """Return SQL of a conjunction; of no conditions it is true."""
    return f"({' AND '.join(conditions) or 'true'})"


def all_of(conditions: Sequence[Column]) -> Column:
    """Return whether all conditions are true; of none it is so."""
    return reduce(and_, conditions, F.lit(True))  # noqa: FBT003


def any_of(conditions: Sequence[Column]) -> Column:
    """Return whether some condition is true; of none it is not."""
    return reduce(or_, conditions, F.lit(False))  # noqa: FBT003


def is_true(condition: str | Column | None) -> Column:
    """Return a condition that is false where the given one is NULL; None is always false."""
    if condition is None:
        return F.lit(False)  # noqa: FBT003
    column = F.expr(condition) if isinstance(condition, str) else condition
    return F.coalesce(column.cast("boolean"), F.lit(False))  # noqa: FBT003


def holds_null(value: str, kind: T.DataType) -> str:
    """Return SQL that tells whether a value is NULL, or a struct with a field that is."""
    if not isinstance(kind, T.StructType):
        return f"{value} IS NULL"
    fields = [holds_null(f"{value}.{quote(f.name)}", f.dataType) for f in kind.fields]
    return f"({' OR '.join([f'{value} IS NULL', *fields])})"


def as_field(text: str, kind: T.DataType, field: T.StructField) -> str | Column:
    """Return SQL of a value of a type as the field has it, a Column where that takes a cast."""
    if as_nullable(kind) == as_nullable(field.dataType):
        return f"{text} AS {quote(field.name)}"
    return F.expr(text).cast(field.dataType).alias(field.name)


def selected(rows: DataFrame, columns: Sequence[str | Column]) -> DataFrame:
    """Return rows with other columns; text alone costs fewer calls into the JVM."""
    texts = [one for one in columns if isinstance(one, str)]
    if len(texts) == len(columns):
        return rows.selectExpr(*texts)
    return rows.select(*(F.expr(one) if isinstance(one, str) else one for one in columns))


def has_bounds(kind: T.DataType) -> bool:
    """Tell whether the smallest and the greatest value of a type say which files to read."""
    return isinstance(kind, _KEY_BOUNDS)


def to_driver(value: Column, kind: T.DataType) -> Column:
    """Return a value in a form that Python keeps exactly, whatever the time zones are."""
    match kind:
        case T.StructType():
            fields = [to_driver(value.getField(f.name), f.dataType).alias(f.name) for f in kind]
            return F.struct(*fields)
        case T.TimestampType():
            return F.unix_micros(value)
        case T.TimestampNTZType() | T.DateType():
            return value.cast("string")
        case _:
            return value


def literal(value: Any, kind: T.DataType) -> Column:
    """Return what `to_driver` brought as a constant of the type it had."""
    if value is None:
        return F.lit(None).cast(kind)
    match kind:
        case T.StructType():
            fields = [literal(value[f.name], f.dataType).alias(f.name) for f in kind]
            return F.struct(*fields).cast(kind)
        case T.TimestampType():
            return F.timestamp_micros(F.lit(value))
        case _:
            return F.lit(value).cast(kind)


def _is_nested(kind: T.DataType) -> bool:
    return isinstance(kind, T.StructType | T.ArrayType | T.MapType)


def _holds(kind: T.DataType, names: frozenset[str]) -> bool:
    match kind:
        case T.StructType():
            return any(_holds(f.dataType, names) for f in kind.fields)
        case T.ArrayType():
            return _holds(kind.elementType, names)
        case _:
            return kind.typeName() in names
