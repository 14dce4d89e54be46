"""Conditions split by the sides that they read: pruning the target, the source, or joining both."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from puredelta.commands.dml.resolve.resolved_statement import (
    ComputedPair,
    ConditionParts,
    EquiPair,
    RangePair,
    ResolvedCondition,
    ResolvedStatement,
    StagedValue,
)
from puredelta.protocol.schema.predicates import (
    And,
    Compare,
    CompareOp,
    Opaque,
    Predicate,
    Ref,
    Side,
    conjuncts,
    references,
)
from puredelta.protocol.schema.types import (
    DATE,
    INTEGRAL,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    DataType,
    DecimalType,
)
from puredelta.spark.resolve.expressions import ConditionPart, ResolvedExpression, SourceValue
from puredelta.spark.resolve.predicate_from_json import attribute_ids, comparable_type
from puredelta.spark.session.names import staged_value_name

_ORDERED = (DATE, TIMESTAMP, TIMESTAMP_NTZ)
_SHORT_DIGITS = 18
_LOWER = (CompareOp.GREATER, CompareOp.GREATER_OR_EQUAL)
_UPPER = (CompareOp.LESS, CompareOp.LESS_OR_EQUAL)
_OPEN = (CompareOp.GREATER, CompareOp.LESS)
_EQUALITIES = (CompareOp.EQUAL, CompareOp.NULL_SAFE_EQUAL)


def as_condition(resolved: ResolvedExpression) -> ResolvedCondition:
    """Return an expression as the condition of a clause; the history shows the user's text."""
    given = resolved.request.expression
    return ResolvedCondition(
        column=resolved.column,
        predicate=resolved.predicate,
        parts=split_condition(resolved.predicate),
        sql=given.strip() if isinstance(given, str) else resolved.sql,
        target_columns=resolved.target_columns,
        source_columns=resolved.source_columns,
        conjuncts=resolved.parts,
        tree=resolved.tree,
    )


def with_staged_values(
    statement: ResolvedStatement,
) -> tuple[ResolvedStatement, tuple[StagedValue, ...]]:
    """Return the statement with columns of the staged rows in the place of what its ON and MATCHED
    conditions make of source columns, and these columns; the statement itself if there are none.

    Conditions are known by other predicates; their Columns stay as they are.
    """
    values: list[StagedValue] = []

    def known(condition: ResolvedCondition) -> ResolvedCondition:
        computed: list[ComputedPair] = []
        parts = [_named(part, values, computed) for part in condition.conjuncts()]
        if not parts:
            return condition
        predicate = And(tuple(parts))
        return replace(
            condition,
            predicate=predicate,
            parts=split_condition(predicate),
            computed=tuple(computed),
        )

    on = known(statement.on)
    matched = tuple(
        clause if clause.condition is None else replace(clause, condition=known(clause.condition))
        for clause in statement.matched
    )
    if not values:
        return statement, ()
    return replace(statement, on=on, matched=matched), tuple(values)


def _named(
    part: ConditionPart, values: list[StagedValue], computed: list[ComputedPair]
) -> Predicate:
    """Return a conjunct; a value of the source gets a column."""
    if not isinstance(part, SourceValue):
        return part
    staged = staged_value_name(len(values))
    values.append(StagedValue(staged=staged, value=part))
    ref = Ref(Side.SOURCE, (staged,), comparable_type(part.type))
    if part.compared is None:
        return ref
    target, op = part.compared
    if isinstance(target, Ref):
        return Compare(op, target, ref)
    ids = attribute_ids(list(target.nodes))
    whole = Opaque(frozenset({ref, *(target.columns[i].ref() for i in ids)}))
    null_safe = op is CompareOp.NULL_SAFE_EQUAL
    pair = ComputedPair(target=target, source=ref, null_safe=null_safe, conjunct=whole)
    computed.append(pair)
    return whole


def split_condition(predicate: Predicate) -> ConditionParts:
    """Sort the conjuncts of a condition by the sides they use."""
    pairs: list[EquiPair] = []
    target_only: list[Predicate] = []
    source_only: list[Predicate] = []
    other: list[Predicate] = []
    for conjunct in conjuncts(predicate):
        pair = _equi_pair(conjunct)
        sides = _sides(references(conjunct))
        if pair is not None:
            pairs.append(pair)
        elif sides == {Side.SOURCE}:
            source_only.append(conjunct)
        elif Side.SOURCE in sides:
            other.append(conjunct)
        else:
            target_only.append(conjunct)
    return ConditionParts(
        pairs=tuple(pairs),
        target_only=tuple(target_only),
        source_only=tuple(source_only),
        other=tuple(other),
    )


def _equi_pair(conjunct: Predicate) -> EquiPair | None:
    match conjunct:
        case Compare(op, Ref() as one, Ref() as two) if op in _EQUALITIES:
            null_safe = op is CompareOp.NULL_SAFE_EQUAL
            if (one.side, two.side) == (Side.TARGET, Side.SOURCE):
                return EquiPair(target=one, source=two, null_safe=null_safe)
            if (one.side, two.side) == (Side.SOURCE, Side.TARGET):
                return EquiPair(target=two, source=one, null_safe=null_safe)
    return None


def _sides(refs: Iterable[Ref]) -> set[Side]:
    return {ref.side for ref in refs}


def range_pair(parts: ConditionParts) -> tuple[RangePair, tuple[Predicate, ...]] | None:
    """Return the range that finds matches where no equality does, and what else ON asks for.

    ``None``: there are equalities, or no inequality of a column of each side whose values are
    whole numbers, dates, timestamps or short decimals of one type. A range with both bounds is
    preferred.
    """
    if parts.pairs:
        return None
    found: dict[tuple[str, ...], dict[bool, tuple[int, CompareOp, Ref, Ref]]] = {}
    for number, conjunct in enumerate(parts.other):
        if (bound := _bound(conjunct)) is not None:
            op, target, _ = bound
            found.setdefault(target.path, {}).setdefault(op in _LOWER, (number, *bound))
    if not found:
        return None
    bounds = max(found.values(), key=len)
    used = {number for number, *_ in bounds.values()}
    rest = tuple(one for number, one in enumerate(parts.other) if number not in used)
    low, high = bounds.get(True), bounds.get(False)
    ((_, _, target, _), *_) = bounds.values()
    pair = RangePair(
        target=target,
        low=None if low is None else low[3],
        high=None if high is None else high[3],
        low_open=low is not None and low[1] in _OPEN,
        high_open=high is not None and high[1] in _OPEN,
    )
    return pair, rest


def _bound(conjunct: Predicate) -> tuple[CompareOp, Ref, Ref] | None:
    """Return ``target op source`` where a conjunct is an inequality that ranges are made of."""
    match conjunct:
        case Compare(op, Ref() as one, Ref() as two) if op in (*_LOWER, *_UPPER):
            if (one.side, two.side) == (Side.SOURCE, Side.TARGET):
                op, one, two = op.flipped, two, one
            if (one.side, two.side) != (Side.TARGET, Side.SOURCE):
                return None
            is_plain = len(one.path) == len(two.path) == 1
            return (op, one, two) if is_plain and _is_ordered(one.type, two.type) else None
    return None


def _is_ordered(target: DataType | None, source: DataType | None) -> bool:
    """Tell whether values are compared as whole numbers."""
    if target in INTEGRAL and source in INTEGRAL:
        return True
    if isinstance(target, DecimalType):
        return target == source and target.precision <= _SHORT_DIGITS
    return target == source and target in _ORDERED
