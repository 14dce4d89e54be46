"""Positions of relations and of their aliases in a text.

Keywords and brackets decide, as in Spark's grammar: a name is a relation after FROM, JOIN or
TABLE and in the list that FROM begins, and no relation among expressions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from puredelta.protocol.schema.sql_lexer import (
    IDENTIFIERS,
    Token,
    TokenKind,
    keywords,
    unquoted,
)
from puredelta.statements.parse.cursor import Cursor

_BEGIN_QUERIES = keywords("SELECT WITH FROM VALUES TABLE MAP REDUCE")
_BEFORE_RELATIONS = keywords("JOIN TABLE INTO OVERWRITE USING")
_PASSED_OVER = keywords("LATERAL STREAM ONLY")
"""Keywords between those before a relation and the relation."""
_AFTER_LISTS = keywords(
    "WHERE GROUP HAVING ORDER SORT CLUSTER DISTRIBUTE LIMIT OFFSET WINDOW QUALIFY SELECT SET "
    "VALUES UNION EXCEPT MINUS SETMINUS INTERSECT VIEW PIVOT UNPIVOT INSERT"
)
"""Keywords that end a list of relations; VIEW of LATERAL VIEW."""
_OPENING = keywords("( [ /*+")
_CLOSING = keywords(") ] */")

_NEVER_NAMES = keywords(
    "ANTI CROSS EXCEPT FULL INNER INTERSECT JOIN LATERAL LEFT NATURAL ON RIGHT SEMI MINUS SETMINUS "
    "UNION USING"
)
"""Keywords that Spark does not accept as an alias of a table."""
_CLAUSES = keywords(
    "WHERE HAVING QUALIFY LIMIT OFFSET SELECT INSERT MAP REDUCE PIVOT UNPIVOT WINDOW DO"
)
_CLAUSES_BY = keywords("GROUP ORDER SORT CLUSTER DISTRIBUTE BIN")
_ENDS = keywords(", ) ; |>")


@dataclass(frozen=True, slots=True, kw_only=True)
class RelationText:
    """Tokens of a text by their numbers."""

    starts: frozenset[int]
    """Tokens with which a relation can begin."""
    in_lists: frozenset[int]
    """Those of them after FROM, JOIN, TABLE or a comma, not only before the first query."""
    in_hints: frozenset[int]


@dataclass(slots=True)
class _Level:
    """The inside of a pair of brackets, or the whole text."""

    has_clauses: bool
    """Whether a query or a join can be here, rather than a plain expression."""
    expects: bool
    """Whether the next token can begin a relation."""
    in_list: bool = False
    """Whether a comma separates relations."""


def read_relations(tokens: Sequence[Token]) -> RelationText:
    """Return the positions of relations; before its first query a statement names tables anywhere.

    >>> from puredelta.protocol.schema.sql_lexer import tokenize
    >>> sorted(read_relations(tokenize("SELECT a, b.c FROM t, (u JOIN v) WHERE x IN (w)")).starts)
    [0, 7, 10, 12]
    """
    starts: set[int] = set()
    in_lists: set[int] = set()
    hints: set[int] = set()
    levels = [_Level(has_clauses=True, expects=True)]
    is_head, hint_depth = True, 0
    for at, token in enumerate(tokens):
        level, before = levels[-1], tokens[at - 1] if at else None
        if hint_depth:
            hints.add(at)
        if (level.expects or (is_head and len(levels) == 1)) and token.kind in IDENTIFIERS:
            starts.add(at)
            if level.expects and at:
                in_lists.add(at)
        if token.kind is not TokenKind.SYMBOL:
            is_name = token.kind is not TokenKind.WORD or (before is not None and before.means("."))
            if not is_name and _read_keyword(level, token.text.upper(), tokens, at):
                is_head = is_head and len(levels) > 1
            elif is_name:
                level.expects = False
            continue
        if token.text in _OPENING:
            hint_depth += token.text == "/*+" or hint_depth > 0
            levels.append(_inside(level, token, tokens[at + 1 : at + 2]))
            level.expects = False
        elif token.text in _CLOSING:
            hint_depth -= hint_depth > 0
            del levels[max(1, len(levels) - 1) :]
        else:
            level.expects = token.text == "," and level.in_list
            level.in_list = level.in_list and token.text != "|>"
            is_head = is_head or (token.text == ";" and len(levels) == 1)
    return RelationText(
        starts=frozenset(starts), in_lists=frozenset(in_lists), in_hints=frozenset(hints)
    )


def _inside(level: _Level, bracket: Token, following: Sequence[Token]) -> _Level:
    is_query = bool(following) and following[0].kind is TokenKind.WORD
    is_query = is_query and following[0].text.upper() in _BEGIN_QUERIES
    expects = level.expects and bracket.means("(")
    return _Level(has_clauses=is_query or expects, expects=expects and not is_query)


def _read_keyword(level: _Level, word: str, tokens: Sequence[Token], at: int) -> bool:
    """Apply a keyword to the tokens after it; return whether it begins a query."""
    if word in _PASSED_OVER:
        return False
    level.expects = False
    if not level.has_clauses:
        return False
    if word == "FROM":
        if (
            at
            and tokens[at - 1].means("DISTINCT")
            and at > 1
            and tokens[at - 2].text.upper()
            in {
                "IS",
                "NOT",
            }
        ):
            return False
        level.in_list = level.expects = True
        return True
    if word in _BEFORE_RELATIONS:
        level.expects = True
    elif word in _AFTER_LISTS and not (at and tokens[at - 1].means("AS") and word != "SELECT"):
        level.in_list = False
        return word in {"SELECT", "SET", "VALUES", "WHERE"}
    return word == "WITH"


def table_expression_names(tokens: Sequence[Token]) -> frozenset[int]:
    """Return the positions of names that mean a common table expression, not a table.

    Its definition sees the names before it, and not its own unless the list is RECURSIVE.

    >>> from puredelta.protocol.schema.sql_lexer import tokenize
    >>> sorted(table_expression_names(tokenize("WITH t AS (SELECT * FROM t) SELECT * FROM t")))
    [12]
    """
    found: set[int] = set()
    known: list[set[str]] = [set()]
    defined: list[str | None] = []
    bodies = _definitions(tokens)
    is_recursive = False
    for at, token in enumerate(tokens):
        if token.means("RECURSIVE"):
            is_recursive = True
        if token.text in _OPENING:
            name = bodies.get(at)
            known.append(known[-1] | ({name} if name is not None and is_recursive else set()))
            defined.append(name)
        elif token.text in _CLOSING and defined:
            known.pop()
            name = defined.pop()
            if name is not None:
                known[-1].add(name)
        elif token.text == ";" and token.kind is TokenKind.SYMBOL:
            known[-1] = set()
        elif token.kind in IDENTIFIERS and unquoted(token).lower() in known[-1]:
            found.add(at)
    return frozenset(found)


def _definitions(tokens: Sequence[Token]) -> dict[int, str]:
    """Return the brackets that open a common table expression, with its name in lower case."""
    found = {}
    for at in range(1, len(tokens)):
        if not (tokens[at].means("(") and tokens[at - 1].means("AS")):
            continue
        name = at - 2
        if name >= 0 and tokens[name].means(")"):  # names of columns
            while name >= 0 and not tokens[name].means("("):
                name -= 1
            name -= 1
        before = tokens[name - 1] if name > 0 else None
        is_defined = before is not None and any(map(before.means, ("WITH", "RECURSIVE", ",")))
        if is_defined and tokens[name].kind in IDENTIFIERS:
            found[at] = unquoted(tokens[name]).lower()
    return found


_BEGIN_RELATIONS = _BEGIN_QUERIES | keywords("JOIN LATERAL")


def join_columns(tokens: Sequence[Token]) -> frozenset[int]:
    """Return the positions of the columns in ``JOIN u USING (a, b)``.

    >>> from puredelta.protocol.schema.sql_lexer import tokenize
    >>> sorted(join_columns(tokenize("SELECT 1 FROM t JOIN u USING (a)")))
    [8]
    """
    found: set[int] = set()
    for at in range(2, len(tokens)):
        if tokens[at - 1].means("(") and tokens[at - 2].means("USING"):
            end = next((n for n in range(at, len(tokens)) if tokens[n].means(")")), len(tokens))
            if tokens[at].text.upper() not in _BEGIN_RELATIONS:
                found.update(range(at, end))
    return frozenset(found)


def find_alias_place(cursor: Cursor) -> int | None:
    """Return the position for an alias of the table before; None if the table has one.

    Options, a sample and a watermark come before the alias. The cursor stays.
    """
    start = cursor.position
    end = cursor.end
    while _accept_before_alias(cursor):
        end = cursor.end
    has_alias = _sees_alias(cursor)
    cursor.position = start
    return None if has_alias else end


def find_alias(cursor: Cursor) -> str | None:
    """Return the alias of the table before, as it is written; None if it has none."""
    start = cursor.position
    while _accept_before_alias(cursor):
        pass
    token = None
    if _sees_alias(cursor):
        cursor.accept("AS")
        token = cursor.peek()
    cursor.position = start
    return None if token is None else token.text


def _accept_before_alias(cursor: Cursor) -> bool:
    if cursor.sees("WITH", "(") or cursor.sees("TABLESAMPLE", "("):
        cursor.skip()
        cursor.group()
        if cursor.sees("REPEATABLE", "("):
            cursor.skip()
            cursor.group()
        return True
    if cursor.accept("WATERMARK"):
        cursor.skip_to("INTERVAL", ")", ";")
        for _ in range(3):  # INTERVAL, a number, a unit
            cursor.skip(0 if cursor.is_done else 1)
        return True
    return False


def _sees_alias(cursor: Cursor) -> bool:
    token, following = cursor.peek(), cursor.peek(1)
    if token is None or token.kind not in IDENTIFIERS:
        return False
    word = token.text.upper()
    is_last = following is None or following.text in _ENDS
    if word in _NEVER_NAMES:
        return False
    if word in _CLAUSES_BY:
        return not cursor.sees("BY", ahead=1)
    return is_last or word not in _CLAUSES
