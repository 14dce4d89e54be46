"""Subqueries in the expressions of a statement, made to stand alone.

Expressions are resolved one by one, without the statement around them. So the common table
expressions of the statement go into each subquery, and ``delta.`/path` `` there becomes a
view, as in the source of a MERGE.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property

from pyspark.sql import SparkSession
from typing_extensions import assert_never

from puredelta.commands.dml.spec.merge import (
    Assignment,
    Assignments,
    Clause,
    Delete,
    Expression,
    Insert,
    Matched,
    MergeSpec,
    NotMatched,
    NotMatchedBySource,
    Star,
    Update,
)
from puredelta.commands.dml.spec.update_delete import DeleteSpec, RowSpec, UpdateSpec
from puredelta.sql.relations.query_tables import with_views
from puredelta.sql.relations.views import TemporaryViews
from puredelta.sql.text.cursor import Cursor, replaced

_QUERY_WORDS = ("SELECT", "WITH", "FROM", "VALUES", "TABLE")


class Subqueries:
    """Rewrites the subqueries of one statement; runs no job.

    ``ctes`` are the statement's common table expressions.
    """

    def __init__(self, spark: SparkSession, ctes: str, views: TemporaryViews) -> None:
        self._spark = spark
        self._written_ctes = ctes
        self._views = views

    def in_rows(self, spec: RowSpec) -> RowSpec:
        """Return an UPDATE or a DELETE whose subqueries stand alone."""
        condition = self._condition(spec.condition)
        if isinstance(spec, DeleteSpec):
            return DeleteSpec(condition=condition)
        return UpdateSpec(assignments=self._assignments(spec.assignments), condition=condition)

    def in_merge(self, spec: MergeSpec) -> MergeSpec:
        """Return a MERGE whose subqueries stand alone."""
        clauses = tuple(self._clause(clause) for clause in spec.clauses)
        return replace(spec, on=self.alone(spec.on), clauses=clauses)

    def _clause(self, clause: Clause) -> Clause:
        condition = self._condition(clause.condition)
        match clause:
            case Matched():
                return Matched(self._change(clause.action), condition)
            case NotMatchedBySource():
                return NotMatchedBySource(self._change(clause.action), condition)
            case NotMatched():
                return NotMatched(Insert(self._assigned(clause.action.assignments)), condition)
            case _:
                assert_never(clause)

    def _change(self, action: Update | Delete) -> Update | Delete:
        return action if isinstance(action, Delete) else Update(self._assigned(action.assignments))

    def _assigned(self, assignments: Assignments) -> Assignments:
        return assignments if assignments is Star.STAR else self._assignments(assignments)

    def _condition(self, condition: Expression | None) -> Expression | None:
        return None if condition is None else self.alone(condition)

    def _assignments(self, assignments: tuple[Assignment, ...]) -> tuple[Assignment, ...]:
        return tuple(Assignment(a.column, self.alone(a.value)) for a in assignments)

    @cached_property
    def _ctes(self) -> str:
        return with_views(self._spark, self._written_ctes, self._views)

    def alone(self, expression: Expression) -> Expression:
        """Return an expression with its outermost subqueries rewritten; other text stays."""
        if not isinstance(expression, str):
            return expression
        return replaced(expression, self._subqueries(expression))

    def _subqueries(self, expression: str) -> Iterator[tuple[int, int, str]]:
        cursor = Cursor(expression)
        while not cursor.is_done:
            start = cursor.start
            if any(cursor.sees("(", word) for word in _QUERY_WORDS):
                query = with_views(self._spark, cursor.group(), self._views)
                yield start, cursor.end, f"({joined(self._ctes, query)})"
            else:
                cursor.skip()


def joined(ctes: str, query: str) -> str:
    """Put common table expressions before a query, which may have its own.

    >>> joined("WITH a AS (SELECT 1)", "WITH b AS (SELECT 2) SELECT * FROM a, b")
    'WITH a AS (SELECT 1), b AS (SELECT 2) SELECT * FROM a, b'
    """
    cursor = Cursor(query)
    if not ctes or not cursor.accept("WITH"):
        return f"{ctes} {query}" if ctes else query
    return f"{ctes},{query[cursor.end :]}"
