"""Values that Arrow computes exactly as Spark does: the table of functions.

`VALUES` has a row for each function of Catalyst that a worker may compute. A row's result is the
one that Spark gives, or Arrow raises an error: then Spark computes it, and raises what it raises.
So a row needs no code for errors of rows. Whatever is not in the table is left to Spark, with the
reason.

Traps this module knows:

* Catalyst's JSON leaves enumerations out: ``try_add`` looks like ``+`` once it is replaced, so its
  name is looked for in the tree before.
* Neither are collations in it. ``collate`` is refused by name, columns by their types.
* ``if_else`` of Arrow gives NULL where the condition is NULL, Spark the other value.
* Spark evaluates one branch only. Arrow evaluates both, so an error in the other one means that
  Spark computes the value.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any

import pyarrow as pa

from puredelta.log.files.value_order import stored_type
from puredelta.protocol.schema.predicates import CompareOp, Side
from puredelta.spark.offload.arrow_predicate import compared_values
from puredelta.spark.resolve.expressions import ExpressionTree
from puredelta.spark.resolve.predicate_from_json import (
    Node,
    class_name,
    comparable_type,
    literal_value,
)
from puredelta.worker.expressions import (
    NEVER,
    Call,
    Constant,
    Expression,
    InputColumn,
    any_of,
    call,
)

_NODES_MAX = 200
_KINDS = {
    "boolean": pa.bool_(),
    "byte": pa.int8(),
    "short": pa.int16(),
    "integer": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
    "void": pa.null(),
}
_DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")
_DIGITS_MAX = 38
_QUOTIENT_PLACES = 6
_LISTED_MAX = 50
_DIGITS = {pa.int8(): 3, pa.int16(): 5, pa.int32(): 10, pa.int64(): 20}
_EXACT_IN_DOUBLE = (pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.float32())
"""A long of more digits than a double has is an error of Arrow's cast."""


class NotInTableError(Exception):
    """Only Spark computes this; the text is the reason."""


@dataclass(frozen=True, slots=True)
class ArrowValue:
    """A value as a worker computes it."""

    expression: Expression
    """Target columns by their logical names, source columns by their staged ones."""
    kind: pa.DataType
    columns: Mapping[str, pa.DataType]
    """The target columns that it reads, with the types that the table gives them."""
    source: Mapping[str, pa.DataType] = field(default_factory=dict)
    """The source columns that it reads, with their types."""


@dataclass(frozen=True, slots=True)
class _Part:
    expression: Expression
    kind: pa.DataType

    @property
    def constant(self) -> Constant | None:
        return self.expression if isinstance(self.expression, Constant) else None


@dataclass(frozen=True, slots=True)
class _Session:
    ansi: bool


@dataclass(frozen=True, slots=True)
class _Read:
    """The columns of either side that a value reads."""

    target: dict[str, pa.DataType]
    source: dict[str, pa.DataType]


_Rule = Callable[[Sequence[_Part], _Session], _Part]


def value_of(tree: ExpressionTree, *, ansi: bool) -> ArrowValue:
    """Translate an expression over columns of the target and of the source.

    Raises:
        NotInTableError: Spark has to compute it.
    """
    for name in tree.written_classes:
        if name.startswith("Try") or name in _REFUSED:
            raise NotInTableError(_reason(name))
    if len(tree.nodes) > _NODES_MAX:
        raise NotInTableError("an expression of many parts")
    read = _Read({}, {})
    session = _Session(ansi)
    stack: list[_Part] = []
    for node in reversed(tree.nodes):  # children before parents
        kids = [stack.pop() for _ in range(node["num-children"])]
        stack.append(_part(node, kids, tree, session, read))
    (whole,) = stack
    return ArrowValue(whole.expression, whole.kind, read.target, read.source)


