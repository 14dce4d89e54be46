"""CACHE TABLE and UNCACHE TABLE of a Connect client, for Delta tables of the catalog.

The server would keep the rows of the entry, which has none. So the client caches the frame that
shows the table now. A later version of the table is another frame: queries show it, not the cached
rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession

from puredelta.spark.catalog.known_names import known_relation
from puredelta.spark.jvm.catalog import CatalogTable
from puredelta.spark.session.names import quote_name
from puredelta.spark.session.session import no_rows
from puredelta.statements.names.catalog_query import catalog_query, catalog_rows
from puredelta.statements.parse.column_text import read_options
from puredelta.statements.parse.cursor import Cursor

_LEVEL = "storagelevel"
_cached: WeakKeyDictionary[SparkSession, dict[str, DataFrame]] = WeakKeyDictionary()
"""The cached frames of Delta tables, by the whole name of the table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _CacheTable:
    """``CACHE [LAZY] TABLE name [OPTIONS (...)] [[AS] query]``, or UNCACHE."""

    name: tuple[str, ...]
    caches: bool
    is_lazy: bool = False
    options: Mapping[str, str]
    query: str = ""


def run_cache_statement(
    spark: SparkSession, text: str, *, args: Any, fields: Mapping[str, Any]
) -> DataFrame | None:
    """Execute a statement about the cache; None where no Delta table is named.

    Raises:
        pyspark.errors.PySparkException: an error of the query, or the name is taken.
    """
    statement = _read(text)
    if statement is None:
        return None
    if statement.query:
        rows = catalog_query(spark, statement.query, args=args, fields=fields)
        if rows is None:
            return None
        rows.createTempView(statement.name[-1])
        spark.catalog.cacheTable(quote_name(statement.name[-1:]))
        if not statement.is_lazy:
            rows.count()
        return no_rows(spark)
    if not statement.caches:
        return no_rows(spark) if uncache_named(spark, statement.name) else None
    is_ours = cache_named(
        spark, statement.name, level=_level(statement.options), is_lazy=statement.is_lazy
    )
    return no_rows(spark) if is_ours else None


def _read(text: str) -> _CacheTable | None:
    cursor = Cursor(text)
    caches = cursor.accept("CACHE")
    if not (caches or cursor.accept("UNCACHE")):
        return None
    is_lazy = cursor.accept("LAZY")
    if not cursor.accept("TABLE"):
        return None
    cursor.accept("IF", "EXISTS")
    name = cursor.accept_name()
    options = read_options(cursor) if cursor.accept("OPTIONS") else {}
    cursor.accept("AS")
    while cursor.accept(";"):
        pass
    query = text[cursor.start :]
    if not name:
        return None
    return _CacheTable(name=name, caches=caches, is_lazy=is_lazy, options=options, query=query)


def _level(options: Mapping[str, str]) -> StorageLevel | None:
    given = {key.lower(): value.upper() for key, value in options.items()}.get(_LEVEL)
    found: StorageLevel | None = None if given is None else getattr(StorageLevel, given, None)
    return found


def cache_named(
    spark: SparkSession,
    name: tuple[str, ...],
    *,
    level: StorageLevel | None = None,
    is_lazy: bool = True,
) -> bool:
    """Cache the rows that a Delta table has now; False for anything else."""
    key = _key(spark, name)
    rows = None if key is None else catalog_rows(spark, name)
    if key is None or rows is None:
        return False
    uncache_named(spark, name)
    rows = rows.cache() if level is None else rows.persist(level)
    _cached.setdefault(spark, {})[key] = rows
    if not is_lazy:
        rows.count()
    return True


def uncache_named(spark: SparkSession, name: tuple[str, ...]) -> bool:
    """Remove the cached rows of a Delta table, if there are some; False for anything else."""
    key = _key(spark, name)
    if key is None:
        return False
    rows = _cached.get(spark, {}).pop(key, None)
    if rows is not None:
        rows.unpersist()
    return True


def is_cached(spark: SparkSession, name: tuple[str, ...]) -> bool | None:
    """Return whether rows of a Delta table are cached; None for anything else."""
    key = _key(spark, name)
    return None if key is None else key in _cached.get(spark, {})


def _key(spark: SparkSession, name: tuple[str, ...]) -> str | None:
    found = known_relation(spark, name)
    return found.full_name if isinstance(found, CatalogTable) else None
