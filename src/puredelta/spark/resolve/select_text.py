"""The plainest of queries as text: ``SELECT items FROM name [AS alias] [WHERE condition]``.

Such a query hands on rows of one relation, or is one row of functions over all of them. In place of
the name another such query may be, in brackets. The text of any other query is not understood, and
is left to the server.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from puredelta.protocol.schema.sql_lexer import (
    Token,
    TokenCursor,
    TokenKind,
    is_identifier,
    keywords,
    tokenize,
    unquoted,
)

_END = keywords("UNION INTERSECT EXCEPT MINUS")
_BEFORE = keywords("( ) UNION INTERSECT EXCEPT MINUS ALL DISTINCT")
"""What a query may follow."""
_NOT_ITEMS = keywords("DISTINCT ALL TRANSFORM STREAM")
_CLAUSES = keywords(
    "WHERE GROUP ORDER HAVING LIMIT OFFSET WINDOW QUALIFY CLUSTER DISTRIBUTE SORT LATERAL PIVOT "
    "UNPIVOT TABLESAMPLE JOIN INNER LEFT RIGHT FULL CROSS NATURAL SEMI ANTI OUTER ON USING FOR "
    "VERSION TIMESTAMP SYSTEM_VERSION SYSTEM_TIME CHANGES WITH FROM SELECT AS UNION INTERSECT "
    "EXCEPT MINUS MATCH_RECOGNIZE"
)
"""Words that are no alias where they have no AS before them."""
_WORDS = keywords("NULL IS NOT AND OR TRUE FALSE DIV")
_CALLABLE = keywords("COALESCE IFNULL NVL GREATEST LEAST ABS NULLIF")
_SIGNS = frozenset("+-*/%(),=<>") | {"==", "!=", "<>", "<=", ">=", "<=>"}
_FUNCTIONS = frozenset({"count", "min", "max"})
_SMALL = re.compile(r"\d{1,9}", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectedCall:
    """``count``, ``min`` or ``max`` in an item."""

    function: str
    """In lower case."""
    column: tuple[str, ...] | None
    """The parts of a column's name; None: all rows are counted."""
    name: str
    """What Spark calls the column of the call without an alias."""
    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectedItem:
    """One item: tokens of the text, and the alias if it has one."""

    tokens: tuple[Token, ...]
    alias: str | None

    @property
    def is_star(self) -> bool:
        """Whether the item is ``*``."""
        return len(self.tokens) == 1 and self.tokens[0].means("*") and self.alias is None

    @property
    def column(self) -> tuple[str, ...] | None:
        """The parts of the name if the item is nothing but a column."""
        names, dots = self.tokens[::2], self.tokens[1::2]
        if len(names) == len(dots) or not all(dot.means(".") for dot in dots):
            return None
        if not all(map(_is_name, names)) or (len(names) == 1 and _is_word(names[0], _WORDS)):
            return None
        return tuple(map(unquoted, names))

    @property
    def is_pure(self) -> bool:
        """Whether the item has a value of each row: it calls nothing, and asks for no rows."""
        return not any(token.means("(") or token.means("*") for token in self.tokens)

    def calls(self) -> list[SelectedCall] | None:
        """Return the calls in an item that has the same value for all rows; None for any other."""
        found: list[SelectedCall] = []
        at = 0
        while at < len(self.tokens):
            call, length = _call(self.tokens[at:])
            if call is not None:
                found.append(call)
            elif not _is_constant(self.tokens, at):
                return None
            at += length
        is_plain = len(found) == 1 and _spans(found[0], self.tokens)
        return found if found and (self.alias is not None or is_plain) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class PlainSelect:
    """A query of this form, or such a part of a text."""

    start: int
    end: int
    items: tuple[SelectedItem, ...]
    relation: str | PlainSelect
    alias: str | None
    condition: str | None


def plain_selects(text: str) -> Iterator[PlainSelect]:
    """Yield the parts of a text that are such queries, from left to right.

    >>> [s.relation for s in plain_selects("SELECT a FROM t UNION ALL (SELECT max(b) FROM u)")]
    ['t', 'u']
    """
    tokens = tokenize(text)
    cursor = TokenCursor(text, tokens)
    for at, token in enumerate(tokens):
        is_start = at == 0 or any(map(tokens[at - 1].means, _BEFORE))
        if token.means("SELECT") and is_start:
            cursor.position = at
            found = _select(cursor)
            if found is not None:
                yield found


def whole_select(text: str) -> PlainSelect | None:
    """Return a text as such a query, if the whole of it is one."""
    found = next(plain_selects(text), None)
    if found is None or text[: found.start].strip() or text[found.end :].strip():
        return None
    return found


def _select(cursor: TokenCursor) -> PlainSelect | None:
    """Read a query from its SELECT on."""
    start = _place(cursor, 0)
    cursor.skip()
    items = _items(cursor)
    relation = _relation(cursor) if items else None
    if not items or relation is None or cursor.sees(".") or cursor.sees("("):
        return None
    explicit = cursor.accept("AS")
    alias = accept_plain_name(cursor) if explicit or cursor.word not in _CLAUSES else None
    if cursor.sees("("):
        return None
    condition = _condition(cursor) if cursor.accept("WHERE") else None
    if not _is_end(cursor) or condition == "":
        return None
    return PlainSelect(
        start=start.start,
        end=_place(cursor, -1).end,
        items=tuple(items),
        relation=relation,
        alias=alias,
        condition=condition,
    )


