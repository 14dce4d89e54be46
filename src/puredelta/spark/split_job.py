"""How the orders to write files are dealt out to Python workers, and answered.

A classic session runs them through an RDD: ``mapInArrow`` would need pandas there, which a
stock PySpark does not bring.
"""

from __future__ import annotations

import functools
import heapq
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

import pyarrow as pa
from pyspark import SparkContext
from pyspark.sql import SparkSession

from puredelta.spark import split_task
from puredelta.spark.new_file_task import FileAnswer, answer_if_able, of_tuples
from puredelta.spark.rewriting import Refused
from puredelta.spark.session import is_connect
from puredelta.spark.split_task import ORDER_SCHEMA, SplitOrder
from puredelta.spark.workers import Fields, collect_if_fit, if_fit, packed_code

_Task = TypeVar("_Task")

_TASK_BYTES = 8 * 1024 * 1024
"""How much a task should at least copy, once every core has one."""
_CONNECT_TASKS_MIN = 16
_ANSWER_DDL = (
    "ordinal int, name string, physical_rows long, kept_rows long, size_bytes long, "
    "modified_ms long, footer binary, nan_columns array<array<string>>, refusal string, "
    "partition array<string>, others array<int>"
)


def run_split(
    spark: SparkSession, orders: Sequence[SplitOrder], sizes_bytes: Sequence[int]
) -> list[FileAnswer] | Refused:
    """Answer every order, in no fixed order, or refuse. Runs one Spark job (two on Connect).

    ``sizes_bytes`` are those of the files, to deal them out evenly. After a refusal files of
    tasks that succeeded may be there.
    """
    tasks = [tuple(getattr(order, name) for name in ORDER_SCHEMA.names) for order in orders]
    if is_connect(spark):
        answers = if_fit(functools.partial(_run_on_connect, spark, tasks, sizes_bytes))
        return answers if isinstance(answers, Refused) else _all_done(answers)
    context = spark.sparkContext
    # Orders of a group stay together.
    units: dict[int, list[int]] = {}
    for number, order in enumerate(orders):
        units.setdefault(-1 - number if order.group is None else order.group, []).append(number)
    sizes = [sum(sizes_bytes[number] for number in unit) for unit in units.values()]
    dealt = balanced(
        list(units.values()), sizes, num_batches=num_tasks(sizes, context.defaultParallelism)
    )
    batches = [[tasks[number] for unit in batch for number in unit] for batch in dealt]
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
    answers = collect_if_fit(
        context, batches, functools.partial(answer_if_able, packed_code(write))
    )
    return answers if isinstance(answers, Refused) else _all_done(of_tuples(answers))


def _all_done(answers: list[FileAnswer]) -> list[FileAnswer] | Refused:
    refusal = next((answer.refusal for answer in answers if answer.refusal), None)
    return answers if refusal is None else Refused(reason=refusal)


def _run_on_connect(
    spark: SparkSession, tasks: Sequence[Fields], sizes_bytes: Sequence[int]
) -> list[FileAnswer]:
    columns = zip(*tasks, strict=True)
    arrays = [pa.array(v, field.type) for v, field in zip(columns, ORDER_SCHEMA, strict=True)]
    orders = spark.createDataFrame(pa.table(arrays, schema=ORDER_SCHEMA))
    spread = orders.repartition(num_tasks(sizes_bytes, _CONNECT_TASKS_MIN))
    found = spread.mapInArrow(split_task.split_batches, _ANSWER_DDL).toArrow()
    return [
        FileAnswer(
            **{
                **row,
                "nan_columns": tuple(map(tuple, row["nan_columns"])),
                "partition": tuple(row["partition"]),
                "others": tuple(row["others"]),
            }
        )
        for row in found.to_pylist()
    ]


def balanced(
    tasks: Sequence[_Task], sizes_bytes: Sequence[int], *, num_batches: int
) -> list[list[_Task]]:
    """Deal tasks out so that all batches are of about one size, largest first."""
    batches: list[list[_Task]] = [[] for _ in range(num_batches)]
    loads = [(0, number) for number in range(num_batches)]
    for size, number in sorted(((s, n) for n, s in enumerate(sizes_bytes)), reverse=True):
        load, batch = heapq.heappop(loads)
        batches[batch].append(tasks[number])
        heapq.heappush(loads, (load + max(1, size), batch))
    return [batch for batch in batches if batch]


def num_tasks(sizes_bytes: Sequence[int], parallelism: int) -> int:
    """Choose how many tasks share the files: one per core, more where there is much to copy."""
    return min(len(sizes_bytes), max(parallelism, -(-sum(sizes_bytes) // _TASK_BYTES)))
