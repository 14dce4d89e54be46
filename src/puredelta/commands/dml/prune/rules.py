"""What target rows must satisfy to matter, as predicates that files can be pruned by. Pure.

A file that is pruned wrongly keeps its old rows (M-82), so whatever is unknown is TRUE.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from puredelta.commands.dml.resolve.statement import (
    EquiPair,
    NotMatchedBySourceClause,
    ResolvedStatement,
)
from puredelta.commands.dml.source.staged_source import SourceProfile
from puredelta.protocol.schema.types import (
    DOUBLE,
    FLOAT,
    INTEGRAL,
    DataType,
    DecimalType,
    PrimitiveType,
)
from puredelta.protocol.table.stats import LeafStatistics
from puredelta.protocol.values.predicates import (
    FALSE,
    TRUE,
    And,
    Compare,
    CompareOp,
    Const,
    IsNull,
    OneOf,
    Or,
    Predicate,
)

_NEVER_PRUNED = frozenset({FLOAT, DOUBLE})
"""NaN equals NaN in Spark and lies outside the bounds that writers leave."""


class Rule(Enum):
    """Why a file need not be searched for matches."""

    ON_TARGET = "conjuncts of ON over target columns"
    SOURCE_KEYS = "keys of the source"
    MATCHED_CONDITIONS = "conditions of all MATCHED clauses"


def match_rules(statement: ResolvedStatement, source: SourceProfile) -> Mapping[Rule, Predicate]:
    """Return what a row must satisfy to have a match that matters, in the order of application."""
    return {
        Rule.ON_TARGET: And(statement.on.parts.target_only),
        Rule.SOURCE_KEYS: _all_of([key_predicate(p, source) for p in statement.on.parts.pairs]),
        Rule.MATCHED_CONDITIONS: _matched_predicate(statement),
    }


def read_predicate(statement: ResolvedStatement, source: SourceProfile) -> Predicate:
    """Return a predicate that every target row satisfies on which the result depends."""
    by_source = by_source_predicate(statement.not_matched_by_source)
    if source.num_rows == 0:
        return by_source
    matched = _all_of(list(match_rules(statement, source).values()))
    if by_source == FALSE:
        return matched
    return TRUE if TRUE in (matched, by_source) else Or((matched, by_source))


def _matched_predicate(statement: ResolvedStatement) -> Predicate:
    """M-80: where only MATCHED clauses act, a row none of them can want need not be found."""
    if statement.not_matched or statement.not_matched_by_source:
        return TRUE
    parts = [And(c.condition.parts.target_only) if c.condition else TRUE for c in statement.matched]
    return TRUE if TRUE in parts else Or(tuple(parts))


def by_source_predicate(clauses: tuple[NotMatchedBySourceClause, ...]) -> Predicate:
    """Return what a row must satisfy for any of these clauses to fire (W-2)."""
    parts = [And(c.condition.parts.target_only) if c.condition else TRUE for c in clauses]
    return TRUE if TRUE in parts else Or(tuple(parts))


def key_predicate(pair: EquiPair, source: SourceProfile) -> Predicate:
    """Return what a target row must satisfy to equal any key of the source (W-1).

    Only where both sides are of one kind, so that comparing needs no cast.
    """
    path = pair.source.path
    leaf = source.bounds.get(path)
    if leaf is None or not _comparable(pair.target.type, pair.source.type):
        return TRUE
    values = _values_predicate(pair, leaf, source)
    if pair.null_safe and values != TRUE and leaf.null_count != 0:
        return Or((IsNull(pair.target), values))
    return values


def _values_predicate(pair: EquiPair, leaf: LeafStatistics, source: SourceProfile) -> Predicate:
    if leaf.null_count == source.num_rows:
        return FALSE
    if (values := source.distinct.get(pair.source.path)) is not None:
        return OneOf(pair.target, values) if values else FALSE
    bounds: list[Predicate] = []
    if leaf.minimum is not None:
        bounds.append(Compare(CompareOp.GREATER_OR_EQUAL, pair.target, Const(leaf.minimum)))
    if leaf.maximum is not None:
        bounds.append(Compare(CompareOp.LESS_OR_EQUAL, pair.target, Const(leaf.maximum)))
    return And(tuple(bounds))


def _comparable(target: DataType | None, source: DataType | None) -> bool:
    if target in INTEGRAL and source in INTEGRAL:
        return True
    return (
        target == source
        and isinstance(target, PrimitiveType | DecimalType)
        and target not in _NEVER_PRUNED
    )


def _all_of(parts: list[Predicate]) -> Predicate:
    needed = tuple(part for part in parts if part != TRUE)
    return needed[0] if len(needed) == 1 else And(needed)
