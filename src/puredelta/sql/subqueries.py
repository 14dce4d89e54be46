"""Subqueries in the expressions of a statement, made to stand alone.

Expressions are resolved one by one, without the statement around them. So the common table
expressions of the statement go into each subquery, and ``delta.`/path` `` there becomes a
view, as in the source of a MERGE.
"""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql import SparkSession

from puredelta.commands.merge.clauses import Assignment, Expression
from puredelta.commands.update_delete.spec import RowSpec
from puredelta.sql.cursor import Cursor
from puredelta.sql.paths import with_views
from puredelta.sql.statement import DeleteStatement, UpdateStatement
from puredelta.sql.views import TemporaryViews

_QUERY_WORDS = ("SELECT", "WITH", "FROM", "VALUES", "TABLE")


def with_subqueries(
    spark: SparkSession, statement: UpdateStatement | DeleteStatement, views: TemporaryViews
) -> RowSpec:
    """Return what the statement asks for, its subqueries made to stand alone. Runs no job."""
    ctes = with_views(spark, statement.ctes, views)

    def alone(expression: Expression) -> Expression:
        return _alone(spark, expression, ctes, views) if isinstance(expression, str) else expression

    condition = statement.spec.condition
    condition = None if condition is None else alone(condition)
    if isinstance(statement, DeleteStatement):
        return replace(statement.spec, condition=condition)
    assignments = tuple(Assignment(a.column, alone(a.value)) for a in statement.spec.assignments)
    return replace(statement.spec, assignments=assignments, condition=condition)


def _alone(spark: SparkSession, text: str, ctes: str, views: TemporaryViews) -> str:
    """Return an expression with its outermost subqueries rewritten; other text stays."""
    cursor = Cursor(text)
    pieces: list[str] = []
    at = 0
    while (token := cursor.peek()) is not None:
        if not any(cursor.sees("(", word) for word in _QUERY_WORDS):
            cursor.skip()
            continue
        query = with_views(spark, cursor.group(), views)
        pieces += [text[at : token.start], f"({joined(ctes, query)})"]
        at = cursor.offset
    return "".join([*pieces, text[at:]])


def joined(ctes: str, query: str) -> str:
    """Put common table expressions before a query, which may have its own.

    >>> joined("WITH a AS (SELECT 1)", "WITH b AS (SELECT 2) SELECT * FROM a, b")
    'WITH a AS (SELECT 1), b AS (SELECT 2) SELECT * FROM a, b'
    """
    cursor = Cursor(query)
    if not ctes or not cursor.accept("WITH"):
        return f"{ctes} {query}" if ctes else query
    return f"{ctes},{query[cursor.offset :]}"
