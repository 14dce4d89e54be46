"""How CREATE, REPLACE and INSERT statements begin, and which tables they are for.

Read with the lexer alone: enough to tell whether a statement may be ours, and to let every
other table in it be named by its path. What the statement says Spark's parser reads then.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pyspark.sql import SparkSession

from puredelta.spark.session.identifiers import quote_name
from puredelta.sql.parse.parse import skip_ctes
from puredelta.sql.relations.names import resolve_name
from puredelta.sql.relations.time_travel import with_views
from puredelta.sql.relations.views import TemporaryViews
from puredelta.sql.text.cursor import Cursor
from puredelta.sql.text.syntax_error import SqlSyntaxError
from puredelta.sql.text.table_name import ComputedName, TableReference


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetName:
    """The name of a table that a statement makes or fills, and where in the text it stands."""

    reference: TableReference
    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TableHead:
    """How a statement begins, up to the name of its table."""

    defines: bool
    """CREATE or REPLACE, not INSERT."""
    targets: tuple[TargetName, ...]
    """One; several where several INSERTs stand behind one FROM."""
    words_start: int
    """Where the first word of the statement is, behind common table expressions and FROM."""

    @property
    def name(self) -> TableReference:
        """The first table."""
        return self.targets[0].reference

    def named(self, spark: SparkSession, text: str, views: TemporaryViews) -> str:
        """Return the text with every table of ours but these as a view."""
        first = self.targets[0]
        pieces = [
            with_views(spark, text[: self.words_start], views),
            text[self.words_start : first.start],
        ]
        at = first.start
        for target in self.targets:
            between = text[at : target.start]
            name = text[target.start : target.end]
            if isinstance(target.reference, ComputedName):
                name = quote_name(resolve_name(spark, target.reference).parts)
            pieces += [with_views(spark, between, views), name]
            at = target.end
        return "".join([*pieces, with_views(spark, text[at:], views)])


def read_head(text: str) -> TableHead | None:
    """Return how a statement begins; None if it is no CREATE, REPLACE or INSERT.

    >>> head = read_head("FROM s INSERT INTO t SELECT a INSERT INTO u SELECT b")
    >>> [str(target.reference) for target in head.targets]
    ['t', 'u']
    """
    cursor = Cursor(text)
    try:
        skip_ctes(cursor)
        begins_with_from = _skip_from(cursor)
        first = cursor.peek()
        defines = _accept_definition(cursor)
        if first is None or not (defines or _accept_insertion(cursor)):
            return None
        targets = [_read_target(cursor)]
        if begins_with_from:
            targets += _further_targets(cursor)
    except SqlSyntaxError:
        return None
    return TableHead(defines=defines, targets=tuple(targets), words_start=first.start)


def _read_target(cursor: Cursor) -> TargetName:
    start = cursor.peek()
    reference = cursor.table()
    assert start is not None  # noqa: S101 - a name was read there
    return TargetName(reference=reference, start=start.start, end=cursor.offset)


def _further_targets(cursor: Cursor) -> Iterator[TargetName]:
    while not cursor.is_done:
        if _accept_insertion(cursor):
            yield _read_target(cursor)
        elif cursor.sees("("):
            cursor.group()
        else:
            cursor.skip()


def _skip_from(cursor: Cursor) -> bool:
    """Step over ``FROM rows`` in front of ``INSERT``; to the end where there is none."""
    if not cursor.accept("FROM"):
        return False
    while not (cursor.is_done or cursor.sees("INSERT")):
        if cursor.sees("("):
            cursor.group()
        else:
            cursor.skip()
    return True


def _accept_definition(cursor: Cursor) -> bool:
    if cursor.accept("CREATE", "TABLE") or cursor.accept("CREATE", "EXTERNAL", "TABLE"):
        cursor.accept("IF", "NOT", "EXISTS")
        return True
    return cursor.accept("CREATE", "OR", "REPLACE", "TABLE") or cursor.accept("REPLACE", "TABLE")


_INSERTIONS = (
    ("INSERT", "INTO"),
    ("INSERT", "OVERWRITE"),
    ("INSERT", "WITH", "SCHEMA", "EVOLUTION", "INTO"),
    ("INSERT", "WITH", "SCHEMA", "EVOLUTION", "OVERWRITE"),
)


def _accept_insertion(cursor: Cursor) -> bool:
    if not any(cursor.accept(*words) for words in _INSERTIONS):
        return False
    cursor.accept("TABLE")
    return True
