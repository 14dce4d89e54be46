"""Delta tables in Spark's caches: relations of the catalog, and cached frames.

Before Spark builds a relation for a table it asks the session catalog's cache of relations
(``FindDataSourceTable``). During one analysis that cache holds the plan of each Delta table that
a text names, so no text is changed: aliases, ``db.t.column``, common table expressions, parameters
and errors stay Spark's own. The plan is removed at once, because it would keep showing an old
version. If a release of Spark no longer asks there, queries fail; they cannot return wrong rows.
Classic sessions only.

The plan of a cached frame reads the files of one version. After a commit, the cache gets the rows
of a plan that reads the new version. Spark computes them on first use; no job runs here. A frame
of a version that the user asked for stays as it is. A frame with columns that the table no longer
has leaves the cache.
"""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass

from pyspark.errors import ParseException
from pyspark.sql import DataFrame, SparkSession

from puredelta.errors import DeltaError
from puredelta.log.replay.snapshot import Snapshot
from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.schema.sql_lexer import may_hold_query, parse_identifier
from puredelta.spark.catalog.catalog_entries import find_relation
from puredelta.spark.catalog.table_views import refresh_path_view
from puredelta.spark.connect.messages import plan_of
from puredelta.spark.jvm.cache import CacheEntry, FrameCache
from puredelta.spark.jvm.catalog import (
    SESSION_CATALOG,
    CatalogTable,
    RelationSlot,
    ViewEntry,
)
from puredelta.spark.jvm.frames import analyzed_plan, frame_of
from puredelta.spark.jvm.gateway import JVM_ERRORS, insist
from puredelta.spark.jvm.plans import Plan, RelationName, named_plan, parsed_plan, relation_names
from puredelta.spark.jvm.stored_text import bodies_of_functions, may_call_function
from puredelta.spark.resolve.bound_columns import texts_bound_once
from puredelta.spark.scan.row_tracking_scan import rows_with_row_ids
from puredelta.spark.scan.table_rows import find_origins, set_origin, table_rows, with_version
from puredelta.spark.session.session import is_connect
from puredelta.spark.session.storage import open_log


@dataclass(slots=True)
class _CachedRelation:
    """An entry that several threads of a session may need at once."""

    holders: int
    version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedRelations:
    """What of Delta's some names stand for."""

    tables: tuple[CatalogTable, ...]
    views: tuple[ViewEntry, ...]
    """All views of SQL text, of which some may name what only this library knows."""


NOTHING_KNOWN: Mapping[RelationName, CatalogTable | ViewEntry | None] = {}
_lock = threading.Lock()
_cached: dict[tuple[str, str, str], _CachedRelation] = {}
"""By session, database and table."""


def named_relations(spark: SparkSession, text: str) -> tuple[RelationName, ...]:
    """Return every table name in a text, by Spark's own parser; none if it refuses the text.

    Names in the bodies of SQL functions that the text calls are among them. None over Connect: a
    client finds the names itself, and sends the rows along.
    """
    if is_connect(spark):
        return ()
    plain = plain_relation(text)
    if plain is not None:
        return tuple(dict.fromkeys((plain, *_names_in_functions(spark, text))))
    try:
        return _names_of(spark, parsed_plan(spark, _without_long_lists(text)), text)
    except ParseException:
        return ()  # Spark will say so itself


def plain_relation(text: str) -> RelationName | None:
    """Return the one name that can be a relation's in a plain query; None where Spark has to parse.

    It may be no relation's, and Spark may refuse the text.

    >>> plain_relation("SELECT max(id) FROM db.t AS x WHERE id IN (1, 2)")
    ('db', 't')
    >>> plain_relation("SELECT * FROM parquet.`/t`"), plain_relation("SELECT * FROM t, u")
    (('parquet', '/t'), None)
    """
    lowered = text.lower()
    if lowered.count("from") != 1 or any(mark in lowered for mark in _NOT_PLAIN):
        return None
    found = _ONE_RELATION.match(text)
    if found is None or found["name"].count("`") != text.count("`"):
        return None
    return parse_identifier(found["name"]) or None


