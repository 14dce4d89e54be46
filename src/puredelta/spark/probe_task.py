"""The code that looks up a small source's keys in data files, inside a Spark worker.

It is shipped by value and knows the standard library, numpy and pyarrow only. The keys are
columns of one simple type on both sides and all of ON, so a match is decided by equality of
values alone: no expression is evaluated, nothing is shuffled, and the answer is bitmaps.

A key of several columns is numbered column by column: the values seen so far have a number
each, and a row whose number is unknown is out. So memory is that of the source's keys and of
one batch of rows, be they of one file or of many small ones.

Traps this module knows:

* Dates and timestamps may be stored in the hybrid calendar, which Spark converts; only dates
  are looked up, and only where no key is old enough for the calendars to differ.
* Spark finds columns of a file with case ignored: a file that spells one otherwise is refused.
"""

from __future__ import annotations

import datetime as dt
import itertools
import pickle
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from puredelta.spark.split_task import dropped_rows

BATCH_ROWS = 262_144
_CALENDARS_AGREE = dt.date(1900, 1, 1)

Numbers: TypeAlias = npt.NDArray[np.int64]
WordHits: TypeAlias = tuple[bytes, bytes, bytes]
"""Little-endian words of 64 rows, their bits, and how often rows of each were met (int64)."""
Found: TypeAlias = tuple[bool, int, WordHits]
"""Whether rows of the source, the ordinal of their file, and the rows."""
Answer: TypeAlias = tuple[str | None, list[Found]]
"""Why this worker cannot do it, or what it found."""


@dataclass(frozen=True, slots=True)
class ProbedColumn:
    """One column of the key."""

    target: str
    """Its name inside data files."""
    source: str
    """Its name inside staged files."""
    null_safe: bool


@dataclass(frozen=True, slots=True)
class Probe:
    """The keys, and where the rows are that have them."""

    columns: tuple[ProbedColumn, ...]
    source_files: tuple[str, ...]
    """In the order that numbers them."""


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


@dataclass(frozen=True, slots=True)
class _Piece:
    """Rows of one file that follow each other."""

    order: ProbeOrder
    first_row: int
    columns: list[pa.Array]
    """Those of the key."""

    @property
    def num_rows(self) -> int:
        return len(self.columns[0])

    def dropped(self) -> npt.NDArray[np.bool_] | None:
        """Tell which of its rows are deleted; ``None`` if none is."""
        words = np.frombuffer(self.order.words, "<i8")
        bits = np.frombuffer(self.order.bits, "<u8")
        return dropped_rows(words, bits, self.first_row, self.num_rows)


class _IncomparableError(Exception):
    """Values that only Spark can compare."""


def probe_if_able(
    payload: bytes, probe: tuple[Any, ...], orders: Iterable[tuple[Any, ...]]
) -> list[Answer]:
    """Unpack `probe_tuples` from ``payload`` and run it; refuse if its libraries are missing.

    Itself it needs the standard library only, so it can be unpacked anywhere.
    """
    try:
        run = pickle.loads(payload)  # noqa: S301 - our own code, on its way to us
    except ImportError as missing:
        return [(f"{type(missing).__name__} on a worker: {missing}", [])]
    return [run(probe, orders)]


def probe_tuples(probe: tuple[Any, ...], orders: Iterable[tuple[Any, ...]]) -> Answer:
    """Answer fields of a `Probe` and of `ProbeOrder`; classes shipped by value stay here."""
    columns, source_files = probe
    return probe_files(
        Probe(columns=tuple(ProbedColumn(*c) for c in columns), source_files=source_files),
        [ProbeOrder(*order) for order in orders],
    )


def probe_files(probe: Probe, orders: Sequence[ProbeOrder]) -> Answer:
    """Find the rows that have a key of the source, and the source rows that have one of theirs."""
    try:
        keys = SourceKeys.of(probe)
        found = keys.matches(_pieces(probe, orders))
    except (OSError, pa.ArrowException, _IncomparableError) as reason:
        return f"{type(reason).__name__}: {reason}", []
    return None, [*found, *keys.met()]


