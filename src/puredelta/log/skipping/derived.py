"""Conditions on partition columns that follow from conditions on other columns.

A partition column that is computed from another column limits that column's values. The forms are
those that delta-spark knows: years to hours of a timestamp, a date, a formatted text of digits,
a truncated timestamp, the start of a text, the column itself. Any other expression derives
nothing.

The rules are delta-spark's, except for time zones: the writer's time zone is not recorded, so
bounds derived from timestamps are widened by the largest zone offset. A derived condition is true
of every row that the original condition is true of (X-70b).
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

from puredelta.protocol.schema.predicates import (
    TRUE,
    And,
    Compare,
    CompareOp,
    Const,
    IsNull,
    Not,
    OneOf,
    Or,
    Predicate,
    Ref,
    Side,
    StartsWith,
)
from puredelta.protocol.schema.sql_lexer import Token, TokenCursor, TokenKind
from puredelta.protocol.schema.traversal import find_fields
from puredelta.protocol.schema.types import (
    DATE,
    INTEGRAL,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    DataType,
    StructField,
    StructType,
)
from puredelta.protocol.table.table_config import TableConfig

PARTS = ("YEAR", "MONTH", "DAY", "HOUR")
"""Together, from the first on, they keep the order of what they are parts of."""
_PART_NAMES = {"DAYOFMONTH": "DAY", **{part: part for part in PARTS}}
_PARTS_OF_DAYS = frozenset(_PART_NAMES) - {"HOUR"}
"""Parts that a moment and its day have in common."""
_FORMATS = {"yyyy-MM": 7, "yyyy-MM-dd": 10, "yyyy-MM-dd-HH": 13}
"""Texts whose order is that of the moments, and how long they are."""
_ZONE_OFFSET_MAX = dt.timedelta(hours=18)
"""The largest offset of the writer's time zone, which is not recorded."""
_UNIT_DAYS = {
    **dict.fromkeys(("YEAR", "YYYY", "YY"), 366),
    "QUARTER": 92,
    **dict.fromkeys(("MONTH", "MM", "MON"), 31),
    "WEEK": 7,
    **dict.fromkeys(("DAY", "DD"), 1),
    **dict.fromkeys(("HOUR", "MINUTE", "SECOND", "MILLISECOND", "MICROSECOND"), 1),
}
"""Units of ``date_trunc`` and ``trunc``, and how many days are cut off at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Generation:
    """One column that is computed from another one, in a way that keeps order."""

    column: StructField
    source: tuple[str, ...]
    source_type: DataType
    low: Callable[[Any], Any]
    """The smallest value of the column in a row whose source is the value or above it."""
    high: Callable[[Any], Any]
    """The largest value of the column in a row whose source is the value or below it."""
    part: str | None = None
    """One of `PARTS`, which keeps no order by itself unless it is the first."""
    prefix_length: int | None = None
    """The column is so many first characters of a text; 0: any stretch of it, without order."""
    has_signs: bool = False
    """Texts of years with other than four digits have a sign, and stand before all others."""

    @property
    def is_exact(self) -> bool:
        """Whether a value of the source tells that of the column."""
        return self.source_type != TIMESTAMP


def find_generations(
    expressions: Mapping[str, str], schema: StructType, columns: tuple[str, ...]
) -> list[Generation]:
    """Return what is understood of the expressions of some columns."""
    found = []
    for name in columns:
        field = schema.find(name)
        if field is not None and name in expressions:
            generation = _read(expressions[name], field, schema)
            if generation is not None:
                found.append(generation)
    return found


def _read(text: str, column: StructField, schema: StructType) -> Generation | None:
    cursor = TokenCursor(text)
    call = _read_call(cursor)
    fields = find_fields(schema, call.source) if call is not None and cursor.is_done else ()
    if call is None or not fields:
        return None
    source = fields[-1].type
    found = _functions(call, source, column.type)
    if found is None:
        return None
    names = tuple(field.name for field in fields)
    return Generation(column=column, source=names, source_type=source, **found)


@dataclass(frozen=True, slots=True)
class _Call:
    """A column, or a function of one."""

    source: tuple[str, ...]
    function: str = ""
    """In upper case; "" for the column itself."""
    arguments: tuple[str | int | None, ...] = ()
    """Texts and numbers; None is the column."""


def _read_call(cursor: TokenCursor) -> _Call | None:
    """Read one call, in brackets or not; None for any other expression."""
    if cursor.accept("("):
        call = _read_call(cursor)
        return call if cursor.accept(")") else None
    return _accept_call(cursor)


def _accept_call(cursor: TokenCursor) -> _Call | None:
    if not cursor.sees("(", ahead=1):
        column = _accept_column(cursor)
        return _Call(column) if column else None
    function = cursor.word
    cursor.skip(2)
    if function == "CAST":
        column = _accept_column(cursor)
        return _Call(column, "DATE", (None,)) if cursor.accept("AS", "DATE", ")") else None
    source: tuple[str, ...] = ()
    arguments: list[str | int | None] = []
    while not arguments or cursor.accept(","):
        argument = _accept_constant(cursor)
        if argument is None:
            is_day = function in _PARTS_OF_DAYS and cursor.sees("CAST", "(")
            inner = _accept_call(cursor) if is_day or not cursor.sees("(", ahead=1) else None
            if inner is None or source:
                return None
            source = inner.source
        arguments.append(argument)
    return _Call(source, function, tuple(arguments)) if cursor.accept(")") else None


def _accept_column(cursor: TokenCursor) -> tuple[str, ...]:
    """Step over a column. Text in double quotes is none: only a session can say that it is."""
    token = cursor.peek()
    is_text = token is not None and token.kind is TokenKind.DOUBLE_QUOTED
    return () if is_text else cursor.accept_name()


def _accept_constant(cursor: TokenCursor) -> str | int | None:
    """Step over a text without escapes or a whole number."""
    token = cursor.peek()
    match token:
        case Token(kind=TokenKind.STRING | TokenKind.DOUBLE_QUOTED, text=text):
            quote, inside = text[0], text[1:-1]
            if quote not in "'\"" or "\\" in inside or quote in inside:
                return None
            cursor.skip()
            return inside
        case Token(kind=TokenKind.NUMBER, text=text) if text.isdecimal():
            cursor.skip()
            return int(text)
        case _:
            return None


def _functions(call: _Call, source: DataType, target: DataType) -> dict[str, Any] | None:
    """Return what a call makes of a source of a type; None if it keeps no order there."""
    is_time = source in (DATE, TIMESTAMP, TIMESTAMP_NTZ)
    match (call.function, *call.arguments):
        case ("DATE" | "TO_DATE", None) if is_time and target == DATE:
            return _both(source, lambda value: _moment(value).date())
        case (function, None) if function in _PART_NAMES and is_time and target in INTEGRAL:
            part = _PART_NAMES[function]
            return {
                **_both(source, lambda value: getattr(_moment(value), part.lower())),
                "part": part,
            }
        case ("DATE_FORMAT", None, str(text)) if is_time and target == STRING and text in _FORMATS:
            length = _FORMATS[text]
            return {**_both(source, lambda value: _digits(value)[:length]), "has_signs": True}
        case ("DATE_TRUNC", str(unit), None) | ("TRUNC", None, str(unit)) if is_time:
            days = _UNIT_DAYS.get(unit.upper())
            return None if days is None else _truncated(source, target, days)
        case ("SUBSTRING" | "SUBSTR", None, int(start), int(length)) if source == target == STRING:
            return _substring(start, length)
        case ("",) if source == target and (is_time or source in INTEGRAL):
            return {"low": _itself, "high": _itself}
        case ("",) if source == target == STRING:
            return {"low": _itself, "high": _itself, "prefix_length": 1 << 30}
        case _:
            return None


def _both(source: DataType, function: Callable[[Any], Any]) -> dict[str, Any]:
    """Return a function of a moment, which another time zone may have made another value."""
    if source != TIMESTAMP:
        return {"low": function, "high": function}
    return {
        "low": lambda value: function(value - _ZONE_OFFSET_MAX),
        "high": lambda value: function(value + _ZONE_OFFSET_MAX),
    }


def _truncated(source: DataType, target: DataType, days: int) -> dict[str, Any] | None:
    """A moment is cut off to one that is not later, and not earlier by more than a unit."""
    # A day more, for the moments that a change of clocks leaves out or repeats.
    length = dt.timedelta(days=days + (target != DATE))
    if target == DATE and source == DATE:
        return {"low": lambda value: value - length, "high": _itself}
    if target == source and source in (TIMESTAMP, TIMESTAMP_NTZ):
        return {"low": lambda value: value - length, "high": _itself}
    return None


def _substring(start: int, length: int) -> dict[str, Any] | None:
    if length == 0:
        return None
    begin = max(start - 1, 0)
    return {
        "low": lambda value: value[begin : begin + length],
        "high": lambda value: value[begin : begin + length],
        "prefix_length": length if begin == 0 else 0,
    }


def _itself(value: Any) -> Any:
    return value


def _moment(value: dt.date) -> dt.datetime:
    if isinstance(value, dt.datetime):
        return value.astimezone(dt.timezone.utc) if value.tzinfo else value
    return dt.datetime(value.year, value.month, value.day)  # noqa: DTZ001 - a day has no zone


def _digits(value: dt.date) -> str:
    moment = _moment(value)
    return f"{moment.year:04d}-{moment.month:02d}-{moment.day:02d}-{moment.hour:02d}"


_BELOW = (CompareOp.LESS, CompareOp.LESS_OR_EQUAL)
_ABOVE = (CompareOp.GREATER, CompareOp.GREATER_OR_EQUAL)
_NEGATED = {
    CompareOp.LESS: CompareOp.GREATER_OR_EQUAL,
    CompareOp.LESS_OR_EQUAL: CompareOp.GREATER,
    CompareOp.GREATER: CompareOp.LESS_OR_EQUAL,
    CompareOp.GREATER_OR_EQUAL: CompareOp.LESS,
}
_VALUES_MAX = 1_000
"""Longer lists derive nothing: the files' own bounds answer those."""
_FIRST_DIGIT = "0"


