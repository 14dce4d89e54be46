"""Spark's Python workers: permission, settings, code and limits.

Executors have no puredelta, so its code travels with the task: `puredelta.worker`, which imports
the standard library, numpy and pyarrow only. A local session runs it with the driver's own
interpreter: by default its workers are whatever ``python3`` is on the PATH, without the libraries
of the virtual environment that the driver lives in. Elsewhere a worker without the libraries
says so in one line (`puredelta.worker.bootstrap`).
"""

from __future__ import annotations

import functools
import heapq
import os
import pickle
import re
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import types as T

from puredelta.spark.jvm.gateway import worker_context
from puredelta.spark.session.data_access import packed_code
from puredelta.spark.session.delta_conf import FLAG, OWN_PREFIX, OwnConf, whole_number
from puredelta.spark.session.read_settings import ReadSettings
from puredelta.spark.session.session import (
    NotApplicable,
    arrow_rows,
    is_connect,
    parallelism,
    runs_here,
    settings_of,
)
from puredelta.worker.bootstrap import (
    KEPT_BYTES,
    Freeze,
    KeepMemory,
    Quickack,
    Task,
    TaskAnswer,
    after_arrival,
    run_rows,
    run_task,
)
from puredelta.worker.wire import LIMITS, Limits

PREFIX = f"{OWN_PREFIX}workers."

_MASTER = "spark.master"
_MEGABYTE = 1024 * 1024
_ELSEWHERE_BYTES_MAX = 64 * _MEGABYTE
"""Of the source's keys in a worker of a cluster, beside whatever else that machine does."""
_PARTS_MAX = 4
"""How often a worker reads its files, each time to look a part of the source up."""
_HERE_BYTES_MAX = 4 * 1024 * _MEGABYTE
_HERE_SHARE = 8
"""The part of this machine's memory that all workers together may take: one in this many."""


