"""Assignments bound to columns: keys found in the target, stars expanded (M-21, M-25, M-40)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from puredelta.commands.dml.resolve.columns import (
    SourceNames,
    TargetField,
    TargetNames,
)
from puredelta.commands.dml.resolve.drafts import SEARCH_CONDITION, ClauseDraft, StatementDraft
from puredelta.commands.dml.resolve.errors import (
    aggregate_error,
    ambiguous,
    name_error,
    unresolved,
)
from puredelta.commands.dml.spec.merge import Delete, NotMatchedBySource, Star
from puredelta.errors import InvalidRequestError
from puredelta.spark.resolve.expressions import ResolutionError
from puredelta.spark.resolve.frames import Frames, Scope, SourceColumn
from puredelta.spark.session.identifiers import display_name
from puredelta.spark.session.types import from_spark_type


@dataclass(frozen=True, slots=True)
class BoundAssignment:
    """A column of the target and where its value comes from."""

    path: TargetField
    value: int | SourceColumn
    """Which request, or the source column a star found."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StatementBinder:
    """Walks a statement in the order its errors are reported."""

    frames: Frames
    names: TargetNames
    new_names: SourceNames | None
    """The columns a schema evolution may take over; ``None`` without one."""
    errors: Mapping[int, ResolutionError]
    """By position of the request."""

    def bind(self, drafted: StatementDraft) -> tuple[tuple[BoundAssignment, ...], ...]:
        """Return the assignments of every clause; nothing is left to resolve afterwards.

        Raises:
            InvalidRequestError: a name that does not exist or is not in scope, an aggregate.
        """
        self._require_names(0, SEARCH_CONDITION, Scope.PAIR)
        bound = tuple(self._clause(clause) for clause in drafted.clauses)
        self._require_no_aggregates(drafted)
        return bound

    def _clause(self, clause: ClauseDraft) -> tuple[BoundAssignment, ...]:
        if clause.condition is not None:
            self._require_names(clause.condition, clause.condition_words, clause.scope)
        match clause.clause.action:
            case Delete():
                return ()
            case action if action.assignments is Star.STAR:
                if self.new_names is None:
                    return self._star(clause.action_words)
                return tuple(_taken_over(c) for c in self.frames.source_columns)
            case action:
                bound: list[BoundAssignment] = []
                for assignment, value in zip(action.assignments, clause.values, strict=True):
                    path = self._assigned(assignment.column, clause)
                    self._require_names(value, clause.action_words, clause.scope)
                    bound.append(BoundAssignment(path, value))
                return tuple(bound)

    def _assigned(self, column: str, clause: ClauseDraft) -> TargetField:
        """Find a column of the target, or the source column that becomes one (M-46, M-47)."""
        words = clause.action_words
        if self.new_names is None or isinstance(clause.clause, NotMatchedBySource):
            return self.names.find(column, clause=words)
        try:
            return self.names.find(column, clause=words)
        except InvalidRequestError:
            return self.new_names.find(column, clause=words)

    def _star(self, words: str) -> tuple[BoundAssignment, ...]:
        """Find every column of the target in the source by name; others are ignored (M-40)."""
        bound: list[BoundAssignment] = []
        for field in self.names.schema.fields:
            found = [c for c in self.frames.source_columns if self._is_same(c.name, field.name)]
            if not found:
                raise unresolved(
                    display_name((field.name,)),
                    clause=words,
                    columns=self.frames.displayed(Scope.SOURCE),
                )
            if len(found) > 1:
                shown = [self.frames.displayed(Scope.SOURCE)[c.ordinal] for c in found]
                raise ambiguous(field.name, could_be=shown)
            path = TargetField(names=(field.name,), written=(field.name,), type=field.type)
            bound.append(BoundAssignment(path, found[0]))
        return tuple(bound)

    def _is_same(self, one: str, other: str) -> bool:
        return one == other if self.names.case_sensitive else one.lower() == other.lower()

    def _require_names(self, position: int, words: str, scope: Scope) -> None:
        found = self.errors.get(position)
        if found is None:
            return
        error = name_error(found, clause=words, columns=self.frames.displayed(scope))
        if error is not None:
            raise error

    def _require_no_aggregates(self, drafted: StatementDraft) -> None:
        places = {0: (SEARCH_CONDITION, True)}
        for clause in drafted.clauses:
            if clause.condition is not None:
                places[clause.condition] = (clause.condition_words, True)
            places |= dict.fromkeys(clause.values, (clause.action_words, False))
        for position, error in sorted(self.errors.items()):
            words, is_condition = places[position]
            raise aggregate_error(error, words=words, is_condition=is_condition)


def _taken_over(column: SourceColumn) -> BoundAssignment:
    """A star that evolves the schema means every column of the source (M-40, M-41)."""
    path = TargetField(
        names=(column.name,), written=(column.name,), type=from_spark_type(column.type)
    )
    return BoundAssignment(path, column)
