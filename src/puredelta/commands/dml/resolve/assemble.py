"""Resolved expressions put where positions stand for them: the clauses of a MERGE."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from typing_extensions import assert_never

from puredelta.commands.dml.resolve.bind import BoundAssignment
from puredelta.commands.dml.resolve.columns import (
    require_insertable,
    require_no_conflict,
    require_no_explicit_identity,
    require_no_identity_update,
)
from puredelta.commands.dml.resolve.conditions import as_condition
from puredelta.commands.dml.resolve.drafts import ClauseDraft
from puredelta.commands.dml.resolve.errors import require_merge_condition
from puredelta.commands.dml.resolve.statement import (
    MatchedClause,
    NotMatchedBySourceClause,
    NotMatchedClause,
    ResolvedClause,
    ResolvedCondition,
    ResolvedDelete,
    ResolvedUpdate,
)
from puredelta.commands.dml.resolve.values import AssignedValue, RowBuilder
from puredelta.commands.dml.spec.merge import (
    Clause,
    Delete,
    Matched,
    NotMatched,
    NotMatchedBySource,
    Update,
)
from puredelta.spark.resolve.expressions import ResolvedExpression
from puredelta.spark.resolve.frames import Frames, Scope, SourceColumn
from puredelta.spark.values.store_assignment import Value


@dataclass(frozen=True, slots=True, kw_only=True)
class ClauseAssembler:
    """Makes resolved clauses of numbered ones."""

    frames: Frames
    expressions: Sequence[ResolvedExpression]
    keywords: frozenset[int]
    """Positions at which DEFAULT stands for a value."""
    rows: RowBuilder

    def clauses(
        self, drafts: Sequence[ClauseDraft], bound: Sequence[Sequence[BoundAssignment]]
    ) -> tuple[ResolvedClause, ...]:
        """Return the clauses: all conditions are checked before any assignment."""
        conditions = [
            None if d.condition is None else self.condition(d.condition, d.condition_words)
            for d in drafts
        ]
        for d, assigned in zip(drafts, bound, strict=True):
            self._require_consistent(d.clause, assigned)
        return tuple(
            self._clause(d.clause, condition, assigned)
            for d, condition, assigned in zip(drafts, conditions, bound, strict=True)
        )

    def condition(self, position: int, words: str) -> ResolvedCondition:
        """Return the condition of a clause, or ON."""
        resolved = self.expressions[position]
        require_merge_condition(resolved, words=words)
        return as_condition(resolved)

    def _clause(
        self,
        clause: Clause,
        condition: ResolvedCondition | None,
        bound: Sequence[BoundAssignment],
    ) -> ResolvedClause:
        match clause:
            case Matched():
                return MatchedClause(action=self._change(clause.action, bound), condition=condition)
            case NotMatchedBySource():
                return NotMatchedBySourceClause(
                    action=self._change(clause.action, bound), condition=condition
                )
            case NotMatched():
                row = self.rows.insert(self._assigned(bound))
                return NotMatchedClause(action=row, condition=condition)
            case _:
                assert_never(clause)

    def _change(
        self, action: Update | Delete, bound: Sequence[BoundAssignment]
    ) -> ResolvedUpdate | ResolvedDelete:
        if isinstance(action, Delete):
            return ResolvedDelete()
        return self.rows.update(self._assigned(bound))

    def _assigned(self, bound: Sequence[BoundAssignment]) -> list[AssignedValue]:
        values = (self._value(b) for b in bound)
        return [value for value in values if value is not None]

    def _require_consistent(self, clause: Clause, bound: Sequence[BoundAssignment]) -> None:
        identities = self.rows.config.identity_columns
        if isinstance(clause, NotMatched):
            given = [b.path for b in bound if b.value not in self.keywords]
            require_no_explicit_identity(given, identities)
            require_insertable(
                [b.path for b in bound],
                two_spellings=not (identities or self.rows.config.generated_columns),
            )
        else:
            require_no_identity_update([b.path for b in bound], identities)
            require_no_conflict([b.path for b in bound])

    def _value(self, bound: BoundAssignment) -> AssignedValue | None:
        if bound.value in self.keywords:
            return self.rows.default(bound.path)
        if isinstance(bound.value, SourceColumn):
            found = bound.value
            return AssignedValue(
                path=bound.path,
                value=Value(
                    column=self.frames.source_column(found.staged),
                    type=found.type,
                    sql=lambda: self.frames.displayed(Scope.SOURCE)[found.ordinal],
                ),
                target_columns=frozenset(),
                source_columns=frozenset({found.staged}),
                keeps_fields=self.rows.assigner.fills_missing,
            )
        resolved = self.expressions[bound.value]
        return AssignedValue(
            path=bound.path,
            value=Value(column=resolved.column, type=resolved.type, sql=resolved.sql),
            target_columns=resolved.target_columns,
            source_columns=resolved.source_columns,
        )