def stored_as(value: ArrowValue, kind: pa.DataType) -> ArrowValue:
    """Return the value as one of a column; what does not fit is an error of Arrow.

    Raises:
        NotInTableError: Spark has to cast it.
    """
    part = _Part(value.expression, value.kind)
    if _is_integer(part.kind) and _is_integer(kind) and part.kind != kind:
        part = _cast_to(part, kind)
    elif pa.types.is_decimal(part.kind) and pa.types.is_decimal(kind) and part.kind != kind:
        name = "round_to" if part.kind.scale > kind.scale else "cast_to"
        part = _Part(Call(name, (part.expression,), (kind,)), kind)
    else:
        part = _cast(part, kind)
    return replace(value, expression=part.expression, kind=part.kind)


def _part(
    node: Node,
    kids: Sequence[_Part],
    tree: ExpressionTree,
    session: _Session,
    read: _Read,
) -> _Part:
    match name := class_name(node):
        case "AttributeReference":
            return _column(node, tree, read)
        case "Literal":
            return _literal(node, tree.time_zone)
        case "Alias":
            return kids[0]
        case "Cast":
            return _cast(kids[0], _kind(node["dataType"]))
        case _ if name in VALUES:
            return VALUES[name](kids, session)
        case _:
            raise NotInTableError(_reason(name))


def _reason(name: str) -> str:
    return f"{name} is no function that workers compute"


def _column(node: Node, tree: ExpressionTree, read: _Read) -> _Part:
    known = tree.columns.get(node["exprId"]["id"])
    if known is None:
        raise NotInTableError("a column of neither side")
    logical = comparable_type(known.type)
    kind = None if logical is None else stored_type(logical)
    if kind is None or (kind not in {*_KINDS.values()} and not pa.types.is_decimal(kind)):
        raise NotInTableError(f"column {known.name} is of a type that only Spark computes with")
    is_target = known.side is Side.TARGET
    if kind == pa.null() and not is_target:  # no file has it
        return _null(kind)
    (read.target if is_target else read.source)[known.name] = kind
    return _Part(InputColumn(known.side.value, known.name), kind)


def _kind(data_type: object) -> pa.DataType:
    text = str(data_type)
    if (found := _DECIMAL.fullmatch(text)) is not None:
        return pa.decimal128(int(found[1]), int(found[2]))
    if (kind := _KINDS.get(text)) is None:
        raise NotInTableError(f"values of type {text[:40]}")
    return kind


def _literal(node: Node, time_zone: str) -> _Part:
    kind = _kind(node["dataType"])
    if node["value"] is None:
        return _null(kind)
    value: Any = literal_value(node, time_zone)
    if value is None:
        raise NotInTableError(f"a literal of type {node['dataType']}")
    if isinstance(value, Decimal):
        value = value.quantize(Decimal(1).scaleb(-kind.scale))
    try:
        pa.scalar(value, kind)
    except (pa.ArrowException, OverflowError, TypeError) as unfit:
        raise NotInTableError(f"a literal of type {node['dataType']}") from unfit
    return _Part(Constant(value, kind), kind)


def _null(kind: pa.DataType) -> _Part:
    return _Part(Constant(None, kind), kind)


def _cast_to(part: _Part, kind: pa.DataType) -> _Part:
    return _called("cast_to", [part], kind, kind)


def _called(function: str, kids: Sequence[_Part], kind: pa.DataType, *options: object) -> _Part:
    return _Part(Call(function, tuple(kid.expression for kid in kids), options), kind)


def _is_integer(kind: pa.DataType) -> bool:
    return kind in _DIGITS


def _cast(part: _Part, kind: pa.DataType) -> _Part:
    """Return a value of another type that holds it, in whatever mode Spark casts."""
    given = part.kind
    if given == kind:
        return part
    if given == pa.null():
        return _null(kind)
    if pa.types.is_decimal(kind) and (pa.types.is_decimal(given) or _is_integer(given)):
        return _decimal(part, kind)
    if pa.types.is_decimal(kind):
        holds = False
    elif kind == pa.float64():
        holds = given in _EXACT_IN_DOUBLE
    else:
        holds = _is_integer(given) and _is_integer(kind)  # what does not fit is an error of Arrow
    if kind == pa.string() and (_is_integer(given) or given == pa.bool_()):
        return _cast_to(part, kind)
    if kind == pa.string() and given == pa.date32() and part.constant is None:
        return _called("date_text", [part], kind)
    if not holds:
        raise NotInTableError(f"a cast of {given} to {kind}")
    return _cast_to(part, kind)


