"""Arguments of recipes, and null-safe comparison of values.

A wrong argument is an `InvalidRequestError` before the table is read.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import reduce
from operator import and_, or_
from typing import Any, TypeVar

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T
from typing_extensions import TypedDict

from puredelta.commands.dml.spec import require_source
from puredelta.commands.file_options import set_transaction_of
from puredelta.commands.write.expectations import Expectations, RowCheck
from puredelta.errors import ErrorCode, InvalidRequestError
from puredelta.protocol.actions.actions import SetTransaction
from puredelta.spark.session.names import quote
from puredelta.spark.session.types import as_nullable

Choice = TypeVar("Choice", bound=Enum)


class RecipeOptions(TypedDict, total=False):
    """Options that every recipe takes."""

    create: bool
    """Create the table, empty, if it does not exist; its columns are the source's."""
    partition_by: Sequence[str] | str
    """Partition columns of a new table."""
    evolve_schema: bool
    """Add source columns that the table lacks; otherwise they are left out."""
    txn_app_id: str
    txn_version: int
    """The application and its version: a call with a version that the table has is not executed
    again. In ``foreachBatch``: a name for the stream, and the batch's id.
    """
    expectations: Expectations
    """Conditions on rows of the source by name, see `Expectation`; text alone is a warning."""
    quarantine: str | os.PathLike[str]
    """The path of a table for the rows that an expectation with ``drop`` leaves out, with the names
    of their broken expectations in ``_violations``; it is created if it does not exist.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSettings:
    """`RecipeOptions`, checked."""

    create: bool = False
    partition_by: tuple[str, ...] = ()
    evolve_schema: bool = False
    set_transaction: SetTransaction | None = None
    expectations: Expectations = field(default_factory=dict)
    quarantine: str | None = None

    @classmethod
    def of(cls, options: RecipeOptions) -> TableSettings:
        """Check the options; errors as `set_transaction_of`."""
        version = options.get("txn_version")
        expectations = options.get("expectations") or {}
        RowCheck.of(expectations)
        quarantine = options.get("quarantine")
        return cls(
            create=bool(options.get("create", False)),
            partition_by=names_of(options.get("partition_by"), "partition_by"),
            evolve_schema=bool(options.get("evolve_schema", False)),
            set_transaction=set_transaction_of(
                options.get("txn_app_id"), None if version is None else str(version)
            ),
            expectations=expectations,
            quarantine=None if quarantine is None else os.fspath(quarantine),
        )


def refused(message: str, **details: object) -> InvalidRequestError:
    """Return the error for a wrong argument."""
    return InvalidRequestError(message, code=ErrorCode.INVALID_ARGUMENT, **details)


def require_options(function: str, given: Collection[str], known: type) -> None:
    """Refuse keyword arguments that a function does not have.

    Raises:
        TypeError: as Python does for an unknown argument.
    """
    for name in given:
        if name not in _names_of(known):
            raise TypeError(f"{function}() got an unexpected keyword argument {name!r}")


def _names_of(known: type) -> set[str]:
    return {
        name for kind in (known, *known.__mro__) for name in getattr(kind, "__annotations__", {})
    }


def names_of(given: Sequence[str] | str | None, argument: str) -> tuple[str, ...]:
    """Return names, given as one text, as a sequence, or not at all.

    Raises:
        InvalidRequestError: one of them is no text, or is repeated.
    """
    if given is None:
        return ()
    names: tuple[object, ...] = (given,) if isinstance(given, str) else tuple(given)
    texts = tuple(name for name in names if isinstance(name, str) and name)
    if len(texts) < len(names):
        raise refused(f"{argument} must be names of columns, not {given!r}.", argument=argument)
    if twice := sorted({name for name in texts if texts.count(name) > 1}):
        raise refused(f"{argument} names {twice[0]!r} twice. Name each column once.", name=twice[0])
    return texts


def keys_of(given: Sequence[str] | str) -> tuple[str, ...]:
    """Return the key columns.

    Raises:
        InvalidRequestError: there is none.
    """
    keys = names_of(given, "keys")
    if not keys:
        raise refused("keys is empty. Name the columns by which rows of table and source match.")
    return keys


def choice_of(kind: type[Choice], given: str, argument: str) -> Choice:
    """Return one of several words as its value.

    Raises:
        InvalidRequestError: it is none of them.
    """
    try:
        return kind(given)
    except ValueError:
        words = ", ".join(repr(one.value) for one in kind)
        raise refused(f"{argument} is {given!r}. Use one of {words}.", argument=argument) from None


def condition_of(given: object, argument: str) -> str | Column | None:
    """Return a condition, text or Column.

    Raises:
        InvalidRequestError: it is something else.
    """
    if given is None or isinstance(given, str | Column):
        return given
    raise refused(f"{argument} must be SQL text or a Column, not {type(given).__name__}.")


def source_of(given: object) -> DataFrame:
    """Return the source, and refuse a stream; errors as `require_source`."""
    source = require_source(given)
    if source.isStreaming:
        raise refused(
            "The source is a stream. Call this for each of its batches, in "
            "writeStream.foreachBatch, with txn_app_id and txn_version=batch_id."
        )
    return source


def both_given(**given: object) -> None:
    """Refuse two arguments that exclude each other.

    Raises:
        InvalidRequestError: more than one of them is given.
    """
    present = [name for name, value in given.items() if value is not None]
    if len(present) > 1:
        raise refused(f"{' and '.join(present)} exclude each other. Give one of them.")


def options_of(options: Mapping[str, object], names: Collection[str]) -> dict[str, object]:
    """Return the options with these names."""
    return {name: value for name, value in options.items() if name in names}


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
"""Types with equal values that differ: -0.0, the case of a collation, trailing blanks."""
_KEY_BOUNDS = (T.IntegralType, T.StringType, T.DateType, T.TimestampType, T.DecimalType)


def same_text(name: str, target: T.DataType | None, source: T.DataType) -> str:
    """Return SQL that tells whether a column has the same value on both sides, NULL included.

    ``target`` is None where the table lacks the column: it is NULL there. Structs with different
    fields are never the same.
    """
    one, two = f"t.{quote(name)}", f"s.{quote(name)}"
    if target is None:
        return f"{two} IS NULL"
    if as_nullable(target) != as_nullable(source) and _is_nested(target):
        return "false"
    return same_values(one, two, source)


def same_values(one: str, two: str, kind: T.DataType) -> str:
    """Return SQL that tells whether two values of a type are the same, as `same`."""
    if _holds(kind, _NOT_COMPARABLE):
        return f"to_json(struct({one} AS v)) <=> to_json(struct({two} AS v))"
    return f"{one} <=> {two}"


def same(one: Column, two: Column, kind: T.DataType) -> Column:
    """Return whether two values of a type are the same, NULL included."""
    if _holds(kind, _NOT_COMPARABLE):
        return F.to_json(F.struct(one.alias("v"))).eqNullSafe(F.to_json(F.struct(two.alias("v"))))
    return one.eqNullSafe(two)


def same_as_next(name: str, kind: T.DataType, window: str) -> str:
    """Return SQL that tells whether the next row of a window has the same value, as `same`."""
    return same_values(f"lead({quote(name)}) {window}", quote(name), kind)


def equal_is_same(target: T.DataType | None, source: T.DataType) -> bool:
    """Tell whether equal values of a table and a source are always identical."""
    return target == source and not isinstance(source, _EQUAL_AND_DIFFERENT)


def all_true(conditions: Iterable[str]) -> str:
    """Return SQL of a conjunction; without conditions it is true."""
    return f"({' AND '.join(conditions) or 'true'})"


def all_of(conditions: Sequence[Column]) -> Column:
    """Return a Column that is true if all conditions are; without conditions it is true."""
    return reduce(and_, conditions, F.lit(True))  # noqa: FBT003


def any_of(conditions: Sequence[Column]) -> Column:
    """Return a Column that is true if some condition is; without conditions it is false."""
    return reduce(or_, conditions, F.lit(False))  # noqa: FBT003


def is_true(condition: str | Column | None) -> Column:
    """Return a condition that is false where the given one is NULL; None is always false."""
    if condition is None:
        return F.lit(False)  # noqa: FBT003
    column = F.expr(condition) if isinstance(condition, str) else condition
    return F.coalesce(column.cast("boolean"), F.lit(False))  # noqa: FBT003


def holds_null(value: str, kind: T.DataType) -> str:
    """Return SQL that tells whether a value is NULL, or a struct with a NULL field."""
    if not isinstance(kind, T.StructType):
        return f"{value} IS NULL"
    fields = [holds_null(f"{value}.{quote(f.name)}", f.dataType) for f in kind.fields]
    return f"({' OR '.join([f'{value} IS NULL', *fields])})"


def as_field(text: str, kind: T.DataType, field: T.StructField) -> str | Column:
    """Return SQL of a value with the type of the field, a Column where that takes a cast."""
    if as_nullable(kind) == as_nullable(field.dataType):
        return f"{text} AS {quote(field.name)}"
    return F.expr(text).cast(field.dataType).alias(field.name)


def selected(rows: DataFrame, columns: Sequence[str | Column]) -> DataFrame:
    """Return rows with other columns; SQL text alone costs fewer calls into the JVM."""
    texts = [one for one in columns if isinstance(one, str)]
    if len(texts) == len(columns):
        return rows.selectExpr(*texts)
    return rows.select(*(F.expr(one) if isinstance(one, str) else one for one in columns))


def has_bounds(kind: T.DataType) -> bool:
    """Tell whether bounds of a type's values can select files."""
    return isinstance(kind, _KEY_BOUNDS)


def to_driver(value: Column, kind: T.DataType) -> Column:
    """Return a value in a form that Python keeps exactly, in every time zone."""
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
    """Return a value from `to_driver` as a constant of its original type."""
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
