"""Which columns a SQL expression of a table mentions: a constraint or a generation expression.

The text is searched without a parser. A function with the name of a column may be taken for the
column, but no column is missed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from puredelta.protocol.schema.types import DataType, StructType

_NAME = r"(?:`(?:[^`]|``)+`|[A-Za-z_]\w*)"
_TOKEN = re.compile(
    rf"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|(?P<reference>{_NAME}(?:\s*\.\s*{_NAME})*)"
)
"""Matches a string literal, or a name that may be a column."""
_PART = re.compile(r"`((?:[^`]|``)+)`|(\w+)")


def referenced_paths(sql: str, schema: StructType) -> list[tuple[str, ...]]:
    """Return the columns and fields that an expression names, in order of first mention.

    >>> from puredelta.protocol.schema.types import INTEGER, StructField
    >>> schema = StructType((StructField("a", INTEGER), StructField("b c", INTEGER)))
    >>> referenced_paths("abs(A) > 0 AND `b c` <> 'a'", schema)
    [('a',), ('b c',)]
    """
    found: dict[tuple[str, ...], None] = {}
    for token in _TOKEN.finditer(sql):
        if token["reference"]:
            names = [a.replace("``", "`") or b for a, b in _PART.findall(token["reference"])]
            if path := _resolve(names, schema):
                found[path] = None
    return list(found)


def _resolve(names: Sequence[str], schema: StructType) -> tuple[str, ...]:
    path: tuple[str, ...] = ()
    level: DataType = schema
    for name in names:
        field = level.find_ignoring_case(name) if isinstance(level, StructType) else None
        if field is None:
            break
        path, level = (*path, field.name), field.type
    return path
