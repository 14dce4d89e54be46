"""INSERT, and FROM with one INSERT or several after it: the names of the tables that get rows."""

from __future__ import annotations

from collections.abc import Iterator

from puredelta.sql.parse.create import read_target
from puredelta.sql.parse.statement import SparkParsedStatement, TableInText
from puredelta.sql.text.cursor import Cursor

_INSERTS = (
    ("INSERT", "INTO"),
    ("INSERT", "OVERWRITE"),
    ("INSERT", "WITH", "SCHEMA", "EVOLUTION", "INTO"),
    ("INSERT", "WITH", "SCHEMA", "EVOLUTION", "OVERWRITE"),
)


def read_insert(cursor: Cursor) -> SparkParsedStatement | None:
    """Read up to the last target's name; None for a query that begins with FROM.

    Raises:
        SqlSyntaxError: no name follows INSERT, or a bracket is not closed.
    """
    has_several = cursor.sees("FROM")
    if has_several:
        cursor.skip_to("INSERT")
    start = cursor.start
    targets = tuple(_targets(cursor, has_several=has_several))
    return SparkParsedStatement(defines=False, targets=targets, start=start) if targets else None


def _targets(cursor: Cursor, *, has_several: bool) -> Iterator[TableInText]:
    while not cursor.is_done:
        if any(cursor.accept(*words) for words in _INSERTS):
            cursor.accept("TABLE")
            yield read_target(cursor)
        elif has_several:
            cursor.skip()
        if not has_several:
            return
        cursor.skip_to("INSERT")
