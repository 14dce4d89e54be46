"""Copies rows of a statement's source to new data files, in Arrow, inside Spark tasks.

Where new rows are rows of the source as they are, only renamed, Spark has nothing to compute:
analysing, planning and compiling a query would take longer than the copy. Needs workers with
Python, numpy and pyarrow that reach the storage themselves; otherwise the answer is `NotApplicable`
and Spark writes the rows.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import pyarrow as pa
from pyspark.sql import SparkSession

from puredelta.errors import DeltaError, Message
from puredelta.log.files.clock import random_id, wall_clock
from puredelta.log.files.file_stats import TableStatistics
from puredelta.protocol.table.table_config import TableConfig
from puredelta.spark.offload.workers import WorkerCalls, WorkerSettings, parallelism_of
from puredelta.spark.offload.write_job import Planned, PlannedFiles
from puredelta.spark.scan.bitmaps import RowsByFile
from puredelta.spark.scan.data_file import DataFile
from puredelta.spark.session.data_access import DataPaths, note_files_of_workers
from puredelta.spark.session.row_bitmap import RowBitmap
from puredelta.spark.session.session import NotApplicable
from puredelta.spark.write.parquet_job import SERVER_ENCRYPTS, named_failures, server_encrypts
from puredelta.spark.write.writer import job_directory
from puredelta.spark.write.written_files import WriteResult, added_file, keep_answered
from puredelta.store.base import Store
from puredelta.worker.data_files.copy_rows import COPY_ORDERS, CopyOrder, RowGroups, copy
from puredelta.worker.data_files.write_file import FileAnswer
from puredelta.worker.files import DataPath, joined

_TASK_BYTES_MIN = 8 * 1024 * 1024
"""Less is not worth another task, and another file."""
_READ_BYTES_MAX = 1024 * 1024 * 1024
"""A task that reads more would hold others up, and take long to repeat."""
_FILE_BYTES_MAX = 128 * 1024 * 1024
_THREADS_MAX = 4
"""Of a task: more than that an executor may not have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceCopy:
    """Rows of some files, to be written under other names."""

    files: tuple[DataFile, ...]
    group_rows: tuple[tuple[int, ...], ...]
    """How many rows each row group of each file has."""
    size_bytes: int
    """Of the columns that are read."""
    rows: RowsByFile
    """By place in ``files``."""
    include: bool
    """Whether ``rows`` are those to write, or those to leave out."""
    columns: tuple[tuple[str, str, pa.DataType], ...]
    """Name inside the files, name in the table's files and type there."""
    num_partition_columns: int = 0
    """How many of ``columns``, the last ones, make a file per value. One task writes all then."""

    @property
    def num_rows(self) -> int:
        """How many rows are written."""
        marked = sum(map(len, self.rows.values()))
        return marked if self.include else sum(map(sum, self.group_rows)) - marked


def plan_copy(
    copied: SourceCopy,
    settings: WorkerSettings,
    *,
    store: Store,
    config: TableConfig,
    codec: str,
    spark: SparkSession,
) -> Planned[WriteResult]:
    """Plan to write the rows into a new directory of the store.

    To finish raises a DeltaError if other rows were written than were chosen
    (NUM_RECORDS_MISMATCH), or if the storage refuses (WRITE_FAILED).
    """
    if server_encrypts(spark, store):
        return NotApplicable(reason=SERVER_ENCRYPTS)
    paths = DataPaths(store.at)
    root = paths.find(store.root_uri)
    sources = [paths.find(file.uri, file.size_bytes) for file in copied.files]
    reached = [source for source in sources if source is not None]
    if root is None or len(reached) < len(sources):
        return NotApplicable(reason=f"workers have no way to files of {store.root_uri}")
    directory = job_directory(config, wall_clock(), random_id())
    limits = replace(settings.limits, filters=tuple(config.filtered_columns.items()))
    orders = copy_orders(
        copied,
        replace(settings, limits=limits),
        paths=reached,
        parallelism=parallelism_of(spark),
        directory=joined(root, directory),
        codec=codec,
    )
    return PlannedFiles(
        calls=WorkerCalls(function=copy, messages=[COPY_ORDERS.encode(one) for one in orders]),
        finish=partial(_finished, copied, directory, config, store=store, spark=spark),
        discard=partial(store.delete_tree, directory),
        location=f"{store.root_uri}/{directory}",
    )


