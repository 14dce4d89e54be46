"""CREATE, REPLACE and CACHE of tables, clones and views; INSERT, as far as the tables' names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from puredelta.statements.parse.column_text import read_properties
from puredelta.statements.parse.cursor import Cursor
from puredelta.statements.parse.literals import read_text
from puredelta.statements.parse.statement import (
    CloneStatement,
    LikeStatement,
    Rejected,
    SparkParsedStatement,
    TableInText,
    ViewLifetime,
    ViewStatement,
    read_or_reject,
)
from puredelta.statements.parse.table_name import TableReference, accept_time_travel, read_table


def read_create(
    cursor: Cursor,
) -> CloneStatement | LikeStatement | ViewStatement | SparkParsedStatement | Rejected | None:
    """Read ``CREATE [OR REPLACE]`` or ``REPLACE``; None if it makes no table and no view.

    Columns, partitions and the query of a table are left to Spark's parser.
    """
    start = cursor.start
    creates = cursor.accept("CREATE")
    replaces = cursor.accept("OR", "REPLACE") if creates else cursor.accept("REPLACE")
    lifetime = _lifetime(cursor)
    if creates and cursor.sees("VIEW"):
        return ViewStatement(lifetime=lifetime)
    cursor.accept("EXTERNAL")
    if lifetime is not ViewLifetime.PERMANENT or not cursor.accept("TABLE"):
        return None
    if_not_exists = not replaces and cursor.accept("IF", "NOT", "EXISTS")
    target = read_target(cursor)
    if not replaces and cursor.accept("LIKE"):
        return _like(cursor, target.name, if_not_exists=if_not_exists)
    shallow = cursor.accept("SHALLOW", "CLONE")
    if not (shallow or cursor.accept("DEEP", "CLONE") or cursor.accept("CLONE")):
        return SparkParsedStatement(defines=True, targets=(target,), start=start)

    def read_clone(cursor: Cursor) -> CloneStatement:
        return CloneStatement(
            target=target.name,
            source=read_table(cursor),
            shallow=shallow,
            creates=creates,
            replaces=replaces,
            if_not_exists=if_not_exists,
            state=accept_time_travel(cursor),
            properties=read_properties(cursor) if cursor.accept("TBLPROPERTIES") else {},
            location=read_text(cursor) if cursor.accept("LOCATION") else None,
        )

    return read_or_reject(cursor, read_clone, known_to_spark=False)


def read_cache(cursor: Cursor) -> ViewStatement | None:
    """Read ``CACHE [LAZY] TABLE``."""
    cursor.expect("CACHE")
    cursor.accept("LAZY")
    return ViewStatement(lifetime=ViewLifetime.SESSION) if cursor.sees("TABLE") else None


def read_target(cursor: Cursor) -> TableInText:
    """Read the name of a table, with its position in the text."""
    start = cursor.start
    return TableInText(name=read_table(cursor), start=start, end=cursor.end)


def _lifetime(cursor: Cursor) -> ViewLifetime:
    is_global = cursor.accept("GLOBAL")
    if not (cursor.accept("TEMP") or cursor.accept("TEMPORARY")):
        return ViewLifetime.PERMANENT
    return ViewLifetime.GLOBAL if is_global else ViewLifetime.SESSION


def _like(cursor: Cursor, target: TableReference, *, if_not_exists: bool) -> LikeStatement | None:
    """Read the rest of LIKE; None for ``STORED AS`` and ``ROW FORMAT``."""
    source = read_table(cursor)
    provider, location = None, None
    properties: Mapping[str, str] = {}
    while not (cursor.is_done or cursor.sees(";")):
        if provider is None and cursor.accept("USING"):
            provider = cursor.identifier()
        elif location is None and cursor.accept("LOCATION"):
            location = read_text(cursor)
        elif not properties and cursor.accept("TBLPROPERTIES"):
            properties = read_properties(cursor)
        else:
            return None
    cursor.expect_end()
    return LikeStatement(
        target=target,
        source=source,
        if_not_exists=if_not_exists,
        provider=provider,
        properties=properties,
        location=location,
    )


_INSERTS = (
    ("INSERT", "INTO"),
    ("INSERT", "OVERWRITE"),
    ("INSERT", "WITH", "SCHEMA", "EVOLUTION", "INTO"),
    ("INSERT", "WITH", "SCHEMA", "EVOLUTION", "OVERWRITE"),
)


def read_insert(cursor: Cursor) -> SparkParsedStatement | None:
    """Read up to the last target's name; None for a query that begins with FROM."""
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