def _decimal(part: _Part, kind: pa.DataType) -> _Part:
    """Return a decimal or a whole number as a decimal; what does not fit is an error of Arrow."""
    given = part.kind
    if _is_integer(given):
        given = pa.decimal128(_DIGITS[given], 0)
        part = _cast_to(part, given)
    more = 1 if kind.scale < given.scale else 0  # rounding may add a digit
    whole, scale = given.precision - given.scale + more, max(given.scale, kind.scale)
    if whole + scale > _DIGITS_MAX:
        raise NotInTableError(f"a cast of {part.kind} to {kind}")
    part = _cast_to(part, pa.decimal128(whole + scale, scale))
    return _called("round_to", [part], kind, kind) if more else _cast_to(part, kind)


def _alike(kids: Sequence[_Part]) -> pa.DataType:
    """Return the one type of some values; NULLs without a type are of any."""
    kinds = {kid.kind for kid in kids} - {pa.null()}
    if len(kinds) > 1:
        raise NotInTableError(f"values of types {', '.join(sorted(map(str, kinds)))} together")
    return kinds.pop() if kinds else pa.null()


def _typed(kids: Sequence[_Part], kind: pa.DataType) -> list[_Part]:
    return [_cast(kid, kind) for kid in kids]


def _arithmetic(name: str) -> _Rule:
    def rule(kids: Sequence[_Part], session: _Session) -> _Part:
        kind = _kind_of_result(name, kids)
        if _is_integer(kind):
            function = f"{name}_checked" if session.ansi else name
        elif pa.types.is_floating(kind) or pa.types.is_decimal(kind):
            function = name
        else:
            raise NotInTableError(f"{name} of values of type {kind}")
        return _called(function, kids, kind)

    return rule


def _kind_of_result(name: str, kids: Sequence[_Part]) -> pa.DataType:
    """Return the type of a sum, a difference or a product; of decimals by Spark's rules."""
    if not all(pa.types.is_decimal(kid.kind) for kid in kids) or name == "negate":
        return _alike(kids)
    (one, other) = (kid.kind for kid in kids)
    if name == "multiply":
        digits, scale = one.precision + other.precision + 1, one.scale + other.scale
    else:
        scale = max(one.scale, other.scale)
        digits = max(one.precision - one.scale, other.precision - other.scale) + scale + 1
    if digits > _DIGITS_MAX:
        raise NotInTableError(f"a decimal of {digits} digits")
    return pa.decimal128(digits, scale)


def _divide(kids: Sequence[_Part], session: _Session) -> _Part:
    if all(pa.types.is_decimal(kid.kind) for kid in kids):
        return _divide_decimals(kids, session)
    kind = _alike(kids)
    if kind != pa.float64():
        raise NotInTableError(f"a division of values of type {kind}")
    if session.ansi:
        return _called("divide_checked", kids, kind)
    one, other = (kid.expression for kid in kids)
    by_zero = call("coalesce", call("equal", other, Constant(0.0, kind)), NEVER)
    quotient = call("if_else", by_zero, Constant(None, kind), call("divide", one, other))
    return _Part(quotient, kind)


def _divide_decimals(kids: Sequence[_Part], session: _Session) -> _Part:
    """Return a quotient by Spark's rules of precision.

    Spark rounds it to 38 places, and then to those of its type. With divisors of few digits no
    quotient is so near to the middle of two values that the first rounding matters.
    """
    one, other = (kid.kind for kid in kids)
    scale = max(_QUOTIENT_PLACES, one.scale + other.precision + 1)
    digits = one.precision - one.scale + other.scale + scale
    if digits > _DIGITS_MAX or other.precision + scale > _DIGITS_MAX:
        raise NotInTableError(f"a quotient of {digits} digits")
    kind = pa.decimal128(digits, scale)
    return _called("decimal_quotient", kids, kind, kind, session.ansi)