ENABLED = OwnConf(
    prefix=PREFIX,
    name="enabled",
    type=FLAG,
    default="true",
    effect="Python workers look keys up and copy rows in Arrow; off: Spark joins, reads and writes",
)
LOOKUP_BYTES = OwnConf(
    prefix=PREFIX,
    name="lookupBytes",
    type=whole_number("a number of bytes"),
    default=None,
    effect="how many bytes a task may hold of the keys of a source; a larger source is looked up "
    f"in up to {_PARTS_MAX} parts. Unset: a share of the machine's memory in a local session, "
    f"{_ELSEWHERE_BYTES_MAX} elsewhere",
)
MERGE_SMALL_FILES = OwnConf(
    prefix=PREFIX,
    name="mergeSmallFiles",
    type=FLAG,
    default="true",
    effect="small files that are alike are decoded as one; off: each is opened by itself",
)
BLOOM_FILTERS = OwnConf(
    prefix=PREFIX,
    name="bloomFilters",
    type=FLAG,
    default="true",
    effect="key lookups leave out files whose Bloom filters hold no key; off: filters are not read",
)
QUICKACK = OwnConf(
    prefix=PREFIX,
    name="quickack",
    type=FLAG,
    default="true",
    effect="tasks are acknowledged when they arrive (`TCP_QUICKACK`, Linux)",
)
GC_FREEZE = OwnConf(
    prefix=PREFIX,
    name="gcFreeze",
    type=FLAG,
    default="true",
    effect="workers do not search for garbage among the modules they have loaded (`gc.freeze`)",
)
KEEP_MEMORY = OwnConf(
    prefix=PREFIX,
    name="keepMemory",
    type=FLAG,
    default="true",
    effect=f"workers keep up to {KEPT_BYTES >> 20} MB of freed memory for the next batch "
    "(`mallopt` of glibc)",
)
WORKER_CONFS = (
    ENABLED,
    LOOKUP_BYTES,
    MERGE_SMALL_FILES,
    BLOOM_FILTERS,
    QUICKACK,
    GC_FREEZE,
    KEEP_MEMORY,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerMemory:
    """The part of a source that Python workers may hold, in bytes."""

    task_max: int
    all_max: int | None = None
    """All of them together, where they share this machine."""
    parts_max: int = 1
    """In how many parts a task may hold a source, one after the other."""

    @classmethod
    def of(cls, master: str | None) -> WorkerMemory:
        """Return what the workers of a session may take; ``master`` is its ``spark.master``."""
        if not runs_here(master):
            return cls(task_max=_ELSEWHERE_BYTES_MAX, parts_max=_PARTS_MAX)
        here = min(_HERE_BYTES_MAX, _memory_bytes() // _HERE_SHARE)
        return cls(task_max=here, all_max=here)

    def tasks_max(self, task_bytes: int) -> int | None:
        """Return how many tasks may run at once; ``None``: any number."""
        return None if self.all_max is None else max(1, self.all_max // max(1, task_bytes))


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerSettings:
    """The permitted uses of Python workers, read once per command."""

    enabled: bool = True
    memory: WorkerMemory = field(default_factory=lambda: WorkerMemory.of(None))
    limits: Limits = LIMITS
    quickack: bool = True
    gc_freeze: bool = True
    keep_memory: bool = True

    @classmethod
    def parse(cls, settings: Mapping[str, str]) -> WorkerSettings:
        """Read them from text by key, among all other settings of a session.

        >>> WorkerSettings.parse({"spark.puredelta.workers.quickack": "false"}).quickack
        False
        """
        merges = MERGE_SMALL_FILES.read(settings)
        limits = replace(
            LIMITS,
            only_spark=ReadSettings.parse(settings).only_spark,
            bloom_filters=BLOOM_FILTERS.read(settings),
        )
        return cls(
            enabled=ENABLED.read(settings),
            memory=_memory(settings),
            limits=limits if merges else replace(limits, small_file_rows=0),
            quickack=QUICKACK.read(settings),
            gc_freeze=GC_FREEZE.read(settings),
            keep_memory=KEEP_MEMORY.read(settings),
        )


def _memory(settings: Mapping[str, str]) -> WorkerMemory:
    if not LOOKUP_BYTES.is_set(settings):
        return WorkerMemory.of(settings.get(_MASTER))
    return WorkerMemory(task_max=LOOKUP_BYTES.read(settings), parts_max=_PARTS_MAX)


def _memory_bytes() -> int:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):  # no such name on this system
        return _HERE_SHARE * _ELSEWHERE_BYTES_MAX


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
_LACKING_WORKER = re.compile(
    r"No module named '(?:pyarrow|numpy)\b|PACKAGE_NOT_INSTALLED\S* (?:PyArrow|Pandas|NumPy)\b"
    r"|Cannot run program|PYTHON_VERSION_MISMATCH",
    re.IGNORECASE,
)
"""What a reason names that is so for every task: another one need not be tried for a while."""
LACKING_SECONDS = 600.0
"""How long that is taken for granted; somebody may install what is missing."""
_LACKING: WeakKeyDictionary[SparkSession, float] = WeakKeyDictionary()
"""When the workers of a session were found to lack something."""


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
    begin in the order given (over Spark Connect two jobs, in any order, if the tasks are many).

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
    if (reason := known_refusal(spark)) is not None:
        return NotApplicable(reason=reason)
    functions = tuple(packed_code(one.function) for one in calls)
    answers: list[TaskAnswer] = []
    try:
        run = _collected_rows if is_connect(spark) else _collected
        answers = run(spark, tasks, functions, settings)
    except Exception as failure:
        if (reason := unfit_worker(failure)) is None:
            raise
    else:
        reason = next((refusal for _, refusal, _ in answers if refusal), None)
    if reason is not None:
        note_refusal(spark, reason)
        return NotApplicable(reason=reason)
    _REFUSALS.pop(spark, None)
    _LACKING.pop(spark, None)
    return [[answer for of, _, answer in answers if of == number] for number, _ in enumerate(calls)]


def parallelism_of(spark: SparkSession) -> int:
    """Return how many tasks a session runs at once, as far as it tells."""
    return parallelism(spark) or _CONNECT_PARALLELISM


def last_refusal(spark: SparkSession) -> str | None:
    """Return why workers of this session could not do what they were asked last, if so."""
    return _REFUSALS.get(spark)


def note_refusal(spark: SparkSession, reason: str) -> None:
    """Note why workers could not do what they were asked."""
    _REFUSALS[spark] = reason
    if _LACKING_WORKER.search(reason):
        _LACKING[spark] = time.monotonic()


def known_refusal(spark: SparkSession) -> str | None:
    """Return why workers can do nothing, if a job has shown that a short time ago."""
    since = _LACKING.get(spark)
    if since is None or time.monotonic() - since > LACKING_SECONDS:
        return None
    return _REFUSALS.get(spark)


def low_latency(work: Callable[[_Batch], Any], settings: WorkerSettings) -> Callable[[_Batch], Any]:
    """Return ``work`` as workers do it without waiting, as far as the session wants that."""
    arrivals = [
        *([Quickack()] if settings.quickack else []),
        *([Freeze()] if settings.gc_freeze else []),
        *([KeepMemory()] if settings.keep_memory else []),
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
    spread = arrow_rows(spark, rows)
    if len(tasks) > max(1, _spread_of_rows(spark)):
        spread = spread.repartition(len(tasks))
    # Text would be one more request: the server reads it.
    answers = spread.mapInArrow(work, _ANSWERS).toArrow()["answer"]
    return [pickle.loads(answer) for answer in answers.to_pylist()]  # noqa: S301 - our own


def _spread_of_rows(spark: SparkSession) -> int:
    """Return up to how many rows of a client are a task each; 0 if a server does not say."""
    settings = settings_of(spark)
    return 0 if any(key in settings for key in _SPREADS) else parallelism(spark)


_SPREADS = ("spark.sql.leafNodeDefaultParallelism", "spark.default.parallelism")
_ANSWERS = T.StructType([T.StructField("answer", T.BinaryType())])


def unfit_worker(failure: Exception) -> str | None:
    """Say what the workers' Python lacks, if that is why the job failed."""
    sign = _UNFIT_WORKER.search(str(failure))
    return None if sign is None else f"workers: {sign.group()[:_UNFIT_SHOWN]}"


_Item = TypeVar("_Item")

_TASK_BYTES = 8 * 1024 * 1024
"""How much a task should at least copy, once every core has one."""
_OBJECT_TASK_BYTES = 32 * 1024 * 1024
"""The same of objects: the next one is brought while one is copied."""


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


def count_tasks(sizes_bytes: Sequence[int], parallelism: int, *, are_objects: bool) -> int:
    """Choose how many tasks share the files: one per core, more where there is much to copy."""
    task_bytes = _OBJECT_TASK_BYTES if are_objects else _TASK_BYTES
    return min(len(sizes_bytes), max(parallelism, -(-sum(sizes_bytes) // task_bytes)))


_SEARCH_BYTES = 256 * _MEGABYTE
"""Of data files: a task reads some of their columns, and those of the source once."""
_FILES_PER_SOURCE = 4
"""How much more a task reads of files than it holds of the source, where there is a choice."""


def count_source_tasks(
    sizes_bytes: Sequence[int], parallelism: int, source_bytes: int, tasks_max: int | None
) -> int:
    """Choose how many tasks share the files: one per core at least, if memory allows it."""
    if tasks_max is not None and tasks_max < parallelism:
        return min(len(sizes_bytes), tasks_max)
    # A task that reads much of the source has to read more of the files to be worth it.
    task_bytes = max(_SEARCH_BYTES, _FILES_PER_SOURCE * source_bytes)
    return min(len(sizes_bytes), max(parallelism, -(-sum(sizes_bytes) // task_bytes)))
