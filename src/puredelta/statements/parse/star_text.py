"""Stars of a query: the tokens that show all columns of a relation.

Over Spark Connect a table whose text names ``_metadata`` has that column as its last one, which a
star must not show.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field

from puredelta.protocol.schema.sql_lexer import (
    Token,
    TokenKind,
    is_identifier,
    keywords,
    replaced,
    tokenize,
    unquoted,
)
from puredelta.statements.parse.cursor import Cursor
from puredelta.statements.parse.relation_text import find_alias, read_relations

_BEFORE_STAR = keywords("SELECT DISTINCT ALL")
_COUNT_ROWS = ["COUNT", "(", "*", ")"]
_BETWEEN_QUERIES = keywords("UNION EXCEPT MINUS INTERSECT")
_BEGIN_QUERIES = keywords("SELECT WITH FROM VALUES TABLE MAP REDUCE (")
_WHOLE_ROWS = keywords("NATURAL PIVOT UNPIVOT TABLE |>")
"""Words of queries to which each column of a relation matters."""
_ONE_SIDED = keywords("SEMI ANTI")


def is_star(tokens: Sequence[Token], at: int) -> bool:
    """Tell whether a token is a star for columns, neither a product nor a count of rows."""
    if not tokens[at].means("*"):
        return False
    before = tokens[at - 1] if at else None
    if before is None or (before.kind is TokenKind.WORD and before.text.upper() in _BEFORE_STAR):
        return True
    if before.means("("):
        around = [token.text.upper() for token in tokens[max(at - 2, 0) : at + 2]]
        return around != _COUNT_ROWS
    return before.kind is TokenKind.SYMBOL and not (before.means(")") or before.means("]"))


def _is_between_queries(tokens: Sequence[Token], at: int) -> bool:
    if tokens[at].kind is not TokenKind.WORD or tokens[at].text.upper() not in _BETWEEN_QUERIES:
        return False
    return not (at and tokens[at - 1].means("*") and _has_exceptions(tokens, at - 1))


@dataclass(slots=True)
class _Select:
    """A query between brackets or set operators: its relations with the column, and its stars."""

    hidden: list[str] = field(default_factory=list)
    """What columns of the relations are qualified by."""
    only_joined: list[str] = field(default_factory=list)
    """The same of relations whose columns a star does not show."""
    stars: list[int] = field(default_factory=list)
    names_columns: bool = False
    """Whether there is a list of columns."""


def with_hidden_column(text: str, column: str, names: Collection[str]) -> str | None:
    """Return a query in which no star shows the last column of some relations.

    ``names`` are those of the relations, which are no other words of the text. None if a star
    cannot leave the column out.

    >>> with_hidden_column("SELECT *, m FROM t AS x", "m", {"t"})
    'SELECT * EXCEPT (x.m), m FROM t AS x'
    >>> with_hidden_column("FROM t", "m", {"t"})
    """
    tokens = tokenize(text)
    if any(token.means(word) for token in tokens for word in _WHOLE_ROWS):
        return None
    parts: list[tuple[int, int, str]] = []
    for select in _selects(text, tokens, names):
        if select.hidden and not select.names_columns:
            return None
        for at in select.stars:
            left = _left_out(tokens, at, select, column)
            if not left:
                continue
            if _has_exceptions(tokens, at):
                start = tokens[at + 2].end
                parts.append((start, start, f"{left}, "))
            else:
                parts.append((tokens[at].end, tokens[at].end, f" EXCEPT ({left})"))
    return replaced(text, sorted(parts))


def _left_out(tokens: Sequence[Token], at: int, select: _Select, column: str) -> str:
    """Return the columns that a star leaves out, as text."""
    if not (at > 1 and tokens[at - 1].means(".")):
        return ", ".join(f"{name}.{column}" for name in select.hidden)
    qualifier = unquoted(tokens[at - 2]).lower()
    known = {unquoted(tokenize(name)[0]).lower() for name in select.hidden + select.only_joined}
    return column if qualifier in known else ""


def _has_exceptions(tokens: Sequence[Token], at: int) -> bool:
    words = [token.text.upper() for token in tokens[at + 1 : at + 4]]
    return words[:2] == ["EXCEPT", "("] and words[2:3] != [] and words[2] not in _BEGIN_QUERIES


def _selects(text: str, tokens: Sequence[Token], names: Collection[str]) -> Iterator[_Select]:
    places = read_relations(tokens).starts
    open_selects = [_Select()]
    found = list(open_selects)
    cursor = Cursor(text)
    for at, token in enumerate(tokens):
        following = tokens[at + 1].text.upper() if at + 1 < len(tokens) else ""
        if token.means("("):
            inside = _Select() if following in _BEGIN_QUERIES else open_selects[-1]
            open_selects.append(inside)
            found.append(inside)
        elif token.means(")") and len(open_selects) > 1:
            open_selects.pop()
        elif _is_between_queries(tokens, at):
            open_selects[-1] = _Select()
            found.append(open_selects[-1])
        elif at in places and is_identifier(token) and unquoted(token) in names:
            cursor.position = at + 1
            alias = find_alias(cursor) or token.text
            is_joined = any(map(_means_one_sided, tokens[max(at - 2, 0) : at]))
            select = open_selects[-1]
            (select.only_joined if is_joined else select.hidden).append(alias)
        elif is_star(tokens, at):
            open_selects[-1].stars.append(at)
        elif token.means("SELECT"):
            open_selects[-1].names_columns = True
    kept: list[_Select] = []
    for select in found:
        if not any(select is other for other in kept):
            kept.append(select)
            yield select


def _means_one_sided(token: Token) -> bool:
    return any(map(token.means, _ONE_SIDED))
