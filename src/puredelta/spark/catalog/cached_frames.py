"""Cached DataFrames over a table, made to show its new version (M-13). Classic sessions only.

The plan of such a frame reads the files of one version. After a commit the cache gets other rows
for the same plan: those of a plan that reads the new version in the place of the old one. Spark
computes them when they are used; no job runs here. A frame of a version that the user asked for
stays as it is. A frame whose columns the table no longer has leaves the cache.
"""

from __future__ import annotations

import logging

from pyspark.sql import SparkSession

from puredelta.errors import DeltaError
from puredelta.log.replay.table_log import TableLog
from puredelta.spark.jvm.cache_manager import CacheEntry, FrameCache
from puredelta.spark.jvm.classes import JVM_ERRORS
from puredelta.spark.jvm.plans import Plan
from puredelta.spark.scan.table_rows import find_origins, with_version
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
