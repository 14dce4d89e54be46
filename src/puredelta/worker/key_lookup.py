"""The code that looks a source's keys up in data files, inside a Spark worker.

It is shipped by value and knows the standard library, numpy, pyarrow and modules like it only.
Equality of plain columns finds pairs of a target row and a source row; what else decides about
a pair, or about a row without one, are calls of Arrow's functions that answer as Spark would.
Nothing is shuffled, and the answer is bitmaps.

Memory is that of the source's keys, or of a part of them if files may be read several times, and
of one batch of rows, be they of one file or of many small ones.
"""

from __future__ import annotations

import pickle
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from puredelta.worker.key_index import KeyIndex, Numbers, run_starts
from puredelta.worker.lookup_batch import FileLookup, LookupBatch
from puredelta.worker.lookup_read import (
    RowRange,
    flat,
    gathered,
    of_kind,
    read_columns,
    read_pieces,
    require_one_calendar,
    values_kind,
)
from puredelta.worker.read_rows import Mask, OnlySparkError

BATCH_ROWS = 131_072
PAIRS_MAX = 20_000_000
"""Pairs of one batch of rows; where keys repeat on both sides there could be any number."""
IDLE = -1
"""The clause of a pair for which none fires."""
Call: TypeAlias = tuple[Any, ...]
"""See `puredelta.spark.offload.arrow_predicate`."""
WordHits: TypeAlias = tuple[bytes, bytes, bytes]
"""Little-endian words of 64 rows, their bits, and how often rows of each were met (int64)."""
Found: TypeAlias = tuple[bool, int, int, WordHits]
"""Whether rows of the source, their clause, the ordinal of their file, and the rows."""
Answer: TypeAlias = tuple[str | None, list[Found]]
"""Why this worker cannot do it, or what it found."""


@dataclass(frozen=True, slots=True)
class LookupColumn:
    """One column of the key."""

    target: str
    """Its name inside data files."""
    source: str
    """Its name inside staged files."""
    null_safe: bool


@dataclass(frozen=True, slots=True)
class Judgement:
    """What decides about pairs, and about rows that have no partner; NULL counts as false.

    Columns are (name inside files, type they are compared in); calls name them by place.
    """

    on: Call
    """What must be true of a pair besides equal keys."""
    matched: tuple[Call, ...]
    """The first of these that is true gives a pair its clause: 0 and up, else `IDLE`."""
    by_source: tuple[Call, ...]
    """The same for target rows without a pair, numbered after those of ``matched``."""
    target_columns: tuple[tuple[str, pa.DataType], ...]
    source_columns: tuple[tuple[str, pa.DataType], ...]


@dataclass(frozen=True, slots=True)
class Probe:
    """The keys, and where the rows are that have them."""

    columns: tuple[LookupColumn, ...]
    source_files: tuple[str, ...]
    """In the order that numbers them."""
    judgement: Judgement | None = None
    """``None``: every pair is for `clause`."""
    clause: int = 0
    finds_target: bool = True
    finds_source: bool = True
    parts: int = 1
    """In how many parts the source is held, one after the other; more than one only if nothing
    is asked of rows that have no partner in any of them."""


def look_up_if_able(
    payload: bytes, probe: tuple[Any, ...], orders: tuple[Any, ...]
) -> list[Answer]:
    """Unpack `look_up_tuples` from ``payload`` and run it; refuse if its libraries are missing.

    Itself it needs the standard library only, so it can be unpacked anywhere.
    """
    try:
        run = pickle.loads(payload)  # noqa: S301 - our own code, on its way to us
    except ImportError as missing:
        return [(f"{type(missing).__name__} on a worker: {missing}", [])]
    return [run(probe, orders)]


def look_up_tuples(probe: tuple[Any, ...], orders: tuple[Any, ...]) -> Answer:
    """Answer fields of a `Probe` and packed orders; classes shipped by value stay here."""
    columns, source_files, judgement, *rest = probe
    return look_up_files(
        Probe(
            tuple(LookupColumn(*c) for c in columns),
            source_files,
            None if judgement is None else Judgement(*judgement),
            *rest,
        ),
        LookupBatch.unpacked(orders),
    )


