"""Spark jobs: their progress, their entries in the UI, and writes that count rows.

Classic sessions only. Events of the UI are made from JSON by Spark's own event reader, so
differences between releases do not matter. A driver that works without Spark's plans has no other
way to show its work.

``DataFrameWriter`` runs the same write command and discards its row count. The count here comes
from the committed tasks: retries and speculative attempts count once.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

from pyspark import SparkContext
from pyspark.sql import DataFrame, SparkSession

from puredelta.spark.jvm.frames import dataset_of, logical_plan
from puredelta.spark.jvm.gateway import (
    JVM_ERRORS,
    class_name,
    context_of,
    java_class,
    jvm_of,
    scala_map,
    scala_none,
    scala_seq,
    session_of,
)
from puredelta.spark.jvm.plans import Plan


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskCounts:
    """Tasks of the stages that Spark knows of so far."""

    done: int
    known: int
    running_jobs: int


def count_jobs(spark: SparkSession, tag: str) -> int | None:
    """Return how many jobs with the tag have been started; ``None`` if Spark does not say."""
    try:
        return len(_tracker(spark).getJobIdsForTag(tag))
    except JVM_ERRORS:
        return None


def find_tasks(spark: SparkSession, tag: str | None) -> TaskCounts | None:
    """Return the tasks of the tag's jobs that are running, without a tag those of all jobs;
    ``None`` if none is, or Spark does not say.
    """
    done = known = running = 0
    try:
        tracker = _tracker(spark)
        jobs = tracker.getActiveJobIds() if tag is None else tracker.getJobIdsForTag(tag)
        for job in jobs:
            found = tracker.getJobInfo(job)
            if found.isEmpty() or found.get().status().toString() != "RUNNING":
                continue
            running += 1
            for stage in found.get().stageIds():
                info = tracker.getStageInfo(stage)
                if not info.isEmpty():
                    done += info.get().numCompletedTasks()
                    known += info.get().numTasks()
    except JVM_ERRORS:
        return None
    return TaskCounts(done=done, known=known, running_jobs=running) if running else None


def count_running_tasks(spark: SparkSession, tag: str) -> int:
    """Return how many tasks of the tag's jobs run, those of failed and cancelled jobs, too: a task
    that is killed runs until it notices. 0 if Spark does not say.
    """
    try:
        tracker = _tracker(spark)
        jobs = (tracker.getJobInfo(job) for job in tracker.getJobIdsForTag(tag))
        stages = {stage for job in jobs if not job.isEmpty() for stage in job.get().stageIds()}
        infos = (tracker.getStageInfo(stage) for stage in stages)
        return sum(info.get().numActiveTasks() for info in infos if not info.isEmpty())
    except JVM_ERRORS:
        return 0


def _tracker(spark: SparkSession) -> Any:
    return context_of(spark).statusTracker()


_EVENTS = "org.apache.spark.sql.execution.ui.SparkListener"
_EXECUTION = "org.apache.spark.sql.execution.SQLExecution$"
_ROOT_ID = "spark.sql.execution.root.id"


@dataclass(frozen=True, slots=True, kw_only=True)
class UiMetric:
    """A metric of an entry."""

    label: str
    is_time: bool
    """Milliseconds, not a count."""


class UiEntry:
    """One execution in the SQL tab, from when it is made until it is closed.

    Queries that run meanwhile in this thread, and in those that inherit from it, stand below
    the entry. Whatever fails inside of Spark is raised as it is.
    """

    def __init__(self, spark: SparkSession, text: str, metrics: Mapping[str, UiMetric]) -> None:
        """``metrics`` are those it can show, by their key."""
        self._context: Any = spark.sparkContext
        self._bus = _Bus.of(spark)
        self._id = self._bus.next_id()
        self._text, self._metrics = text, metrics
        self._accumulators = {key: self._bus.accumulator(key) for key in metrics}
        self._post(
            "SQLExecutionStart",
            description=text,
            details="",
            physicalPlanDescription=text,
            sparkPlanInfo=self._plan(text, metrics),
            time=_now_ms(),
            modifiedConfigs={},
            jobTags=[],
        )
        self._root_before = self._context.getLocalProperty(_ROOT_ID)
        # Not `execution.id`: with that set Spark would show no plans of the queries below.
        self._context.setLocalProperty(_ROOT_ID, str(self._id))

    def close(self, values: Mapping[str, int], error: str, *, note: str = "") -> None:
        """End the entry; ``values`` are those of metrics, ``note`` stands below its plan."""
        self._context.setLocalProperty(_ROOT_ID, self._root_before)
        if note:
            # Spark tells of a plan that has changed meanwhile in this way.
            self._post(
                "SQLAdaptiveExecutionUpdate",
                physicalPlanDescription=f"{self._text}\n{note}",
                sparkPlanInfo=self._plan(f"{self._text}\n{note}", self._metrics),
            )
        # Updates come first: the store adds them up at the end.
        updates = [[self._accumulators[key], int(value)] for key, value in values.items()]
        if updates:
            self._post("DriverAccumUpdates", accumUpdates=updates)
        self._post("SQLExecutionEnd", time=_now_ms(), errorMessage=error)

    def _plan(self, text: str, metrics: Mapping[str, UiMetric]) -> Mapping[str, Any]:
        described = [
            {
                "name": metric.label,
                "accumulatorId": self._accumulators[key],
                "metricType": "timing" if metric.is_time else "sum",
            }
            for key, metric in metrics.items()
        ]
        return {
            "nodeName": text.split(" ", 1)[0].title(),
            "simpleString": text,
            "children": [],
            "metadata": {},
            "metrics": described,
        }

    def _post(self, event: str, **body: Any) -> None:
        text = json.dumps({"Event": _EVENTS + event, "executionId": self._id, **body})
        self._bus.listeners.post(self._bus.event_of(text))


class _Bus:
    """What all entries of a Spark context need of it, looked up once."""

    def __init__(self, spark: SparkSession) -> None:
        jvm = jvm_of(spark)
        session_of(spark).sharedState()  # the tab's listener is born here
        self.listeners = context_of(spark).listenerBus()
        kind = java_class(jvm, "java.lang.Class").forName(_EXECUTION)
        self._counter = kind.getDeclaredMethod("nextExecutionId", None)
        self._counter.setAccessible(True)
        self._counted = kind.getField("MODULE$").get(None)
        self._new_id = java_class(jvm, "org.apache.spark.util.AccumulatorContext").newId
        self._accumulators: dict[str, int] = {}
        self.event_of = java_class(jvm, "org.apache.spark.util.JsonProtocol").sparkEventFromJson

    @classmethod
    def of(cls, spark: SparkSession) -> _Bus:
        """Return the one of a session's context."""
        context = spark.sparkContext
        if context not in _BUSES:
            _BUSES[context] = cls(spark)
        return _BUSES[context]

    def next_id(self) -> int:
        """Take an id from Spark's own counter: one we made up could meet a real one."""
        return int(self._counter.invoke(self._counted, None))

    def accumulator(self, key: str) -> int:
        """Return the id of a metric: values are kept by entry and id, so entries share it."""
        if key not in self._accumulators:
            self._accumulators[key] = int(self._new_id())
        return self._accumulators[key]


_BUSES: WeakKeyDictionary[SparkContext, _Bus] = WeakKeyDictionary()


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


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
