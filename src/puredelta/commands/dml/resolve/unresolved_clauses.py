"""Unresolved expressions of a MERGE in the order of its errors, each with its scope (M-20)."""

from __future__ import annotations

from dataclasses import dataclass

from typing_extensions import assert_never

from puredelta.commands.dml.spec import (
    Clause,
    Delete,
    Matched,
    MergeSpec,
    NotMatched,
    NotMatchedBySource,
    Star,
    action_word,
)
from puredelta.spark.resolve.expressions import Request, Scope

SEARCH_CONDITION = "search condition"
"""The name of ON in messages."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClauseDraft:
    """A clause whose expressions are positions in the list of requests."""

    clause: Clause
    condition: int | None
    values: tuple[int, ...]
    """One per assignment; empty for a star and for DELETE."""

    @property
    def scope(self) -> Scope:
        """The columns in scope of the clause."""
        match self.clause:
            case Matched():
                return Scope.PAIR
            case NotMatched():
                return Scope.SOURCE
            case NotMatchedBySource():
                return Scope.TARGET
            case _:
                assert_never(self.clause)

    @property
    def condition_words(self) -> str:
        """The name of its condition in messages: ``UPDATE condition``."""
        return f"{action_word(self.clause).upper()} condition"

    @property
    def action_words(self) -> str:
        """The name of its assignments in messages: ``UPDATE clause``."""
        return f"{action_word(self.clause).upper()} clause"


@dataclass(frozen=True, slots=True, kw_only=True)
class StatementDraft:
    """A whole statement as requests; ON is request 0."""

    requests: tuple[Request, ...]
    clauses: tuple[ClauseDraft, ...]

    @property
    def values(self) -> frozenset[int]:
        """The requests that are values of assignments."""
        return frozenset().union(*(clause.values for clause in self.clauses))


def draft_statement(spec: MergeSpec) -> StatementDraft:
    """Number the expressions of a statement."""
    requests = [Request(expression=spec.on, scope=Scope.PAIR)]
    clauses: list[ClauseDraft] = []
    for clause in spec.clauses:
        empty = ClauseDraft(clause=clause, condition=None, values=())
        condition = None
        if clause.condition is not None:
            condition = len(requests)
            requests.append(Request(expression=clause.condition, scope=empty.scope))
        values: list[int] = []
        if not isinstance(clause.action, Delete) and clause.action.assignments is not Star.STAR:
            for assignment in clause.action.assignments:
                values.append(len(requests))
                requests.append(Request(expression=assignment.value, scope=empty.scope))
        clauses.append(ClauseDraft(clause=clause, condition=condition, values=tuple(values)))
    return StatementDraft(requests=tuple(requests), clauses=tuple(clauses))
