"""Columns as ALTER TABLE spells them: a name, a type, and what is said of them.

Types and expressions are not understood, only delimited: Spark reads them.
"""

from __future__ import annotations

from dataclasses import dataclass

from puredelta.protocol.schema.schema_edit import After, ColumnPosition, End, FieldPath
from puredelta.sql.text.cursor import Cursor
from puredelta.sql.text.expression import read_expression
from puredelta.sql.text.text_literal import read_text

_BEHIND_TYPE = (("NOT", "NULL"), ("COMMENT",), ("DEFAULT",), ("FIRST",), ("AFTER",), ("GENERATED",))
_OPENING = frozenset("(<[")
_CLOSING = frozenset(")>]")


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenColumn:
    """``name type [NOT NULL] [DEFAULT value] [COMMENT text] [FIRST | AFTER other]``."""

    path: FieldPath
    data_type: str
    nullable: bool = True
    default: str | None = None
    comment: str | None = None
    place: ColumnPosition | None = None


def read_columns(cursor: Cursor) -> tuple[WrittenColumn, ...]:
    """Read one column or more, in brackets or not.

    Raises:
        SqlSyntaxError: there is none, or something else is said of one.
    """
    in_brackets = cursor.accept("(")
    columns = [read_column(cursor)]
    while cursor.accept(","):
        columns.append(read_column(cursor))
    if in_brackets:
        cursor.expect(")")
    return tuple(columns)


def read_column(cursor: Cursor) -> WrittenColumn:
    """Read one column; what is said of it may come in any order.

    Raises:
        SqlSyntaxError: there is no type, or a word that is not known.
    """
    path = read_path(cursor)
    data_type = read_type(cursor)
    nullable, default, comment, place = True, None, None, None
    while True:
        if nullable and cursor.accept("NOT", "NULL"):
            nullable = False
        elif default is None and cursor.accept("DEFAULT"):
            default = read_expression(cursor, _is_behind_type)
        elif comment is None and cursor.accept("COMMENT"):
            comment = read_text(cursor)
        elif place is None and _sees_place(cursor):
            place = read_place(cursor)
        else:
            break
    return WrittenColumn(
        path=path,
        data_type=data_type,
        nullable=nullable,
        default=default,
        comment=comment,
        place=place,
    )


def read_type(cursor: Cursor) -> str:
    """Step over a type, brackets included, and return its text.

    Raises:
        SqlSyntaxError: there is none.
    """
    start, depth = cursor.position, 0
    while (token := cursor.peek()) is not None:
        if depth == 0 and (_is_behind_type(cursor) or token.text in {",", ")", ";"}):
            break
        depth += (token.text in _OPENING) - (token.text in _CLOSING)
        cursor.skip()
    if cursor.position == start:
        raise cursor.error(expected="a data type")
    return cursor.between(start)


def read_path(cursor: Cursor) -> FieldPath:
    """Read the name of a column or nested field, in parts.

    Raises:
        SqlSyntaxError: there is none.
    """
    parts = [cursor.identifier()]
    while cursor.accept("."):
        parts.append(cursor.identifier())
    return tuple(parts)


def read_paths(cursor: Cursor) -> tuple[FieldPath, ...]:
    """Read names of columns, separated by commas."""
    paths = [read_path(cursor)]
    while cursor.accept(","):
        paths.append(read_path(cursor))
    return tuple(paths)


def read_place(cursor: Cursor) -> ColumnPosition:
    """Read ``FIRST`` or ``AFTER name``.

    Raises:
        SqlSyntaxError: there is neither.
    """
    if cursor.accept("FIRST"):
        return End.FIRST
    cursor.expect("AFTER")
    return After(cursor.identifier())


def _sees_place(cursor: Cursor) -> bool:
    return cursor.sees("FIRST") or cursor.sees("AFTER")


def _is_behind_type(cursor: Cursor) -> bool:
    return cursor.sees(",") or any(cursor.sees(*words) for words in _BEHIND_TYPE)
