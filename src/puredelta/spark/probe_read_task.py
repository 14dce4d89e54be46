"""Reads columns of data files piece by piece, inside a Spark worker, to compare their values.

Shipped by value: it knows the standard library, numpy, pyarrow and modules like it only.

Traps this module knows:

* Dates and timestamps may be stored in the hybrid calendar, which Spark converts; they are
  compared only where none is old enough for the calendars to differ.
* Spark finds columns of a file with case ignored: a file that spells one otherwise is refused.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from puredelta.spark.file_rows_task import Mask, OnlySparkError, OpenFile, dropped_rows, opened

_CALENDARS_AGREE_DAYS = -25_567
"""1900-01-01: long after the last country changed its calendar, and before zones had rules."""
_DAY_US = 86_400_000_000


@dataclass(frozen=True, slots=True)
class ProbeOrder:
    """Look the keys up in ``path``."""

    ordinal: int
    path: str
    constants: tuple[tuple[str, Any], ...]
    """Columns that have one value in the whole file: those of partitions."""
    words: bytes
    """Rows that a deletion vector deletes, as in `puredelta.spark.split_task.SplitOrder`."""
    bits: bytes
    bounds: tuple[tuple[int, int] | None, ...] = ()
    """Per column of the key the least and the greatest value that the file may hold, dates as
    days; ``None``: any. Empty: the file is read whatever it holds.
    """


@dataclass(frozen=True, slots=True)
class Piece:
    """Rows of one file that follow each other."""

    order: ProbeOrder
    first_row: int
    columns: list[pa.Array]
    """In the order asked for, in the types of the file."""

    @property
    def num_rows(self) -> int:
        """How many rows it has, deleted ones included."""
        return len(self.columns[0])

    def dropped(self) -> Mask | None:
        """Tell which of its rows are deleted; ``None`` if none is."""
        words = np.frombuffer(self.order.words, "<i8")
        bits = np.frombuffer(self.order.bits, "<u8")
        return dropped_rows(words, bits, self.first_row, self.num_rows)


def read_columns(path: str, names: Sequence[str]) -> pa.Table:
    """Read whole columns of one file."""
    with pq.ParquetFile(path, coerce_int96_timestamp_unit="us") as file:
        return file.read(columns=list(names), use_threads=False)


def read_pieces(
    orders: Iterable[ProbeOrder], names: Sequence[str], *, batch_rows: int
) -> Iterator[Piece]:
    """Read columns of files, one after the other; those that a file lacks are NULL."""
    last = LastPlaces()
    for order in orders:
        first_row = 0
        for columns in _batches(order, names, batch_rows, last):
            piece = Piece(order, first_row, columns)
            if piece.num_rows:
                yield piece
            first_row += piece.num_rows


def gathered(pieces: Iterable[Piece], *, num_rows: int) -> Iterator[list[Piece]]:
    """Bring small pieces together, up to a number of rows."""
    together: list[Piece] = []
    gathered_rows = 0
    for piece in pieces:
        if together and gathered_rows + piece.num_rows > num_rows:
            yield together
            together, gathered_rows = [], 0
        together.append(piece)
        gathered_rows += piece.num_rows
    if together:
        yield together


class LastPlaces:
    """Where the columns were in the last file that had them all: where the next has them, mostly.

    Opening a small file takes a third less, if nobody asks for the names of all its columns.
    """

    def __init__(self) -> None:
        self._names: list[str] = []
        """In the order of the file."""
        self._leaves: list[int] = []
        self._leaves_of_file = 0

    def note(self, file: OpenFile, wanted: set[str]) -> None:
        """Remember where a file has all of some columns, each of them once."""
        paths = [leaf.path for leaf in file.leaves()]
        leaves = [n for n, path in enumerate(paths) if path in wanted]
        self._names = [paths[n] for n in leaves]
        self._leaves, self._leaves_of_file = leaves, len(paths)

    def read(self, path: str, wanted: set[str], batch_rows: int) -> Iterator[pa.RecordBatch] | None:
        """Read a file that has the columns in the same places; ``None``: it has not, or fails."""
        if not wanted or len(self._names) != len(wanted) or not wanted.issuperset(self._names):
            return None
        try:
            file = OpenFile(path)
            if file.metadata.num_columns != self._leaves_of_file:
                return None
            batches = file.read(batch_rows, leaves=self._leaves)
            first = next(batches, None)
        except (OSError, pa.ArrowException):
            return None
        if first is None or first.schema.names != self._names:
            return None
        if any(map(pa.types.is_nested, first.schema.types)):
            return None  # a leaf of a struct that has the name
        return itertools.chain([first], batches)


def _batches(
    order: ProbeOrder, names: Sequence[str], batch_rows: int, last: LastPlaces
) -> Iterator[list[pa.Array]]:
    constants = dict(order.constants)
    wanted = {name for name in names if name not in constants}
    for batch in _stored(order.path, wanted, batch_rows, last):
        found = wanted.intersection(batch.schema.names)
        yield [
            batch[name] if name in found else _constant(constants.get(name), batch.num_rows)
            for name in names
        ]


def _stored(
    path: str, wanted: set[str], batch_rows: int, last: LastPlaces
) -> Iterator[pa.RecordBatch]:
    """Read those of some columns that a file has; without any, batches still have rows."""
    batches = last.read(path, wanted, batch_rows)
    if batches is not None:
        yield from batches
        return
    file = opened(path)
    yield from _looked_for(file, path, wanted, batch_rows)
    if wanted:
        last.note(file, wanted)


def _looked_for(
    file: OpenFile, path: str, wanted: set[str], batch_rows: int
) -> Iterator[pa.RecordBatch]:
    if wanted:
        batches = file.read(batch_rows, leaves=file.leaves_of(wanted))
        first = next(batches, None)
        if first is not None and sorted(first.schema.names) == sorted(wanted):
            return itertools.chain([first], batches)
    # Asking for the schema takes as long as a column of a small file: only where one is missing.
    every = file.schema_arrow.names
    for name in wanted:
        if name not in every and name.lower() in {column.lower() for column in every}:
            raise OnlySparkError(f"{path} spells column {name} otherwise")
        if every.count(name) > 1:
            raise OnlySparkError(f"{path} has several columns {name}")
    read = [name for name in every if name in wanted] or [every[0]]
    return file.read(batch_rows, leaves=file.leaves_of(read))


def _constant(value: Any, count: int) -> pa.Array:
    return pa.repeat(pa.scalar(value), count)


def flat(tables: Sequence[pa.Table], name: str) -> pa.Array:
    """Return a column of several tables as one array."""
    column = pa.concat_tables([table.select([name]) for table in tables])[name]
    return pa.concat_arrays(column.chunks) if column.chunks else pa.array([], column.type)


def values_kind(kind: pa.DataType) -> pa.DataType:
    """Return the one type that values of a column of type ``kind`` are compared in."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if pa.types.is_integer(kind):
        return pa.int64()
    if pa.types.is_binary(kind) or pa.types.is_large_string(kind):
        return pa.string()
    return kind


def of_kind(kind: pa.DataType, column: pa.Array) -> pa.Array:
    """Return a column in the type ``kind``; raises Arrow's error for a value that it lacks."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    return column if column.type == kind else column.cast(kind)


def require_one_calendar(column: pa.Array) -> None:
    """Refuse dates and timestamps of a time in which calendars differ.

    Raises:
        OnlySparkError: there is one.
    """
    if pa.types.is_date(column.type):
        earliest = pc.min(column.cast(pa.int32())).as_py()
    elif pa.types.is_timestamp(column.type):
        micros = pc.min(column.cast(pa.int64())).as_py()
        earliest = None if micros is None else micros // _DAY_US
    else:
        return
    if earliest is not None and earliest < _CALENDARS_AGREE_DAYS:
        raise OnlySparkError(f"a value is {earliest} days from 1970-01-01")
