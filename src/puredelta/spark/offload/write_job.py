"""Files that Python workers write: planned apart, written by one Spark job.

The copies of touched files and the new rows of a statement are planned by modules that know
nothing of each other. Written by one job they share its start and its tasks, which fill the cores.
"""

from __future__ import annotations

import contextlib
import importlib.util
import pickle
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeAlias, TypeVar, cast

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import BinaryType, StructField, StructType

from puredelta.errors import DeltaError
from puredelta.spark.offload.workers import (
    WorkerCalls,
    WorkerSettings,
    known_refusal,
    note_refusal,
    run_in_workers,
    unfit_worker,
)
from puredelta.spark.session.concurrent_jobs import tagged_jobs
from puredelta.spark.session.data_access import streamed
from puredelta.spark.session.names import FILE_ORDINAL, ROW_INDEX
from puredelta.spark.session.session import NotApplicable, is_connect
from puredelta.spark.write.parquet_job import named_failures
from puredelta.worker.data_files.update_rows import update_stream
from puredelta.worker.data_files.write_file import FILE_ANSWERS, FileAnswer
from puredelta.worker.wire import Fields

A = TypeVar("A")
B = TypeVar("B")
T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

WriteAnswers: TypeAlias = "list[FileAnswer] | NotApplicable"
"""In no fixed order. After a refusal files of tasks that succeeded may be there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedFiles(Generic[T_co]):
    """Files that workers will write, and what becomes of their answers."""

    calls: WorkerCalls
    """Answered with the fields of `FileAnswer`s."""
    finish: Callable[[list[FileAnswer]], T_co]
    """Returns what was written."""
    discard: Callable[[], None]
    """Removes whatever workers have written; may be called twice."""
    location: str
    """What an error of the storage names."""


Planned: TypeAlias = "PlannedFiles[T] | NotApplicable"
"""Files that workers will write, or why they cannot."""


def write_alone(
    spark: SparkSession, planned: Planned[T], settings: WorkerSettings
) -> T | NotApplicable:
    """Write planned files, or leave no file. Runs one Spark job, none without calls."""
    (written,) = _written(spark, [planned], settings)
    return cast("T | NotApplicable", written)


def write_both(
    spark: SparkSession, first: Planned[A], second: Planned[B], settings: WorkerSettings
) -> tuple[A | NotApplicable, B | NotApplicable]:
    """Write the files of two plans by one Spark job; either may be refused.

    If anything fails, no file of either is left. Tasks of the second begin first: new rows
    make few tasks, and long ones; copies fill what they leave.
    """
    new, copied = _written(spark, [second, first], settings)
    return cast("A | NotApplicable", copied), cast("B | NotApplicable", new)


def _written(
    spark: SparkSession, every: Sequence[Planned[Any]], settings: WorkerSettings
) -> list[Any]:
    """Return what became of each plan."""
    plans = [planned for planned in every if isinstance(planned, PlannedFiles)]
    try:
        answers = iter(_answers(spark, plans, settings))
        return [
            _finished(planned, next(answers)) if isinstance(planned, PlannedFiles) else planned
            for planned in every
        ]
    except BaseException:
        for planned in plans:
            with contextlib.suppress(OSError, DeltaError):
                planned.discard()
        raise


def _answers(
    spark: SparkSession, plans: Sequence[PlannedFiles[Any]], settings: WorkerSettings
) -> list[WriteAnswers]:
    if not plans:
        return []
    with named_failures(plans[-1].location):
        found = run_in_workers(spark, [planned.calls for planned in plans], settings)
    if isinstance(found, NotApplicable):
        return [found] * len(plans)
    return [_all_done(tasks) for tasks in found]


def _all_done(tasks: Sequence[Sequence[Fields]]) -> WriteAnswers:
    """Return the answers, or the refusal of one of them."""
    answers = [FILE_ANSWERS.decode(fields) for task in tasks for fields in task]
    reason = next((answer.refusal for answer in answers if answer.refusal), None)
    return answers if reason is None else NotApplicable(reason=reason)


def _finished(planned: PlannedFiles[T], answers: WriteAnswers) -> T | NotApplicable:
    if isinstance(answers, NotApplicable):
        planned.discard()
        return answers
    return planned.finish(answers)


_ANSWERS = StructType([StructField("answer", BinaryType())])


def streamed_answers(
    rows: DataFrame, order: Fields, num_tasks: int
) -> list[FileAnswer] | NotApplicable:
    """Write new values, which Spark computes in the same job, into the files of an `UpdateOrder`.

    Rows of a file come to one task in the order of their positions. Returns an answer per file,
    which may be a refusal.

    The last columns of ``rows`` are `FILE_ORDINAL` and `ROW_INDEX`.
    """
    if is_connect(rows.sparkSession) and importlib.util.find_spec("pandas") is None:
        return NotApplicable(reason="PySpark wants pandas for mapInArrow over Spark Connect")
    if (reason := known_refusal(rows.sparkSession)) is not None:
        return NotApplicable(reason=reason)
    ordered = rows.repartition(num_tasks, FILE_ORDINAL)
    ordered = ordered.sortWithinPartitions(FILE_ORDINAL, ROW_INDEX)
    try:
        with tagged_jobs(rows.sparkSession):
            found = streamed(ordered, update_stream, order, _ANSWERS).toArrow()
    except Exception as failure:
        if (reason := unfit_worker(failure)) is None:
            raise
        note_refusal(rows.sparkSession, reason)
        return NotApplicable(reason=reason)
    return [
        FILE_ANSWERS.decode(pickle.loads(packed))  # noqa: S301 - our own
        for packed in found["answer"].to_pylist()
    ]
