"""Text in quotes in statements: comments, property values, locations.

The escapes are those of Spark's string literals. ``spark.sql.parser.escapedStringLiterals``,
which switches them off, is a setting of the past and not followed here.
"""

from __future__ import annotations

import re
from functools import partial

from puredelta.protocol.schema.sql_lexer import Token, TokenKind
from puredelta.sql.text.cursor import Cursor

_STRINGS = frozenset({TokenKind.STRING, TokenKind.DOUBLE_QUOTED})
_ESCAPE = re.compile(
    r"\\(?:u(?P<short>[0-9A-Fa-f]{4})|U(?P<long>[0-9A-Fa-f]{8})|(?P<octal>[0-3][0-7]{2})|(?P<one>.))"
    r"|(?P<doubled>''|\"\")",
    re.DOTALL,
)
_ESCAPED = {
    "0": "\0",
    "b": "\b",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "Z": "\x1a",
    "%": "\\%",
    "_": "\\_",
}
"""Characters that mean something else after a backslash; all others mean themselves."""


def accept_text(cursor: Cursor) -> str | None:
    """Step over text in quotes and return what it means; None if there is none."""
    token = cursor.peek()
    if token is None or token.kind not in _STRINGS:
        return None
    cursor.skip()
    return text_value(token)


def read_text(cursor: Cursor, *, expected: str = "text in quotes") -> str:
    """Step over text in quotes and return what it means."""
    text = accept_text(cursor)
    if text is None:
        raise cursor.error(expected=expected)
    return text


def text_value(token: Token) -> str:
    r"""Return what one token of text means.

    >>> text_value(Token(TokenKind.STRING, r"'it\'s\tnew'", 0))
    "it's\tnew"
    """
    quote, text = token.text[0], token.text[1:-1]
    if quote in "rR":
        return text[1:]
    return _ESCAPE.sub(partial(_meant, quote), text)


def _meant(quote: str, found: re.Match[str]) -> str:
    if (doubled := found["doubled"]) is not None:
        return quote if doubled[0] == quote else doubled
    hexadecimal = found["short"] or found["long"]
    if hexadecimal:
        return chr(int(hexadecimal, 16))
    if found["octal"]:
        return chr(int(found["octal"], 8))
    return _ESCAPED.get(found["one"], found["one"])
