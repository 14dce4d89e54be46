"""New values of some columns, as a task of Spark hands them over, written into their files.

Rows come in the order of their files and positions: the values, then the number of the file, then
the position. No more of them is held than belong to one row group.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa

from puredelta.worker.data_files.updated_file import FileUpdate, GroupRows, Positions, update_file
from puredelta.worker.data_files.write_file import FILE_ANSWERS, FileAnswer, refused
from puredelta.worker.range_file import fetched_ahead
from puredelta.worker.read_rows import OnlySparkError
from puredelta.worker.wire import LIMITS, Fields, Limits, codec_of


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateOrder:
    """Files of one job that get new values."""

    files: tuple[FileUpdate, ...]
    """By their number in the rows."""
    schema: pa.Schema
    """Of the values, which are the first columns of a batch."""
    limits: Limits = LIMITS


UPDATE_ORDERS = codec_of(UpdateOrder)


def update_stream(message: Fields, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Write the files of a task; yield the pickled fields of a `FileAnswer` per file."""
    order = UPDATE_ORDERS.decode(message)
    rows = OrderedRows(batches, order.schema)
    while (number := rows.file()) is not None:
        for task in fetched_ahead([order.files[number]], lambda file: file.source, whole=True):
            answer = _written(task, order, rows, number)
            packed = pickle.dumps(FILE_ANSWERS.encode(answer))
            yield pa.RecordBatch.from_arrays([pa.array([packed], pa.binary())], ["answer"])


def _written(task: FileUpdate, order: UpdateOrder, rows: OrderedRows, number: int) -> FileAnswer:
    """Write a file with the next rows, and pass all of them."""
    try:
        answer = update_file(task, order.schema, partial(rows.of_range, number), order.limits)
    except OnlySparkError as failure:
        answer = refused(task.ordinal, failure)
    if rows.pass_file(number) and answer.refusal is None:
        return refused(task.ordinal, "new rows after the last row of a file")
    return answer


class OrderedRows:
    """The rows of a task, which are taken file by file and position by position."""

    def __init__(self, batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> None:
        """``schema`` is that of the values; the number of the file and the position follow."""
        self._batches = iter(batches)
        self._schema = schema
        self._rest: pa.RecordBatch | None = None

    def file(self) -> int | None:
        """Return the file of the next row, ``None`` after the last one."""
        batch = self._next()
        return None if batch is None else int(batch.column(len(self._schema))[0].as_py())

    def of_range(self, number: int, rows: GroupRows) -> tuple[Positions, pa.Table]:
        """Take the rows of a file in a row group; return positions and values."""
        return self.before(number, rows.end)

    def before(self, number: int, end: int) -> tuple[Positions, pa.Table]:
        """Take the rows of a file before a position; return positions and values."""
        at: list[Positions] = [np.empty(0, np.int64)]
        taken: list[pa.RecordBatch] = []
        while (batch := self._next()) is not None:
            files, rows = (_numbers(batch.column(len(self._schema) + n)) for n in (0, 1))
            count = int(np.searchsorted(files, number, "right")) if files[0] == number else 0
            count = int(np.searchsorted(rows[:count], end, "left"))
            if count:
                at.append(rows[:count])
                taken.append(batch.slice(0, count))
            self._rest = batch.slice(count)
            if count < batch.num_rows:
                break
        names = self._schema.names
        parts = [
            pa.RecordBatch.from_arrays(one.columns[: len(names)], names=names) for one in taken
        ]
        empty = self._schema.empty_table()
        return np.concatenate(at), pa.Table.from_batches(parts) if parts else empty

    def pass_file(self, number: int) -> bool:
        """Pass what is left of a file; return whether there was any."""
        at, _ = self.before(number, np.iinfo(np.int64).max)
        return len(at) > 0

    def _next(self) -> pa.RecordBatch | None:
        while self._rest is None or not self._rest.num_rows:
            self._rest = next(self._batches, None)
            if self._rest is None:
                return None
        return self._rest


def _numbers(column: pa.Array) -> Positions:
    return np.asarray(column.to_numpy(zero_copy_only=False), np.int64)