_NOT_PLAIN = ("join", "table", "stream", "lateral", "identifier", '"', "--", "/*", "$", "{")
"""What may name another relation, be a quote, or hide or make text."""
_PART = r"(?:\w+ | `[^`]+`)"
_ONE_RELATION = re.compile(
    rf"""\s*select\b .*? \bfrom \s+ (?P<name> {_PART} (?:\.{_PART}){{0,2}} )
    (?:\s+ (?:as\s+)? \w+ )? \s*
    (?: [;)] | \Z | \b(?: where | group | having | order | limit | offset | union | except
                        | intersect | minus | sort | cluster | distribute | window )\b )""",
    re.VERBOSE | re.IGNORECASE | re.DOTALL,
)


def _without_long_lists(text: str) -> str:
    """Return a text with the same names, whose long lists of whole numbers are one number each.

    >>> _without_long_lists(f"SELECT a IN ({', '.join('1' * 40)}) FROM t")
    'SELECT a IN (0) FROM t'
    """
    return text if _QUOTES.search(text) else _LONG_LIST.sub("0", text)


_QUOTES = re.compile('[`"]')
_LONG_LIST = re.compile(r"(?<![\w.])\d+(?:\s*,\s*\d+){31,}(?![\w.])")


def query_rows(spark: SparkSession, query: Plan) -> DataFrame:
    """Return the rows of the query inside a statement; Spark analyzes it now.

    It may name Delta tables of the catalog.
    """
    with cached_relations(spark, _names_of(spark, query, query.statement_text())):
        return frame_of(spark, query)


def relations_of_texts(spark: SparkSession, texts: Sequence[str]) -> AbstractContextManager[None]:
    """Return a context in which each expression sees the newest version of the tables it names.

    Over Connect an expression that is sent several times sees the same version.
    """
    if is_connect(spark):
        return texts_bound_once()
    names = [name for text in texts for name in named_relations(spark, f"SELECT {text}")]
    return cached_relations(spark, names) if names else nullcontext()


def rows_of_expressions(
    spark: SparkSession, texts: Iterable[str], make: Callable[[], DataFrame]
) -> DataFrame:
    """Return the rows that ``make`` makes by texts, which see the Delta tables that they name.

    A Connect client makes nothing but a plan; its expressions are bound as it becomes a message.
    """
    if is_connect(spark):
        rows = make()
        if any(may_hold_query(text) or may_call_function(text) for text in texts):
            plan_of(rows)
        return rows
    names = [name for text in texts for name in names_in_expression(spark, text)]
    if not names:
        return make()
    with cached_relations(spark, names):
        return make()


def names_in_expression(spark: SparkSession, text: str) -> tuple[RelationName, ...]:
    """Return the names of tables in subqueries of an expression, and in functions that it calls."""
    if _SUBQUERY.search(text) is not None:
        return named_relations(spark, f"SELECT {text}")
    return _names_in_functions(spark, text)


_SUBQUERY = re.compile(r"\b(?:from|table)\b", re.IGNORECASE)


def _names_of(spark: SparkSession, plan: Plan, text: str) -> tuple[RelationName, ...]:
    return tuple(dict.fromkeys((*relation_names(plan, text), *_names_in_functions(spark, text))))


def _names_in_functions(spark: SparkSession, text: str) -> tuple[RelationName, ...]:
    bodies = bodies_of_functions(spark, text)
    return tuple(name for body in bodies for name in relation_names(body))


@contextmanager
def cached_relations(spark: SparkSession, names: Iterable[RelationName]) -> Iterator[None]:
    """Let an analysis inside the context see the newest version of each Delta table named.

    Tables that views name are found, too, also by path. Other names are left alone. Reads the
    logs.
    """
    with pinned_tables(spark, find_relations(spark, names).tables):
        yield


@contextmanager
def pinned_tables(spark: SparkSession, tables: Iterable[CatalogTable]) -> Iterator[None]:
    """Let an analysis inside the context see the newest version of these; see above."""
    with ExitStack() as held:
        for table in tables:
            snapshot = open_log(spark, table.location).snapshot()
            held.enter_context(_cached_snapshot(spark, table, snapshot))
        yield