def derived_conditions(predicate: Predicate, config: TableConfig) -> tuple[Predicate, ...]:
    """Return conditions on partition columns that follow from one on their sources.

    Padded columns (``char(n)``) derive nothing: their values are read otherwise than stored.
    """
    columns = tuple(c for c in config.partition_columns if c not in config.padded_columns)
    if not columns or not config.generated_columns:
        return ()
    found = find_generations(config.generated_columns, config.schema, columns)
    groups: dict[tuple[str, ...], list[Generation]] = {}
    for one in found:
        if one.source[0] not in config.padded_columns:
            groups.setdefault(one.source, []).append(one)
    derived = (_derive(predicate, group) for group in groups.values())
    return tuple(one for one in derived if one != TRUE)


def _derive(predicate: Predicate, group: Sequence[Generation]) -> Predicate:
    """Return what follows for the columns of one source; TRUE is nothing."""
    match predicate:
        case And(parts):
            return _and([_derive(part, group) for part in parts])
        case Or(parts):
            some = [_derive(part, group) for part in parts]
            return TRUE if TRUE in some or not some else Or(tuple(some))
        case Not(Compare(op, left, right)) if op in _NEGATED:
            return _derive(Compare(_NEGATED[op], left, right), group)
        case IsNull(ref) if _is_source(ref, group):
            return _and([IsNull(_ref(one)) for one in group])
        case Compare(op, Ref() as ref, Const(value)) if _is_source(ref, group):
            return _compared(op, value, group)
        case OneOf(ref, values) if _is_source(ref, group) and 0 < len(values) <= _VALUES_MAX:
            some = [
                _compared(CompareOp.EQUAL, value, group) for value in values if value is not None
            ]
            return TRUE if TRUE in some else Or(tuple(some))
        case StartsWith(ref, prefix) if _is_source(ref, group):
            return _and([_prefixed(one, prefix) for one in group])
        case _:
            return TRUE


