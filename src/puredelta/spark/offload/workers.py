"""Spark's Python workers: what code they are sent, how much, and what keeps them from running it.

Executors have no puredelta, so its code travels with the task: `puredelta.worker`, which imports
the standard library, numpy and pyarrow only. A local session runs it with the driver's own
interpreter: by default its workers are whatever ``python3`` is on the PATH, without the libraries
of the virtual environment that the driver lives in. Elsewhere a worker without the libraries
says so in one line (`puredelta.worker.bootstrap`).
"""

from __future__ import annotations

import functools
import heapq
import pickle
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

import pyarrow as pa
from pyspark.sql import SparkSession

from puredelta.spark.data_files.worker_code import packed_code
from puredelta.spark.jvm.python_workers import worker_context
from puredelta.spark.offload.worker_settings import ENABLED, WorkerSettings
from puredelta.spark.session.fallback import NotApplicable
from puredelta.spark.session.session import is_connect
from puredelta.worker.bootstrap import Task, TaskAnswer, after_arrival, run_rows, run_task
from puredelta.worker.gc_freeze import Freeze
from puredelta.worker.tcp_quickack import Quickack

_Batch = TypeVar("_Batch")

_CONNECT_PARALLELISM = 16
_UNFIT_WORKER = re.compile(
    r"(?:ModuleNotFoundError|ImportError|Cannot run program)(?:\b[^\n]*)?|PYTHON_VERSION_MISMATCH"
    r"|Python worker (?:exited unexpectedly|failed to connect back)[^\n]*"
)
"""What an error names when the workers' Python is not up to the task, or ended in the middle of
it: of a file that ends Arrow's process, or for want of memory. Spark does the work then."""
_UNFIT_SHOWN = 300
_REFUSALS: WeakKeyDictionary[SparkSession, str] = WeakKeyDictionary()


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerCalls:
    """Calls of one function, each in a task of its own."""

    function: Callable[[Any], Any]
    """Of a module of `puredelta.worker`; takes one message."""
    messages: Sequence[Any]
    """Tuples, lists and other plain values (`puredelta.worker.wire`)."""


def run_in_workers(
    spark: SparkSession, calls: Sequence[WorkerCalls], settings: WorkerSettings
) -> list[list[Any]] | NotApplicable:
    """Return the answers to each of the calls, in no fixed order. Runs one Spark job, whose tasks
    begin in the order given (two jobs, in any order, over Spark Connect).

    Refuses if the workers' Python is not up to it, or the session does not want them.
    """
    if not settings.enabled:
        return NotApplicable(reason=f"{ENABLED.key} is false")
    tasks: list[Task] = [
        (number, pickle.dumps(message))
        for number, one in enumerate(calls)
        for message in one.messages
    ]
    if not tasks:
        return [[] for _ in calls]
    functions = tuple(packed_code(one.function) for one in calls)
    answers: list[TaskAnswer] = []
    try:
        run = _collected_rows if is_connect(spark) else _collected
        answers = run(spark, tasks, functions, settings)
    except Exception as failure:
        if (reason := _unfit_worker(failure)) is None:
            raise
    else:
        reason = next((refusal for _, refusal, _ in answers if refusal), None)
    if reason is not None:
        _REFUSALS[spark] = reason
        return NotApplicable(reason=reason)
    _REFUSALS.pop(spark, None)
    return [[answer for of, _, answer in answers if of == number] for number, _ in enumerate(calls)]


def parallelism_of(spark: SparkSession) -> int:
    """Return how many tasks a session runs at once, as far as it tells."""
    return _CONNECT_PARALLELISM if is_connect(spark) else spark.sparkContext.defaultParallelism


def last_refusal(spark: SparkSession) -> str | None:
    """Return why workers of this session could not do what they were asked last, if so."""
    return _REFUSALS.get(spark)


def low_latency(work: Callable[[_Batch], Any], settings: WorkerSettings) -> Callable[[_Batch], Any]:
    """Return ``work`` as workers do it without waiting, as far as the session wants that."""
    arrivals = [
        *([Quickack()] if settings.quickack else []),
        *([Freeze()] if settings.gc_freeze else []),
    ]
    return functools.partial(after_arrival, arrivals, work)


def _collected(
    spark: SparkSession, tasks: Sequence[Task], functions: Sequence[bytes], settings: WorkerSettings
) -> list[TaskAnswer]:
    """Run tasks through an RDD: ``mapInArrow`` would need pandas, which Spark does not bring."""
    context = spark.sparkContext
    work = low_latency(functools.partial(run_task, functions), settings)
    # In a local session the workers are the driver's own Python.
    is_local = (context.master or "").startswith("local")
    own = worker_context(context, python=sys.executable if is_local else None)
    return own.parallelize(tasks, len(tasks)).flatMap(work).collect()


def _collected_rows(
    spark: SparkSession, tasks: Sequence[Task], functions: Sequence[bytes], settings: WorkerSettings
) -> list[TaskAnswer]:
    """Run tasks through ``mapInArrow``: there are no RDDs over Spark Connect."""
    rows = pa.table(list(zip(*tasks, strict=True)), ["function", "argument"])
    work = low_latency(functools.partial(run_rows, functions), settings)
    spread = spark.createDataFrame(rows).repartition(len(tasks))
    answers = spread.mapInArrow(work, "answer binary").toArrow()["answer"]
    return [pickle.loads(answer) for answer in answers.to_pylist()]  # noqa: S301 - our own


def _unfit_worker(failure: Exception) -> str | None:
    """Say what the workers' Python lacks, if that is why the job failed."""
    sign = _UNFIT_WORKER.search(str(failure))
    return None if sign is None else f"workers: {sign.group()[:_UNFIT_SHOWN]}"


_Item = TypeVar("_Item")

_TASK_BYTES = 8 * 1024 * 1024
"""How much a task should at least copy, once every core has one."""


def assign_to_tasks(
    items: Sequence[_Item], sizes_bytes: Sequence[int], *, num_tasks: int
) -> list[list[_Item]]:
    """Assign items so that all tasks are of about one size, the largest items first.

    Tasks without an item are left out.
    """
    tasks: list[list[_Item]] = [[] for _ in range(num_tasks)]
    loads = [(0, number) for number in range(num_tasks)]
    for number in sorted(range(len(sizes_bytes)), key=sizes_bytes.__getitem__, reverse=True):
        load, task = loads[0]
        tasks[task].append(items[number])
        heapq.heapreplace(loads, (load + max(1, sizes_bytes[number]), task))
    return [task for task in tasks if task]


def count_tasks(sizes_bytes: Sequence[int], parallelism: int) -> int:
    """Choose how many tasks share the files: one per core, more where there is much to copy."""
    return min(len(sizes_bytes), max(parallelism, -(-sum(sizes_bytes) // _TASK_BYTES)))