def _relation(cursor: TokenCursor) -> str | PlainSelect | None:
    if not cursor.accept("("):
        return accept_plain_name(cursor)
    found = _select(cursor) if cursor.sees("SELECT") else None
    return found if cursor.accept(")") else None


def _items(cursor: TokenCursor) -> list[SelectedItem] | None:
    """Read the items and FROM; None where they are not plain."""
    if cursor.word in _NOT_ITEMS:
        return None
    items: list[SelectedItem] = []
    some: list[Token] = []
    depth = 0
    while (token := cursor.peek()) is not None:
        cursor.skip()
        depth += token.means("(") - token.means(")")
        if depth < 0 or token.means("SELECT") or token.text == "/*+":
            return None
        is_from = token.means("FROM")
        if depth == 0 and (is_from or token.means(",")):
            item = _item(some)
            if item is None:
                return None
            items.append(item)
            if is_from:
                return items
            some = []
        else:
            some.append(token)
    return None


def _condition(cursor: TokenCursor) -> str:
    start, depth = cursor.position, 0
    while not (depth == 0 and _is_end(cursor)) and (token := cursor.peek()) is not None:
        depth += token.means("(") - token.means(")")
        if cursor.word in _CLAUSES:
            return ""
        cursor.skip()
    if start == cursor.position:
        return ""
    return cursor.text[_place(cursor, start - cursor.position).start : _place(cursor, -1).end]


def _is_end(cursor: TokenCursor) -> bool:
    return cursor.is_done or cursor.sees(")") or cursor.word in _END


def _place(cursor: TokenCursor, ahead: int) -> Token:
    token = cursor.peek(ahead)
    assert token is not None  # noqa: S101 - it was read
    return token


def accept_plain_name(cursor: TokenCursor) -> str | None:
    """Step over one identifier; None for anything else, and in double quotes."""
    token = cursor.peek()
    if token is None or not _is_name(token):
        return None
    cursor.skip()
    return unquoted(token)


def _is_name(token: Token) -> bool:
    """Double quotes are an identifier in some sessions only."""
    return is_identifier(token) and token.kind is not TokenKind.DOUBLE_QUOTED


def _is_word(token: Token, words: frozenset[str]) -> bool:
    return token.kind is TokenKind.WORD and token.text.upper() in words


def item_of_text(text: str) -> SelectedItem | None:
    """Return the text of one expression as an item."""
    return _item(tokenize(text))


def _item(tokens: Sequence[Token]) -> SelectedItem | None:
    """Return an item of a list; None for one that names columns without an expression."""
    if not tokens:
        return None
    *some, last = tokens
    if some and _is_name(last):
        before = some[-1]
        if before.means("AS") and len(some) > 1:
            return SelectedItem(tokens=tuple(some[:-1]), alias=unquoted(last))
        ends = before.means(")") or _is_name(before) or before.kind is TokenKind.NUMBER
        is_word = _is_word(last, _WORDS) or _is_word(before, _WORDS)
        if ends and not is_word:
            return SelectedItem(tokens=tuple(some), alias=unquoted(last))
    if any(token.means("AS") for token in tokens):
        return None
    return SelectedItem(tokens=tuple(tokens), alias=None)


def _call(tokens: Sequence[Token]) -> tuple[SelectedCall | None, int]:
    """Return the call that comes first, and its number of tokens; None and 1 if there is none."""
    close = next((n for n, token in enumerate(tokens) if token.means(")")), None)
    if close is None or not _is_call(tokens):
        return None, 1
    function = tokens[0].text.lower()
    inner = SelectedItem(tokens=tuple(tokens[2:close]), alias=None)
    column: tuple[str, ...] | None = None
    if function == "count" and inner.is_star:
        name = "1"
    elif function == "count" and _is_small(inner.tokens):
        name = str(int(inner.tokens[0].text))
    elif (column := inner.column) is not None:
        name = column[-1]
    else:
        return None, 1
    call = SelectedCall(
        function=function,
        column=column,
        name=f"{function}({name})",
        start=tokens[0].start,
        end=tokens[close].end,
    )
    return call, close + 1


def _is_call(tokens: Sequence[Token]) -> bool:
    is_word = tokens[0].kind is TokenKind.WORD and tokens[0].text.lower() in _FUNCTIONS
    return is_word and len(tokens) > 1 and tokens[1].means("(")


def _is_small(tokens: Sequence[Token]) -> bool:
    return len(tokens) == 1 and _SMALL.fullmatch(tokens[0].text) is not None


def _spans(call: SelectedCall, tokens: Sequence[Token]) -> bool:
    return (call.start, call.end) == (tokens[0].start, tokens[-1].end)


def _is_constant(tokens: Sequence[Token], at: int) -> bool:
    """Return whether a token is part of an expression over calls and constants."""
    token = tokens[at]
    if token.kind is TokenKind.WORD:
        is_function = at + 1 < len(tokens) and tokens[at + 1].means("(")
        return _is_word(token, _CALLABLE if is_function else _WORDS)
    if token.kind in {TokenKind.NUMBER, TokenKind.STRING}:
        return True
    return token.kind is TokenKind.SYMBOL and token.text in _SIGNS