def look_up_files(probe: Probe, orders: LookupBatch) -> Answer:
    """Find the rows of files and of the source that some clause acts on, or that have a partner."""
    try:
        found = [found for part in range(probe.parts) for found in _partners(probe, orders, part)]
    except (OSError, pa.ArrowException, OnlySparkError) as reason:
        return f"{type(reason).__name__}: {reason}", []
    return None, found


def _partners(probe: Probe, orders: LookupBatch, part: int) -> list[Found]:
    """Look one part of the source up; its memory is free afterwards."""
    source = _Source.read(probe, orders, part)
    search = _Search(probe=probe, source=source)
    pieces = read_pieces(source.likely, search.target_names, batch_rows=BATCH_ROWS)
    for together in gathered(pieces, num_rows=source.batch_rows):
        search.look_up(together)
    return [*search.found, *search.met()]


@dataclass(frozen=True, slots=True)
class _Source:
    """Rows of the source, all or a part: their keys, and the columns that conditions read."""

    index: KeyIndex
    kinds: tuple[pa.DataType, ...]
    """Of the key's columns."""
    columns: tuple[pa.Array, ...]
    starts: Numbers
    """Where each file's rows begin, and where the last one's end."""
    firsts: Sequence[int]
    """What place the first of them has in each file."""
    likely: Sequence[FileLookup]
    """Files of the table that may hold one of its keys."""

    @classmethod
    def read(cls, probe: Probe, orders: LookupBatch, part: int) -> _Source:
        judged = () if probe.judgement is None else probe.judgement.source_columns
        keys = [column.source for column in probe.columns]
        names = list(dict.fromkeys([*keys, *(name for name, _ in judged)]))
        found = [
            read_columns(path, names, part=part, parts=probe.parts) for path in probe.source_files
        ]
        firsts, tables = [first for first, _ in found], [table for _, table in found]
        starts = np.cumsum([0, *(table.num_rows for table in tables)])
        whole = {name: flat(tables, name) for name in names}
        del found, tables  # memory is for the index now
        kinds = tuple(values_kind(whole[name].type) for name in keys)
        columns = [of_kind(kind, whole[name]) for kind, name in zip(kinds, keys, strict=True)]
        for column in columns:
            require_one_calendar(column)
        return cls(
            index=KeyIndex(columns, [column.null_safe for column in probe.columns]),
            kinds=kinds,
            columns=tuple(_judged(kind, whole[name]) for name, kind in judged),
            starts=starts,
            firsts=firsts,
            likely=orders.likely(columns),
        )

    @property
    def batch_rows(self) -> int:
        """How many rows are looked up together at least, if there are as many."""
        return max(BATCH_ROWS, len(self.index)) if self.index.lookup_costs_all else BATCH_ROWS


