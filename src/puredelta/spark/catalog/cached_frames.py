"""Cached DataFrames over a table, made to show its new version (M-13). Classic sessions only.

The plan of such a frame reads the files of one version. After a commit the cache gets other rows
for the same plan: those of a plan that reads the new version in the place of the old one. Spark
computes them when they are used; no job runs here. A frame of a version that the user asked for
stays as it is. A frame whose columns the table no longer has leaves the cache.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from pyspark.sql import SparkSession

from puredelta.errors import DeltaError
from puredelta.log.replay.snapshot import Snapshot
from puredelta.log.replay.table_log import TableLog
from puredelta.spark.jvm.cache_manager import CacheEntry, FrameCache
from puredelta.spark.jvm.classes import JVM_ERRORS
from puredelta.spark.jvm.expressions import aliased
from puredelta.spark.jvm.frames import analyzed_plan
from puredelta.spark.jvm.plans import Plan, projected
from puredelta.spark.scan.table_rows import find_origins, table_rows
from puredelta.spark.session.session import is_connect

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
        if (parts := _stale_parts(entry.plan(), log.root_uri))
    }
    if not stale:
        return
    snapshot = log.snapshot()
    renewed: dict[CacheEntry, CacheEntry | None] = {}
    for entry, parts in stale.items():
        plan = _renewed(spark, entry.plan(), parts, snapshot)
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


def _renewed(
    spark: SparkSession, plan: Plan, stale: Sequence[Plan], snapshot: Snapshot
) -> Plan | None:
    """Return a plan with the new version in the place of the old; None if there can be none."""
    replaced: list[tuple[Plan, Plan]] = []
    for part in stale:
        new = _with_columns_of(part, analyzed_plan(table_rows(spark, snapshot, time_travel=False)))
        if new is None:
            return None
        replaced.append((part, new))
    return plan.with_replaced(replaced)


def _with_columns_of(known: Plan, plan: Plan) -> Plan | None:
    """Return a plan under the very columns of another; None if it lacks some of them."""
    present = {column.name(): column for column in plan.output()}
    columns = []
    for wanted in known.output():
        name = wanted.name()
        column = present.get(name)
        if column is None or not column.has_type_of(wanted):
            return None
        columns.append(aliased(column, name, like=wanted))
    return projected(columns, plan)