class SourceKeys:
    """Every key of the source by number, and how often it was met in data files."""

    def __init__(self, columns: Sequence[pa.ChunkedArray], null_safe: Sequence[bool]) -> None:
        self._values: list[pa.Array] = []
        self._prefixes: list[Numbers] = []
        rows, numbers = np.arange(len(columns[0])), np.zeros(len(columns[0]), np.int64)
        for column, keeps_null in zip(columns, null_safe, strict=True):
            values = pc.unique(column)
            self._values.append(values if keeps_null else pc.drop_null(values))
            rows, combined = self._combined(column, rows, numbers, len(self._values) - 1)
            self._prefixes.append(np.unique(combined))
            numbers = np.searchsorted(self._prefixes[-1], combined)
        self._rows, self._numbers = rows, numbers
        """Source rows that can match, and their keys."""
        self._hits = np.zeros(len(self._prefixes[-1]), np.int64)
        self._rows_by_key = np.bincount(numbers, minlength=len(self._hits))
        self._starts: Numbers = np.zeros(1, np.int64)

    @classmethod
    def of(cls, probe: Probe) -> SourceKeys:
        """Read the keys of the staged rows."""
        names = [column.source for column in probe.columns]
        tables = [_read(path, names) for path in probe.source_files]
        columns = [comparable(pa.concat_tables(tables)[name]) for name in names]
        for column in columns:
            _require_one_calendar(column)
        keys = cls(columns, [column.null_safe for column in probe.columns])
        keys._starts = np.cumsum([0, *(table.num_rows for table in tables)])
        return keys

    def matches(self, pieces: Iterable[_Piece]) -> list[Found]:
        """Return the rows of files that have a key, with the number of source rows for each."""
        rows: dict[int, list[Numbers]] = {}
        hits: dict[int, list[Numbers]] = {}
        for together in _gathered(pieces):
            for ordinal, found, numbers in self._matches(together):
                rows.setdefault(ordinal, []).append(found)
                hits.setdefault(ordinal, []).append(self._rows_by_key[numbers])
        words = {
            ordinal: counted_words(np.concatenate(found), np.concatenate(hits[ordinal]))
            for ordinal, found in rows.items()
        }
        return [(False, ordinal, found) for ordinal, found in words.items() if found[0]]

    def _matches(self, pieces: Sequence[_Piece]) -> list[tuple[int, Numbers, Numbers]]:
        """Look rows up together; return, by file, those of each piece that live, and their keys."""
        columns = [self._column(place, pieces) for place in range(len(self._values))]
        found, numbers = self._lookup(columns)
        starts = np.cumsum([0, *(piece.num_rows for piece in pieces)])
        cuts = np.searchsorted(found, starts).tolist()
        result = []
        for number, piece in enumerate(pieces):
            low, high = cuts[number], cuts[number + 1]
            if low == high:
                continue
            rows, keys = found[low:high] - starts[number], numbers[low:high]
            dropped = piece.dropped()
            if dropped is not None:
                alive = ~dropped[rows]
                rows, keys = rows[alive], keys[alive]
            result.append((piece.order.ordinal, rows + piece.first_row, keys))
        if result:
            met = np.concatenate([keys for _, _, keys in result])
            self._hits += np.bincount(met, minlength=len(self._hits))
        return result

    def _column(self, place: int, pieces: Sequence[_Piece]) -> pa.Array:
        """Return a column of several pieces, in the type of its values."""
        kind = self._values[place].type
        parts = [piece.columns[place] for piece in pieces]
        first = parts[0].type
        if pa.types.is_dictionary(first) or any(part.type != first for part in parts):
            return pa.concat_arrays([_as_type(kind, part) for part in parts])
        return _as_type(kind, pa.concat_arrays(parts))

    def met(self) -> list[Found]:
        """Return the source rows that were met, file by file."""
        hits = self._hits[self._numbers]
        rows, hits = self._rows[hits > 0], hits[hits > 0]
        order = np.argsort(rows, kind="stable")
        rows, hits = rows[order], hits[order]
        cuts = np.searchsorted(rows, self._starts)
        return [
            (True, file, counted_words(rows[low:high] - self._starts[file], hits[low:high]))
            for file, (low, high) in enumerate(itertools.pairwise(cuts))
            if high > low
        ]

    def _lookup(self, columns: Sequence[pa.Array]) -> tuple[Numbers, Numbers]:
        """Return the rows of a batch that have a key, and the number of each."""
        rows: Numbers = np.arange(len(columns[0]), dtype=np.int64)
        numbers: Numbers = np.zeros(len(rows), np.int64)
        for place, column in enumerate(columns):
            rows, combined = self._combined(column, rows, numbers, place)
            prefixes = self._prefixes[place]
            numbers = np.minimum(np.searchsorted(prefixes, combined), max(0, len(prefixes) - 1))
            known = prefixes[numbers] == combined if len(prefixes) else np.zeros(0, np.bool_)
            rows, numbers = rows[known], numbers[known]
        return rows, numbers

    def _combined(
        self, column: Any, rows: Numbers, numbers: Numbers, place: int
    ) -> tuple[Numbers, Numbers]:
        """Join the number of the columns before with the place of this column's value."""
        values = self._values[place]
        if len(rows) < len(column):
            column = column.take(pa.array(rows))
        index = pc.index_in(column, value_set=values)
        known = index.is_valid().to_numpy(zero_copy_only=False)
        places = index.fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
        return rows[known], numbers[known] * max(1, len(values)) + places[known]


