"""Delta tables and their changes inside a query, under names that Spark can resolve."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from typing import TypeAlias

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StringType

from puredelta.commands.read.read_table import read_named
from puredelta.protocol.schema.sql_lexer import keywords, tokenize, unquoted
from puredelta.spark.session.delta_conf import REFUSED_BY_PATHS_WITH_VERSIONS
from puredelta.spark.session.identifiers import quote_name
from puredelta.spark.session.open_log import open_log
from puredelta.spark.session.session import settings_of
from puredelta.sql.relations.names import find_location
from puredelta.sql.relations.table_changes import accept_changes, may_call
from puredelta.sql.relations.views import RowNames
from puredelta.sql.text.cursor import Cursor, is_identifier, replaced
from puredelta.sql.text.relation_text import RelationText, find_alias_place, read_relations
from puredelta.sql.text.table_name import TableName
from puredelta.sql.text.time_travel import (
    TimeTravel,
    accept_time_travel_of_query,
    sees_time_travel,
    split_time_travel,
)

_Part: TypeAlias = tuple[int, int, str]
"""Start, end and new text of a part of a text."""
_PATH = re.compile(r"\bdelta[`\"]?\s*\.\s*[`\"]", re.IGNORECASE)
_FORMAT = re.compile(r"\bdelta\b", re.IGNORECASE)
_AS_OF = re.compile(r"\bAS\s+OF\b", re.IGNORECASE)
_PATH_LENGTHS = (3, 5)
"""Tokens of ``delta.`/path` `` without and with the session catalog before it."""
_QUERIES = keywords("SELECT WITH FROM VALUES TABLE INSERT (")
_EXPLAIN = keywords("EXPLAIN EXTENDED FORMATTED COST CODEGEN LOGICAL")


def may_query_tables(text: str) -> bool:
    """Tell from a glance whether a query could name a table by its path or a version of one, or
    call ``table_changes``; also a query that is inserted or makes a table.

    The definition of a view is none: it outlives what the name stands for (see
    `puredelta.sql.execute.views`).
    """
    if not may_need_names(text):
        return False
    cursor = Cursor(text)
    if cursor.sees("EXPLAIN"):
        while cursor.word in _EXPLAIN:
            cursor.skip()
    return cursor.word in _QUERIES or cursor.sees("CREATE", "TABLE")


def may_name_path(text: str) -> bool:
    """Tell from a glance whether a text could name a table by its path."""
    return _PATH.search(text) is not None


def may_need_names(text: str) -> bool:
    """Tell from a glance whether a text could name what Spark cannot resolve: a table by its path,
    a version of one, or its changes.
    """
    return may_name_path(text) or _AS_OF.search(text) is not None or may_call(text)


def with_views(
    spark: SparkSession,
    text: str,
    names: RowNames,
    *,
    namespace: Sequence[str] = (),
    columns: frozenset[str] | None = None,
    targets: Sequence[_Part] = (),
) -> str:
    """Return a query with another name wherever the text names a Delta table by its path, or a
    version of one in the catalog.

    ``VERSION AS OF`` and ``TIMESTAMP AS OF`` after the name choose the version. A path is a table
    only where a relation can be, and before a column (``delta.`/path`.id``) the name of one; a
    call of ``table_changes`` on such a table is replaced, too. ``targets`` are parts of the text
    with their own names: start, end, name. ``namespace`` is where a table of one part belongs whose
    changes are asked for, if that is not the session's. ``columns`` are all that a query can need,
    see `puredelta.sql.relations.named_columns`. Runs no job.

    Raises:
        TableNotFoundError: there is no table at a path, or no such version.
        InvalidRequestError: the time travel, or a call of ``table_changes``, is wrong.
    """
    if _FORMAT.search(text) is None and _AS_OF.search(text) is None and not may_call(text):
        return replaced(text, targets)
    read = cache(partial(_read, spark, columns))  # the same version is read once, with one name
    renaming = _Renaming(spark=spark, names=names, namespace=namespace, read=read)
    return replaced(text, renaming.parts(text, targets))


@dataclass(slots=True, kw_only=True)
class _Renaming:
    """The tables, calls and names before columns of one text, as they get other names."""

    spark: SparkSession
    names: RowNames
    namespace: Sequence[str]
    read: Callable[[str, TimeTravel | None], DataFrame]
    named: dict[str, str] = field(default_factory=dict)
    """The other names of paths."""

    def parts(self, text: str, targets: Sequence[_Part]) -> list[_Part]:
        """Return where something in the text gets another name, and that name."""
        cursor = Cursor(text)
        places = read_relations(tokenize(text))
        stated = {target[0]: target for target in targets}
        found: list[_Part] = []
        while not cursor.is_done:
            position = cursor.position
            if (target := stated.get(cursor.start)) is not None:
                found.append(target)
                while cursor.start < target[1]:
                    cursor.skip()
            elif position in places.starts:
                found += self._relation(cursor)
            if cursor.position == position:
                cursor.skip()
        if self.named:
            found = sorted([*found, *_qualifiers(text, places, self.named)])
        return found

    def _relation(self, cursor: Cursor) -> Iterator[_Part]:
        """Step over a relation if it is one of ours."""
        start, alias = cursor.start, None
        path = _accept_path(cursor)
        if path is not None:
            rows: DataFrame | None = self.read(path, accept_time_travel_of_query(cursor))
        elif (name := _travelled_name(cursor)) is not None and (
            location := find_location(self.spark, name)
        ) is not None:
            cursor.skip(2 * len(name.parts) - 1)
            rows = self.read(location, accept_time_travel_of_query(cursor))
            alias = quote_name(name.parts[-1:])
        else:
            rows = accept_changes(self.spark, cursor, self.namespace)
        if rows is None:
            return
        other = self.names.add(rows)
        if path is not None:
            self.named.setdefault(path, other)
        yield start, cursor.end, other
        if alias is not None and (place := find_alias_place(cursor)) is not None:
            yield place, place, f" AS {alias}"


def _qualifiers(text: str, places: RelationText, named: Mapping[str, str]) -> Iterator[_Part]:
    """Yield where a path of a relation is the name of that relation: ``delta.`/path`.id``."""
    cursor = Cursor(text)
    while not cursor.is_done:
        position, start = cursor.position, cursor.start
        before = cursor.peek(-1) if position else None
        path = None
        if position not in places.starts and (before is None or not before.means(".")):
            path = _accept_path(cursor)
        if path is None:
            cursor.skip()
        elif path in named and (cursor.sees(".") or position in places.in_hints):
            yield start, cursor.end, named[path]


def _read(
    spark: SparkSession, columns: frozenset[str] | None, path: str, travel: TimeTravel | None
) -> DataFrame:
    if travel is None:
        root, in_path = split_time_travel(path)
        # A table whose directory has such a name stands for itself.
        if in_path is None or open_log(spark, path).exists():
            return read_named(spark, path, columns)
        REFUSED_BY_PATHS_WITH_VERSIONS.require_defaults(settings_of(spark))
        return read_named(
            spark, root, columns, version=in_path.version, timestamp=in_path.timestamp
        )
    time = travel.timestamp
    if time is not None:
        given = spark.sql(f"SELECT ({time}) AS time")
        if not isinstance(given.schema["time"].dataType, StringType):
            given = given.selectExpr("string(timestamp(time)) AS time")
        [row] = given.collect()
        time = str(row["time"])
    return read_named(spark, path, columns, version=travel.version, timestamp=time)


def _accept_path(cursor: Cursor) -> str | None:
    """Step over ``delta.`/path` ``, the session catalog before it or not, and return the path."""
    for length in _PATH_LENGTHS:
        tokens = [cursor.peek(ahead) for ahead in range(length)]
        parts = [token for token in tokens[::2] if token is not None and is_identifier(token)]
        dots = [token for token in tokens[1::2] if token is not None and token.means(".")]
        if len(parts) + len(dots) < length:
            return None
        path = TableName(tuple(map(unquoted, parts))).path
        if path is not None:
            cursor.skip(length)
            return path
    return None


def _travelled_name(cursor: Cursor) -> TableName | None:
    """Return the name of a table if it comes next, whole, and time travel follows it.

    Without time travel Spark itself resolves the names of the catalog.
    """
    before = cursor.peek(-1) if cursor.position else None
    if before is not None and before.means("."):
        return None
    length = cursor.name_length()
    tokens = [cursor.peek(n) for n in range(0, length, 2)]
    names = [token for token in tokens if token is not None and is_identifier(token)]
    if len(names) < len(tokens) or not sees_time_travel(cursor, length):
        return None
    return TableName(tuple(map(unquoted, names)))
