"""Cached DataFrames over a table, made to show its new version (M-13). Classic sessions only.

Spark keeps a cached frame as a pair: the plan it is recognised by, and the rows that are
served for that plan. A frame of ours is a plan over the files of one version, so after a
commit the same plan gets other rows: those of the plan in which the new version stands in
the table's place. They are computed when somebody asks for them; no job runs here. Frames of
a version that was asked for stay as they are.

The list of pairs is private to Spark's ``CacheManager`` and reached by reflection. A frame
whose columns the table no longer has leaves the cache.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from puredelta.errors import DeltaError
from puredelta.log.replay.snapshot import Snapshot
from puredelta.log.replay.table_log import TableLog
from puredelta.spark.plans.catalyst import Catalyst
from puredelta.spark.scan.table_rows import shown_tables, table_rows
from puredelta.spark.session.session import is_connect

logger = logging.getLogger(__name__)

_GET, _SET = "cachedData", "cachedData_$eq"


def refresh_cached_frames(spark: SparkSession, log: TableLog) -> None:
    """Let what is cached over the newest version of a table show the one that is newest now.

    Call it after a commit. Without a cached frame it is one look at Spark's cache. Raises
    nothing: the commit has happened.
    """
    if is_connect(spark):
        return
    try:
        manager: Any = spark._jsparkSession.sharedState().cacheManager()  # noqa: SLF001
        if not manager.isEmpty():
            _Refresh(spark, manager).run(log)
    except (Py4JError, PySparkException, DeltaError) as failure:
        logger.warning("Cached frames over %s keep their rows: %s", log.root_uri, failure)


class _Refresh:
    """One walk over what the sessions of an application have cached."""

    def __init__(self, spark: SparkSession, manager: Any) -> None:
        self._spark = spark
        self._catalyst = Catalyst(spark)
        self._manager = manager

    def run(self, log: TableLog) -> None:
        entries = self._entries()
        stale = [self._stale(entry, log.root_uri) for entry in entries]
        if not any(stale):
            return
        snapshot = log.snapshot()
        kept: list[Any] = []
        for entry, nodes in zip(entries, stale, strict=True):
            new = self._renewed(entry, nodes, snapshot) if nodes else entry
            if new is not None:
                kept.append(new)
        seen = {self._identity(entry) for entry in entries}
        added = [e for e in self._entries() if self._identity(e) not in seen]  # meanwhile
        self._invoke(_SET, self._catalyst.seq([*added, *kept]).toIndexedSeq())
        for entry, nodes in zip(entries, stale, strict=True):
            if nodes:
                blocking = False
                entry.cachedRepresentation().cacheBuilder().clearCache(blocking)

    def _stale(self, entry: Any, root_uri: str) -> list[Any]:
        """Return the parts of a cached plan that show the table."""
        return [
            node
            for node, shown in shown_tables(self._catalyst, entry.plan())
            if shown.root_uri == root_uri and not shown.is_time_travel
        ]

    def _renewed(self, entry: Any, stale: Sequence[Any], snapshot: Snapshot) -> Any | None:
        """Return the pair with new rows for the same plan; None if there can be none."""
        catalyst = self._catalyst
        new_parts: Any = catalyst.jvm.java.util.HashMap()
        for node in stale:
            part = self._same_columns(node, snapshot)
            if part is None:
                return None
            new_parts.put(node, part)
        # A Scala Map is a PartialFunction.
        replace = catalyst.jvm.PythonUtils.toScalaMap(new_parts)
        plan = entry.plan().transformDownWithSubqueries(replace)
        state = catalyst.session.sessionState()
        execution = state.executePlan(plan, getattr(state, "executePlan$default$2")())
        builder = entry.cachedRepresentation().cacheBuilder()
        sql: Any = catalyst.jvm.org.apache.spark.sql.execution
        relations = getattr(sql.columnar, "InMemoryRelation$").__getattr__("MODULE$")
        rows = relations.apply(builder.storageLevel(), execution, builder.tableName())
        return sql.CachedData(entry.plan(), rows)

    def _same_columns(self, node: Any, snapshot: Snapshot) -> Any | None:
        """Return the new version under the very columns of a part; None if some are gone."""
        catalyst = self._catalyst
        plan = catalyst.analyzed(table_rows(self._spark, snapshot, time_travel=False))
        present = {column.name(): column for column in catalyst.items(plan.output())}
        columns = []
        for known in catalyst.items(node.output()):
            column = present.get(known.name())
            if column is None or not column.dataType().equals(known.dataType()):
                return None
            columns.append(catalyst.alias(column, known.name(), like=known))
        return catalyst.project(columns, plan)

    def _entries(self) -> tuple[Any, ...]:
        return self._catalyst.items(self._invoke(_GET))

    def _identity(self, entry: Any) -> int:
        return int(self._catalyst.jvm.java.lang.System.identityHashCode(entry))

    def _invoke(self, name: str, *arguments: Any) -> Any:
        """Call a private method of Spark's cache."""
        method = next(
            m for m in self._manager.getClass().getDeclaredMethods() if m.getName() == name
        )
        method.setAccessible(True)
        gateway: Any = self._spark.sparkContext._gateway  # noqa: SLF001
        passed = gateway.new_array(gateway.jvm.java.lang.Object, len(arguments))
        for n, argument in enumerate(arguments):
            passed[n] = argument
        return method.invoke(self._manager, passed)
