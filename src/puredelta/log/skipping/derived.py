"""What a condition on a column says of the partition columns that are computed from it.

The rules of delta-spark, but for time zones: a moment was made a day in the zone of whoever wrote
it, which nobody knows any more, so bounds of moments reach a little further. What is derived
follows from the condition: it is true of every row that the condition is true of (X-70b).
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from itertools import takewhile
from typing import Any

from puredelta.log.skipping.generation import PARTS, Generation, find_generations
from puredelta.protocol.schema.types import DATE, STRING, TIMESTAMP, TIMESTAMP_NTZ
from puredelta.protocol.table.table_config import TableConfig
from puredelta.protocol.values.predicates import (
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
