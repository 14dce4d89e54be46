"""``EXECUTE IMMEDIATE text [USING values]``: a statement whose text is an expression."""

from __future__ import annotations

import re
from dataclasses import dataclass

from puredelta.sql.text.cursor import Cursor
from puredelta.sql.text.expression import read_expression
from puredelta.sql.text.syntax_error import SqlSyntaxError

_BEGIN = re.compile(
    r"\s*(?:(?:--[^\n]*\n|/\*.*?\*/)\s*)*execute\s+immediate\b", re.IGNORECASE | re.DOTALL
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Immediate:
    """A statement to be computed; all texts are expressions."""

    text: str
    values: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    """Of the values, if they have names."""


def read_immediate(text: str) -> Immediate | None:
    """Read a statement; None if it is another, is wrong, or wants its result in variables.

    >>> read_immediate("EXECUTE IMMEDIATE 'SELECT :a' USING 1 AS a")
    Immediate(text="'SELECT :a'", values=('1',), names=('a',))
    """
    if _BEGIN.match(text) is None:
        return None
    cursor = Cursor(text)
    try:
        cursor.expect("EXECUTE", "IMMEDIATE")
        statement = read_expression(cursor, lambda at: at.sees("USING") or at.sees("INTO"))
        given = cursor.items_in_brackets(_value, optional=True) if cursor.accept("USING") else []
        cursor.expect_end()
    except SqlSyntaxError:
        return None
    names = tuple(name for _, name in given if name is not None)
    if names and len(names) != len(given):
        return None
    return Immediate(text=statement, values=tuple(value for value, _ in given), names=names)


def _value(cursor: Cursor) -> tuple[str, str | None]:
    value = read_expression(cursor, lambda at: at.sees(",") or at.sees("AS"))
    return value, cursor.identifier() if cursor.accept("AS") else None
