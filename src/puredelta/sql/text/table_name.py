"""Names of tables in statements, and the one form of a name that is a path."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from puredelta.spark.session.identifiers import display_name
from puredelta.sql.text.cursor import Cursor
from puredelta.sql.text.text_literal import accept_text

# As Hadoop's Path.isAbsolute: what follows an optional scheme and host begins with a slash.
_ABSOLUTE = re.compile(r"(?:[A-Za-z][A-Za-z0-9+.-]*:)?/")
_SESSION_CATALOG = "spark_catalog"


@dataclass(frozen=True, slots=True)
class TableName:
    """A name in parts, without quotes."""

    parts: tuple[str, ...]

    @property
    def path(self) -> str | None:
        """The path of ``delta.`/path` ``, with or without the session catalog before it.

        >>> TableName(("delta", "/data/events")).path
        '/data/events'
        >>> TableName(("delta", "events")).path is None  # a table of the database `delta`
        True
        """
        parts = self.parts
        if len(parts) == 3 and parts[0].lower() == _SESSION_CATALOG:  # noqa: PLR2004
            parts = parts[1:]
        match parts:
            case (format_name, path) if format_name.lower() == "delta" and _ABSOLUTE.match(path):
                return path
            case _:
                return None

    @property
    def qualifier(self) -> tuple[str, ...]:
        """What may stand before the columns of an unaliased table, the longest form."""
        return (_SESSION_CATALOG, *self.parts[-2:]) if self.path is not None else self.parts

    def seen_from(self, namespace: Sequence[str]) -> TableName:
        """Return the name as it is known everywhere; ``namespace`` is that of one part alone."""
        return TableName((*namespace, *self.parts)) if len(self.parts) == 1 else self

    def __str__(self) -> str:
        return display_name(self.parts)


@dataclass(frozen=True, slots=True)
class ComputedName:
    """``IDENTIFIER(expression)``: the expression's text."""

    expression: str


@dataclass(frozen=True, slots=True)
class QuotedPath:
    """``'/path'``, which only statements that Spark does not know take for a table."""

    path: str


TableReference: TypeAlias = TableName | ComputedName
"""What a statement names where a table is expected."""
TableArgument: TypeAlias = TableReference | QuotedPath
"""What a statement that Spark does not know names where a table is expected."""


def read_table(cursor: Cursor) -> TableReference:
    """Read the name of a table."""
    if cursor.sees("IDENTIFIER", "("):
        cursor.skip()
        return ComputedName(cursor.group())
    return TableName(cursor.name())


def read_table_argument(cursor: Cursor) -> TableArgument:
    """Read the name of a table, or its path in quotes."""
    path = accept_text(cursor)
    return read_table(cursor) if path is None else QuotedPath(path)


def parse_table_name(text: str) -> TableName:
    """Read a name that was computed: the whole text is the name."""
    cursor = Cursor(text)
    name = read_table(cursor)
    cursor.expect_end()
    if isinstance(name, ComputedName):
        raise Cursor(text).error(expected="a name")
    return name
