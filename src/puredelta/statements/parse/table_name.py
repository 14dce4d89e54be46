"""Names of tables in statement text, and their versions."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from puredelta.protocol.schema.sql_lexer import TokenKind
from puredelta.spark.session.names import SESSION_CATALOG, display_name, path_in_name
from puredelta.statements.parse.cursor import Cursor
from puredelta.statements.parse.literals import accept_text, read_text


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
        return path_in_name(self.parts)

    @property
    def qualifier(self) -> tuple[str, ...]:
        """The longest qualifier of an unaliased table's columns."""
        return (SESSION_CATALOG, *self.parts[-2:]) if self.path is not None else self.parts

    def seen_from(self, namespace: Sequence[str]) -> TableName:
        """Return the name with its namespace; ``namespace`` is that of a name of one part."""
        return TableName((*namespace, *self.parts)) if len(self.parts) == 1 else self

    def __str__(self) -> str:
        return display_name(self.parts)


@dataclass(frozen=True, slots=True)
class ComputedName:
    """``IDENTIFIER(expression)``: the expression's text."""

    expression: str


@dataclass(frozen=True, slots=True)
class QuotedPath:
    """``'/path'``, a table only in statements unknown to Spark."""

    path: str


TableReference: TypeAlias = TableName | ComputedName
"""Names of tables in any statement."""
TableArgument: TypeAlias = TableReference | QuotedPath
"""Names of tables in statements unknown to Spark."""


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
    """Parse a computed name: the whole text is the name."""
    cursor = Cursor(text)
    name = read_table(cursor)
    cursor.expect_end()
    if isinstance(name, ComputedName):
        raise Cursor(text).error(expected="a name")
    return name


_OF_VERSION = frozenset({"VERSION", "SYSTEM_VERSION"})
_OF_TIMESTAMP = frozenset({"TIMESTAMP", "SYSTEM_TIME"})
_IN_PATH = re.compile(r"@(?:v(?P<version>\d+)|(?P<timestamp>\d{17}))\Z", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeTravel:
    """A version by number, or the newest at a time; exactly one of the two."""

    version: str | None = None
    timestamp: str | None = None


def sees_time_travel(cursor: Cursor, ahead: int = 0) -> bool:
    """Tell whether ``[FOR] VERSION AS OF`` or ``[FOR] TIMESTAMP AS OF`` comes next.

    ``ahead`` is the number of tokens before it.
    """
    ahead += cursor.sees("FOR", ahead=ahead)
    kind = cursor.peek(ahead)
    is_kind = kind is not None and kind.text.upper() in _OF_VERSION | _OF_TIMESTAMP
    return is_kind and cursor.sees("AS", "OF", ahead=ahead + 1)


def accept_time_travel(cursor: Cursor) -> TimeTravel | None:
    """Parse time travel to a literal, the only form in statements unknown to Spark.

    Raises:
        SqlSyntaxError: no number or text in quotes follows.
    """
    if cursor.sees("FOR") and not sees_time_travel(cursor):
        cursor.skip()
        raise cursor.error(expected="VERSION AS OF or TIMESTAMP AS OF")
    return _accept(
        cursor, _whole_number, lambda cursor: read_text(cursor, expected="a time in quotes")
    )


def accept_time_travel_of_query(cursor: Cursor) -> TimeTravel | None:
    """Parse time travel in the form of queries; the timestamp is an expression's text.

    A wrong version is returned as it is written.
    """
    return _accept(cursor, _any_version, _timestamp_expression)


def split_time_travel(path: str) -> tuple[str, TimeTravel | None]:
    """Return a path and the version or time at its end: ``/t@v3``, ``/t@20250131120000000``.

    >>> split_time_travel("/data/events@v3")
    ('/data/events', TimeTravel(version='3', timestamp=None))
    """
    found = _IN_PATH.search(path)
    if found is None:
        return path, None
    root, digits = path[: found.start()], found["timestamp"]
    if digits is None:
        return root, TimeTravel(version=found["version"])
    try:
        at = dt.datetime.strptime(f"{digits}000", "%Y%m%d%H%M%S%f")  # noqa: DTZ007 - the session's
    except ValueError:  # no such day or hour; the error is raised where the time is needed
        return root, TimeTravel(timestamp=digits)
    return root, TimeTravel(timestamp=at.isoformat(sep=" "))


def _accept(
    cursor: Cursor, read_version: Callable[[Cursor], str], read_time: Callable[[Cursor], str]
) -> TimeTravel | None:
    if not sees_time_travel(cursor):
        return None
    cursor.accept("FOR")
    is_version = cursor.word in _OF_VERSION
    cursor.skip(3)
    if is_version:
        return TimeTravel(version=read_version(cursor))
    return TimeTravel(timestamp=read_time(cursor))


def _whole_number(cursor: Cursor) -> str:
    error = cursor.error(expected="a version number")
    text = _any_version(cursor)
    if not text.isdecimal():
        raise error
    return text


def _any_version(cursor: Cursor) -> str:
    text, token = accept_text(cursor), cursor.peek()
    if text is not None:
        return text
    cursor.skip()
    if token is not None and token.means("-"):  # no version, but the error names all of it
        return f"-{_any_version(cursor)}"
    return "" if token is None else token.text


def _timestamp_expression(cursor: Cursor) -> str:
    """Parse a literal, a function call or an expression in brackets.

    Only Spark's grammar can tell the end of a longer expression from an alias.
    """
    start = cursor.position
    token = cursor.peek()
    if token is not None and token.kind is TokenKind.WORD:
        cursor.skip()
    if cursor.sees("("):
        cursor.group()
    elif not cursor.is_done:
        cursor.skip()
    return cursor.between(start)