def _remainder(kids: Sequence[_Part], session: _Session) -> _Part:
    kind = _alike(kids)
    if not _is_integer(kind):
        raise NotInTableError(f"a remainder of values of type {kind}")
    return _called("remainder", kids, kind, session.ansi)


def _absolute(kids: Sequence[_Part], session: _Session) -> _Part:
    kind = kids[0].kind
    if not (_is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)):
        raise NotInTableError(f"the absolute value of values of type {kind}")
    function = "abs_checked" if session.ansi and _is_integer(kind) else "abs"
    return _called(function, kids[:1], kind)


def _round(kids: Sequence[_Part], _: _Session) -> _Part:
    value, places = kids
    given = value.kind
    digits = None if places.constant is None else places.constant.value
    if digits is None or digits < 0:
        raise NotInTableError("round to places that are no literal, or before the point")
    if _is_integer(given):
        return value
    if not pa.types.is_decimal(given) or given.precision == _DIGITS_MAX:
        raise NotInTableError(f"round of values of type {given}")
    scale = min(given.scale, digits)
    kind = pa.decimal128(given.precision - given.scale + 1 + scale, scale)
    wider = pa.decimal128(given.precision + 1, given.scale)
    return _called("round_to", [_cast_to(value, wider)], kind, kind)


def _outermost(function: str) -> _Rule:
    """Return the rule of ``greatest`` and ``least``: NULLs are left out."""

    def rule(kids: Sequence[_Part], _: _Session) -> _Part:
        kind = _alike(kids)
        if not (pa.types.is_date(kind) or _is_integer(kind) or pa.types.is_decimal(kind)):
            raise NotInTableError(f"{function} of values of type {kind}")
        return _called(function, _typed(kids, kind), kind)

    return rule


def _is_in(kids: Sequence[_Part], session: _Session) -> _Part:
    if not 1 < len(kids) <= _LISTED_MAX:
        raise NotInTableError(f"a list of {len(kids) - 1} values")
    equal = _compare(CompareOp.EQUAL)
    _alike(kids)
    found = (equal((kids[0], kid), session).expression for kid in kids[1:])
    return _Part(any_of(tuple(found)), pa.bool_())


def _compare(op: CompareOp) -> _Rule:
    def rule(kids: Sequence[_Part], _: _Session) -> _Part:
        kind = _alike(kids)
        orders = op not in (CompareOp.EQUAL, CompareOp.NULL_SAFE_EQUAL)
        if kind == pa.null() or (kind == pa.bool_() and orders):
            raise NotInTableError(f"a comparison of values of type {kind}")
        one, other = (kid.expression for kid in _typed(kids, kind))
        is_float = pa.types.is_floating(kind)
        return _Part(compared_values(op, one, other, is_float=is_float), pa.bool_())

    return rule


def _logic(function: str) -> _Rule:
    def rule(kids: Sequence[_Part], _: _Session) -> _Part:
        return _called(function, _typed(kids, pa.bool_()), pa.bool_())

    return rule


def _coalesce(kids: Sequence[_Part], _: _Session) -> _Part:
    kind = _alike(kids)
    return _called("coalesce", _typed(kids, kind), kind)


def _case(kids: Sequence[_Part], _: _Session) -> _Part:
    """Return ``CASE WHEN c THEN v ... ELSE e END`` as choices inside of each other."""
    pairs = [kids[n : n + 2] for n in range(0, len(kids) - 1, 2)]
    otherwise = [kids[-1]] if len(kids) % 2 else []
    kind = _alike([*(value for _, value in pairs), *otherwise])
    found = _cast(otherwise[0], kind) if otherwise else _null(kind)
    for condition, value in reversed(pairs):
        holds = call("coalesce", _cast(condition, pa.bool_()).expression, NEVER)
        found = _called("if_else", [_Part(holds, pa.bool_()), _cast(value, kind), found], kind)
    return found


def _is_null(function: str) -> _Rule:
    return lambda kids, _: _called(function, kids[:1], pa.bool_())


