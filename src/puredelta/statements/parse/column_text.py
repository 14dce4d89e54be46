"""Column definitions and property lists in statement text.

Types and expressions are only delimited here: Spark parses them.
"""

from __future__ import annotations

from dataclasses import dataclass

from puredelta.errors import ErrorCode
from puredelta.protocol.schema.schema_edit import After, ColumnPosition, End, FieldPath
from puredelta.protocol.schema.sql_lexer import Token, TokenKind
from puredelta.statements.parse.cursor import Cursor, SqlSyntaxError, TextPosition
from puredelta.statements.parse.expression_text import read_expression
from puredelta.statements.parse.literals import accept_text, read_text

_AFTER_TYPE = (("NOT", "NULL"), ("COMMENT",), ("DEFAULT",), ("FIRST",), ("AFTER",), ("GENERATED",))
_OPENING = frozenset("(<[")
_CLOSING = frozenset(")>]")


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnDefinition:
    """``name type [NOT NULL] [DEFAULT value] [COMMENT text] [FIRST | AFTER other]``."""

    path: FieldPath
    data_type: str
    nullable: bool = True
    default: str | None = None
    comment: str | None = None
    position: ColumnPosition | None = None


def read_columns(cursor: Cursor) -> tuple[ColumnDefinition, ...]:
    """Read one column or more, in brackets or not."""
    return tuple(cursor.items_in_brackets(read_column, optional=True))


def read_column(cursor: Cursor) -> ColumnDefinition:
    """Read one column; the clauses after its type may come in any order."""
    path = cursor.name()
    data_type = read_type(cursor)
    nullable, default, comment, position = True, None, None, None
    while True:
        if nullable and cursor.accept("NOT", "NULL"):
            nullable = False
        elif default is None and cursor.accept("DEFAULT"):
            default = read_expression(cursor, _is_after_type)
        elif comment is None and cursor.accept("COMMENT"):
            comment = read_text(cursor)
        elif position is None and (cursor.sees("FIRST") or cursor.sees("AFTER")):
            position = read_position(cursor)
        else:
            break
    return ColumnDefinition(
        path=path,
        data_type=data_type,
        nullable=nullable,
        default=default,
        comment=comment,
        position=position,
    )


def read_type(cursor: Cursor) -> str:
    """Parse a type, brackets included, and return its text."""
    start, depth = cursor.position, 0
    while (token := cursor.peek()) is not None:
        if depth == 0 and (_is_after_type(cursor) or token.text in {",", ")", ";"}):
            break
        depth += (token.text in _OPENING) - (token.text in _CLOSING)
        cursor.skip()
    if cursor.position == start:
        raise cursor.error(expected="a data type")
    return cursor.between(start)


def read_position(cursor: Cursor) -> ColumnPosition:
    """Read ``FIRST`` or ``AFTER name``."""
    if cursor.accept("FIRST"):
        return End.FIRST
    cursor.expect("AFTER")
    return After(cursor.identifier())


def _is_after_type(cursor: Cursor) -> bool:
    return cursor.sees(",") or any(cursor.sees(*words) for words in _AFTER_TYPE)


def read_properties(cursor: Cursor) -> dict[str, str]:
    """Read keys with their values; numbers stay text.

    Raises:
        SqlSyntaxError: a key has no value, or is repeated (DUPLICATE_KEY).
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
