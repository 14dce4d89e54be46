"""Spark's cache of DataFrames.

An entry is a pair: the plan it is recognised by, and the rows that are served for that plan. The
list of pairs is private to Spark's ``CacheManager`` and reached by reflection. Other threads change
the list at any time, so it is only ever compared and set. Classic sessions only.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from functools import cached_property
from typing import Any
from weakref import WeakKeyDictionary

from pyspark.sql import SparkSession

from puredelta.spark.jvm.frames import frame_of
from puredelta.spark.jvm.gateway import (
    java_array,
    java_class,
    scala_object,
    scala_seq,
    seq_items,
    session_of,
)
from puredelta.spark.jvm.plans import Plan

logger = logging.getLogger(__name__)
_ATTEMPTS = 1000
_EXECUTION = "org.apache.spark.sql.execution"
_MANAGERS: WeakKeyDictionary[SparkSession, Any] = WeakKeyDictionary()


class CacheEntry:
    """A plan and the rows that are served for it."""

    __slots__ = ("java",)

    def __init__(self, java: Any) -> None:
        self.java = java

    def plan(self) -> Plan:
        """Return the plan it is recognised by."""
        return Plan(self.java.plan())

    def discard_rows(self) -> None:
        """Free the rows; they are computed again should anybody ask for them."""
        blocking = False
        self._builder().clearCache(blocking)

    def _builder(self) -> Any:
        return self.java.cachedRepresentation().cacheBuilder()


class FrameCache:
    """The cache that all sessions of an application share."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._session = session_of(spark)
        if spark not in _MANAGERS:
            _MANAGERS[spark] = self._session.sharedState().cacheManager()
        self._manager = _MANAGERS[spark]

    def is_empty(self) -> bool:
        """Return whether nothing is cached."""
        return bool(self._manager.isEmpty())

    def serves(self, plan: Plan) -> bool:
        """Return whether Spark would answer from the cache, for any part of an analyzed plan."""
        if self.is_empty():
            return False
        # Not the frame's own execution: what it found in the cache would stay with it.
        execution = frame_of(self._spark, plan)._jdf.queryExecution()
        return "InMemoryRelation" in execution.withCachedData().toString()

    @cached_property
    def _cached_data(self) -> Any:
        """The field; looked up where there is something cached, not in every commit."""
        field = self._manager.getClass().getDeclaredField("cachedData")
        field.setAccessible(True)
        return field

    def entries(self) -> tuple[CacheEntry, ...]:
        """Return all pairs."""
        return tuple(map(CacheEntry, seq_items(self._cached_data.get(self._manager))))

    def entry_like(self, entry: CacheEntry, plan: Plan) -> CacheEntry:
        """Return a pair of the same plan whose rows are those of another one; it is not cached.

        The rows are computed on first use.
        """
        state = self._session.sessionState()
        execution = state.executePlan(plan.java, getattr(state, "executePlan$default$2")())
        builder = entry._builder()
        relations = scala_object(plan.java, f"{_EXECUTION}.columnar.InMemoryRelation")
        rows = relations.apply(builder.storageLevel(), execution, builder.tableName())
        pair = java_class(plan.java, f"{_EXECUTION}.CachedData")
        return CacheEntry(pair(entry.java.plan(), rows))

    def replace(self, replacements: Mapping[CacheEntry, CacheEntry | None]) -> None:
        """Put pairs in the place of others, or nothing where the value is None.

        What other threads cache meanwhile stays, and what they took out does not come back.
        """
        # Spark sets its list without comparing: a list set before ours may come after it.
        for _ in range(_ATTEMPTS):
            before = after = self._cached_data.get(self._manager)
            for known, new in replacements.items():
                place = after.indexOf(known.java)
                if place >= 0:
                    items = scala_seq(self._session, [new.java] if new else [])
                    after = after.patch(place, items, 1)
            if after == before:
                return
            self._compare_and_set(before, after)
        logger.warning("Spark's cache changes all the time: frames in it keep their rows")

    def _compare_and_set(self, before: Any, after: Any) -> None:
        """Set the list, unless another thread has set it."""
        handles = java_class(self._session, "java.lang.invoke.MethodHandles")
        lookup = handles.privateLookupIn(self._manager.getClass(), handles.lookup())
        modes = java_class(self._session, "java.lang.invoke.VarHandle$AccessMode")
        handle = lookup.unreflectVarHandle(self._cached_data)
        arguments = (self._manager, before, after)
        handle.toMethodHandle(modes.COMPARE_AND_SET).invokeWithArguments(
            java_array(self._spark, "java.lang.Object", arguments)
        )
