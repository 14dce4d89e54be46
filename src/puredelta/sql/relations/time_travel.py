"""Delta tables and their changes inside a query, under names that Spark can resolve."""

from __future__ import annotations

import datetime as dt
import re

from pyspark.sql import DataFrame, SparkSession

from puredelta.commands.read import read_table
from puredelta.log.replay.table_log import TableLog
from puredelta.spark.session.identifiers import quote_name
from puredelta.sql.relations.names import find_location
from puredelta.sql.relations.table_changes import accept_changes, may_call
from puredelta.sql.relations.views import RowNames
from puredelta.sql.text.cursor import Cursor, is_identifier, unquoted
from puredelta.sql.text.lexer import Token, TokenKind, keywords
from puredelta.sql.text.table_name import TableName

_PATH = re.compile(r"\bdelta[`\"]?\s*\.\s*[`\"]", re.IGNORECASE)
_FORMAT = re.compile(r"\bdelta\b", re.IGNORECASE)
_STATE = re.compile(r"@(?:v(?P<version>\d+)|(?P<at>\d{17}))\Z", re.IGNORECASE)
_AS_OF = re.compile(r"\bAS\s+OF\b", re.IGNORECASE)
_TRAVELS = frozenset({"VERSION", "SYSTEM_VERSION", "TIMESTAMP", "SYSTEM_TIME"})
_BEGIN = frozenset({"SELECT", "WITH", "FROM", "VALUES", "TABLE", "INSERT", "("})
_EXPLAIN = frozenset({"EXPLAIN", "EXTENDED", "FORMATTED", "COST", "CODEGEN", "LOGICAL"})


def may_query_paths(text: str) -> bool:
    """Tell from a glance whether a query, also one that is inserted or makes a table, could
    name a table by its path, or a version of one.

    The definition of a view is none: it would outlive what the name stands for (see
    `puredelta.sql.execute.view_text`).
    """
    if not may_name_states(text):
        return False
    cursor = Cursor(text)
    if cursor.sees("EXPLAIN"):
        while (word := cursor.peek()) is not None and word.text.upper() in _EXPLAIN:
            cursor.skip()
    first = cursor.peek()
    if first is None:
        return False
    return first.text.upper() in _BEGIN or cursor.sees("CREATE", "TABLE")


def may_name_states(text: str) -> bool:
    """Tell from a glance whether a text could name a table by its path, or a version of one."""
    return _PATH.search(text) is not None or _AS_OF.search(text) is not None


def with_views(spark: SparkSession, text: str, names: RowNames) -> str:
    """Return a query with another name wherever the text names a Delta table by its path, or a
    version of one in the catalog.

    ``VERSION AS OF`` and ``TIMESTAMP AS OF`` behind the name choose the state. A name in
    front of a column (``delta.`/path`.id``) is replaced as well, and so is a call of
    ``table_changes`` on such a table. Runs no job.

    Raises:
        TableNotFoundError: there is no table at a path, or no such version.
        InvalidRequestError: the time travel, or a call of ``table_changes``, is wrong.
    """
    if _FORMAT.search(text) is None and _AS_OF.search(text) is None and not may_call(text):
        return text
    cursor = Cursor(text)
    known: dict[tuple[str, str], DataFrame] = {}
    pieces: list[str] = []
    at = 0
    while (token := cursor.peek()) is not None:
        before = cursor.position
        travelled = _travelled_name(cursor)
        rows = _accept_table(spark, cursor, known)
        if rows is None:
            rows = accept_changes(spark, cursor)
        if rows is not None:
            pieces += [text[at : token.start], names.add(rows)]
            at = cursor.offset
            if travelled is not None and _ends_without_alias(cursor):
                pieces.append(f" AS {travelled}")
        elif cursor.position == before:
            cursor.skip()
    return "".join([*pieces, text[at:]])


def _accept_table(
    spark: SparkSession, cursor: Cursor, known: dict[tuple[str, str], DataFrame]
) -> DataFrame | None:
    """Step over the name of a table and return its rows; the same state is read once."""
    path = _accept_path(cursor) or _accept_travelled(spark, cursor)
    if path is None:
        return None
    version, timestamp = _accept_version(cursor), _accept_timestamp(cursor)
    state = (path, f"{version} {timestamp}")
    if state not in known:
        moment = None if timestamp is None else _moment(spark, timestamp)
        if version is None and moment is None:
            path, version, moment = _state_in(path)
        known[state] = read_table(spark, path, version=version, timestamp=moment)
    return known[state]


def _state_in(path: str) -> tuple[str, str | None, str | None]:
    """Return a path, and the version or time that it ends in: ``/t@v3``, ``/t@20250131120000000``.

    A table whose directory has such a name stands for itself.
    """
    found = _STATE.search(path)
    if found is None or TableLog.open(path).exists():
        return path, None, None
    root, version, at = path[: found.start()], found["version"], found["at"]
    if at is None:
        return root, version, None
    moment = dt.datetime.strptime(f"{at}000", "%Y%m%d%H%M%S%f")  # noqa: DTZ007 - the session's zone
    return root, None, moment.isoformat(sep=" ")


