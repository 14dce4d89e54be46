"""How the tasks that rewrite data files reach Python workers.

A classic session runs them through an RDD (`puredelta.spark.offload.write_job`): ``mapInArrow``
would need pandas there, which a stock PySpark does not bring. A session of Spark Connect has no
RDDs and runs them through ``mapInArrow``.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from puredelta.spark.offload.task_sizes import assign_to_tasks, count_tasks
from puredelta.spark.offload.worker_settings import ENABLED, WorkerSettings
from puredelta.spark.offload.workers import WorkerCalls, if_fit, low_latency
from puredelta.spark.offload.write_job import WriteAnswers, all_done
from puredelta.spark.session.fallback import NotApplicable
from puredelta.worker.limits import LIMITS_CODEC
from puredelta.worker.rewrite_file import (
    ANSWER_SCHEMA,
    REWRITE_TASKS,
    TASK_SCHEMA,
    RewriteTask,
    rewrite,
    rewrite_batches,
)
from puredelta.worker.wire import Fields

_CONNECT_TASKS_MIN = 16


def rewrite_calls(
    tasks: Sequence[RewriteTask],
    sizes_bytes: Sequence[int],
    settings: WorkerSettings,
    *,
    parallelism: int,
) -> WorkerCalls:
    """Assign files to Spark tasks; ``sizes_bytes`` are those of the files, to do so evenly."""
    # Files of a group stay together.
    units: dict[int, list[int]] = {}
    for number, task in enumerate(tasks):
        units.setdefault(-1 - number if task.group is None else task.group, []).append(number)
    sizes = [sum(sizes_bytes[number] for number in unit) for unit in units.values()]
    assigned = assign_to_tasks(
        list(units.values()), sizes, num_tasks=count_tasks(sizes, parallelism)
    )
    limits = LIMITS_CODEC.encode(settings.limits)
    fields = [REWRITE_TASKS.encode(task) for task in tasks]
    return WorkerCalls(
        function=rewrite,
        messages=[
            (limits, [fields[number] for unit in some for number in unit]) for some in assigned
        ],
    )


def rewrite_on_connect(
    spark: SparkSession,
    tasks: Sequence[RewriteTask],
    sizes_bytes: Sequence[int],
    settings: WorkerSettings,
) -> WriteAnswers:
    """Rewrite every file in a session without RDDs, or refuse. Runs two Spark jobs."""
    if not settings.enabled:
        return NotApplicable(reason=f"{ENABLED.key} is false")
    answers = if_fit(functools.partial(_run_on_connect, spark, tasks, sizes_bytes, settings))
    return answers if isinstance(answers, NotApplicable) else all_done(answers)


def _run_on_connect(
    spark: SparkSession,
    tasks: Sequence[RewriteTask],
    sizes_bytes: Sequence[int],
    settings: WorkerSettings,
) -> list[Fields]:
    columns = zip(*(REWRITE_TASKS.encode(task) for task in tasks), strict=True)
    rows = pa.table(
        [pa.array(values, field.type) for values, field in zip(columns, TASK_SCHEMA, strict=True)],
        schema=TASK_SCHEMA,
    )
    spread = spark.createDataFrame(rows).repartition(count_tasks(sizes_bytes, _CONNECT_TASKS_MIN))
    work = functools.partial(rewrite_batches, LIMITS_CODEC.encode(settings.limits))
    found = spread.mapInArrow(low_latency(work, settings), from_arrow_schema(ANSWER_SCHEMA))
    return [tuple(row.values()) for row in found.toArrow().to_pylist()]
