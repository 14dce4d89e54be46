"""Lists of table properties: ``('key' = 'value', a.b = 2)``."""

from __future__ import annotations

from puredelta.errors import ErrorCode
from puredelta.sql.text.cursor import Cursor
from puredelta.sql.text.lexer import Token, TokenKind
from puredelta.sql.text.place import TextPosition
from puredelta.sql.text.syntax_error import SqlSyntaxError
from puredelta.sql.text.text_literal import accept_text, read_text


def read_properties(cursor: Cursor) -> dict[str, str]:
    """Read keys with their values; numbers are kept as they are spelt.

    Raises:
        SqlSyntaxError: a key has no value, or stands there twice (DUPLICATE_KEY).
    """
    properties: dict[str, str] = {}
    cursor.expect("(")
    while True:
        start = cursor.peek()
        key = _key(cursor)
        if key in properties and start is not None:
            raise _duplicate(cursor.text, start, key)
        if not cursor.accept("="):
            cursor.accept("==")
        properties[key] = _value(cursor)
        if not cursor.accept(","):
            break
    cursor.expect(")")
    return properties


def read_property_keys(cursor: Cursor) -> tuple[str, ...]:
    """Read keys alone.

    Raises:
        SqlSyntaxError: there is something else, a value for example.
    """
    cursor.expect("(")
    keys = [_key(cursor)]
    while cursor.accept(","):
        keys.append(_key(cursor))
    cursor.expect(")")
    return tuple(keys)


def _key(cursor: Cursor) -> str:
    text = accept_text(cursor)
    if text is not None:
        return text
    parts = [cursor.identifier()]
    while cursor.accept("."):
        parts.append(cursor.identifier())
    return ".".join(parts)


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
