"""How the orders to copy files are dealt out to Python workers.

A classic session runs them through an RDD (`puredelta.spark.write_job`): ``mapInArrow`` would need
pandas there, which a stock PySpark does not bring.
"""

from __future__ import annotations

import functools
import heapq
from collections.abc import Sequence
from operator import attrgetter
from typing import TypeVar

import pyarrow as pa
from pyspark.sql import SparkSession

from puredelta.spark import split_task
from puredelta.spark.new_file_task import FileAnswer
from puredelta.spark.rewriting import Refused
from puredelta.spark.split_task import ORDER_SCHEMA, SplitOrder
from puredelta.spark.workers import Fields, if_fit, promptly
from puredelta.spark.write_job import WriteAnswers, WriteOrders, all_done

_Task = TypeVar("_Task")

_TASK_BYTES = 8 * 1024 * 1024
"""How much a task should at least copy, once every core has one."""
_CONNECT_TASKS_MIN = 16
_ANSWER_DDL = (
    "ordinal int, name string, physical_rows long, kept_rows long, size_bytes long, "
    "modified_ms long, footer binary, nan_columns array<array<string>>, refusal string, "
    "partition array<string>, others array<int>"
)


def split_orders(
    orders: Sequence[SplitOrder], sizes_bytes: Sequence[int], *, parallelism: int
) -> WriteOrders:
    """Deal orders out to tasks; ``sizes_bytes`` are those of the files, to do so evenly."""
    # Orders of a group stay together.
    units: dict[int, list[int]] = {}
    for number, order in enumerate(orders):
        units.setdefault(-1 - number if order.group is None else order.group, []).append(number)
    sizes = [sum(sizes_bytes[number] for number in unit) for unit in units.values()]
    dealt = balanced(list(units.values()), sizes, num_batches=num_tasks(sizes, parallelism))
    tasks = _tasks(orders)
    batches = [[tasks[number] for unit in batch for number in unit] for batch in dealt]
    return WriteOrders(batches, split_task.split_tuples)


def split_on_connect(
    spark: SparkSession, orders: Sequence[SplitOrder], sizes_bytes: Sequence[int]
) -> WriteAnswers:
    """Answer every order in a session without RDDs, or refuse. Runs two Spark jobs."""
    answers = if_fit(functools.partial(_run_on_connect, spark, _tasks(orders), sizes_bytes))
    return answers if isinstance(answers, Refused) else all_done(answers)


def _tasks(orders: Sequence[SplitOrder]) -> list[Fields]:
    fields = attrgetter(*ORDER_SCHEMA.names)
    return [fields(order) for order in orders]


def _run_on_connect(
    spark: SparkSession, tasks: Sequence[Fields], sizes_bytes: Sequence[int]
) -> list[FileAnswer]:
    columns = zip(*tasks, strict=True)
    arrays = [pa.array(v, field.type) for v, field in zip(columns, ORDER_SCHEMA, strict=True)]
    orders = spark.createDataFrame(pa.table(arrays, schema=ORDER_SCHEMA))
    spread = orders.repartition(num_tasks(sizes_bytes, _CONNECT_TASKS_MIN))
    found = spread.mapInArrow(promptly(split_task.split_batches), _ANSWER_DDL).toArrow()
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
    for number in sorted(range(len(sizes_bytes)), key=sizes_bytes.__getitem__, reverse=True):
        load, batch = loads[0]
        batches[batch].append(tasks[number])
        heapq.heapreplace(loads, (load + max(1, sizes_bytes[number]), batch))
    return [batch for batch in batches if batch]


def num_tasks(sizes_bytes: Sequence[int], parallelism: int) -> int:
    """Choose how many tasks share the files: one per core, more where there is much to copy."""
    return min(len(sizes_bytes), max(parallelism, -(-sum(sizes_bytes) // _TASK_BYTES)))
