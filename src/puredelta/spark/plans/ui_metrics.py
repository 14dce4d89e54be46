"""A command as one entry of the Spark UI's SQL tab, with its metrics, its jobs below it.

Classic sessions only. Spark's own event reader makes the events from JSON, so that what
differs between releases does not matter; a driver that works without Spark's plans has no
other way in. Nothing is run, nothing is read back, and whatever fails here is logged and
forgotten: the command is what counts.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from weakref import WeakKeyDictionary

from pyspark.sql import SparkSession

from puredelta.spark.session.jvm import java_class
from puredelta.spark.session.session import is_connect

logger = logging.getLogger(__name__)

_EVENTS = "org.apache.spark.sql.execution.ui.SparkListener"
_EXECUTION = "org.apache.spark.sql.execution.SQLExecution$"
_ROOT_ID = "spark.sql.execution.root.id"
_SUM, _TIMING = "sum", "timing"

_WORDS: Mapping[str, str] = {
    "numSourceRows": "number of source rows",
    "numTargetRowsInserted": "number of inserted rows",
    "numTargetRowsUpdated": "number of updated rows",
    "numTargetRowsMatchedUpdated": "number of rows updated by a matched clause",
    "numTargetRowsNotMatchedBySourceUpdated": (
        "number of rows updated by a not matched by source clause"
    ),
    "numTargetRowsDeleted": "number of deleted rows",
    "numTargetRowsMatchedDeleted": "number of rows deleted by a matched clause",
    "numTargetRowsNotMatchedBySourceDeleted": (
        "number of rows deleted by a not matched by source clause"
    ),
    "numTargetRowsCopied": "number of target rows rewritten unmodified",
    "numOutputRows": "number of output rows",
    "numTargetBytesAdded": "number of target bytes added",
    "numTargetBytesRemoved": "number of target bytes removed",
    "numTargetFilesAdded": "number of files added to target",
    "numTargetFilesRemoved": "number of files removed to target",
    "numTargetChangeFilesAdded": "number of change data capture files generated",
    "numTargetDeletionVectorsAdded": "number of deletion vectors added",
    "numTargetDeletionVectorsRemoved": "number of deletion vectors removed",
    "numTargetDeletionVectorsUpdated": "number of deletion vectors updated",
    "numUpdatedRows": "number of rows updated",
    "numDeletedRows": "number of rows deleted",
    "numCopiedRows": "number of rows copied",
    "numAddedFiles": "number of files added",
    "numRemovedFiles": "number of files removed",
    "numAddedBytes": "number of bytes added",
    "numRemovedBytes": "number of bytes removed",
    "numAddedChangeFiles": "number of change data capture files generated",
    "numDeletionVectorsAdded": "number of deletion vectors added",
    "numDeletionVectorsRemoved": "number of deletion vectors removed",
    "numDeletionVectorsUpdated": "number of deletion vectors updated",
    "executionTimeMs": "time taken to execute the entire operation",
    "materializeSourceTimeMs": "time taken to materialize source",
    "scanTimeMs": "time taken to scan the files for matches",
    "rewriteTimeMs": "time taken to rewrite the matched files",
}
"""The reference's words for its ``operationMetrics``."""


class ShownCommand:
    """What the entry of a running command will show."""

    def __init__(self) -> None:
        self.metrics: Mapping[str, int] = {}

    def report(self, metrics: Mapping[str, int]) -> None:
        """Show these counts, by the names of ``operationMetrics``."""
        self.metrics = metrics


@contextmanager
def shown_in_ui(spark: SparkSession, text: str) -> Iterator[ShownCommand]:
    """Show what happens inside as one entry called ``text``; a few milliseconds, no job.

    Queries that run meanwhile in this thread, and in those that inherit from it, stand
    below the entry. Over Connect nothing is shown.
    """
    shown = ShownCommand()
    entry = None if is_connect(spark) else _opened(spark, text)
    try:
        yield shown
    except BaseException as failure:
        _close(entry, {}, error=f"{type(failure).__name__}: {failure}")
        raise
    _close(entry, shown.metrics, error="")


