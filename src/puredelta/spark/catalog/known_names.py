"""Names of a Connect session's queries, each looked up once until something may have changed it.

What a name means is kept for a session. Everything that this client sends but questions and plain
queries may change it: then all is forgotten. Another client may change it, too, so an answer is
also forgotten after a few seconds, and when the table in its place is another one.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias
from weakref import WeakKeyDictionary

from pyspark.sql import SparkSession

from puredelta.errors import TableNotFoundError
from puredelta.log.replay.snapshot import Snapshot
from puredelta.log.replay.table_log import TableLog
from puredelta.spark.catalog.catalog_entries import find_relation, look_up_together
from puredelta.spark.connect.plan_hook import watch_changes
from puredelta.spark.jvm.catalog import CatalogTable, ViewEntry
from puredelta.spark.session.storage import open_log

KEPT_SECONDS = 10.0
"""For so long the entry of a name is taken to be the one that it was."""

Found: TypeAlias = CatalogTable | ViewEntry | None


@dataclass(slots=True)
class _Known:
    found: Found
    at: float
    log: TableLog | None = None
    table_id: str | None = None


_Answers: TypeAlias = dict[tuple[str, ...], tuple[float, Any]]
_names: WeakKeyDictionary[SparkSession, _Answers] = WeakKeyDictionary()


def known_relation(spark: SparkSession, parts: Sequence[str]) -> Found:
    """Return what a name means, as `find_relation` does; asks only if that is not known."""
    return _known(spark, tuple(parts)).found


def look_up(spark: SparkSession, names: Iterable[tuple[str, ...]]) -> None:
    """Ask together for the names that are not known, so that this call knows what they mean."""
    known, now = _names.get(spark, {}), time.monotonic()
    look_up_together(
        spark,
        {name for name in names if now - known.get(name, (-KEPT_SECONDS, None))[0] > KEPT_SECONDS},
    )


def newest_snapshot(spark: SparkSession, parts: Sequence[str]) -> Snapshot | None:
    """Return the newest version of the Delta table of a name; None for anything else.

    The log is listed. If it is no longer the one that the name was known by, the name is looked
    up again.

    Raises:
        TableNotFoundError: the entry names a place without a table.
    """
    name = tuple(parts)
    known = _known(spark, name)
    try:
        snapshot = _snapshot(spark, known)
    except TableNotFoundError:
        if time.monotonic() - known.at < _JUST_NOW:
            raise
        snapshot = None
    is_same = snapshot is not None and known.table_id in {None, snapshot.metadata.id}
    if not is_same and isinstance(known.found, CatalogTable):
        _names[spark].pop(name, None)
        known = _known(spark, name)
        snapshot = _snapshot(spark, known)
    if snapshot is not None:
        known.table_id = snapshot.metadata.id
    return snapshot


_JUST_NOW = 0.05


def _snapshot(spark: SparkSession, known: _Known) -> Snapshot | None:
    if not isinstance(known.found, CatalogTable):
        return None
    if known.log is None:
        known.log = open_log(spark, known.found.location)
    return known.log.snapshot()


def _known(spark: SparkSession, name: tuple[str, ...]) -> _Known:
    found: _Known = known_answer(
        spark, name, lambda: _Known(find_relation(spark, name), time.monotonic())
    )
    return found


def known_answer(spark: SparkSession, key: tuple[str, ...], ask: Callable[[], Any]) -> Any:
    """Return what the server says of a name; ``ask`` is called if that is not known."""
    names = _names.get(spark)
    if names is None:
        names = _names.setdefault(spark, {})
        watch_changes(spark, names.clear)
    known, now = names.get(key), time.monotonic()
    if known is None or now - known[0] > KEPT_SECONDS:
        answer = ask()
        known = names[key] = (now, answer)
    return known[1]
