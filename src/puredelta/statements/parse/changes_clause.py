"""The clause ``CHANGES FROM ... [TO ...]`` after the name of a table, in the grammar of Spark 4.2.

``table CHANGES FROM {VERSION 1 | TIMESTAMP '2026-01-31'} [INCLUSIVE | EXCLUSIVE] [TO {...}]
[WITH (key = value, ...)]``. Older versions of Spark have no such clause; the text is the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

from puredelta.protocol.schema.sql_lexer import TokenKind, keywords, mentions, replaced, tokenize
from puredelta.statements.parse.column_text import read_options
from puredelta.statements.parse.cursor import Cursor, SqlSyntaxError
from puredelta.statements.parse.literals import accept_text

_VERSIONS = keywords("VERSION SYSTEM_VERSION")
_TIMES = keywords("TIMESTAMP SYSTEM_TIME")
_OPERATORS = keywords("+ - * / % || DIV")


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundText:
    """One end of a range: a version as it is written, or the text of an expression for a time."""

    version: str | None = None
    time: str | None = None
    is_exclusive: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangesClause:
    """A parsed clause; without an end the range is open."""

    start: BoundText
    end: BoundText | None
    options: Mapping[str, str]


def may_have_changes_clause(text: str) -> bool:
    """Tell from its tokens whether a text may have the clause.

    >>> may_have_changes_clause("SELECT * FROM t CHANGES FROM VERSION 1")
    True
    """
    return mentions(text, "changes") and any(
        first.means("CHANGES") and second.means("FROM")
        for first, second in pairwise(tokenize(text))
    )


def sees_changes_clause(cursor: Cursor, ahead: int = 0) -> bool:
    """Tell whether the clause comes next, ``ahead`` tokens from here."""
    kind = cursor.peek(ahead + 2)
    is_kind = kind is not None and kind.text.upper() in _VERSIONS | _TIMES
    return is_kind and cursor.sees("CHANGES", "FROM", ahead=ahead)


def accept_changes_clause(cursor: Cursor) -> ChangesClause | None:
    """Parse the clause if it comes next.

    >>> accept_changes_clause(Cursor("CHANGES FROM VERSION 1 EXCLUSIVE TO VERSION 4")).start
    BoundText(version='1', time=None, is_exclusive=True)

    Raises:
        SqlSyntaxError: the clause is incomplete.
    """
    if not sees_changes_clause(cursor):
        return None
    cursor.expect("CHANGES", "FROM")
    is_version = cursor.word in _VERSIONS
    start = _bound(cursor, is_version=is_version)
    end = None
    if cursor.accept("TO"):
        if cursor.word not in (_VERSIONS if is_version else _TIMES):
            raise cursor.error(expected="VERSION" if is_version else "TIMESTAMP")
        end = _bound(cursor, is_version=is_version)
    options: Mapping[str, str] = {}
    if cursor.sees("WITH", "("):
        cursor.skip()
        options = read_options(cursor)
    return ChangesClause(start=start, end=end, options=options)


def without_changes_clauses(text: str) -> str:
    """Return a text of equal length with spaces in the place of every clause.

    Spark's parser computes the times of a clause at once, and fails at some functions; older
    parsers do not know the clause. A text with an incomplete clause is returned as it is.

    >>> without_changes_clauses("SELECT * FROM t CHANGES FROM VERSION 1 WHERE a")
    'SELECT * FROM t                        WHERE a'
    """
    if not may_have_changes_clause(text):
        return text
    cursor, parts = Cursor(text), []
    while not cursor.is_done:
        start = cursor.start
        try:
            clause = accept_changes_clause(cursor)
        except SqlSyntaxError:
            return text
        if clause is None:
            cursor.skip()
        else:
            parts.append((start, cursor.end, " " * (cursor.end - start)))
    return replaced(text, parts)


def _bound(cursor: Cursor, *, is_version: bool) -> BoundText:
    cursor.skip()
    version = _version(cursor) if is_version else None
    time = None if is_version else _value_expression(cursor)
    is_exclusive = cursor.accept("EXCLUSIVE")
    if not is_exclusive:
        cursor.accept("INCLUSIVE")
    return BoundText(version=version, time=time, is_exclusive=is_exclusive)


def _version(cursor: Cursor) -> str:
    text = accept_text(cursor)
    return cursor.number(whole=True) if text is None else text


def _value_expression(cursor: Cursor) -> str:
    """Parse operands between operators: an alias of the table may follow at once."""
    start = cursor.position
    _operand(cursor)
    while cursor.word in _OPERATORS:
        cursor.skip()
        _operand(cursor)
    return cursor.between(start)


def _operand(cursor: Cursor) -> None:
    """Step over a literal with its type, an interval, a function call or an expression in
    brackets.
    """
    if cursor.is_done:
        raise cursor.error(expected="an expression")
    while cursor.accept("-") or cursor.accept("+"):
        pass
    if cursor.accept("INTERVAL"):
        cursor.accept("-")
        while (token := cursor.peek()) is not None and _is_literal(token.kind):
            cursor.skip(2)  # a number and its unit
        return
    token = cursor.peek()
    is_word = token is not None and token.kind is TokenKind.WORD
    if not cursor.sees("("):
        cursor.skip()
    while is_word and cursor.accept("."):
        cursor.skip()
    following = cursor.peek()
    if cursor.sees("("):
        cursor.group()
    elif is_word and following is not None and following.kind in _QUOTED:
        cursor.skip()  # TIMESTAMP '...'
    while cursor.accept("::"):
        cursor.skip()


_QUOTED = frozenset({TokenKind.STRING, TokenKind.DOUBLE_QUOTED})


def _is_literal(kind: TokenKind) -> bool:
    return kind is TokenKind.NUMBER or kind in _QUOTED
