"""Delta tables and their changes inside a query, under names that Spark can resolve."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial

from pyspark.sql import DataFrame, SparkSession

from puredelta.commands.read.read_table import read_named
from puredelta.protocol.schema.sql_lexer import keywords, unquoted
from puredelta.spark.session.delta_conf import REFUSED_BY_PATHS_WITH_VERSIONS
from puredelta.spark.session.identifiers import quote_name
from puredelta.spark.session.open_log import open_log
from puredelta.spark.session.session import settings_of
from puredelta.sql.relations.names import find_location
from puredelta.sql.relations.table_changes import accept_changes, may_call
from puredelta.sql.relations.views import RowNames
from puredelta.sql.text.cursor import Cursor, is_identifier, replaced
from puredelta.sql.text.table_name import TableName
from puredelta.sql.text.time_travel import (
    TimeTravel,
    accept_time_travel_of_query,
    sees_time_travel,
    split_time_travel,
)

_PATH = re.compile(r"\bdelta[`\"]?\s*\.\s*[`\"]", re.IGNORECASE)
_FORMAT = re.compile(r"\bdelta\b", re.IGNORECASE)
_AS_OF = re.compile(r"\bAS\s+OF\b", re.IGNORECASE)
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
) -> str:
    """Return a query with another name wherever the text names a Delta table by its path, or a
    version of one in the catalog.

    ``VERSION AS OF`` and ``TIMESTAMP AS OF`` after the name choose the version. A name in
    front of a column (``delta.`/path`.id``) is replaced as well, and so is a call of
    ``table_changes`` on such a table. ``namespace`` is where a table of one part belongs whose
    changes are asked for, if that is not the session's. ``columns`` are all that a query can need,
    see `puredelta.sql.relations.named_columns`. Runs no job.

    Raises:
        TableNotFoundError: there is no table at a path, or no such version.
        InvalidRequestError: the time travel, or a call of ``table_changes``, is wrong.
    """
    if _FORMAT.search(text) is None and _AS_OF.search(text) is None and not may_call(text):
        return text
    read = partial(_read, spark, columns)
    return replaced(text, _tables(spark, text, names, namespace, read))


def _tables(
    spark: SparkSession,
    text: str,
    names: RowNames,
    namespace: Sequence[str],
    read_once: Callable[[str, TimeTravel | None], DataFrame],
) -> Iterator[tuple[int, int, str]]:
    """Yield where a table or a call stands in the text, and its other name."""
    cursor = Cursor(text)
    read = cache(read_once)  # the same version is read once, and has one name
    while (token := cursor.peek()) is not None:
        position, alias = cursor.position, ""
        path = _accept_path(cursor)
        if path is None and (name := _travelled_name(cursor)) is not None:
            path = find_location(spark, name)
            if path is not None:
                cursor.skip(2 * len(name.parts) - 1)
                alias = "" if name.path is not None else f" AS {quote_name(name.parts[-1:])}"
        if path is None:
            rows = accept_changes(spark, cursor, namespace)
        else:
            rows = read(path, accept_time_travel_of_query(cursor))
        if rows is not None:
            alias = alias if has_no_alias(cursor) else ""
            yield token.start, cursor.end, names.add(rows) + alias
        elif cursor.position == position:
            cursor.skip()


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
        [row] = spark.sql(f"SELECT string(timestamp({time})) AS time").collect()
        time = str(row["time"])
    return read_named(spark, path, columns, version=travel.version, timestamp=time)


def _accept_path(cursor: Cursor) -> str | None:
    """Step over ``delta.`/path` `` and return the path."""
    name, table = cursor.peek(), cursor.peek(2)
    if name is None or table is None or not cursor.sees(".", ahead=1):
        return None
    path = TableName((unquoted(name), unquoted(table))).path
    if path is not None:
        cursor.skip(3)
    return path


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


_AFTER_TABLES = keywords(
    "WHERE JOIN INNER CROSS LEFT RIGHT FULL SEMI ANTI NATURAL LATERAL ON USING GROUP ORDER HAVING "
    "LIMIT UNION EXCEPT MINUS INTERSECT WINDOW CLUSTER DISTRIBUTE SORT TABLESAMPLE PIVOT UNPIVOT "
    "SELECT INSERT"
)


def has_no_alias(cursor: Cursor) -> bool:
    """Tell whether a table has no other name: what follows cannot be one."""
    return cursor.is_done or cursor.word in {",", ")", ";"} or cursor.word in _AFTER_TABLES
