"""Column definitions and property lists in statement text.

Types and expressions are only delimited here: Spark parses them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from puredelta.errors import ErrorCode
from puredelta.protocol.features.generated_columns import IdentitySpec
from puredelta.protocol.schema.schema_edit import After, ColumnPosition, End, FieldPath
from puredelta.protocol.schema.sql_lexer import Token, TokenKind
from puredelta.statements.parse.cursor import Cursor, SqlSyntaxError, TextPosition
from puredelta.statements.parse.expression_text import read_expression
from puredelta.statements.parse.literals import accept_text, read_text

_AFTER_TYPE = (
    ("NOT", "NULL"),
    ("COMMENT",),
    ("DEFAULT",),
    ("FIRST",),
    ("AFTER",),
    ("GENERATED",),
    ("CONSTRAINT",),
    ("CHECK", "("),
    ("PRIMARY", "KEY"),
    ("UNIQUE",),
    ("REFERENCES",),
)
_OPENING = frozenset("(<[")
_CLOSING = frozenset(")>]")


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnDefinition:
    """A column's name and type, and the clauses after them, as far as each is there.

    ``[NOT NULL] [DEFAULT value] [GENERATED ...] [COMMENT text] [FIRST | AFTER other]``.
    """

    path: FieldPath
    data_type: str
    nullable: bool = True
    default: str | None = None
    generated_as: str | IdentitySpec | None = None
    """The text after GENERATED ALWAYS AS, or what AS IDENTITY says."""
    comment: str | None = None
    position: ColumnPosition | None = None


def read_columns(cursor: Cursor) -> tuple[ColumnDefinition, ...]:
    """Read one column or more, in brackets or not."""
    return tuple(cursor.items_in_brackets(read_column, optional=True))


def read_column(cursor: Cursor, *, may_be_generated: bool = False) -> ColumnDefinition:
    """Read one column; the clauses after its type may come in any order.

    GENERATED is a clause of CREATE TABLE alone.
    """
    path = cursor.name()
    data_type = read_type(cursor)
    nullable, default, comment, position = True, None, None, None
    generated: str | IdentitySpec | None = None
    while True:
        if nullable and cursor.accept("NOT", "NULL"):
            nullable = False
        elif default is None and cursor.accept("DEFAULT"):
            default = read_expression(cursor, _is_after_type)
        elif comment is None and cursor.accept("COMMENT"):
            comment = read_text(cursor)
        elif may_be_generated and generated is None and cursor.accept("GENERATED"):
            generated = _read_generated(cursor)
        elif position is None and (cursor.sees("FIRST") or cursor.sees("AFTER")):
            position = read_position(cursor)
        else:
            break
    return ColumnDefinition(
        path=path,
        data_type=data_type,
        nullable=nullable,
        default=default,
        generated_as=generated,
        comment=comment,
        position=position,
    )


def _read_generated(cursor: Cursor) -> str | IdentitySpec:
    """Read the rest of ``GENERATED ALWAYS AS (expression)``, or of an identity column."""
    takes_values = cursor.accept("BY", "DEFAULT")
    if not takes_values:
        cursor.expect("ALWAYS")
    cursor.expect("AS")
    if not cursor.accept("IDENTITY"):
        return cursor.group()
    spec = IdentitySpec(allows_explicit_insert=takes_values)
    if not cursor.accept("("):
        return spec
    while not cursor.accept(")"):
        if cursor.accept("START", "WITH"):
            spec = replace(spec, start=_whole_number(cursor))
        else:
            cursor.expect("INCREMENT", "BY")
            spec = replace(spec, step=_whole_number(cursor))
    return spec


def _whole_number(cursor: Cursor) -> int:
    sign = -1 if cursor.accept("-") else 1
    return sign * int(cursor.number(whole=True))


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


def read_options(cursor: Cursor) -> dict[str, str]:
    """Read keys with the values that are literals; other values are left out, as Spark has it."""
    options: dict[str, str] = {}

    def add(cursor: Cursor) -> None:
        key = _key(cursor)
        if not (cursor.accept("=") or cursor.accept("==")) and (
            cursor.sees(",") or cursor.sees(")")
        ):
            return
        value = Cursor(read_expression(cursor, lambda at: at.sees(",")))
        try:
            found = _value(value)
        except SqlSyntaxError:
            return
        if value.is_done:
            options[key] = found

    cursor.items_in_brackets(add, optional=False)
    return options


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
