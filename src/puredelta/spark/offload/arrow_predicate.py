"""Predicates that Arrow decides exactly as Spark does, as expressions that a worker evaluates.

A `puredelta.protocol.schema.predicates.Predicate` prunes, so most of what is unknown may stay in
it; here nothing may: what is not certain to give TRUE, FALSE and NULL for the same rows makes the
whole predicate inexact, and Spark decides. Certain are comparisons of plain columns of one
type, with each other or with literals, whose values are stored as they are read.
"""

from __future__ import annotations

import datetime as dt
import functools
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import pyarrow as pa

from puredelta.log.files.value_order import ARROW_COMPARISONS, compares_as_stored
from puredelta.protocol.schema.predicates import (
    And,
    Compare,
    CompareOp,
    Const,
    IsNull,
    Not,
    OneOf,
    Opaque,
    Or,
    Predicate,
    Ref,
    Side,
    StartsWith,
)
from puredelta.protocol.schema.types import (
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGRAL,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    DataType,
    DecimalType,
)
from puredelta.worker.expressions import (
    NEVER,
    Constant,
    Expression,
    InputColumn,
    all_of,
    any_of,
    call,
)

_UNKNOWN = Constant(None, pa.bool_())
_DEPTH_MAX = 40
_LISTED_MAX = 50
_KINDS: dict[DataType, pa.DataType] = {
    **dict.fromkeys(INTEGRAL, pa.int64()),
    STRING: pa.string(),
    BOOLEAN: pa.bool_(),
    FLOAT: pa.float64(),
    DOUBLE: pa.float64(),
    DATE: pa.date32(),
    TIMESTAMP: pa.timestamp("us", "UTC"),
    TIMESTAMP_NTZ: pa.timestamp("us"),
}


def arrow_kind(data_type: DataType | None) -> pa.DataType | None:
    """Return the one Arrow type that values are compared in, ``None`` if only Spark can.

    >>> from puredelta.protocol.schema.types import SHORT, PrimitiveType
    >>> arrow_kind(SHORT), arrow_kind(PrimitiveType("binary"))
    (DataType(int64), None)
    """
    if isinstance(data_type, DecimalType):
        return pa.decimal128(data_type.precision, data_type.scale)
    return None if data_type is None else _KINDS.get(data_type)


@dataclass(frozen=True, slots=True, kw_only=True)
class Translation:
    """Translates the predicates of one statement and numbers the columns that they read."""

    inexact: Collection[str] = ()
    """Target columns whose values are not what is stored, such as padded ones."""
    target: dict[str, pa.DataType] = field(default_factory=dict)
    """Columns read so far, by logical name; an expression names them by their place in here."""
    source: dict[str, pa.DataType] = field(default_factory=dict)
    """The same by staged name."""

    def expression(self, predicate: Predicate) -> Expression | None:
        """Return the expression that decides ``predicate``, ``None`` if only Spark can."""
        try:
            return self._expression(predicate, 0)
        except _InexactError:
            return None

    def _expression(self, predicate: Predicate, depth: int) -> Expression:
        if depth > _DEPTH_MAX:
            raise _InexactError
        below: Callable[[Predicate], Expression] = functools.partial(
            self._expression, depth=depth + 1
        )
        match predicate:
            case And(parts):
                return all_of(tuple(map(below, parts)))
            case Or(parts):
                return any_of(tuple(map(below, parts)))
            case Not(child):
                return call("invert", below(child))
            case Ref():
                return self._column(predicate, pa.bool_())
            case Const(value):
                return _constant(value, pa.bool_())
            case IsNull(ref):
                return call("is_null", self._column(ref))
            case Compare(op, Ref() as left, Ref() | Const() as right):
                return self._compare(op, left, right)
            case OneOf(ref, values) if len(values) <= _LISTED_MAX:
                equal = (self._compare(CompareOp.EQUAL, ref, Const(v)) for v in values)
                return any_of(tuple(equal))
            case Compare() | OneOf() | StartsWith() | Opaque():
                raise _InexactError

    def _compare(self, op: CompareOp, left: Ref, right: Ref | Const) -> Expression:
        kind = _kind(left)
        if kind == pa.bool_() and op not in (CompareOp.EQUAL, CompareOp.NULL_SAFE_EQUAL):
            raise _InexactError
        one = self._column(left)
        if isinstance(right, Const) and right.value is None:
            return call("is_null", one) if op is CompareOp.NULL_SAFE_EQUAL else _UNKNOWN
        other: Expression
        if isinstance(right, Ref):
            other = self._column(right, kind)
        else:
            if not compares_as_stored(right.value, left.type):
                raise _InexactError
            other = _constant(right.value, kind)
        return compared_values(op, one, other, is_float=kind == pa.float64())

    def _column(self, ref: Ref, kind: pa.DataType | None = None) -> InputColumn:
        of_target, found = ref.side is Side.TARGET, _kind(ref)
        stored = len(ref.path) == 1 and not (of_target and ref.path[0] in self.inexact)
        if not stored or (kind is not None and found != kind):
            raise _InexactError
        columns = self.target if of_target else self.source
        columns.setdefault(ref.path[0], found)
        return InputColumn(ref.side.value, list(columns).index(ref.path[0]))


