"""Conditions split by the sides that they read: pruning the target, the source, or joining both."""

from __future__ import annotations

from collections.abc import Iterable

from puredelta.commands.dml.resolve.resolved_statement import (
    ConditionParts,
    EquiPair,
    ResolvedCondition,
)
from puredelta.protocol.schema.predicates import (
    Compare,
    CompareOp,
    Predicate,
    Ref,
    Side,
    conjuncts,
    references,
)
from puredelta.spark.resolve.expressions import ResolvedExpression

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
    )


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
