"""Ends of expressions in statement text, and the keyword ``DEFAULT``.

Expressions are only delimited here: the result is the user's own text, which Spark's analyzer
parses. A keyword may be the name of a column, so the position decides: WHEN, THEN and END follow
an operand, CASE and columns come where an operand is expected. Spark's parser reads the same
text, so doubtful text need not be rejected here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from puredelta.protocol.schema.sql_lexer import Token, TokenKind, keywords, replaced, tokenize
from puredelta.protocol.table.stored_expressions import in_brackets
from puredelta.statements.parse.cursor import Cursor

_CLOSING = {"(": ")", "[": "]"}

_ENDS_OPERAND = frozenset([*_CLOSING.values(), "?", "}"])
_BEFORE_NAME = frozenset([".", ":"])


_CASE = "CASE"
# Words that an operand must follow.
_EXPECTS_OPERAND = keywords(
    "AND OR NOT IN LIKE ILIKE RLIKE REGEXP BETWEEN IS DISTINCT FROM DIV WHEN THEN ELSE ESCAPE"
)
# Operators that need no operand before them, because this word is there.
_TWO_WORDS = frozenset(
    [(_CASE, "WHEN"), ("IS", "DISTINCT"), ("NOT", "DISTINCT"), ("DISTINCT", "FROM")]
    + [("NOT", word) for word in ("IN", "LIKE", "ILIKE", "RLIKE", "REGEXP", "BETWEEN")]
)
# Tokens that cannot begin an operand, so that CASE before them is a column of that name.
_FOLLOWS_OPERAND = keywords("= == < > <= >= <> != <=> . , ) ] * / % AND OR IS IN LIKE BETWEEN THEN")


def read_expression(cursor: Cursor, until: Callable[[Cursor], bool]) -> str:
    """Parse an expression and return its text.

    It ends where ``until`` is true outside of all brackets and CASE expressions, at the bracket
    that closes the one around it, at a semicolon, and at the end of the text.

    Raises:
        SqlSyntaxError: there is no expression.
    """
    start = cursor.position
    walk = _Walk(cursor, until)
    while walk.step():
        pass
    if cursor.position == start:
        raise cursor.error(expected="an expression")
    return cursor.between(start)


class _Walk:
    """One walk over an expression: open brackets and CASEs, and the end of an operand."""

    def __init__(self, cursor: Cursor, until: Callable[[Cursor], bool]) -> None:
        self._cursor = cursor
        self._until = until
        self._open: list[str] = []
        self._ended = False
        self._previous = ""

    def step(self) -> bool:
        """Step over one token; False at the end of the expression."""
        token = self._cursor.peek()
        if token is None or (not self._open and self._is_end(token)):
            return False
        if token.means("::"):
            self._type()
            return True
        if token.kind is TokenKind.SYMBOL:
            self._symbol(token.text)
        elif token.kind is TokenKind.WORD and self._previous not in _BEFORE_NAME:
            self._word(token.text.upper())
        else:
            self._ended = True
        self._previous = token.text.upper()
        self._cursor.skip()
        return True

    def _is_end(self, token: Token) -> bool:
        if token.kind is TokenKind.SYMBOL and token.text in {")", "]", ";"}:
            return True
        return self._ended and self._until(self._cursor)

    def _symbol(self, symbol: str) -> None:
        if symbol in _CLOSING:
            self._open.append(_CLOSING[symbol])
        elif symbol in _CLOSING.values():
            # A CASE that is still open was a column: brackets are certain, words are not.
            while self._open and self._open.pop() != symbol:
                pass
        self._ended = symbol in _ENDS_OPERAND

    def _word(self, word: str) -> None:
        if word == _CASE and not self._ended:
            after = self._cursor.peek(1)
            self._ended = after is None or after.text.upper() in _FOLLOWS_OPERAND
            if not self._ended:
                self._open.append(_CASE)
            return
        if word == "END" and self._ended and self._open and self._open[-1] == _CASE:
            self._open.pop()
        is_operator = self._ended or word == "NOT" or (self._previous, word) in _TWO_WORDS
        self._ended = not (is_operator and word in _EXPECTS_OPERAND)

    def _type(self) -> None:
        """Parse ``::`` and a type: the commas of ``map<int, int>`` separate nothing."""
        cursor = self._cursor
        cursor.skip()
        cursor.skip()
        depth = 0
        while (token := cursor.peek()) is not None and (depth or token.means("<")):
            depth += token.means("<") - token.means(">")
            cursor.skip()
        self._ended, self._previous = True, ""


_KEYWORD = "DEFAULT"
_CLOSES = {"(": 1, "[": 1, ")": -1, "]": -1}
_ENDS_LIST = frozenset(
    {"FROM", "WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "UNION", "EXCEPT", "INTERSECT", ";"}
)


def has_default(text: str) -> bool:
    """Tell whether the keyword is in a text at all."""
    return _KEYWORD in text.upper() and any(token.means(_KEYWORD) for token in tokenize(text))


def with_defaults(text: str, values: Sequence[str]) -> str:
    """Return an INSERT with each ``DEFAULT`` replaced by the text of a value.

    ``values`` are those of the columns, in the order of the values. A keyword that is not a
    whole value of a row is left to Spark, which refuses it.

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
