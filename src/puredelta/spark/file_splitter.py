"""Copies files without some of their rows, file to file in Arrow, inside Spark tasks.

No row crosses between JVM and Python, nothing is shuffled, and order and clustering stay as
they were: a third of the time of reading and writing the same files with Spark. The old
file's directory, partition values and tags are kept, statistics come from the footer that
the task sends back.

Needs workers with Python, numpy and pyarrow that reach the storage themselves; otherwise
the answer is `Refused`. A classic session runs the tasks through an RDD: ``mapInArrow``
would need pandas there, which a stock PySpark does not bring.
"""

from __future__ import annotations

import heapq
import logging
import posixpath
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark import cloudpickle
from pyspark.sql import SparkSession

from puredelta.errors import DeltaError, ErrorCode
from puredelta.log.clock import random_id
from puredelta.log.file_stats import TableStatistics
from puredelta.protocol.actions import Add
from puredelta.protocol.paths import (
    absolute_uri,
    decode_path,
    encode_path,
    is_absolute_path,
    relative_path,
)
from puredelta.protocol.table_config import TableConfig
from puredelta.spark import split_task
from puredelta.spark.parquet_job import named_failures
from puredelta.spark.rewriting import Refused, RewriteOrder, Rewriting, Rewritten
from puredelta.spark.session import is_connect
from puredelta.spark.split_task import ANSWER_SCHEMA, ORDER_SCHEMA, SplitAnswer
from puredelta.store.base import Store

logger = logging.getLogger(__name__)

# Executors have no puredelta: its code travels with the task.
cloudpickle.register_pickle_by_value(split_task)  # type: ignore[no-untyped-call]

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


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrowSplitter:
    """Splits files of one table for one command; every file it writes bears ``job_id``."""

    spark: SparkSession
    store: Store
    config: TableConfig
    job_id: str = field(default_factory=random_id)
    _directories: set[str] = field(default_factory=set, init=False)

    def rewrite(self, orders: Sequence[RewriteOrder]) -> Rewriting:
        """Copy all files in one Spark job, or refuse.

        Raises:
            DeltaError: a file does not hold the rows it should (NUM_RECORDS_MISMATCH), or the
                storage is full (WRITE_FAILED).
        """
        root = _local_path(self.store.root_uri)
        sources = [_local_path(absolute_uri(self.store.root_uri, o.add.path)) for o in orders]
        if root is None or any(source is None for source in sources):
            return Refused(reason=f"no local file system under {self.store.root_uri}")
        directories = [self._directory(order.add) for order in orders]
        self._directories.update(directories)
        tasks: list[tuple[Any, ...]] = [
            (
                number,
                source,
                posixpath.join(root, directory),
                f"part-{self.job_id}-{number:05d}",
                order.dropped.words.astype("<i8").tobytes(),
                order.dropped.bits.astype("<u8").tobytes(),
            )
            for number, (order, source, directory) in enumerate(
                zip(orders, sources, directories, strict=True)
            )
        ]
        try:
            with named_failures(self.store.root_uri):
                answers = self._run(tasks, [order.add.size_bytes for order in orders])
        except Exception as failure:
            if (reason := _unfit_worker(failure)) is None:
                raise
            return Refused(reason=reason)
        if (refusal := next((a.refusal for a in answers if a.refusal), None)) is not None:
            self.discard()
            return Refused(reason=refusal)
        return self._rewritten(orders, directories, answers)

    def discard(self) -> None:
        """Delete every file of this job; best effort."""
        self._delete_all_but(frozenset())

    def _run(self, tasks: list[tuple[Any, ...]], sizes: list[int]) -> list[SplitAnswer]:
        """Answer every order, in no order. One Spark job."""
        if is_connect(self.spark):
            return self._run_on_connect(tasks, sizes)
        context = self.spark.sparkContext
        batches = balanced(tasks, sizes, num_batches=_num_tasks(sizes, context.defaultParallelism))
        rdd = context.parallelize(batches, len(batches))
        found = rdd.flatMap(split_task.split_tuples).collect()
        names = ANSWER_SCHEMA.names
        return [SplitAnswer(**dict(zip(names, answer, strict=True))) for answer in found]

    def _run_on_connect(self, tasks: list[tuple[Any, ...]], sizes: list[int]) -> list[SplitAnswer]:
        columns = list(zip(*tasks, strict=True))
        table = pa.table(
            [
                pa.array(values, part.type)
                for values, part in zip(columns, ORDER_SCHEMA, strict=True)
            ],
            schema=ORDER_SCHEMA,
        )
        orders = self.spark.createDataFrame(table)
        spread = orders.repartition(_num_tasks(sizes, _CONNECT_TASKS_MIN))
        found = spread.mapInArrow(split_task.split_batches, _ANSWER_DDL).toArrow()
        return [
            SplitAnswer(**{**row, "nan_columns": tuple(map(tuple, row["nan_columns"]))})
            for row in found.to_pylist()
        ]

    def _rewritten(
        self, orders: Sequence[RewriteOrder], directories: list[str], answers: list[SplitAnswer]
    ) -> Rewritten:
        statistics = TableStatistics(self.config)
        adds: list[Add] = []
        for answer in sorted(answers, key=lambda a: a.ordinal):
            order = orders[answer.ordinal]
            _require_complete(order, answer)
            if answer.name is None:
                continue
            footer = pq.read_metadata(pa.BufferReader(answer.footer))
            path = posixpath.join(directories[answer.ordinal], answer.name)
            adds.append(
                Add(
                    path=encode_path(path),
                    partition_values=order.add.partition_values,
                    size_bytes=answer.size_bytes,
                    modified_ms=answer.modified_ms,
                    data_change=True,
                    stats=statistics.encode(footer, nan_leaves=answer.nan_columns),
                    tags=order.add.tags,
                    clustering_provider=order.add.clustering_provider,
                )
            )
        if len(answers) != len(orders):
            raise _mismatch(f"{len(orders)} files were to be split and {len(answers)} were")
        self._delete_all_but(frozenset(decode_path(add.path) for add in adds))
        return Rewritten(adds=tuple(adds), num_rows=sum(a.kept_rows for a in answers))

    def _directory(self, add: Add) -> str:
        """Return where the new file goes: beside the old one, unless that lies elsewhere."""
        path: str | None = decode_path(add.path)
        if is_absolute_path(add.path):
            root = self.store.root_uri
            path = relative_path(root, absolute_uri(root, add.path))
        return "" if path is None else posixpath.dirname(posixpath.normpath(path))

    def _delete_all_but(self, kept: frozenset[str]) -> None:
        """Delete files of this job that are no part of its answer: attempts that failed or lost."""
        prefix = f"part-{self.job_id}"
        for directory in self._directories:
            try:
                for file in self.store.list_from(directory, prefix):
                    if not file.name.startswith(prefix):
                        break
                    if file.path not in kept:
                        self.store.delete(file.path)
            except OSError as failure:
                logger.warning("Could not clean up %s of %s: %s", prefix, directory, failure)


