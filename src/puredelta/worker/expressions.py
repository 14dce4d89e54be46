"""Expressions that workers evaluate: columns, constants and calls of Arrow's functions.

There are two evaluators: `evaluated` on arrays, and on the statistics of a row group
(`puredelta.worker.row_groups`). Besides the functions of `pyarrow.compute` there are those of this
module, which take something else than values, or check a proof that the result is Spark's: they
raise an `pa.ArrowException` where there is none.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

Side: TypeAlias = Literal["target", "source"]


@dataclass(frozen=True, slots=True)
class InputColumn:
    """A column of one side: its place among those that are read, or its name in the files."""

    side: Side
    name: int | str


@dataclass(frozen=True, slots=True)
class Constant:
    """A value of one type; ``None`` is NULL."""

    value: Any
    kind: pa.DataType


@dataclass(frozen=True, slots=True)
class Call:
    """A function of `pyarrow.compute`, or of this module."""

    function: str
    arguments: tuple[Expression, ...]
    options: tuple[Any, ...] = ()
    """What follows the arguments and is no expression: a type, a place, a mode."""


Expression: TypeAlias = InputColumn | Constant | Call
ALWAYS = Constant(True, pa.bool_())  # noqa: FBT003
NEVER = Constant(False, pa.bool_())  # noqa: FBT003


def call(function: str, *arguments: Expression) -> Call:
    """Return a call without options."""
    return Call(function, arguments)


def all_of(parts: tuple[Expression, ...]) -> Expression:
    """Return the conjunction of some conditions; of none it is true."""
    return _joined("and_kleene", parts, ALWAYS)


def any_of(parts: tuple[Expression, ...]) -> Expression:
    """Return the disjunction of some conditions; of none it is false."""
    return _joined("or_kleene", parts, NEVER)


def _joined(function: str, parts: tuple[Expression, ...], empty: Expression) -> Expression:
    if not parts:
        return empty
    return parts[0] if len(parts) == 1 else Call(function, parts)


def columns_in(expression: Expression) -> Iterator[InputColumn]:
    """Yield the columns that an expression reads, one as often as it is named."""
    match expression:
        case InputColumn():
            yield expression
        case Call(_, arguments):
            for argument in arguments:
                yield from columns_in(argument)
        case Constant():
            pass


def with_columns(expression: Expression, named: Callable[[InputColumn], InputColumn]) -> Expression:
    """Return an expression that reads other columns."""
    match expression:
        case InputColumn():
            return named(expression)
        case Call(_, arguments):
            return replace(
                expression, arguments=tuple(with_columns(one, named) for one in arguments)
            )
        case Constant():
            return expression


def packed(expression: Expression) -> tuple[Any, ...]:
    """Return an expression as plain values, which travel to workers.

    >>> unpacked(packed(call("is_null", InputColumn("target", 0))))
    Call(function='is_null', arguments=(InputColumn(side='target', name=0),), options=())
    """
    match expression:
        case InputColumn(side, name):
            return side, name
        case Constant(value, kind):
            return _CONSTANT, value, kind
        case Call(function, arguments, options):
            return _CALL, function, tuple(map(packed, arguments)), options


def unpacked(values: tuple[Any, ...]) -> Expression:
    """Return the expression that `packed` was given."""
    kind, *rest = values
    if kind == _CONSTANT:
        return Constant(*rest)
    if kind == _CALL:
        function, arguments, options = rest
        return Call(function, tuple(map(unpacked, arguments)), options)
    return InputColumn(kind, *rest)


_CONSTANT, _CALL = "constant", "call"


def evaluated(expression: Expression, column: Callable[[InputColumn], pa.Array]) -> Any:
    """Return the values of an expression, a scalar if it reads no column.

    ``column`` returns the values of a column.

    Raises:
        pa.ArrowException: there is no result, or no proof of it.

    >>> more = call("add", InputColumn("target", "x"), Constant(1, pa.int64()))
    >>> evaluated(more, lambda _: pa.array([1, None])).to_pylist()
    [2, None]
    """
    match expression:
        case InputColumn():
            return column(expression)
        case Constant(value, kind):
            return pa.scalar(value, kind)
        case Call(function, arguments, options):
            values = [evaluated(one, column) for one in arguments]
            if (own := _OWN.get(function)) is not None:
                return own(*values, *options)
            if function in _PAIRWISE:
                return functools.reduce(_PAIRWISE[function], values)
            return pc.call_function(function, values)


def evaluated_rows(
    expression: Expression, column: Callable[[InputColumn], pa.Array], num_rows: int
) -> pa.Array:
    """Return the values of an expression in so many rows, also of one that reads no column.

    Raises:
        pa.ArrowException: there is no result, or no proof of it.

    >>> evaluated_rows(Constant("x", pa.string()), lambda _: pa.array([]), 2).to_pylist()
    ['x', 'x']
    """
    found = evaluated(expression, column)
    return pa.repeat(found, num_rows) if isinstance(found, pa.Scalar) else found


def _joined_texts(*texts: Any) -> Any:
    return pc.binary_join_element_wise(*texts, "", null_handling="emit_null")


def _ascii(function: str) -> Callable[[Any], Any]:
    def changed(text: Any) -> Any:
        proof = pc.string_is_ascii(text)
        if (proof if isinstance(proof, pa.Scalar) else pc.all(proof)).as_py() is False:
            raise pa.ArrowInvalid("a text that is not of ASCII letters")
        return pc.call_function(function, [text])

    return changed


def _valid(text: Any) -> Any:
    """Return texts that are UTF-8: Arrow and Spark count other bytes in different ways."""
    if not isinstance(text, pa.Scalar):
        text.validate(full=True)
    return text


def _part(text: Any, start: int, stop: int | None) -> Any:
    return pc.utf8_slice_codeunits(_valid(text), start=start, stop=stop)


def _rounded(value: Any, kind: pa.DataType) -> Any:
    """Return decimals of fewer digits, rounded half up as Spark does."""
    return pc.cast(pc.round(value, ndigits=kind.scale, round_mode=_HALF_UP), kind)


def _date_part(function: str) -> Callable[[Any], Any]:
    def found(date: Any) -> Any:
        if not isinstance(date, pa.Scalar) and len(date) > date.null_count:
            first, last = (pc.cast(one, pa.int32()).as_py() for one in pc.min_max(date).values())
            if first < _FIRST_DAY or last > _LAST_DAY:
                raise pa.ArrowInvalid("a date outside of the years 1 to 9999")
        return pc.cast(pc.call_function(function, [date]), pa.int32())

    return found


def _date_text(date: Any) -> Any:
    if not isinstance(date, pa.Scalar):
        _date_part("year")(date)  # what has another form is an error there
    return pc.cast(date, pa.string())


def _not_zero(number: Any, *, ansi: bool) -> Any:
    """Return divisors, NULL where one is 0 unless that is an error."""
    zero = pc.equal(number, pa.scalar(0, number.type))
    if ansi and (zero if isinstance(zero, pa.Scalar) else pc.any(zero)).as_py():
        raise pa.ArrowInvalid("a division by 0")
    return pc.if_else(zero, pa.scalar(None, number.type), number)


def _remainder(one: Any, other: Any, ansi: bool) -> Any:  # noqa: FBT001 - as calls are
    """Return the remainder with the sign of the dividend, as Java does."""
    divisor = _not_zero(other, ansi=ansi)
    unit, minus = (pa.scalar(n, divisor.type) for n in (1, -1))
    divisor = pc.if_else(pc.equal(divisor, minus), unit, divisor)  # the least number has no other
    return pc.subtract(one, pc.multiply(pc.divide(one, divisor), divisor))


def _quotient(one: Any, other: Any, kind: pa.DataType, ansi: bool) -> Any:  # noqa: FBT001
    """Return a quotient of decimals, rounded half up: Arrow cuts it at more digits than asked."""
    given, by = one.type, other.type
    more = kind.scale + by.scale - by.precision - given.scale
    wide = pa.decimal256(given.precision + more, given.scale + more)
    found = pc.divide(pc.cast(one, wide), pc.cast(_not_zero(other, ansi=ansi), _wide(by)))
    return pc.cast(pc.round(found, ndigits=kind.scale, round_mode=_HALF_UP), kind)


def _wide(kind: pa.DataType) -> pa.DataType:
    return pa.decimal256(kind.precision, kind.scale)


_HALF_UP = "half_towards_infinity"
_FIRST_DAY, _LAST_DAY = -719_162, 2_932_896
"""The first day of year 1 and the last one of 9999, counted from 1970."""
_PAIRWISE: dict[str, Callable[[Any, Any], Any]] = {
    "and_kleene": pc.and_kleene,
    "or_kleene": pc.or_kleene,
}
"""Functions of two arguments that are called with any number of them."""
_OWN: dict[str, Callable[..., Any]] = {
    "cast_to": pc.cast,
    "round_to": _rounded,
    "join_texts": _joined_texts,
    "ascii_upper": _ascii("ascii_upper"),
    "ascii_lower": _ascii("ascii_lower"),
    "trim_blanks": lambda text: pc.utf8_trim(_valid(text), characters=" "),
    "trim_left": lambda text: pc.utf8_ltrim(_valid(text), characters=" "),
    "trim_right": lambda text: pc.utf8_rtrim(_valid(text), characters=" "),
    "text_part": _part,
    "text_length": lambda text: pc.utf8_length(_valid(text)),
    "date_text": _date_text,
    "remainder": _remainder,
    "decimal_quotient": _quotient,
    "year_of": _date_part("year"),
    "month_of": _date_part("month"),
    "day_of": _date_part("day"),
}