def _finished(
    copied: SourceCopy,
    directory: str,
    config: TableConfig,
    answers: list[FileAnswer],
    *,
    store: Store,
    spark: SparkSession,
) -> WriteResult:
    if not answers:
        return WriteResult.nothing()
    statistics = TableStatistics(config)
    written = {
        f"{directory}/{answer.name}": answer
        for answer in sorted(answers, key=lambda a: a.ordinal)
        if answer.name is not None
    }
    adds = [
        added_file(
            answer,
            path,
            dict(zip(config.partition_columns, answer.partition, strict=True)),
            statistics,
        )
        for path, answer in written.items()
    ]
    num_rows = sum(answer.kept_rows for answer in answers)
    if num_rows != copied.num_rows:
        raise DeltaError(
            Message.NUM_RECORDS_MISMATCH_COPY, num_rows=copied.num_rows, num_rows_shown=num_rows
        )
    with named_failures(f"{store.root_uri}/{directory}"):
        keep_answered(store, store.walk(directory), written)
    note_files_of_workers(spark, store, written)
    return WriteResult(directories=(directory,), adds=tuple(adds), num_rows=num_rows)


# --- how rows are assigned to tasks ----------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RowGroup:
    """A row group of a file."""

    file: int
    group: int
    first_row: int
    num_rows: int


def copy_orders(
    copied: SourceCopy,
    settings: WorkerSettings,
    *,
    paths: Sequence[DataPath],
    parallelism: int,
    directory: DataPath,
    codec: str,
) -> list[CopyOrder]:
    """Return for every task what it writes."""
    groups = list(_groups(copied))
    wanted = 1
    if not copied.num_partition_columns:
        wanted = _count_tasks(copied, sum(group.num_rows for group in groups), parallelism)
    runs = cut_into_runs(groups, wanted)
    # A row group is decoded by one task: cores without a task decode some of its columns.
    threads = max(1, min(parallelism // max(1, len(runs)), _THREADS_MAX))
    limits = replace(settings.limits, decoding_threads=threads)
    return [
        CopyOrder(
            ordinal=ordinal,
            sources=tuple(_sources(copied, run, paths)),
            include=copied.include,
            columns=copied.columns,
            directory=directory,
            name_prefix=f"part-{ordinal:05d}",
            codec=codec,
            num_partition_columns=copied.num_partition_columns,
            limits=limits,
        )
        for ordinal, run in enumerate(runs)
    ]


def _count_tasks(copied: SourceCopy, rows_read: int, parallelism: int) -> int:
    """Say how many tasks there are, each of which writes a file: few, but none for too long."""
    row_bytes = copied.size_bytes / max(1, sum(map(sum, copied.group_rows)))
    read, written = int(rows_read * row_bytes), int(copied.num_rows * row_bytes)
    return max(
        1,
        min(parallelism, read // _TASK_BYTES_MIN),
        -(-read // _READ_BYTES_MAX),
        -(-written // _FILE_BYTES_MAX),
    )


def _groups(copied: SourceCopy) -> Iterator[RowGroup]:
    """Yield the row groups that have a row to write."""
    for number, groups in enumerate(copied.group_rows):
        marked = copied.rows.get(number, RowBitmap.empty())
        first_row = 0
        for group, num_rows in enumerate(groups):
            count = marked.count(first_row, first_row + num_rows) if num_rows else 0
            if count if copied.include else num_rows - count:
                yield RowGroup(number, group, first_row, num_rows)
            first_row += num_rows


def cut_into_runs(groups: Sequence[RowGroup], num_runs: int) -> list[list[RowGroup]]:
    """Cut row groups into runs of about as many rows, none of them empty; their order stays."""
    total = sum(group.num_rows for group in groups)
    runs: list[list[RowGroup]] = []
    before, run = 0, -1
    for group in groups:
        # By the middle of a row group, so that halves of what is cut fall to both sides.
        place = (2 * before + group.num_rows) * num_runs // (2 * total)
        if place != run:
            runs.append([])
            run = place
        runs[-1].append(group)
        before += group.num_rows
    return runs


def _sources(
    copied: SourceCopy, run: Sequence[RowGroup], paths: Sequence[DataPath]
) -> Iterator[RowGroups]:
    adjacent = itertools.groupby(enumerate(run), key=lambda p: (p[1].file, p[1].group - p[0]))
    for (number, _), some in adjacent:
        groups = [group for _, group in some]
        first, last = groups[0], groups[-1]
        every = copied.rows.get(number, RowBitmap.empty())
        marked = every.around(first.first_row, last.first_row + last.num_rows)
        words, bits = marked.packed()
        yield RowGroups(
            path=paths[number],
            groups=tuple(group.group for group in groups),
            first_row=first.first_row,
            words=words,
            bits=bits,
        )
