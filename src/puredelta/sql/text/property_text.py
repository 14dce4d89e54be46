"""Lists of table properties: ``('key' = 'value', a.b = 2)``."""

from __future__ import annotations

from puredelta.errors import ErrorCode
from puredelta.protocol.schema.sql_lexer import Token, TokenKind
from puredelta.sql.text.cursor import Cursor
from puredelta.sql.text.syntax_error import SqlSyntaxError, TextPosition
from puredelta.sql.text.text_literal import accept_text, read_text


def read_properties(cursor: Cursor) -> dict[str, str]:
    """Read keys with their values; numbers stay the text they are.

    Raises:
        SqlSyntaxError: a key has no value, or stands there twice (DUPLICATE_KEY).
    """
    properties: dict[str, str] = {}

    def add(cursor: Cursor) -> None:
        start = cursor.peek()
        key = _key(cursor)
        if key in properties and start is not None:
            raise _duplicate(cursor.text, start, key)
        if not cursor.accept("="):
            cursor.accept("==")
        properties[key] = _value(cursor)

    cursor.items_in_brackets(add, optional=False)
    return properties


def read_property_keys(cursor: Cursor) -> tuple[str, ...]:
    """Read keys alone."""
    return tuple(cursor.items_in_brackets(_key, optional=False))


def _key(cursor: Cursor) -> str:
    text = accept_text(cursor)
    return ".".join(cursor.name()) if text is None else text


def _value(cursor: Cursor) -> str:
    if cursor.sees("TRUE") or cursor.sees("FALSE"):
        return cursor.identifier().lower()
    sign = "-" if cursor.accept("-") else ""
    token = cursor.peek()
    if token is not None and token.kind is TokenKind.NUMBER:
        cursor.skip()
        return sign + token.text
    return read_text(cursor, expected="a value")


def _duplicate(text: str, start: Token, key: str) -> SqlSyntaxError:
    return SqlSyntaxError(
        f"Found duplicate keys `{key}`.",
        code=ErrorCode.DUPLICATE_KEY,
        key=key,
        place=TextPosition.of(text, start.start),
        sql=text,
    )
