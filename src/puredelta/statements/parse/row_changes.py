"""Parsers of MERGE, UPDATE and DELETE (M-02 to M-06).

The clauses of a MERGE are taken in the order of the text. Spark's parser, which is called as
well, demands the kinds one after the other and a condition in all but the last of a kind (M-08).
"""

from __future__ import annotations

from collections.abc import Callable

from puredelta.commands.dml.spec import (
    Assignment,
    Assignments,
    Clause,
    Delete,
    DeleteSpec,
    Insert,
    Matched,
    MergeSpec,
    NotMatched,
    NotMatchedBySource,
    Star,
    Update,
    UpdateSpec,
)
from puredelta.statements.parse.cursor import Cursor
from puredelta.statements.parse.expression_text import read_expression
from puredelta.statements.parse.statement import (
    DeleteStatement,
    MergeStatement,
    Rejected,
    Source,
    SourceQuery,
    SourceTable,
    Target,
    UpdateStatement,
    read_or_reject,
)
from puredelta.statements.parse.table_name import TableReference, read_table


def read_merge(cursor: Cursor) -> MergeStatement | Rejected:
    """Read ``MERGE [WITH SCHEMA EVOLUTION] INTO target USING source ON condition WHEN ...``."""
    cursor.expect("MERGE")
    evolves = cursor.accept("WITH", "SCHEMA", "EVOLUTION")
    cursor.expect("INTO")
    table = read_table(cursor)
    return read_or_reject(cursor, lambda rest: _merge(rest, table, evolves=evolves), table=table)


def read_update(cursor: Cursor) -> UpdateStatement | Rejected:
    """Read ``UPDATE target SET column = value, ... [WHERE condition]``."""
    cursor.expect("UPDATE")
    table = read_table(cursor)
    return read_or_reject(cursor, lambda rest: _update(rest, table), table=table)


def read_delete(cursor: Cursor) -> DeleteStatement | Rejected:
    """Read ``DELETE FROM target [WHERE condition]``."""
    cursor.expect("DELETE", "FROM")
    table = read_table(cursor)
    return read_or_reject(cursor, lambda rest: _delete(rest, table), table=table)


def _merge(cursor: Cursor, table: TableReference, *, evolves: bool) -> MergeStatement:
    target = Target(name=table, alias=cursor.alias(unless="USING"))
    cursor.expect("USING")
    source = _source(cursor)
    cursor.expect("ON")
    on = read_expression(cursor, _at_clause)
    clauses: list[Clause] = []
    while cursor.accept("WHEN"):
        clauses.append(_clause(cursor))
    spec = MergeSpec(on=on, clauses=tuple(clauses), evolve_schema=evolves)
    return MergeStatement(target=target, source=source, spec=spec)


def _source(cursor: Cursor) -> Source:
    if cursor.sees("("):
        return SourceQuery(query=cursor.group(), alias=cursor.alias(unless="ON"))
    return SourceTable(name=read_table(cursor), alias=cursor.alias(unless="ON"))


def _update(cursor: Cursor, table: TableReference) -> UpdateStatement:
    target = Target(name=table, alias=cursor.alias(unless="SET"))
    cursor.expect("SET")
    assignments = _assignments(cursor, lambda at: at.sees("WHERE"))
    spec = UpdateSpec(assignments=assignments, condition=_where(cursor))
    return UpdateStatement(target=target, spec=spec)


def _delete(cursor: Cursor, table: TableReference) -> DeleteStatement:
    target = Target(name=table, alias=cursor.alias(unless="WHERE"))
    return DeleteStatement(target=target, spec=DeleteSpec(condition=_where(cursor)))


def _where(cursor: Cursor) -> str | None:
    return read_expression(cursor, lambda _: False) if cursor.accept("WHERE") else None


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
    columns = cursor.items_in_brackets(Cursor.column, optional=False)
    cursor.expect("VALUES", "(")
    values = cursor.items(lambda at: read_expression(at, _at_comma))
    if len(values) != len(columns):
        raise cursor.error(expected=f"{len(columns)} values, as there are columns")
    cursor.expect(")")
    pairs = zip(columns, values, strict=True)
    return Insert(tuple(Assignment(column, value) for column, value in pairs))


def _assignments(cursor: Cursor, at_end: Callable[[Cursor], bool]) -> tuple[Assignment, ...]:
    def assignment(cursor: Cursor) -> Assignment:
        column = cursor.column()
        if not cursor.accept("=="):
            cursor.expect("=")
        return Assignment(column, read_expression(cursor, lambda at: _at_comma(at) or at_end(at)))

    return tuple(cursor.items(assignment))


def _at_clause(cursor: Cursor) -> bool:
    return cursor.sees("WHEN", "MATCHED") or cursor.sees("WHEN", "NOT", "MATCHED")


def _at_comma(cursor: Cursor) -> bool:
    return cursor.sees(",")
