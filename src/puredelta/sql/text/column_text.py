"""Columns in ALTER TABLE: a name, a type, and what may follow the type.

Types and expressions are only delimited here: Spark reads them.
"""

from __future__ import annotations

from dataclasses import dataclass

from puredelta.protocol.schema.schema_edit import After, ColumnPosition, End, FieldPath
from puredelta.sql.text.cursor import Cursor
from puredelta.sql.text.expression import read_expression
from puredelta.sql.text.text_literal import read_text

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
    """Read one column; what follows its type may come in any order."""
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
    """Step over a type, brackets included, and return its text."""
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