def _and(parts: Sequence[Predicate]) -> Predicate:
    some = tuple(part for part in parts if part != TRUE)
    return And(some) if some else TRUE


def _is_source(ref: Ref, group: Sequence[Generation]) -> bool:
    one = group[0]
    return ref.side is Side.TARGET and ref.path == one.source and ref.type == one.source_type


def _ref(one: Generation) -> Ref:
    return Ref(Side.TARGET, (one.column.name,), one.column.type)


def _compared(op: CompareOp, value: Any, group: Sequence[Generation]) -> Predicate:
    if value is None:
        return _derive(IsNull(_source(group)), group) if op is CompareOp.NULL_SAFE_EQUAL else TRUE
    if not _fits(value, group[0]):
        return TRUE
    try:
        alone = [_alone(op, value, one) for one in group if one.part is None]
        return _and([*alone, *_parts(op, value, [one for one in group if one.part is not None])])
    except (OverflowError, ValueError):
        return TRUE  # a moment beyond what the calendar here knows


def _source(group: Sequence[Generation]) -> Ref:
    return Ref(Side.TARGET, group[0].source, group[0].source_type)


def _fits(value: Any, one: Generation) -> bool:
    """Return whether a constant is of the source's own type."""
    kind = one.source_type
    if kind == DATE:
        return isinstance(value, dt.date) and not isinstance(value, dt.datetime)
    if kind in (TIMESTAMP, TIMESTAMP_NTZ):
        return isinstance(value, dt.datetime) and (value.tzinfo is None) == (kind == TIMESTAMP_NTZ)
    if kind == STRING:
        return isinstance(value, str)
    return type(value) is int


