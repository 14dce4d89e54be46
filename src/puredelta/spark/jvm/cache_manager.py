"""Spark's cache of DataFrames: what is in it, and other rows for the same plans.

An entry is a pair: the plan it is recognised by, and the rows that are served for that plan. The
list of pairs is private to Spark's ``CacheManager`` and reached by reflection. Classic sessions
only.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyspark.sql import SparkSession

from puredelta.spark.jvm.classes import (
    java_array,
    java_class,
    scala_object,
    scala_seq,
    seq_items,
    session_of,
)
from puredelta.spark.jvm.frames import frame_of
from puredelta.spark.jvm.plans import Plan

_GET, _SET = "cachedData", "cachedData_$eq"
_EXECUTION = "org.apache.spark.sql.execution"


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

    def _identity(self) -> int:
        return int(java_class(self.java, "java.lang.System").identityHashCode(self.java))


class FrameCache:
    """The cache that all sessions of an application share."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._session = session_of(spark)
        self._manager = self._session.sharedState().cacheManager()

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

    def entries(self) -> tuple[CacheEntry, ...]:
        """Return all pairs."""
        return tuple(map(CacheEntry, seq_items(self._call(_GET))))

    def entry_like(self, entry: CacheEntry, plan: Plan) -> CacheEntry:
        """Return a pair of the same plan whose rows are those of another one; it is not cached.

        The rows are computed when somebody asks for them.
        """
        state = self._session.sessionState()
        execution = state.executePlan(plan.java, getattr(state, "executePlan$default$2")())
        builder = entry._builder()
        relations = scala_object(plan.java, f"{_EXECUTION}.columnar.InMemoryRelation")
        rows = relations.apply(builder.storageLevel(), execution, builder.tableName())
        pair = java_class(plan.java, f"{_EXECUTION}.CachedData")
        return CacheEntry(pair(entry.java.plan(), rows))

    def replace(self, known: Sequence[CacheEntry], new: Sequence[CacheEntry]) -> None:
        """Put ``new`` in the place of ``known``; what was cached meanwhile stays."""
        seen = {entry._identity() for entry in known}
        added = [entry for entry in self.entries() if entry._identity() not in seen]
        entries = scala_seq(self._session, [entry.java for entry in (*added, *new)])
        self._call(_SET, entries.toIndexedSeq())

    def _call(self, name: str, *arguments: Any) -> Any:
        """Call a private method of Spark's cache."""
        methods = self._manager.getClass().getDeclaredMethods()
        method = next(m for m in methods if m.getName() == name)
        method.setAccessible(True)
        passed = java_array(self._spark, "java.lang.Object", arguments)
        return method.invoke(self._manager, passed)