def _read(path: str, names: Sequence[str]) -> pa.Table:
    with pq.ParquetFile(path) as file:
        return file.read(columns=list(dict.fromkeys(names)), use_threads=False)


def _pieces(probe: Probe, orders: Iterable[ProbeOrder]) -> Iterator[_Piece]:
    """Read the key columns of files, one after the other."""
    for order in orders:
        for first_row, columns in _batches(probe, order):
            if len(columns[0]):
                yield _Piece(order, first_row, columns)


def _gathered(pieces: Iterable[_Piece]) -> Iterator[list[_Piece]]:
    """Bring small files together: a lookup costs as much as the source has keys."""
    together: list[_Piece] = []
    num_rows = 0
    for piece in pieces:
        if together and num_rows + piece.num_rows > BATCH_ROWS:
            yield together
            together, num_rows = [], 0
        together.append(piece)
        num_rows += piece.num_rows
    if together:
        yield together


def _batches(probe: Probe, order: ProbeOrder) -> Iterator[tuple[int, list[pa.Array]]]:
    """Yield the key columns of a file in pieces, each with the position of its first row."""
    constants = dict(order.constants)
    with pq.ParquetFile(order.path, pre_buffer=False) as file:
        every = file.schema_arrow.names
        stored = set(every)
        names = list(dict.fromkeys(c.target for c in probe.columns if c.target in stored))
        for column in probe.columns:
            absent = column.target not in stored and column.target not in constants
            if absent and column.target.lower() in {name.lower() for name in stored}:
                raise _IncomparableError(f"{order.path} spells column {column.target} otherwise")
        first_row = 0
        # Without a column to read a batch still has rows.
        read = names or [every[0]]
        for batch in file.iter_batches(BATCH_ROWS, columns=read, use_threads=False):
            count = batch.num_rows
            yield (
                first_row,
                [
                    batch[c.target]
                    if c.target in names
                    else _constant(constants.get(c.target), count)
                    for c in probe.columns
                ],
            )
            first_row += count


def _constant(value: Any, count: int) -> pa.Array:
    return pa.repeat(pa.scalar(value), count)


def _as_type(kind: pa.DataType, column: pa.Array) -> pa.Array:
    known = comparable(column)
    return known if known.type == kind else known.cast(kind)


def comparable(column: Any) -> Any:
    """Return a column in the one type that values of its kind are compared in."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        column, kind = column.cast(kind.value_type), kind.value_type
    if pa.types.is_integer(kind):
        return column.cast(pa.int64())
    if pa.types.is_binary(kind) or pa.types.is_large_string(kind):
        return column.cast(pa.string())
    return column


def _require_one_calendar(column: pa.ChunkedArray) -> None:
    if not pa.types.is_date(column.type):
        return
    earliest = pc.min(column).as_py()
    if earliest is not None and earliest < _CALENDARS_AGREE:
        raise _IncomparableError(f"a key is the date {earliest}")


def counted_words(rows: Numbers, hits: Numbers) -> WordHits:
    """Pack ascending rows to words, adding up the hits of each word's rows."""
    index = rows >> 6
    starts = np.flatnonzero(np.diff(index, prepend=-1))
    if not len(starts):
        return b"", b"", b""
    bits = np.left_shift(np.uint64(1), (rows & 63).astype(np.uint64))
    return (
        index[starts].astype("<i8").tobytes(),
        np.bitwise_or.reduceat(bits, starts).astype("<u8").tobytes(),
        np.add.reduceat(hits, starts).astype("<i8").tobytes(),
    )
