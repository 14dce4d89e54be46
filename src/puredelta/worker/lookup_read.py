"""Reads columns of data files piece by piece, inside a Spark worker, to compare their values.

Shipped by value: it knows the standard library, numpy, pyarrow and modules like it only.

Traps this module knows:

* Dates and timestamps may be stored in the hybrid calendar, which Spark converts; they are
  compared only where none is old enough for the calendars to differ.
* Spark finds columns of a file with case ignored: a file that spells one otherwise is refused.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from puredelta.worker.lookup_batch import FileLookup
from puredelta.worker.merged_parquet import SMALL_ROWS, FooterFile, FooterTemplate, MergedParquet
from puredelta.worker.read_rows import Mask, OnlySparkError, dropped_rows, opened

_KINDS_MAX = 4
"""Of small files that are looked at; tables have one, and one for every change of their columns."""
_ROWS_AT_ONCE = 131_072
_CALENDARS_AGREE_DAYS = -25_567
"""1900-01-01: long after the last country changed its calendar, and before zones had rules."""
_DAY_US = 86_400_000_000


@dataclass(frozen=True, slots=True)
class RowRange:
    """Rows of one file that follow each other."""

    order: FileLookup
    first_row: int
    columns: list[pa.Array]
    """In the order asked for, in the types of the file."""

    @property
    def num_rows(self) -> int:
        """How many rows it has, deleted ones included."""
        return len(self.columns[0])

    def dropped(self) -> Mask | None:
        """Tell which of its rows are deleted; ``None`` if none is."""
        order = self.order
        return dropped_rows(order.words, order.bits, self.first_row, self.num_rows)


def read_columns(
    path: str, names: Sequence[str], *, part: int = 0, parts: int = 1
) -> tuple[int, pa.Table]:
    """Read columns of one of a file's parts, which have about as many rows each.

    Return also where the part begins. Of the other rows few are held at a time.
    """
    with pq.ParquetFile(path, coerce_int96_timestamp_unit="us") as file:
        num_rows = file.metadata.num_rows
        if parts == 1 or not num_rows:
            return 0, file.read(columns=list(names), use_threads=False)
        first, behind = (num_rows * n // parts for n in (part, part + 1))
        batches = file.iter_batches(_ROWS_AT_ONCE, columns=list(names), use_threads=False)
        return first, _between(batches, first, behind)


def _between(batches: Iterator[pa.RecordBatch], first: int, behind: int) -> pa.Table:
    """Return the rows from ``first`` on and before ``behind``; there is a batch at least."""
    kept: list[pa.RecordBatch] = []
    begin = 0
    for batch in batches:
        end = begin + batch.num_rows
        if begin < behind and first < end:
            low = max(first - begin, 0)
            kept.append(batch.slice(low, min(behind, end) - begin - low))
        begin = end
    return pa.Table.from_batches(kept, batch.schema)


def read_pieces(
    orders: Iterable[FileLookup], names: Sequence[str], *, batch_rows: int
) -> Iterator[RowRange]:
    """Read columns of files; those that a file lacks are NULL.

    Small files that are like one before them are decoded together, about ``batch_rows`` rows
    at a time, and therefore come later than others.
    """
    small = _SmallFiles(names)
    for order in orders:
        kind = small.take(order)
        if kind is None:
            num_rows = 0
            for piece in _alone(order, names, batch_rows):
                yield piece
                num_rows += piece.num_rows
            small.learn(order, num_rows)
        elif kind.joined.num_rows >= batch_rows:
            yield from kind.pieces(names, batch_rows)
    for kind in small.rest():
        yield from kind.pieces(names, batch_rows)


def gathered(pieces: Iterable[RowRange], *, num_rows: int) -> Iterator[list[RowRange]]:
    """Bring small pieces together, up to a number of rows."""
    together: list[RowRange] = []
    gathered_rows = 0
    for piece in pieces:
        if together and gathered_rows + piece.num_rows > num_rows:
            yield together
            together, gathered_rows = [], 0
        together.append(piece)
        gathered_rows += piece.num_rows
    if together:
        yield together


class _SmallFiles:
    """Orders whose files are decoded together with those of others like them."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names
        self._kinds: list[_Kind] = []
        self._looks_left = _KINDS_MAX

    def take(self, order: FileLookup) -> _Kind | None:
        """Take an order whose file is like one that was learned; return those it is now with."""
        if not self._kinds:
            return None
        wanted = _wanted(order, self._names)
        try:
            file = FooterFile.opened(order.path)
            if file is None:
                return None
            with closing(file):
                for kind in self._kinds:
                    if kind.wanted == wanted and kind.joined.add(file):
                        kind.orders.append(order)
                        return kind
        except OSError:
            return None  # whoever reads it by itself says what is wrong
        return None

    def learn(self, order: FileLookup, num_rows: int) -> None:
        """Look at a file that was read by itself: the next ones may be like it."""
        wanted = _wanted(order, self._names)
        if not self._looks_left or num_rows > SMALL_ROWS or not wanted:
            return
        self._looks_left -= 1
        likeness = FooterTemplate.of(order.path, wanted)
        if likeness is not None:
            self._kinds.append(_Kind(likeness, wanted))

    def rest(self) -> Iterator[_Kind]:
        """Yield what has been taken and not read."""
        return (kind for kind in self._kinds if kind.orders)


class _Kind:
    """Orders whose files are alike, taken but not read."""

    def __init__(self, likeness: FooterTemplate, wanted: set[str]) -> None:
        self._likeness = likeness
        self.wanted = wanted
        self.joined = MergedParquet(likeness)
        self.orders: list[FileLookup] = []

    def pieces(self, names: Sequence[str], batch_rows: int) -> list[RowRange]:
        """Read them, and begin anew."""
        joined, orders = self.joined, self.orders
        self.joined, self.orders = MergedParquet(self._likeness), []
        stored = [name for name in names if name in self.wanted]
        try:
            found = list(joined.read(stored))
        except (OSError, pa.ArrowException):  # of one of them: read alone, it says so itself
            return [piece for order in orders for piece in _alone(order, names, batch_rows)]
        return [
            RowRange(
                order, 0, _completed(order, names, dict(zip(stored, columns, strict=True)), rows)
            )
            for order, columns in zip(orders, found, strict=True)
            if (rows := len(columns[0]))
        ]


def _wanted(order: FileLookup, names: Sequence[str]) -> set[str]:
    """Return the columns that the file must tell."""
    return set(names).difference(name for name, _ in order.constants)


def _alone(order: FileLookup, names: Sequence[str], batch_rows: int) -> Iterator[RowRange]:
    first_row = 0
    for batch in _stored(order.path, _wanted(order, names), batch_rows):
        found = dict(zip(batch.schema.names, batch.columns, strict=True))
        if batch.num_rows:
            yield RowRange(order, first_row, _completed(order, names, found, batch.num_rows))
        first_row += batch.num_rows


def _stored(path: str, wanted: set[str], batch_rows: int) -> Iterator[pa.RecordBatch]:
    """Read those of some columns that a file has; without any, batches still have rows."""
    file = opened(path)
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


def _completed(
    order: FileLookup, names: Sequence[str], found: Mapping[str, pa.Array], num_rows: int
) -> list[pa.Array]:
    """Return all columns, in their order, of which the file has some."""
    constants = dict(order.constants)
    return [
        found[name]
        if name in found and name not in constants
        else _constant(constants.get(name), num_rows)
        for name in names
    ]


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