def balanced(
    tasks: Sequence[tuple[Any, ...]], sizes: Sequence[int], *, num_batches: int
) -> list[list[tuple[Any, ...]]]:
    """Deal tasks out so that all batches are of about one size, largest first."""
    batches: list[list[tuple[Any, ...]]] = [[] for _ in range(num_batches)]
    loads = [(0, number) for number in range(num_batches)]
    for size, number in sorted(((s, n) for n, s in enumerate(sizes)), reverse=True):
        load, batch = heapq.heappop(loads)
        batches[batch].append(tasks[number])
        heapq.heappush(loads, (load + max(1, size), batch))
    return [batch for batch in batches if batch]


def _num_tasks(sizes: list[int], parallelism: int) -> int:
    return min(len(sizes), max(parallelism, -(-sum(sizes) // _TASK_BYTES)))


def _local_path(uri: str) -> str | None:
    return uri.removeprefix("file:") if uri.startswith("file:/") else None


def _unfit_worker(failure: Exception) -> str | None:
    text = str(failure)
    return next(
        (f"workers: {sign} in {text[:500]}" for sign in _UNFIT_WORKER if sign in text), None
    )


def _require_complete(order: RewriteOrder, answer: SplitAnswer) -> None:
    if answer.physical_rows - len(order.dropped) != answer.kept_rows:
        raise _mismatch(
            f"{order.add.path} has {answer.physical_rows} rows, {len(order.dropped)} were to be "
            f"dropped and {answer.kept_rows} stayed"
        )


def _mismatch(problem: str) -> DeltaError:
    return DeltaError(
        f"A copy of data files is not complete: {problem}. Nothing was committed. This is a bug or "
        "a file that changed while it was read.",
        code=ErrorCode.NUM_RECORDS_MISMATCH,
        problem=problem,
    )
