"""Statement text into a `Statement`: the one entry to all of SQL.

Parsing needs no session. Text of other statements is None. Text that begins as a statement on Delta
tables but is wrong becomes a value, too (`Rejected`), because the table decides whose error it is.

A text with several statements, such as a file, is split at semicolons as in Spark's shell. A
semicolon does not end a statement in text, in a name, in a comment (also nested ones), or between
BEGIN and END of a script.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

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
from puredelta.protocol.schema.sql_lexer import Token, TokenKind, keywords, read_tokens
from puredelta.statements.parse.cursor import Cursor, SqlSyntaxError
from puredelta.statements.parse.definitions import read_cache, read_insert
from puredelta.statements.parse.expression_text import read_expression
from puredelta.statements.parse.maintenance import (
    read_convert,
    read_generate,
    read_optimize,
    read_reorg,
    read_restore,
    read_truncate,
    read_vacuum,
)
from puredelta.statements.parse.namespaces import (
    read_alter_any,
    read_create_any,
    read_describe_any,
    read_drop,
    read_set,
    read_show_any,
    read_use,
)
from puredelta.statements.parse.statement import (
    DeleteStatement,
    Explained,
    ExplainFormat,
    ExplainStatement,
    MergeStatement,
    ReadStatement,
    Rejected,
    RowStatement,
    Source,
    SourceQuery,
    SourceTable,
    SparkParsedStatement,
    Statement,
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


_Reader: TypeAlias = Callable[[Cursor], Statement | None]

_FIRST_WORD = re.compile(r"\s*([A-Za-z]\w*)")
_OF_SPARK: Mapping[str, _Reader] = {
    "ALTER": read_alter_any,
    "CACHE": read_cache,
    "COMMENT": read_alter_any,
    "CREATE": read_create_any,
    "DELETE": read_delete,
    "DESC": read_describe_any,
    "DESCRIBE": read_describe_any,
    "DROP": read_drop,
    "FROM": read_insert,
    "INSERT": read_insert,
    "MERGE": read_merge,
    "REPLACE": read_create_any,
    "SET": read_set,
    "SHOW": read_show_any,
    "TRUNCATE": read_truncate,
    "UNCACHE": read_cache,
    "UPDATE": read_update,
    "USE": read_use,
}
"""By the first word: statements that Spark has as well, with Spark's own errors."""
_OF_DELTA: Mapping[str, _Reader] = {
    "CONVERT": read_convert,
    "GENERATE": read_generate,
    "OPTIMIZE": read_optimize,
    "REORG": read_reorg,
    "RESTORE": read_restore,
    "VACUUM": read_vacuum,
}
"""By the first word: statements unknown to Spark, read from the second word on."""
_FIRST_WORDS = frozenset({"EXPLAIN", "WITH", *_OF_SPARK, *_OF_DELTA})


def parse(text: str) -> ReadStatement | None:
    """Read a statement; None if the text does not begin as one on Delta tables.

    The text alone does not tell which tables are Delta tables. It may still contain ``{name}``
    fields and parameters, as far as their values do not decide the kind of statement.

    >>> parse("/* nightly */ vacuum delta.`/data/events` dry run").dry_run
    True
    """
    first = _FIRST_WORD.match(text)
    if first is not None and first[1].upper() not in _FIRST_WORDS:
        return None  # without reading the rest, which may be long
    cursor = Cursor(text)
    if cursor.sees("EXPLAIN"):
        return _read_explain(cursor)
    try:
        ctes = _skip_ctes(cursor)
    except SqlSyntaxError:
        return None
    word = cursor.word
    if word in _OF_DELTA:
        if ctes:
            return Rejected(error=Cursor(text).error(expected=word), known_to_spark=False)
        cursor.skip()
        return read_or_reject(cursor, _OF_DELTA[word], known_to_spark=False)
    if word not in _OF_SPARK:
        return None
    try:
        statement = _OF_SPARK[word](cursor)
    except SqlSyntaxError as error:
        return Rejected(error=error)
    return _after_ctes(statement, ctes) if ctes else statement


def _read_explain(cursor: Cursor) -> ExplainStatement | Rejected | None:
    """Read ``EXPLAIN [format] statement``; None for a statement that Spark explains."""
    cursor.expect("EXPLAIN")
    chosen = ExplainFormat.SIMPLE
    for form in ExplainFormat:
        if form.value and cursor.accept(form.value):
            chosen = form
            break
    text = cursor.text[cursor.start :]
    statement = None if cursor.sees("EXPLAIN") else parse(text)
    if isinstance(statement, Rejected):
        return statement
    if not isinstance(statement, Explained):
        return None
    return ExplainStatement(statement=statement, format=chosen, text=text)


def _skip_ctes(cursor: Cursor) -> str:
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


def _after_ctes(statement: Statement | None, ctes: str) -> Statement | None:
    """Return a statement after common table expressions; None where none may be."""
    if isinstance(statement, RowStatement):
        return replace(statement, ctes=ctes)
    return statement if isinstance(statement, SparkParsedStatement | Rejected) else None


_COMPOUND = keywords("IF WHILE FOR LOOP REPEAT")
"""Keywords that begin a statement of a script that ends in END, beside BEGIN and CASE."""
_BEFORE_STATEMENTS = keywords("BEGIN DO LOOP REPEAT ; :")
_BRANCHES = keywords("THEN ELSE")


def split_statements(text: str) -> list[str]:
    """Return the statements without the semicolons between them; empty ones are left out.

    Comments stay with the statement that they are in or before.

    >>> split_statements("SELECT ';' /* ; /* ; */ ; */ -- a; b" + chr(10) + "; SELECT 2;;")
    ["SELECT ';' /* ; /* ; */ ; */ -- a; b", 'SELECT 2']
    >>> split_statements("BEGIN SELECT 1; IF a THEN SELECT 2; END IF; END; SELECT 3")
    ['BEGIN SELECT 1; IF a THEN SELECT 2; END IF; END', 'SELECT 3']
    """
    return [part.strip() for part in _parts(text)]


def _parts(text: str) -> Iterator[str]:
    start = 0
    script: _Script | None = None
    before: Token | None = None
    for token in read_tokens(text):
        if token.means(";") and (script is None or script.is_over):
            if before is not None:
                yield text[start : token.start]
            start, script, before = token.end, None, None
            continue
        if script is None and token.means("BEGIN") and (before is None or before.means(":")):
            script = _Script()
        if script is not None:
            script.read(token)
        before = token
    if before is not None:
        yield text[start:]


@dataclass(slots=True)
class _Script:
    """The open parts of a script after some tokens."""

    _open: list[bool] = field(default_factory=list)
    """For each missing END: whether it ends statements rather than an expression."""
    _before: str = ":"

    @property
    def is_over(self) -> bool:
        """Whether the END of the script has been read."""
        return not self._open

    def read(self, token: Token) -> None:
        """Read the next token."""
        is_plain = token.kind in {TokenKind.WORD, TokenKind.SYMBOL}
        word = token.text.upper() if is_plain and self._before != "." else ""
        begins = self._before in _BEFORE_STATEMENTS or (
            self._before in _BRANCHES and self._open[-1:] == [True]
        )
        if word == "END":
            del self._open[-1:]
        elif word == "BEGIN" or (word in _COMPOUND and begins):
            self._open.append(True)
        elif word == "CASE" and self._before != "END":
            self._open.append(begins)
        self._before = word
