"""Brings rows that files already hold together in new data files, in Arrow, inside Spark tasks.

Where new rows are rows of the source as they are, only renamed, Spark has nothing to compute:
analysing, planning and compiling a query would take longer than the copy. Needs workers with
Python, numpy and pyarrow that reach the storage themselves; otherwise the answer is `NotApplicable`
and Spark writes the rows.
"""

from __future__ import annotations

import itertools
import posixpath
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from puredelta.errors import DeltaError, ErrorCode
from puredelta.log.files.clock import Clock, IdSource, random_id, wall_clock
from puredelta.log.footers.file_stats import TableStatistics
from puredelta.protocol.table.table_config import TableConfig
from puredelta.spark.offload.new_files import added_file
from puredelta.spark.offload.write_job import WriteOrders, WritePlan
from puredelta.spark.scan.bitmaps import RowsByFile
from puredelta.spark.scan.data_file import DataFile
from puredelta.spark.session.fallback import NotApplicable
from puredelta.spark.session.row_bitmap import RowBitmap
from puredelta.spark.write.parquet_job import named_failures, removed_on_failure
from puredelta.spark.write.writer import job_directory
from puredelta.spark.write.written_files import WriteResult
from puredelta.store.base import Store
from puredelta.store.local_files import local_path
from puredelta.worker import copy_rows
from puredelta.worker.write_file import FileAnswer

COPY_CODECS: Mapping[str, str] = {
    "snappy": "snappy",
    "gzip": "gzip",
    "zstd": "zstd",
    "none": "none",
    "uncompressed": "none",
}
"""Codecs that Arrow writes as Spark does: Arrow's name for each name of Spark's."""
_TASK_BYTES_MIN = 8 * 1024 * 1024
"""Less is not worth another task, and another file."""
_READ_BYTES_MAX = 1024 * 1024 * 1024
"""A task that reads more would hold others up, and take long to repeat."""
_FILE_BYTES_MAX = 128 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Rows of some files, to be written under other names."""

    files: tuple[DataFile, ...]
    group_rows: tuple[tuple[int, ...], ...]
    """How many rows each row group of each file has."""
    size_bytes: int
    """Of the columns that are read."""
    rows: RowsByFile
    """By place in ``files``."""
    keeps: bool
    """Whether ``rows`` are those to write, or those to leave out."""
    columns: tuple[tuple[str, str, pa.DataType], ...]
    """Name inside the files, name in the table's files and type there."""
    num_partition_columns: int = 0
    """How many of ``columns``, the last ones, make a file per value. One task writes all then."""

    @property
    def num_rows(self) -> int:
        """How many rows are written."""
        marked = sum(map(len, self.rows.values()))
        return marked if self.keeps else sum(map(sum, self.group_rows)) - marked


def plan_copy(
    selection: Selection,
    *,
    store: Store,
    config: TableConfig,
    codec: str,
    parallelism: int,
    clock: Clock = wall_clock,
    new_id: IdSource = random_id,
) -> WritePlan[WriteResult | NotApplicable]:
    """Plan to write the rows into a new directory of the store, by one Spark job.

    Nothing is left behind where the answer is `NotApplicable`, or an error.

    Raises:
        DeltaError: the storage refused (WRITE_FAILED), or other rows were written than were
            chosen (NUM_RECORDS_MISMATCH).
    """
    root = local_path(store.root_uri)
    if root is None or any(local_path(file.uri) is None for file in selection.files):
        return NotApplicable(reason=f"no local file system under {store.root_uri}")
    directory = job_directory(config, clock(), new_id())
    orders = _orders(selection, parallelism, posixpath.join(root, directory), codec)
    if not orders:
        return WriteResult.nothing()
    with removed_on_failure(directory, store), named_failures(f"{store.root_uri}/{directory}"):
        answers = yield WriteOrders([[order] for order in orders], copy_rows.copy_tuples)
        if isinstance(answers, NotApplicable):
            store.delete_tree(directory)
            return answers
        return _written(answers, selection, directory, config, store)