@dataclass(frozen=True, slots=True)
class _Search:
    """Looks rows of files up and keeps what was found."""

    probe: Probe
    source: _Source
    found: list[Found] = field(default_factory=list)
    """Rows of files."""
    _met_keys: list[Numbers] = field(default_factory=list)
    """Keys of pairs that are all for one clause."""
    _met_rows: dict[int, list[Numbers]] = field(default_factory=dict)
    """Source rows of judged pairs, by clause."""

    @property
    def target_names(self) -> list[str]:
        """The columns to read: those of the key, then those of the judgement."""
        judgement = self.probe.judgement
        judged = () if judgement is None else judgement.target_columns
        return [*(column.target for column in self.probe.columns), *(name for name, _ in judged)]

    def look_up(self, pieces: Sequence[RowRange]) -> None:
        """Decide about the rows of some pieces."""
        keys = len(self.source.kinds)
        columns = [_column(kind, n, pieces) for n, kind in enumerate(self.source.kinds)]
        judgement = self.probe.judgement
        judged = () if judgement is None else judgement.target_columns
        batch = _Batch.of(
            pieces,
            [_judged(kind, _column(kind, keys + n, pieces)) for n, (_, kind) in enumerate(judged)],
        )
        rows, numbers = batch.living(*self.source.index.lookup(columns))
        if judgement is None:
            if self.probe.finds_target:
                self._keep(self.probe.clause, batch, rows, self.source.index.counts[numbers])
            self._met_keys.append(numbers)
        else:
            self._judge(judgement, batch, rows, numbers)

    def _judge(self, judgement: Judgement, batch: _Batch, rows: Numbers, numbers: Numbers) -> None:
        """Pair rows with the source rows of their keys, and give every pair its clause."""
        if int(self.source.index.counts[numbers].sum()) > PAIRS_MAX:
            raise OnlySparkError(f"more than {PAIRS_MAX} pairs of equal keys at a time")
        at, source_rows = self.source.index.source_rows(numbers)
        rows = rows[at]
        pairs = _Pairs.of(batch.columns, rows, self.source.columns, source_rows)
        fits = pairs.is_true(judgement.on)
        if not fits.all():
            rows, source_rows = rows[fits], source_rows[fits]
            pairs = _Pairs.of(batch.columns, rows, self.source.columns, source_rows)
        clauses = pairs.first_true(judgement.matched)
        for clause in range(IDLE, len(judgement.matched)):
            fired = np.flatnonzero(clauses == clause)
            if not len(fired):
                continue
            if self.probe.finds_target:
                self._keep(clause, batch, rows[fired], np.ones(len(fired), np.int64))
            if self.probe.finds_source:
                self._met_rows.setdefault(clause, []).append(source_rows[fired])
        if judgement.by_source:
            self._judge_lonely(judgement, batch, batch.living_without(rows))

    def _judge_lonely(self, judgement: Judgement, batch: _Batch, rows: Numbers) -> None:
        """Give rows without a partner their clause."""
        lonely = _Pairs(target=_taken(batch.columns, rows), source=(), count=len(rows))
        clauses = lonely.first_true(judgement.by_source)
        for clause in range(len(judgement.by_source)):
            fired = rows[clauses == clause]
            ones: Numbers = np.ones(len(fired), np.int64)
            self._keep(len(judgement.matched) + clause, batch, fired, ones)

    def _keep(self, clause: int, batch: _Batch, rows: Numbers, hits: Numbers) -> None:
        """Keep ascending rows of a batch, each with its file."""
        cuts = np.searchsorted(rows, batch.starts).tolist()
        for number, piece in enumerate(batch.pieces):
            low, high = cuts[number], cuts[number + 1]
            if low < high:
                within = rows[low:high] - batch.starts[number] + piece.first_row
                words = counted_words(within, hits[low:high])
                self.found.append((False, clause, piece.order.ordinal, words))

    def met(self) -> list[Found]:
        """Return the source rows that were met, clause by clause and file by file."""
        if not self.probe.finds_source:
            return []
        index, found = self.source.index, []
        if self._met_keys:
            by_key = np.bincount(np.concatenate(self._met_keys), minlength=len(index))
            hits = np.zeros(int(self.source.starts[-1]), np.int64)
            hits[index.rows] = np.repeat(by_key, index.counts)
            found += self._source_rows(self.probe.clause, hits)
        for clause, rows in self._met_rows.items():
            hits = np.bincount(np.concatenate(rows), minlength=int(self.source.starts[-1]))
            found += self._source_rows(clause, hits)
        return found

    def _source_rows(self, clause: int, hits: Numbers) -> list[Found]:
        rows = np.flatnonzero(hits)
        cuts = np.searchsorted(rows, self.source.starts).tolist()
        found: list[Found] = []
        for file, first in enumerate(self.source.firsts):
            some = rows[cuts[file] : cuts[file + 1]]
            if len(some):
                within = some - self.source.starts[file] + first
                found.append((True, clause, file, counted_words(within, hits[some])))
        return found


