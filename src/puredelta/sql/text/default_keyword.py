"""``DEFAULT`` as a value of an INSERT: in a row of VALUES, or alone in a SELECT list."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from puredelta.protocol.schema.sql_lexer import Token, tokenize
from puredelta.protocol.table.stored_expressions import in_brackets
from puredelta.sql.text.cursor import Cursor, replaced

_KEYWORD = "DEFAULT"
_CLOSES = {"(": 1, "[": 1, ")": -1, "]": -1}
_ENDS_LIST = frozenset(
    {"FROM", "WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "UNION", "EXCEPT", "INTERSECT", ";"}
)


def has_default(text: str) -> bool:
    """Tell whether the keyword is in a text at all."""
    return _KEYWORD in text.upper() and any(token.means(_KEYWORD) for token in tokenize(text))


def with_defaults(text: str, values: Sequence[str]) -> str:
    """Return an INSERT with the text of a value in the place of each ``DEFAULT``.

    ``values`` are those of the columns, in the order of the values. Where the keyword stands
    for no whole value of a row it is left to Spark, which refuses it.

    >>> with_defaults("INSERT INTO t VALUES (1, DEFAULT)", ["0", "now()"])
    'INSERT INTO t VALUES (1, (now()))'
    """
    return replaced(
        text,
        (
            (keyword.start, keyword.end, in_brackets(values[number]))
            for keyword, number in _defaults(text)
            if number < len(values)
        ),
    )


def _defaults(text: str) -> Iterator[tuple[Token, int]]:
    """Yield each keyword that is a whole value, with the number of the value in its row."""
    cursor = Cursor(text)
    cursor.skip_to("VALUES", "SELECT")
    if cursor.accept("SELECT"):
        yield from _row(cursor)
    elif cursor.accept("VALUES"):
        while cursor.accept("("):
            yield from _row(cursor)
            if not (cursor.accept(")") and cursor.accept(",")):
                return


def _row(cursor: Cursor) -> Iterator[tuple[Token, int]]:
    """Walk over values between commas, up to the bracket that closes or the end of the list."""
    number, depth, begins = 0, 0, True
    while (token := cursor.peek()) is not None:
        ends = token.means(")") or token.text.upper() in _ENDS_LIST
        if depth == 0 and ends:
            return
        if depth == 0 and begins and token.means(_KEYWORD) and _is_whole(cursor):
            yield token, number
        begins = depth == 0 and token.means(",")
        number += begins
        depth += _CLOSES.get(token.text, 0)
        cursor.skip()


def _is_whole(cursor: Cursor) -> bool:
    after = cursor.peek(1)
    if after is None or after.means(",") or after.means(")"):
        return True
    return after.text.upper() in _ENDS_LIST or after.means("AS")