def _written(
    answers: Sequence[FileAnswer],
    selection: Selection,
    directory: str,
    config: TableConfig,
    store: Store,
) -> WriteResult:
    statistics = TableStatistics(config)
    adds = [
        added_file(
            answer,
            f"{directory}/{answer.name}",
            dict(zip(config.partition_columns, answer.partition, strict=True)),
            statistics,
        )
        for answer in sorted(answers, key=lambda a: a.ordinal)
        if answer.name is not None
    ]
    num_rows = sum(answer.kept_rows for answer in answers)
    if num_rows != selection.num_rows:
        raise DeltaError(
            f"{selection.num_rows} rows of the source were to be written and {num_rows} were. "
            "Nothing was committed. This is a bug or a file that changed while it was read.",
            code=ErrorCode.NUM_RECORDS_MISMATCH,
        )
    _remove_all_but({f"{directory}/{answer.name}" for answer in answers}, directory, store)
    return WriteResult(directory=directory, adds=tuple(adds), num_rows=num_rows)


def _remove_all_but(kept: set[str], directory: str, store: Store) -> None:
    """Delete what attempts have left that failed or lost."""
    for file in list(store.walk(directory)):
        if file.path not in kept:
            store.delete(file.path)


# --- dealing rows out ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RowGroup:
    """A row group of a file."""

    file: int
    group: int
    first_row: int
    num_rows: int


def _orders(
    selection: Selection, parallelism: int, directory: str, codec: str
) -> list[tuple[object, ...]]:
    """Say for every task what it writes, in the terms of `puredelta.worker.copy_rows`."""
    pieces = list(_pieces(selection))
    wanted = 1
    if not selection.num_partition_columns:
        wanted = _num_tasks(selection, sum(piece.num_rows for piece in pieces), parallelism)
    return [
        (
            ordinal,
            tuple(_rows(selection, run)),
            selection.keeps,
            selection.columns,
            directory,
            f"part-{ordinal:05d}",
            codec,
            selection.num_partition_columns,
        )
        for ordinal, run in enumerate(dealt(pieces, wanted))
    ]


def _num_tasks(selection: Selection, rows_read: int, parallelism: int) -> int:
    """Say how many tasks there are, each of which writes a file: few, but none for too long."""
    row_bytes = selection.size_bytes / max(1, sum(map(sum, selection.group_rows)))
    read, written = int(rows_read * row_bytes), int(selection.num_rows * row_bytes)
    return max(
        1,
        min(parallelism, read // _TASK_BYTES_MIN),
        -(-read // _READ_BYTES_MAX),
        -(-written // _FILE_BYTES_MAX),
    )


def _pieces(selection: Selection) -> Iterator[RowGroup]:
    """Yield the row groups that have a row to write."""
    for number, groups in enumerate(selection.group_rows):
        marked = selection.rows.get(number, RowBitmap.empty())
        first_row = 0
        for group, num_rows in enumerate(groups):
            count = marked.count(first_row, first_row + num_rows) if num_rows else 0
            if count if selection.keeps else num_rows - count:
                yield RowGroup(number, group, first_row, num_rows)
            first_row += num_rows


def dealt(pieces: Sequence[RowGroup], num_runs: int) -> list[list[RowGroup]]:
    """Cut pieces into runs of about as many rows, none of them empty; their order stays."""
    total = sum(piece.num_rows for piece in pieces)
    runs: list[list[RowGroup]] = []
    before, run = 0, -1
    for piece in pieces:
        # By the middle of a piece, so that halves of what is cut fall to both sides.
        place = (2 * before + piece.num_rows) * num_runs // (2 * total)
        if place != run:
            runs.append([])
            run = place
        runs[-1].append(piece)
        before += piece.num_rows
    return runs


def _rows(selection: Selection, run: Sequence[RowGroup]) -> Iterator[tuple[object, ...]]:
    adjacent = itertools.groupby(enumerate(run), key=lambda p: (p[1].file, p[1].group - p[0]))
    for (number, _), pieces in adjacent:
        groups = [piece for _, piece in pieces]
        first, last = groups[0], groups[-1]
        every = selection.rows.get(number, RowBitmap.empty())
        marked = every.around(first.first_row, last.first_row + last.num_rows)
        yield (
            local_path(selection.files[number].uri),
            tuple(piece.group for piece in groups),
            first.first_row,
            *marked.packed(),
        )