def _accept_path(cursor: Cursor) -> str | None:
    """Step over ``delta.`/path` `` and return the path."""
    name, dot, table = (cursor.peek(n) for n in range(3))
    if name is None or dot is None or table is None or not dot.means("."):
        return None
    path = TableName((unquoted(name), unquoted(table))).path
    if path is not None:
        for _ in range(3):
            cursor.skip()
    return path


def _accept_travelled(spark: SparkSession, cursor: Cursor) -> str | None:
    """Step over the name of a table of the catalog, if its version is chosen behind it.

    Returns the table's location. Without a version the name is Spark's to resolve.
    """
    before = cursor.peek(-1) if cursor.position else None
    if before is not None and before.means("."):
        return None
    tokens = _name_tokens(cursor)
    names = [token for token in tokens if token is not None and is_identifier(token)]
    if len(names) < len(tokens) or not _is_travel(cursor, 2 * len(tokens) - 1):
        return None
    location = find_location(spark, TableName(tuple(map(unquoted, names))))
    if location is not None:
        for _ in range(2 * len(tokens) - 1):
            cursor.skip()
    return location


def _is_travel(cursor: Cursor, ahead: int) -> bool:
    """Tell whether ``[FOR] VERSION AS OF`` or its kin stands so many tokens ahead."""
    words = [cursor.peek(ahead + n) for n in range(4)]
    texts = [word.text.upper() for word in words if word is not None]
    if texts[:1] == ["FOR"]:
        texts = texts[1:]
    return len(texts) > 2 and texts[0] in _TRAVELS and texts[1:3] == ["AS", "OF"]  # noqa: PLR2004


def _travelled_name(cursor: Cursor) -> str | None:
    """Return what columns of the table are called by, if a name of the catalog stands here."""
    tokens = _name_tokens(cursor)
    names = [token for token in tokens if token is not None and is_identifier(token)]
    if len(names) < len(tokens) or not _is_travel(cursor, 2 * len(tokens) - 1):
        return None
    name = TableName(tuple(map(unquoted, names)))
    return quote_name(name.parts[-1:]) if name.path is None else None


def _name_tokens(cursor: Cursor) -> list[Token | None]:
    """Return the parts of the dotted name that may stand here."""
    tokens = [cursor.peek()]
    while (dot := cursor.peek(2 * len(tokens) - 1)) is not None and dot.means("."):
        tokens.append(cursor.peek(2 * len(tokens)))
    return tokens


_BEHIND_TABLES = keywords(
    "WHERE JOIN INNER CROSS LEFT RIGHT FULL SEMI ANTI NATURAL LATERAL ON USING GROUP ORDER HAVING "
    "LIMIT UNION EXCEPT MINUS INTERSECT WINDOW CLUSTER DISTRIBUTE SORT TABLESAMPLE PIVOT UNPIVOT "
    "SELECT INSERT"
)


def _ends_without_alias(cursor: Cursor) -> bool:
    """Tell whether a table goes without another name: what follows cannot be one."""
    token = cursor.peek()
    return token is None or token.text in {",", ")", ";"} or token.text.upper() in _BEHIND_TABLES


def _accept_version(cursor: Cursor) -> str | None:
    """Step over ``[FOR] VERSION AS OF n`` and return the number's text."""
    if not _accept_as_of(cursor, "VERSION", "SYSTEM_VERSION"):
        return None
    token = cursor.peek()
    cursor.skip()
    return "" if token is None else token.text.strip("'\"")


def _accept_timestamp(cursor: Cursor) -> str | None:
    """Step over ``[FOR] TIMESTAMP AS OF value`` and return the value's text.

    The value is a literal, a function call or something in brackets: where a longer
    expression ends and an alias begins only Spark's grammar can tell.
    """
    if not _accept_as_of(cursor, "TIMESTAMP", "SYSTEM_TIME"):
        return None
    start = cursor.position
    token = cursor.peek()
    if token is not None and token.kind is TokenKind.WORD:
        cursor.skip()
        token = cursor.peek()
    if cursor.sees("("):
        cursor.group()
    elif token is not None:
        cursor.skip()
    return cursor.between(start)


def _accept_as_of(cursor: Cursor, *kinds: str) -> bool:
    return any(
        cursor.accept(kind, "AS", "OF") or cursor.accept("FOR", kind, "AS", "OF") for kind in kinds
    )


def _moment(spark: SparkSession, expression: str) -> str:
    """Return the value of an expression as the session writes timestamps."""
    [row] = spark.sql(f"SELECT string(timestamp({expression})) AS moment").collect()
    return str(row["moment"])