@dataclass(frozen=True, slots=True)
class _Batch:
    """Rows of several pieces, numbered through."""

    pieces: Sequence[RowRange]
    starts: Numbers
    """Where each piece begins, and where the last one ends."""
    alive: Mask | None
    """Which rows no deletion vector deletes; ``None``: all."""
    columns: Sequence[pa.Array]
    """Those that conditions read."""

    @classmethod
    def of(cls, pieces: Sequence[RowRange], columns: Sequence[pa.Array]) -> _Batch:
        starts = np.cumsum([0, *(piece.num_rows for piece in pieces)])
        return cls(pieces=pieces, starts=starts, alive=_alive(pieces, starts), columns=columns)

    def living(self, rows: Numbers, numbers: Numbers) -> tuple[Numbers, Numbers]:
        """Keep those of some rows that are not deleted, and what runs parallel to them."""
        if self.alive is None:
            return rows, numbers
        kept = self.alive[rows]
        return rows[kept], numbers[kept]

    def living_without(self, rows: Numbers) -> Numbers:
        """Return all rows that are not deleted but for some."""
        rest: Mask = np.ones(int(self.starts[-1]), np.bool_)
        if self.alive is not None:
            rest = self.alive.copy()
        rest[rows] = False
        return np.flatnonzero(rest)


@dataclass(frozen=True, slots=True)
class _Pairs:
    """The columns of both sides that conditions read, pair by pair."""

    target: Sequence[pa.Array]
    source: Sequence[pa.Array]
    count: int

    @classmethod
    def of(
        cls, target: Sequence[pa.Array], rows: Numbers, source: Sequence[pa.Array], others: Numbers
    ) -> _Pairs:
        return cls(target=_taken(target, rows), source=_taken(source, others), count=len(rows))

    def is_true(self, call: Call) -> Mask:
        """Tell for which pairs a call is true, not NULL."""
        result = _evaluated(call, {"target": self.target, "source": self.source})
        if isinstance(result, pa.Scalar):
            return np.full(self.count, result.as_py() is True)
        flags: Mask = result.fill_null(False).to_numpy(zero_copy_only=False)  # noqa: FBT003
        return flags

    def first_true(self, calls: Sequence[Call]) -> Numbers:
        """Return the place of the first call that is true, pair by pair, `IDLE` if none is."""
        first: Numbers = np.full(self.count, IDLE, np.int64)
        for place in reversed(range(len(calls))):
            first[self.is_true(calls[place])] = place
        return first


def _evaluated(call: Call, sides: Mapping[str, Sequence[pa.Array]]) -> Any:
    name, *rest = call
    if name in sides:
        return sides[name][rest[0]]
    if name == "value":
        return pa.scalar(*rest)
    return pc.call_function(name, [_evaluated(argument, sides) for argument in rest])


def _taken(columns: Sequence[pa.Array], rows: Numbers) -> list[pa.Array]:
    places = pa.array(rows)
    return [column.take(places) for column in columns]


def _alive(pieces: Sequence[RowRange], starts: Numbers) -> Mask | None:
    """Tell which rows of all pieces no deletion vector deletes; ``None``: all."""
    gone = [(number, piece.dropped()) for number, piece in enumerate(pieces)]
    if all(dropped is None for _, dropped in gone):
        return None
    alive: Mask = np.ones(int(starts[-1]), np.bool_)
    for number, dropped in gone:
        if dropped is not None:
            alive[starts[number] : starts[number + 1]] = ~dropped
    return alive


def _column(kind: pa.DataType, place: int, pieces: Sequence[RowRange]) -> pa.Array:
    """Return a column of several pieces, in the type of its values."""
    parts = [piece.columns[place] for piece in pieces]
    first = parts[0].type
    if pa.types.is_dictionary(first) or any(part.type != first for part in parts):
        return pa.concat_arrays([of_kind(kind, part) for part in parts])
    return of_kind(kind, pa.concat_arrays(parts))


def _judged(kind: pa.DataType, column: pa.Array) -> pa.Array:
    """Return a column that conditions read: they may order it, so calendars matter."""
    values = of_kind(kind, column)
    require_one_calendar(values)
    return values


def counted_words(rows: Numbers, hits: Numbers) -> WordHits:
    """Pack ascending rows to words, adding up the hits of each word's rows."""
    index = rows >> 6
    starts = run_starts(index)
    if not len(starts):
        return b"", b"", b""
    bits = np.left_shift(np.uint64(1), (rows & 63).astype(np.uint64))
    return (
        index[starts].astype("<i8").tobytes(),
        np.bitwise_or.reduceat(bits, starts).astype("<u8").tobytes(),
        np.add.reduceat(hits, starts).astype("<i8").tobytes(),
    )