def rows_of_table(
    spark: SparkSession, table: CatalogTable, by_spark: Callable[[], DataFrame]
) -> DataFrame:
    """Return the rows of a Delta table of the catalog, which ``by_spark`` asks Spark for.

    A table that tracks its rows has ids of rows in ``_metadata``. The log is read once.
    """
    snapshot = open_log(spark, table.location).snapshot()
    qualified = (SESSION_CATALOG, table.database, table.name)
    rows = rows_with_row_ids(spark, snapshot, time_travel=False, name=qualified)
    if rows is not None:
        return rows
    with _cached_snapshot(spark, table, snapshot):
        return by_spark()


def find_relations(
    spark: SparkSession,
    names: Iterable[RelationName],
    *,
    known: Mapping[RelationName, CatalogTable | ViewEntry | None] = NOTHING_KNOWN,
) -> NamedRelations:
    """Return the Delta tables and the views among the names, and below the views.

    The catalog is not asked for a name whose entry is ``known``.
    """
    found: dict[tuple[str, str], CatalogTable] = {}
    views: list[ViewEntry] = []
    pending, seen = list(names), set[RelationName]()
    while pending:
        name = pending.pop()
        if name in seen:
            continue
        seen.add(name)
        match known[name] if name in known else find_relation(spark, name):
            case CatalogTable() as table:
                found[table.database, table.name] = table
            case ViewEntry() as view:
                views.append(view)
                inner = named_relations(spark, view.text)
                pending += [as_seen_from(view.namespace, other) for other in inner]
                if not view.database:  # a temporary view may name another one
                    pending += [other for other in inner if len(other) == 1]
            case None:
                refresh_path_view(spark, name)
    return NamedRelations(tables=tuple(found.values()), views=tuple(views))


def as_seen_from(namespace: Sequence[str], name: RelationName) -> RelationName:
    """Return a name of a view's text as it is known outside of the view."""
    return (*namespace, *name) if len(name) == 1 and namespace else name


@contextmanager
def _cached_snapshot(
    spark: SparkSession, table: CatalogTable, snapshot: Snapshot
) -> Iterator[None]:
    rows = table_rows(spark, snapshot, time_travel=False)
    plan = named_plan(table.name, analyzed_plan(rows))
    set_origin(plan, snapshot)
    slot = RelationSlot(spark, SESSION_CATALOG, table.database, table.name)
    key = (slot.session_id, table.database, table.name)
    with _lock:
        cached = _cached.setdefault(key, _CachedRelation(0, -1))
        cached.holders += 1
    try:
        with _lock:
            if snapshot.version >= cached.version:  # never back to a version that was replaced
                cached.version = snapshot.version
                slot.fill(plan)
        yield
    finally:
        with _lock:
            cached.holders -= 1
            if not cached.holders:
                del _cached[key]
                insist(slot.clear)


logger = logging.getLogger(__name__)


def refresh_cached_frames(spark: SparkSession, log: TableLog) -> None:
    """Let what is cached over the newest version of a table show the one that is newest now.

    Call it after a commit. Without a cached frame it is one look at Spark's cache. Raises
    nothing: the commit has happened.
    """
    if is_connect(spark):
        return
    try:
        cache = FrameCache(spark)
        if not cache.is_empty():
            _refresh(spark, cache, log)
    except (*JVM_ERRORS, DeltaError) as failure:
        logger.warning("Cached frames over %s keep their rows: %s", log.root_uri, failure)


def _refresh(spark: SparkSession, cache: FrameCache, log: TableLog) -> None:
    stale = {
        entry: parts
        for entry in cache.entries()
        if (parts := _stale_parts(entry.plan(), log.address))
    }
    if not stale:
        return
    snapshot = log.snapshot()
    renewed: dict[CacheEntry, CacheEntry | None] = {}
    for entry, parts in stale.items():
        plan = with_version(spark, entry.plan(), parts, snapshot)
        renewed[entry] = None if plan is None else cache.entry_like(entry, plan)
    cache.replace(renewed)
    for entry in stale:
        entry.discard_rows()


def _stale_parts(plan: Plan, root_uri: str) -> list[Plan]:
    """Return the parts of a cached plan that show the table."""
    return [
        part
        for part, origin in find_origins(plan)
        if origin.root_uri == root_uri and not origin.is_time_travel
    ]
