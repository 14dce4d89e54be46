"""How the orders to copy files are dealt out to Python workers.

A classic session runs them through an RDD (`puredelta.spark.offload.write_job`): ``mapInArrow``
would need pandas there, which a stock PySpark does not bring.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from operator import attrgetter

import pyarrow as pa
from pyspark.sql import SparkSession

from puredelta.spark.offload.deal import balanced, num_tasks
from puredelta.spark.offload.workers import Fields, if_fit, promptly
from puredelta.spark.offload.write_job import WriteAnswers, WriteOrders, all_done
from puredelta.spark.session.fallback import NotApplicable
from puredelta.worker import rewrite_file
from puredelta.worker.rewrite_file import ORDER_SCHEMA, RewriteTask
from puredelta.worker.write_file import FileAnswer

_CONNECT_TASKS_MIN = 16
_ANSWER_DDL = (
    "ordinal int, name string, physical_rows long, kept_rows long, size_bytes long, "
    "modified_ms long, footer binary, nan_columns array<array<string>>, refusal string, "
    "partition array<string>, others array<int>"
)


def rewrite_orders(
    orders: Sequence[RewriteTask], sizes_bytes: Sequence[int], *, parallelism: int
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
    return WriteOrders(batches, rewrite_file.rewrite_tuples)


def rewrite_on_connect(
    spark: SparkSession, orders: Sequence[RewriteTask], sizes_bytes: Sequence[int]
) -> WriteAnswers:
    """Answer every order in a session without RDDs, or refuse. Runs two Spark jobs."""
    answers = if_fit(functools.partial(_run_on_connect, spark, _tasks(orders), sizes_bytes))
    return answers if isinstance(answers, NotApplicable) else all_done(answers)


def _tasks(orders: Sequence[RewriteTask]) -> list[Fields]:
    fields = attrgetter(*ORDER_SCHEMA.names)
    return [fields(order) for order in orders]


def _run_on_connect(
    spark: SparkSession, tasks: Sequence[Fields], sizes_bytes: Sequence[int]
) -> list[FileAnswer]:
    columns = zip(*tasks, strict=True)
    arrays = [pa.array(v, field.type) for v, field in zip(columns, ORDER_SCHEMA, strict=True)]
    orders = spark.createDataFrame(pa.table(arrays, schema=ORDER_SCHEMA))
    spread = orders.repartition(num_tasks(sizes_bytes, _CONNECT_TASKS_MIN))
    found = spread.mapInArrow(promptly(rewrite_file.rewrite_batches), _ANSWER_DDL).toArrow()
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
