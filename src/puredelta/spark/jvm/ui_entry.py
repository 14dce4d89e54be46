"""An entry of the Spark UI's SQL tab for work that has no plan of Spark's.

Classic sessions only. Spark's own event reader makes the events from JSON, so that what
differs between releases does not matter; a driver that works without Spark's plans has no
other way in.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

from pyspark import SparkContext
from pyspark.sql import SparkSession

from puredelta.spark.jvm.classes import context_of, java_class, jvm_of, session_of

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
