"""Spark's write of Parquet files, with the number of rows that its tasks say they wrote.

``DataFrameWriter`` makes the same command and forgets it. The number comes from the answers of the
tasks whose output was committed: retries and speculative attempts count once. Classic sessions
only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame

from puredelta.spark.jvm.classes import (
    class_name,
    java_class,
    jvm_of,
    scala_map,
    scala_none,
    scala_seq,
)
from puredelta.spark.jvm.frames import dataset_of, logical_plan
from puredelta.spark.jvm.plans import Plan

_DATA_SOURCE = "org.apache.spark.sql.execution.datasources.DataSource"


_INNER = {"AdaptiveSparkPlanExec": "executedPlan", "ResultQueryStageExec": "plan"}
"""Nodes above the one that writes, and their methods that return the next one."""


class CountedWrite:
    """Rows to be written into a new directory. What Spark's internals answer is raised as it is."""

    def __init__(
        self,
        rows: DataFrame,
        location: str,
        *,
        options: Mapping[str, str],
        partition_columns: Sequence[str],
    ) -> None:
        """Make the command; runs no job."""
        self._session = rows._jdf.sparkSession()
        jvm = jvm_of(rows.sparkSession)
        none = scala_none(jvm)
        arguments = [
            *(self._session, "parquet", scala_seq(jvm, []), none),
            *(scala_seq(jvm, partition_columns), none),
            *(scala_map(jvm, {**options, "path": location}), none),
        ]
        kind = java_class(jvm, "java.lang.Class").forName(_DATA_SOURCE)
        more = kind.getConstructors()[0].getParameterCount() - len(arguments)  # of newer releases
        source = java_class(jvm, _DATA_SOURCE)(*arguments, *[none] * more)
        fails_if_there = java_class(jvm, "org.apache.spark.sql.SaveMode").ErrorIfExists
        self._command = Plan(source.planForWriting(fails_if_there, logical_plan(rows).java))
        self._done: Any = None

    def run(self) -> None:
        """Write the files; runs one Spark job."""
        self._done = dataset_of(self._session, self._command).queryExecution().commandExecuted()

    def num_rows(self) -> int:
        """Return how many rows the tasks have written."""
        plan = self._done.commandPhysicalPlan()
        while (inner := _INNER.get(class_name(plan))) is not None:
            plan = getattr(plan, inner)()
        return int(plan.metrics().apply("numOutputRows").value())