def _text(function: str, kind: pa.DataType | None = None, *, arity: int | None = 1) -> _Rule:
    def rule(kids: Sequence[_Part], _: _Session) -> _Part:
        if len(kids) != (arity or len(kids)):
            raise NotInTableError(f"{function} of {len(kids)} values")
        if not kids or any(kid.kind != pa.string() for kid in kids):
            raise NotInTableError(f"{function} of values that are no texts")
        return _called(function, kids, kind or pa.string())

    return rule


def _substring(kids: Sequence[_Part], _: _Session) -> _Part:
    text, *places = kids
    known = [place.constant for place in places if place.kind == pa.int32()]
    if text.kind != pa.string() or len(known) != len(places) or None in known:
        raise NotInTableError("a part of a text at places that differ from row to row")
    at, length = (None if place is None else place.value for place in known)
    if at is None or length is None:
        return _null(pa.string())
    start = at - 1 if at > 0 else at
    stop: int | None = start + max(0, length)
    if start < 0 and stop is not None and stop >= 0 and length > 0:
        stop = None
    return _called("text_part", [text], pa.string(), start, stop)


def _days(function: str) -> _Rule:
    def rule(kids: Sequence[_Part], _: _Session) -> _Part:
        date, days = kids
        if date.kind != pa.date32() or days.kind not in (pa.int8(), pa.int16(), pa.int32()):
            raise NotInTableError("days that are no whole number")
        numbers = [_cast_to(kid, pa.int32()) for kid in (date, days)]
        return _cast_to(_called(function, numbers, pa.int32()), pa.date32())

    return rule


def _of_date(function: str) -> _Rule:
    def rule(kids: Sequence[_Part], _: _Session) -> _Part:
        if kids[0].kind != pa.date32() or kids[0].constant is not None:
            raise NotInTableError(f"{function} of values that are no dates")
        return _called(function, kids[:1], pa.int32())

    return rule


def _days_between(kids: Sequence[_Part], _: _Session) -> _Part:
    if any(kid.kind != pa.date32() for kid in kids):
        raise NotInTableError("days between values that are no dates")
    return _called("subtract_checked", [_cast_to(kid, pa.int32()) for kid in kids], pa.int32())


VALUES: Mapping[str, _Rule] = {
    "Add": _arithmetic("add"),
    "Subtract": _arithmetic("subtract"),
    "Multiply": _arithmetic("multiply"),
    "UnaryMinus": _arithmetic("negate"),
    "Divide": _divide,
    "Remainder": _remainder,
    "Abs": _absolute,
    "Round": _round,
    "Greatest": _outermost("max_element_wise"),
    "Least": _outermost("min_element_wise"),
    "In": _is_in,
    "EqualTo": _compare(CompareOp.EQUAL),
    "EqualNullSafe": _compare(CompareOp.NULL_SAFE_EQUAL),
    "LessThan": _compare(CompareOp.LESS),
    "LessThanOrEqual": _compare(CompareOp.LESS_OR_EQUAL),
    "GreaterThan": _compare(CompareOp.GREATER),
    "GreaterThanOrEqual": _compare(CompareOp.GREATER_OR_EQUAL),
    "And": _logic("and_kleene"),
    "Or": _logic("or_kleene"),
    "Not": _logic("invert"),
    "IsNull": _is_null("is_null"),
    "IsNotNull": _is_null("is_valid"),
    "Coalesce": _coalesce,
    "If": _case,
    "CaseWhen": _case,
    "Concat": _text("join_texts", arity=None),
    "Upper": _text("ascii_upper"),
    "Lower": _text("ascii_lower"),
    "StringTrim": _text("trim_blanks"),
    "StringTrimLeft": _text("trim_left"),
    "StringTrimRight": _text("trim_right"),
    "Length": _text("text_length", pa.int32()),
    "Substring": _substring,
    "DateAdd": _days("add_checked"),
    "DateSub": _days("subtract_checked"),
    "DateDiff": _days_between,
    "Year": _of_date("year_of"),
    "Month": _of_date("month_of"),
    "DayOfMonth": _of_date("day_of"),
}
"""By the name of Catalyst's class; ``nvl``, ``ifnull``, ``nullif`` and ``nvl2`` are replaced by
these before. Columns, literals and casts that hold every value belong to the table, too."""
_REFUSED = frozenset({"Collate"})