class _InexactError(Exception):
    """Only Spark can decide this."""


def _kind(ref: Ref) -> pa.DataType:
    kind = arrow_kind(ref.type)
    if kind is None:
        raise _InexactError
    return kind


def compared_values(
    op: CompareOp, one: Expression, other: Expression, *, is_float: bool
) -> Expression:
    """Return the expression that compares two values of one type as Spark does."""
    compared = _compared_floats if is_float else _compared
    if op is not CompareOp.NULL_SAFE_EQUAL:
        return compared(op, one, other)
    equal = call("coalesce", compared(CompareOp.EQUAL, one, other), NEVER)
    return call("or", equal, call("and", call("is_null", one), call("is_null", other)))


def _compared(op: CompareOp, one: Expression, other: Expression) -> Expression:
    return call(ARROW_COMPARISONS[op], one, other)


def _compared_floats(op: CompareOp, one: Expression, other: Expression) -> Expression:
    """Compare as Spark does: NaN equals NaN and is the greatest of all; -0.0 equals 0.0."""
    match op:
        case CompareOp.EQUAL:
            both = call("and", call("is_nan", one), call("is_nan", other))
            return call("or", call("equal", one, other), both)
        case CompareOp.LESS:
            only_other = call("and_not", call("is_nan", other), call("is_nan", one))
            return call("or", call("less", one, other), only_other)
        case CompareOp.GREATER:
            return _compared_floats(CompareOp.LESS, other, one)
        case CompareOp.LESS_OR_EQUAL:
            return call("invert", _compared_floats(CompareOp.LESS, other, one))
        case CompareOp.GREATER_OR_EQUAL:
            return call("invert", _compared_floats(CompareOp.LESS, one, other))
        case CompareOp.NULL_SAFE_EQUAL:
            raise _InexactError


def _constant(value: Any, kind: pa.DataType) -> Constant:
    """Return a literal; one that is not exactly of the kind makes a predicate inexact."""
    if value is not None and not _fits(value, kind):
        raise _InexactError
    try:
        pa.scalar(value, kind)
    except (pa.ArrowException, OverflowError) as unfit:
        raise _InexactError from unfit
    return Constant(value, kind)


def _fits(value: Any, kind: pa.DataType) -> bool:
    if pa.types.is_timestamp(kind):
        return isinstance(value, dt.datetime) and (value.tzinfo is None) == (kind.tz is None)
    python = {
        pa.int64(): int,
        pa.string(): str,
        pa.bool_(): bool,
        pa.float64(): float,
        pa.date32(): dt.date,
    }.get(kind, Decimal)
    return type(value) is python