def _alone(op: CompareOp, value: Any, one: Generation) -> Predicate:
    """Return what follows for a column that keeps order by itself."""
    if one.prefix_length == 0:  # a stretch from the middle of a text
        return _is_text(one, one.low(value)) if _is_equality(op) else TRUE
    ref = _ref(one)
    if _is_equality(op) and one.is_exact and one.low is one.high:
        return _is_text(one, one.low(value)) if one.column.type == STRING else _equals(one, value)
    if _is_equality(op) and one.prefix_length is not None:
        return _is_text(one, one.low(value))
    parts = []
    if op not in _BELOW:
        parts.append(_from(one, ref, one.low(value)))
    if op not in _ABOVE:
        parts.append(_to(one, ref, one.high(value)))
    return _and(parts)


def _equals(one: Generation, value: Any) -> Predicate:
    return Compare(CompareOp.EQUAL, _ref(one), Const(one.low(value)))


def _is_text(one: Generation, text: str) -> Predicate:
    """An empty text in a partition column is NULL."""
    if text == "":
        return IsNull(_ref(one))
    return Compare(CompareOp.EQUAL, _ref(one), Const(text))


def _from(one: Generation, ref: Ref, low: Any) -> Predicate:
    if low == "":
        return TRUE
    at_least = Compare(CompareOp.GREATER_OR_EQUAL, ref, Const(low))
    if one.has_signs:
        return Or((at_least, Compare(CompareOp.LESS, ref, Const(_FIRST_DIGIT))))
    return at_least


def _to(one: Generation, ref: Ref, high: Any) -> Predicate:
    at_most = Compare(CompareOp.LESS_OR_EQUAL, ref, Const(high))
    return Or((at_most, IsNull(ref))) if one.prefix_length is not None else at_most


def _is_equality(op: CompareOp) -> bool:
    return op in (CompareOp.EQUAL, CompareOp.NULL_SAFE_EQUAL)


def _prefixed(one: Generation, prefix: str) -> Predicate:
    if not one.prefix_length or not prefix:
        return TRUE
    if len(prefix) >= one.prefix_length:
        return _is_text(one, one.low(prefix))
    return StartsWith(_ref(one), prefix)


# --- years, months, days and hours ------------------------------------------------------------


def _parts(op: CompareOp, value: Any, some: Sequence[Generation]) -> list[Predicate]:
    """Parts of a moment keep its order together, the longest first; each is equal by itself."""
    by_part = {one.part: one for one in some}
    ordered = [by_part[part] for part in takewhile(by_part.__contains__, PARTS)]
    found: list[Predicate] = []
    if _is_equality(op) and all(one.is_exact for one in some):
        return [_equals(one, value) for one in some]
    if op not in _BELOW and ordered:
        found.append(_after(ordered, [one.low(value) for one in ordered], CompareOp.GREATER))
    if op not in _ABOVE and ordered:
        found.append(_after(ordered, [one.high(value) for one in ordered], CompareOp.LESS))
    return found


def _after(ordered: Sequence[Generation], values: Sequence[Any], strict: CompareOp) -> Predicate:
    """Return that the parts are, in their order, at or beyond some values."""
    first, value = _ref(ordered[0]), Const(values[0])
    if len(ordered) == 1:
        loose = {
            CompareOp.GREATER: CompareOp.GREATER_OR_EQUAL,
            CompareOp.LESS: CompareOp.LESS_OR_EQUAL,
        }[strict]
        return Compare(loose, first, value)
    rest = _after(ordered[1:], values[1:], strict)
    same = Compare(CompareOp.EQUAL, first, value)
    return Or((Compare(strict, first, value), And((same, rest))))
