"""Statement text into a `Statement`, in two steps: the head says whether it is ours.

The head is the first words and the table that changes. Only when that table is ours does
the rest matter; a text that is none of our statements has no head at all.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from typing_extensions import assert_never

from puredelta.commands.optimize.spec import OptimizeSpec
from puredelta.commands.update_delete.spec import DeleteSpec, UpdateSpec
from puredelta.spark.session.identifiers import quote_name
from puredelta.sql.parse.merge_clauses import parse_assignments, parse_merge_spec
from puredelta.sql.parse.statement import (
    ConvertStatement,
    DeleteStatement,
    MergeStatement,
    OptimizeStatement,
    Source,
    SourceQuery,
    SourceTable,
    Statement,
    StatementKind,
    Target,
    UpdateStatement,
)
from puredelta.sql.text.cursor import Cursor
from puredelta.sql.text.expression import read_expression
from puredelta.sql.text.lexer import TokenKind
from puredelta.sql.text.syntax_error import SqlSyntaxError
from puredelta.sql.text.table_name import ComputedName, TableName, TableReference

_BEFORE_TABLE = {
    StatementKind.MERGE: ("INTO",),
    StatementKind.UPDATE: (),
    StatementKind.DELETE: ("FROM",),
    StatementKind.CONVERT: ("TO", "DELTA"),
    StatementKind.OPTIMIZE: (),
}
_FIRST_WORD = re.compile(r"\s*([A-Za-z]\w*)")
_FIRST_WORDS = frozenset({"WITH", *(kind.value for kind in StatementKind)})


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """How a statement begins, and where its text goes on."""

    kind: StatementKind
    table: TableReference
    ctes: str
    evolve_schema: bool
    rest: Cursor


def find_kind(text: str) -> StatementKind | None:
    """Tell which of our statements the text begins as, or None.

    >>> find_kind("/* nightly */ merge into delta.`/data/events` USING ...")
    <StatementKind.MERGE: 'MERGE'>
    """
    first = _FIRST_WORD.match(text)
    if first is not None and first[1].upper() not in _FIRST_WORDS:
        return None  # without a look at the rest, which may be long
    cursor = Cursor(text)
    try:
        skip_ctes(cursor)
    except SqlSyntaxError:
        return None
    return next((kind for kind in StatementKind if cursor.sees(kind.value)), None)


def parse_head(text: str) -> Head | None:
    """Read the head of a statement; None if the text does not begin as one of ours.

    Raises:
        SqlSyntaxError: it begins as one of ours and goes on as something else.
    """
    cursor = Cursor(text)
    ctes = skip_ctes(cursor)
    kind = next((kind for kind in StatementKind if cursor.accept(kind.value)), None)
    if kind is None:
        return None
    evolves = kind is StatementKind.MERGE and cursor.accept("WITH", "SCHEMA", "EVOLUTION")
    cursor.expect(*_BEFORE_TABLE[kind])
    table = _table_or_path(cursor) if kind is StatementKind.OPTIMIZE else cursor.table()
    return Head(kind=kind, table=table, ctes=ctes, evolve_schema=evolves, rest=cursor)


def parse_statement(text: str) -> Statement | None:
    """Read a whole statement; None if the text does not begin as one of ours.

    Whatever table it names: `TableName.path` tells which are Delta tables.

    Raises:
        SqlSyntaxError: it begins as one of ours and goes on as something else.
    """
    head = parse_head(text)
    return None if head is None else parse_rest(head)


def parse_rest(head: Head) -> Statement:
    """Read a statement behind its head.

    Raises:
        SqlSyntaxError: it goes on as something else.
    """
    cursor = head.rest
    match head.kind:
        case StatementKind.MERGE:
            return _merge(cursor, head)
        case StatementKind.UPDATE:
            return _update(cursor, head)
        case StatementKind.DELETE:
            return _delete(cursor, head)
        case StatementKind.CONVERT:
            return _convert(cursor, head)
        case StatementKind.OPTIMIZE:
            return _optimize(cursor, head)
        case _:
            assert_never(head.kind)


def _table_or_path(cursor: Cursor) -> TableReference:
    token = cursor.peek()
    if token is None or token.kind not in {TokenKind.STRING, TokenKind.DOUBLE_QUOTED}:
        return cursor.table()
    cursor.skip()
    return TableName(("delta", token.text[1:-1]))


def skip_ctes(cursor: Cursor) -> str:
    """Step over ``WITH [RECURSIVE] name [(columns)] [MAX RECURSION LEVEL n] [AS] (query), ...``."""
    start = cursor.position
    if not cursor.accept("WITH"):
        return ""
    cursor.accept("RECURSIVE")
    while True:
        cursor.identifier()
        while cursor.sees("(") or cursor.sees("AS") or cursor.sees("MAX"):
            if cursor.sees("("):
                cursor.group()
            elif not cursor.accept("AS"):
                cursor.expect("MAX", "RECURSION", "LEVEL")
                cursor.skip()
        if not cursor.accept(","):
            return cursor.between(start)


def _merge(cursor: Cursor, head: Head) -> MergeStatement:
    target = Target(name=head.table, alias=cursor.alias(unless="USING"))
    cursor.expect("USING")
    source = _source(cursor)
    spec = parse_merge_spec(cursor, evolve_schema=head.evolve_schema)
    return MergeStatement(target=target, source=source, spec=spec, ctes=head.ctes)


def _source(cursor: Cursor) -> Source:
    if cursor.sees("("):
        return SourceQuery(query=cursor.group(), alias=cursor.alias(unless="ON"))
    return SourceTable(name=cursor.table(), alias=cursor.alias(unless="ON"))


def _update(cursor: Cursor, head: Head) -> UpdateStatement:
    target = Target(name=head.table, alias=cursor.alias(unless="SET"))
    cursor.expect("SET")
    assignments = parse_assignments(cursor, is_end="WHERE")
    spec = UpdateSpec(assignments=assignments, condition=_where(cursor))
    return UpdateStatement(target=target, spec=spec, ctes=head.ctes)


def _delete(cursor: Cursor, head: Head) -> DeleteStatement:
    target = Target(name=head.table, alias=cursor.alias(unless="WHERE"))
    return DeleteStatement(target=target, spec=DeleteSpec(condition=_where(cursor)), ctes=head.ctes)


def _where(cursor: Cursor) -> str | None:
    condition = None
    if cursor.accept("WHERE"):
        condition = read_expression(cursor, lambda _: False)
    cursor.expect_end()
    return condition


def _convert(cursor: Cursor, head: Head) -> ConvertStatement:
    if isinstance(head.table, ComputedName) or head.ctes:
        raise Cursor(cursor.text).error(expected="CONVERT TO DELTA and a name")
    collect_stats = not cursor.accept("NO", "STATISTICS")
    partition_schema = None
    if cursor.accept("PARTITIONED", "BY"):
        partition_schema = cursor.group()
        if not partition_schema:
            raise cursor.error(expected="names and types of columns before it")
    if collect_stats and cursor.sees("NO"):
        raise cursor.error(expected="NO STATISTICS before PARTITIONED BY")
    cursor.expect_end()
    return ConvertStatement(
        identifier=quote_name(head.table.parts),
        partition_schema=partition_schema,
        collect_stats=collect_stats,
    )


def _optimize(cursor: Cursor, head: Head) -> OptimizeStatement:
    if head.ctes:
        raise Cursor(cursor.text).error(expected="OPTIMIZE")
    full = cursor.accept("FULL")
    predicates: tuple[str, ...] = ()
    if cursor.accept("WHERE"):
        predicates = (read_expression(cursor, lambda rest: rest.sees("ZORDER", "BY")),)
    columns = _z_order_columns(cursor) if cursor.accept("ZORDER", "BY") else ()
    cursor.expect_end()
    spec = OptimizeSpec(predicates=predicates, z_order_by=columns, full=full)
    return OptimizeStatement(spec=spec)


def _z_order_columns(cursor: Cursor) -> tuple[str, ...]:
    in_brackets = cursor.accept("(")
    columns = [cursor.column()]
    while cursor.accept(","):
        columns.append(cursor.column())
    if in_brackets:
        cursor.expect(")")
    return tuple(columns)
