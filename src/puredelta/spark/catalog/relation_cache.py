"""Plain SQL over catalog tables with the native scan: Spark is given the plan of each table.

Before Spark builds a relation for a table it asks the session catalog's cache of relations
(``FindDataSourceTable``). For the length of one analysis the plan of each Delta table that
a text names is put there, so no text is changed: aliases, ``db.t.column``, common table
expressions, parameters and errors stay Spark's own. An entry that stayed would pin an old
version, so it goes at once. Where this ever stops to work a query fails; it cannot read
anything wrong. Classic sessions only.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias

from pyspark.errors import ParseException
from pyspark.sql import SparkSession

from puredelta.log.replay.table_log import TableLog
from puredelta.spark.catalog.catalog_tables import (
    SESSION_CATALOG,
    CatalogTable,
    CatalogView,
    find_relation,
)
from puredelta.spark.catalog.path_views import refresh_view
from puredelta.spark.plans.catalyst import Catalyst
from puredelta.spark.scan.table_rows import marked, table_rows

Name: TypeAlias = tuple[str, ...]


@dataclass(slots=True)
class _Pin:
    """What several threads of a session hold at once."""

    holders: int
    version: int


_lock = threading.Lock()
_pins: dict[tuple[str, str, str], _Pin] = {}
"""By session, database and table."""


def named_relations(spark: SparkSession, text: str) -> tuple[Name, ...]:
    """Return every table name in a text, by Spark's own parser; none if it refuses the text."""
    try:
        plan = Catalyst(spark).session.sessionState().sqlParser().parsePlan(text)
    except ParseException:
        return ()  # Spark will say so itself
    return plan_relations(plan)


def plan_relations(plan: Any) -> tuple[Name, ...]:
    """Return every table name in a parsed plan that is not analyzed."""
    return tuple(dict.fromkeys(_relations(plan)))


def _relations(node: Any) -> Iterator[Name]:
    if node.getClass().getSimpleName() == "UnresolvedRelation":
        parts = node.multipartIdentifier()
        yield tuple(str(parts.apply(n)) for n in range(parts.size()))
    if node.getClass().getSimpleName() == "ExplainCommand":
        yield from _relations(node.logicalPlan())
    for inner in (node.children(), node.innerChildren(), node.subqueries()):
        for n in range(inner.size()):
            yield from _relations(inner.apply(n))


@contextmanager
def pinned(spark: SparkSession, names: Iterable[Name]) -> Iterator[None]:
    """Let an analysis inside the context see the newest version of each Delta table named.

    Tables that views name are found, too, also by path. Other names are left alone. Reads the
    logs.

    Raises:
        TableNotFoundError: the catalog has a Delta table, and its location has none.
    """
    with ExitStack() as held:
        for table in _tables(spark, names):
            held.enter_context(_pinned(spark, table))
        yield


def _tables(spark: SparkSession, names: Iterable[Name]) -> list[CatalogTable]:
    """Return the Delta tables among the names and below views among them."""
    found: dict[tuple[str, str], CatalogTable] = {}
    pending, seen = list(names), set[Name]()
    while pending:
        name = pending.pop()
        if name in seen:
            continue
        seen.add(name)
        match find_relation(spark, name):
            case CatalogTable() as table:
                found[table.database, table.name] = table
            case CatalogView() as view:
                inner = named_relations(spark, view.text)
                pending += [_as_seen_from(view.namespace, other) for other in inner]
            case None:
                refresh_view(spark, name)
    return list(found.values())


def _as_seen_from(namespace: Sequence[str], name: Name) -> Name:
    """Return a name of a view's text as it is known outside of the view."""
    return (*namespace, *name) if len(name) == 1 and namespace else name


@contextmanager
def _pinned(spark: SparkSession, table: CatalogTable) -> Iterator[None]:
    snapshot = TableLog.open(table.location).snapshot()
    catalyst = Catalyst(spark)
    rows = table_rows(spark, snapshot, time_travel=False)
    plan = marked(catalyst, catalyst.named(table.name, catalyst.analyzed(rows)), snapshot)
    catalog: Any = catalyst.session.sessionState().catalog()
    names: Any = catalyst.jvm.org.apache.spark.sql.catalyst
    entry = names.QualifiedTableName(SESSION_CATALOG, table.database, table.name)
    key = (str(catalyst.session.sessionUUID()), table.database, table.name)
    with _lock:
        pin = _pins.setdefault(key, _Pin(0, -1))
        pin.holders += 1
        if snapshot.version >= pin.version:  # never back to what somebody has replaced
            pin.version = snapshot.version
            catalog.cacheTable(entry, plan)
    try:
        yield
    finally:
        with _lock:
            pin.holders -= 1
            if not pin.holders:
                del _pins[key]
                catalog.invalidateCachedTable(entry)