def _opened(spark: SparkSession, text: str) -> _Entry | None:
    try:
        return _Entry(spark, text)
    except Exception:  # whatever Spark's internals answer
        logger.debug("No entry in the Spark UI", exc_info=True)
        return None


def _close(entry: _Entry | None, metrics: Mapping[str, int], *, error: str) -> None:
    if entry is None:
        return
    try:
        entry.close(metrics, error)
    except Exception:
        logger.debug("The entry in the Spark UI stays open", exc_info=True)


class _Entry:
    """One execution in the SQL tab that no Spark plan stands behind."""

    def __init__(self, spark: SparkSession, text: str) -> None:
        self._context: Any = spark.sparkContext
        self._listeners = self._context._jsc.sc().listenerBus()  # noqa: SLF001
        jvm: Any = spark._jvm  # noqa: SLF001 - the Py4J edge
        spark._jsparkSession.sharedState()  # noqa: SLF001 - the tab's listener is born here
        self._bus = _Bus.of(jvm)
        self._id = self._bus.next_id()
        self._accumulators = self._bus.accumulators
        self._post(
            "SQLExecutionStart",
            description=text,
            details="",
            physicalPlanDescription=text,
            sparkPlanInfo=self._plan(text),
            time=_now_ms(),
            modifiedConfigs={},
            jobTags=[],
        )
        self._root_before = self._context.getLocalProperty(_ROOT_ID)
        # Not `execution.id`: with that set Spark would show no plans of the queries below.
        self._context.setLocalProperty(_ROOT_ID, str(self._id))

    def close(self, metrics: Mapping[str, int], error: str) -> None:
        """End the entry; updates must come first, the store adds them up at the end."""
        self._context.setLocalProperty(_ROOT_ID, self._root_before)
        known = [[self._accumulators[n], int(v)] for n, v in metrics.items() if n in _WORDS]
        if known:
            self._post("DriverAccumUpdates", accumUpdates=known)
        self._post("SQLExecutionEnd", time=_now_ms(), errorMessage=error)

    def _plan(self, text: str) -> Mapping[str, Any]:
        metrics = [
            {
                "name": words,
                "accumulatorId": self._accumulators[name],
                "metricType": _TIMING if name.endswith("TimeMs") else _SUM,
            }
            for name, words in _WORDS.items()
        ]
        return {
            "nodeName": text.split(" ", 1)[0].title(),
            "simpleString": text,
            "children": [],
            "metadata": {},
            "metrics": metrics,
        }

    def _post(self, event: str, **body: Any) -> None:
        text = json.dumps({"Event": _EVENTS + event, "executionId": self._id, **body})
        self._listeners.post(self._bus.event_of(text))


class _Bus:
    """What all entries of a JVM need of it, looked up once."""

    def __init__(self, jvm: Any) -> None:
        kind = java_class(jvm, "java.lang.Class").forName(_EXECUTION)
        self._counter = kind.getDeclaredMethod("nextExecutionId", None)
        self._counter.setAccessible(True)
        self._counted = kind.getField("MODULE$").get(None)
        new_id = java_class(jvm, "org.apache.spark.util.AccumulatorContext").newId
        # Values are kept by entry and id, so entries can have the same ids.
        self.accumulators: Mapping[str, int] = {name: int(new_id()) for name in _WORDS}
        self.event_of = java_class(jvm, "org.apache.spark.util.JsonProtocol").sparkEventFromJson

    @classmethod
    def of(cls, jvm: Any) -> _Bus:
        """Return the one of a JVM."""
        if jvm not in _BUSES:
            _BUSES[jvm] = cls(jvm)
        return _BUSES[jvm]

    def next_id(self) -> int:
        """Take an id from Spark's own counter: one we made up could meet a real one."""
        return int(self._counter.invoke(self._counted, None))


_BUSES: WeakKeyDictionary[Any, _Bus] = WeakKeyDictionary()


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
