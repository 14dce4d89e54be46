"""Files that Python workers write: planned apart, written by one Spark job.

The copies of touched files and the new rows of a statement are planned by modules that know
nothing of each other. Written by one job they share its start and its tasks, which fill the cores.
"""

from __future__ import annotations

import contextlib
import posixpath
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeAlias, TypeVar, cast

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from puredelta.errors import DeltaError
from puredelta.log.footers.file_stats import TableStatistics
from puredelta.protocol.actions.actions import Add
from puredelta.protocol.actions.paths import encode_path
from puredelta.spark.offload.worker_settings import WorkerSettings
from puredelta.spark.offload.workers import WorkerCalls, run_in_workers
from puredelta.spark.session.fallback import NotApplicable
from puredelta.spark.write.parquet_job import named_failures, unseen
from puredelta.store.base import Store, StoredFile
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
    """Write planned files, or leave nothing behind. Runs one Spark job, none without calls."""
    (written,) = _written(spark, [planned], settings)
    return cast("T | NotApplicable", written)


def write_both(
    spark: SparkSession, first: Planned[A], second: Planned[B], settings: WorkerSettings
) -> tuple[A | NotApplicable, B | NotApplicable]:
    """Write the files of two plans by one Spark job; either may be refused.

    If anything fails, nothing of either is left behind. Tasks of the second begin first: new rows
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


def keep_answered(
    store: Store, found: Iterable[StoredFile], answers: Mapping[str, FileAnswer]
) -> None:
    """Delete what attempts have left that failed or lost; ``found`` is a listing, ``answers`` say
    what lies under which path.

    Every attempt's file has a name of its own, so names count and directories do not: where a file
    system takes ``p=A`` for ``p=a`` the listing does not spell a path as its worker did.

    Raises:
        DeltaError: a file that a worker has written is not there, or not whole (WRITE_FAILED).
    """
    files = {file.name: file for file in found}
    for path, answer in answers.items():
        file = files.pop(posixpath.basename(path), None)
        if file is None or file.size_bytes != answer.size_bytes:
            _require_whole(store, path, answer.size_bytes)
    for left in files.values():
        with contextlib.suppress(OSError):
            store.delete(left.path)


def _require_whole(store: Store, path: str, size_bytes: int) -> None:
    """Look at a file itself: the listing of a network's file system may be a minute old."""
    try:
        seen = f"{store.read_end(path, 0).size_bytes} bytes"
    except FileNotFoundError:
        seen = "no such file"
    if seen != f"{size_bytes} bytes":
        raise unseen(f"{store.root_uri}/{path}", f"{size_bytes} bytes", seen)


def added_file(
    answer: FileAnswer,
    path: str,
    partition_values: Mapping[str, str | None],
    statistics: TableStatistics,
) -> Add:
    """Return the action that adds a file; ``path`` is relative to the table root, unescaped."""
    footer = pq.read_metadata(pa.BufferReader(answer.footer))
    return Add(
        path=encode_path(path),
        partition_values=partition_values,
        size_bytes=answer.size_bytes,
        modified_ms=answer.modified_ms,
        data_change=True,
        stats=statistics.encode(footer, nan_leaves=answer.nan_columns),
    )
