"""The part of a MERGE behind its source: ON and the WHEN clauses (M-02 to M-06).

Clauses are taken in the order of the text; that Spark's grammar wants the kinds one after
the other, and a condition in all but the last of a kind (M-08), its parser has seen to.
"""

from __future__ import annotations

from collections.abc import Callable

from puredelta.commands.merge.clauses import (
    Assignment,
    Assignments,
    Clause,
    Delete,
    Insert,
    Matched,
    MergeSpec,
    NotMatched,
    NotMatchedBySource,
    Star,
    Update,
)
from puredelta.sql.text.cursor import Cursor
from puredelta.sql.text.expression import read_expression


def parse_merge_spec(cursor: Cursor, *, evolve_schema: bool) -> MergeSpec:
    """Read ``ON condition WHEN ...`` to the end of the statement.

    Raises:
        SqlSyntaxError: a clause is none.
    """
    cursor.expect("ON")
    on = read_expression(cursor, _at_clause)
    clauses: list[Clause] = []
    while cursor.accept("WHEN"):
        clauses.append(_clause(cursor))
    cursor.expect_end()
    return MergeSpec(on=on, clauses=tuple(clauses), evolve_schema=evolve_schema)


def parse_assignments(cursor: Cursor, *, is_end: str) -> tuple[Assignment, ...]:
    """Read ``column = value, ...`` up to the keyword ``is_end`` or the end.

    Raises:
        SqlSyntaxError: an assignment is none.
    """
    return _assignments(cursor, lambda at: at.sees(is_end))


def _clause(cursor: Cursor) -> Clause:
    if cursor.accept("MATCHED"):
        condition = _condition(cursor)
        return Matched(_change(cursor), condition)
    cursor.expect("NOT", "MATCHED")
    if cursor.accept("BY", "SOURCE"):
        condition = _condition(cursor)
        return NotMatchedBySource(_change(cursor), condition)
    cursor.accept("BY", "TARGET")
    condition = _condition(cursor)
    return NotMatched(_insert(cursor), condition)


def _condition(cursor: Cursor) -> str | None:
    """Read ``[AND condition] THEN``."""
    condition = None
    if cursor.accept("AND"):
        condition = read_expression(cursor, lambda at: at.sees("THEN"))
    cursor.expect("THEN")
    return condition


def _change(cursor: Cursor) -> Update | Delete:
    if cursor.accept("DELETE"):
        return Delete()
    cursor.expect("UPDATE", "SET")
    values: Assignments = Star.STAR if cursor.accept("*") else _assignments(cursor, _at_clause)
    return Update(values)


def _insert(cursor: Cursor) -> Insert:
    cursor.expect("INSERT")
    if cursor.accept("*"):
        return Insert(Star.STAR)
    cursor.expect("(")
    columns = [cursor.column()]
    while cursor.accept(","):
        columns.append(cursor.column())
    cursor.expect(")")
    cursor.expect("VALUES", "(")
    values = [read_expression(cursor, _at_comma)]
    while cursor.accept(","):
        values.append(read_expression(cursor, _at_comma))
    if len(values) != len(columns):
        raise cursor.error(expected=f"{len(columns)} values, as there are columns")
    cursor.expect(")")
    pairs = zip(columns, values, strict=True)
    return Insert(tuple(Assignment(column, value) for column, value in pairs))


def _assignments(cursor: Cursor, at_end: Callable[[Cursor], bool]) -> tuple[Assignment, ...]:
    found: list[Assignment] = []
    while True:
        column = cursor.column()
        if not cursor.accept("=="):
            cursor.expect("=")
        value = read_expression(cursor, lambda at: _at_comma(at) or at_end(at))
        found.append(Assignment(column, value))
        if not cursor.accept(","):
            return tuple(found)


def _at_clause(cursor: Cursor) -> bool:
    return cursor.sees("WHEN", "MATCHED") or cursor.sees("WHEN", "NOT", "MATCHED")


def _at_comma(cursor: Cursor) -> bool:
    return cursor.sees(",")
