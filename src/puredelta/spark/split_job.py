"""How the orders of a split reach Python workers, and what keeps them from being carried out.

A classic session runs them through an RDD: ``mapInArrow`` would need pandas there, which a
stock PySpark does not bring. A local session runs them with the driver's own interpreter:
by default its workers are whatever ``python3`` is on the PATH, without the libraries of
the virtual environment that the driver lives in. Elsewhere the worker looks for the
libraries before the code that needs them is unpacked, so that a worker without them says
so in one line instead of a stack trace in its log.
"""

from __future__ import annotations

import functools
import heapq
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias, TypeVar

import pyarrow as pa
from pyspark import SparkContext, cloudpickle
from pyspark.sql import SparkSession

from puredelta.spark import file_rows_task, new_file_task, split_task
from puredelta.spark.new_file_task import FileAnswer, answer_if_able, of_tuples
from puredelta.spark.rewriting import Refused
from puredelta.spark.session import is_connect
from puredelta.spark.split_task import ORDER_SCHEMA, SplitOrder

Fields: TypeAlias = tuple[Any, ...]
_Answer = TypeVar("_Answer")

# Executors have no puredelta: its code travels with the task.
for _module in (file_rows_task, new_file_task, split_task):
    cloudpickle.register_pickle_by_value(_module)  # type: ignore[no-untyped-call]

_TASK_BYTES = 8 * 1024 * 1024
"""How much a task should at least copy, once every core has one."""
_CONNECT_TASKS_MIN = 16
_ANSWER_DDL = (
    "ordinal int, name string, physical_rows long, kept_rows long, size_bytes long, "
    "modified_ms long, footer binary, nan_columns array<array<string>>, refusal string"
)
_UNFIT_WORKER = (
    "ModuleNotFoundError",
    "ImportError",
    "PYTHON_VERSION_MISMATCH",
    "Cannot run program",
)
"""What an error names when the workers' Python is not up to the task."""


def run_split(
    spark: SparkSession, orders: Sequence[SplitOrder], sizes_bytes: Sequence[int]
) -> list[FileAnswer] | Refused:
    """Answer every order, in no fixed order, or refuse. Runs one Spark job (two on Connect).

    ``sizes_bytes`` are those of the files, to deal them out evenly. After a refusal files of
    tasks that succeeded may be there.
    """
    tasks = [tuple(getattr(order, name) for name in ORDER_SCHEMA.names) for order in orders]
    if is_connect(spark):
        answers = _if_fit(functools.partial(_run_on_connect, spark, tasks, sizes_bytes))
        return answers if isinstance(answers, Refused) else _all_done(answers)
    context = spark.sparkContext
    batches = balanced(
        tasks, sizes_bytes, num_batches=num_tasks(sizes_bytes, context.defaultParallelism)
    )
    return write_in_workers(context, batches, split_task.split_tuples)


def write_in_workers(
    context: SparkContext,
    batches: Sequence[Sequence[Fields]],
    write: Callable[[Iterable[Fields]], Sequence[Fields]],
) -> list[FileAnswer] | Refused:
    """Answer the orders of each batch in a task, in no fixed order, or refuse. Runs one Spark job.

    ``write`` answers with the fields of `FileAnswer`. After a refusal files of tasks that
    succeeded may be there.
    """
    payload: bytes = cloudpickle.dumps(write)  # type: ignore[no-untyped-call]
    answers = collect_if_fit(context, batches, functools.partial(answer_if_able, payload))
    return answers if isinstance(answers, Refused) else _all_done(of_tuples(answers))


def _all_done(answers: list[FileAnswer]) -> list[FileAnswer] | Refused:
    refusal = next((answer.refusal for answer in answers if answer.refusal), None)
    return answers if refusal is None else Refused(reason=refusal)


def collect_if_fit(
    context: SparkContext,
    batches: Sequence[Sequence[Fields]],
    work: Callable[[Sequence[Fields]], Iterable[Fields]],
) -> list[Fields] | Refused:
    """Do ``work`` in one task per batch and return all its answers. Runs one Spark job.

    Refuses if the workers' Python is not up to it. ``work`` must be shipped by value, or be
    known to executors.
    """
    return _if_fit(functools.partial(_collect_in_workers, context, batches, work))


def _collect_in_workers(
    context: SparkContext,
    batches: Sequence[Sequence[Fields]],
    work: Callable[[Sequence[Fields]], Iterable[Fields]],
) -> list[Fields]:
    answers = context.parallelize(batches, len(batches)).flatMap(work)
    if (context.master or "").startswith("local"):
        answers.ctx = _OwnInterpreter(context)  # type: ignore[assignment]
    return answers.collect()


class _OwnInterpreter:
    """A Spark context whose workers are the driver's own Python; nothing lasting is changed."""

    def __init__(self, context: SparkContext) -> None:
        self._context = context
        self.pythonExec = sys.executable

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)


def _run_on_connect(
    spark: SparkSession, tasks: Sequence[Fields], sizes_bytes: Sequence[int]
) -> list[FileAnswer]:
    columns = zip(*tasks, strict=True)
    arrays = [pa.array(v, field.type) for v, field in zip(columns, ORDER_SCHEMA, strict=True)]
    orders = spark.createDataFrame(pa.table(arrays, schema=ORDER_SCHEMA))
    spread = orders.repartition(num_tasks(sizes_bytes, _CONNECT_TASKS_MIN))
    found = spread.mapInArrow(split_task.split_batches, _ANSWER_DDL).toArrow()
    return [
        FileAnswer(**{**row, "nan_columns": tuple(map(tuple, row["nan_columns"]))})
        for row in found.to_pylist()
    ]


def balanced(
    tasks: Sequence[Fields], sizes_bytes: Sequence[int], *, num_batches: int
) -> list[list[Fields]]:
    """Deal tasks out so that all batches are of about one size, largest first."""
    batches: list[list[Fields]] = [[] for _ in range(num_batches)]
    loads = [(0, number) for number in range(num_batches)]
    for size, number in sorted(((s, n) for n, s in enumerate(sizes_bytes)), reverse=True):
        load, batch = heapq.heappop(loads)
        batches[batch].append(tasks[number])
        heapq.heappush(loads, (load + max(1, size), batch))
    return [batch for batch in batches if batch]


def num_tasks(sizes_bytes: Sequence[int], parallelism: int) -> int:
    """Choose how many tasks share the files: one per core, more where there is much to copy."""
    return min(len(sizes_bytes), max(parallelism, -(-sum(sizes_bytes) // _TASK_BYTES)))


def _if_fit(job: Callable[[], list[_Answer]]) -> list[_Answer] | Refused:
    try:
        return job()
    except Exception as failure:
        if (reason := unfit_worker(failure)) is None:
            raise
        return Refused(reason=reason)


def unfit_worker(failure: Exception) -> str | None:
    """Say what the workers' Python lacks, if that is why the job failed."""
    text = str(failure)
    sign = next((sign for sign in _UNFIT_WORKER if sign in text), None)
    return None if sign is None else f"workers: {sign} in {text[:500]}"
