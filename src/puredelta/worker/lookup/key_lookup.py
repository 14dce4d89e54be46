"""Looks the keys of a source up in data files, inside a Spark worker.

Equality of plain columns finds pairs of a target row and a source row. What else decides about a
pair, or about an unmatched target row, are `ResidualConditions`; an UPDATE and a DELETE have no
source, and conditions alone. Nothing is shuffled, and the answer is bitmaps.

Memory is that of the source's keys, or of a part of them if files may be read several times, and
of one batch of rows, be they of one file or of many small ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from puredelta.worker.expressions import Expression, InputColumn, any_of, with_columns
from puredelta.worker.lookup.bloom_filters import KEYS_MAX, FilteredFiles, KeyHashes
from puredelta.worker.lookup.conditions import (
    NO_CLAUSE,
    Pairs,
    ResidualConditions,
    TargetColumns,
    place_of,
)
from puredelta.worker.lookup.key_index import Column, KeyIndex, Numbers, run_starts
from puredelta.worker.lookup.lookup_read import (
    RowRange,
    SourcePart,
    cast_to,
    coalesced,
    compared_type,
    in_one_array,
    is_text,
    longest_text,
    one_column,
    read_columns,
    read_ranges,
    searched_values,
    text_bytes,
)
from puredelta.worker.lookup.lookup_request import (
    FOUND_ROWS,
    LOOKUP_BATCHES,
    LOOKUP_REQUESTS,
    FileLookup,
    FoundRows,
    LookupBatch,
    LookupRequest,
)
from puredelta.worker.lookup.range_index import RangeIndex
from puredelta.worker.read_rows import Mask, OnlySparkError, require_one_calendar
from puredelta.worker.wire import LIMITS, Fields

_TEXT_BYTES_MAX = 1 << 30
"""Of a column of keys: beyond it, offsets have 64 bits, also those of the values that differ."""


def look_up(message: tuple[Fields, Fields]) -> tuple[str | None, list[Fields]]:
    """Carry out the fields of a `LookupRequest` for those of a `LookupBatch`.

    Return why this worker cannot do it, or the fields of every `FoundRows`.
    """
    request, batch = message
    refusal, found = look_up_keys(LOOKUP_REQUESTS.decode(request), LOOKUP_BATCHES.decode(batch))
    return refusal, [FOUND_ROWS.encode(rows) for rows in found]


def look_up_keys(request: LookupRequest, batch: LookupBatch) -> tuple[str | None, list[FoundRows]]:
    """Find the rows of files and of the source that are matched, or that some clause acts on."""
    parts = [SourcePart(number=number, count=request.parts) for number in range(request.parts)]
    try:
        return None, [found for part in parts for found in _found_in_part(request, batch, part)]
    except (OSError, pa.ArrowException, OnlySparkError, MemoryError) as reason:
        return f"{type(reason).__name__}: {reason}", []


def _found_in_part(request: LookupRequest, batch: LookupBatch, part: SourcePart) -> list[FoundRows]:
    """Look one part of the source up; its memory is free afterwards."""
    source = _Source.read(request, batch, part)
    search = _Search(request=request, source=source)
    ranges = read_ranges(
        source.candidates,
        search.target_names,
        first=len(source.kinds),
        condition=_asked_of_rows(request),
        limits=request.limits,
    )
    limits = request.limits
    batches = coalesced(
        ranges,
        num_rows=source.batch_rows(limits.lookup_rows),
        num_bytes=max(LIMITS.read_bytes, source.key_bytes),
    )
    for together in batches:
        search.look_up(together)
    return [*search.found, *search.source_rows()]


def _asked_of_rows(request: LookupRequest) -> Expression | None:
    """Return what is true of each row that is found, if there is no source; columns by name."""
    if request.conditions is None or request.searched.target_names:
        return None
    names = [name for name, _ in request.conditions.target_columns]

    def named(column: InputColumn) -> InputColumn:
        return InputColumn(column.side, names[place_of(column)])

    return with_columns(any_of(request.conditions.by_source), named)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Source:
    """Rows of the source, all or a part: their keys, and the columns that conditions read."""

    index: KeyIndex | RangeIndex
    kinds: tuple[pa.DataType, ...]
    """Of the key's columns."""
    key_bytes: int
    """Of the texts of the key's columns, in all rows."""
    columns: tuple[pa.Array, ...]
    row_bytes: int
    """Of the longest texts in these, and at least 1."""
    starts: Numbers
    """Where each file's rows begin, and where the last one's end."""
    first_rows: Sequence[int]
    """What place the first of them has in each file."""
    candidates: Sequence[FileLookup]
    """Files of the table that might hold one of its keys."""

    @classmethod
    def read(cls, request: LookupRequest, batch: LookupBatch, part: SourcePart) -> _Source:
        read = () if request.conditions is None else request.conditions.source_columns
        searched = request.searched
        keys = searched.source_names
        names = list(dict.fromkeys([*keys, *(name for name, _ in read)]))
        limits = request.limits
        found = [
            read_columns(path, names, part, batch_rows=limits.lookup_rows)
            for path in request.source_files
        ]
        first_rows, tables = [first for first, _ in found], [table for _, table in found]
        starts = np.cumsum([0, *(table.num_rows for table in tables)])
        whole = {name: one_column(tables, name) for name in names}
        del found, tables  # memory is for the index now
        read_by_conditions = tuple(
            in_one_array(compared_column(kind, whole[name])) for name, kind in read
        )
        columns = [key_column(whole[name]) for name in keys]
        del whole
        index = searched.index(columns)
        candidates = batch.candidates(
            columns,
            sorted_max=limits.sorted_keys,
            ranges=index if isinstance(index, RangeIndex) else None,
        )
        if (filters := _filters(request, columns, starts[-1])) is not None:
            candidates = list(filters.kept(candidates))
        return cls(
            candidates=candidates,
            kinds=searched.kinds(columns),
            key_bytes=sum(map(text_bytes, columns)),
            columns=read_by_conditions,
            row_bytes=1 + sum(map(longest_text, read_by_conditions)),
            starts=starts,
            first_rows=first_rows,
            index=index,
        )

    def batch_rows(self, usual: int) -> int:
        """Return how many rows are looked up together at least, if there are as many."""
        return max(usual, len(self.index)) if self.index.lookup_costs_all else usual


def _filters(
    request: LookupRequest, columns: Sequence[Column], num_rows: int
) -> FilteredFiles | None:
    """Return the Bloom filters that leave files out; ``None``: every file is looked at."""
    asks_unmatched = request.conditions is not None and bool(request.conditions.by_source)
    if asks_unmatched or not request.keys or num_rows > KEYS_MAX:
        return None
    if not request.limits.bloom_filters:
        return None
    keys = [
        (key.target, KeyHashes(column))
        for key, column in zip(request.keys, columns, strict=True)
        if key.value is None and not (key.null_safe and column.null_count)
    ]
    return FilteredFiles(keys) if keys else None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Search:
    """Looks rows of files up and keeps what was found."""

    request: LookupRequest
    source: _Source
    found: list[FoundRows] = field(default_factory=list)
    """Rows of files."""
    _matched_keys: list[Numbers] = field(default_factory=list)
    """Keys of pairs, where all pairs are for one clause."""
    _matched_rows: dict[int, list[Numbers]] = field(default_factory=dict)
    """Source rows of pairs by clause, where conditions decide."""

    @property
    def target_names(self) -> list[str]:
        """The columns to read: those of the key, then those of the conditions."""
        conditions = self.request.conditions
        read = () if conditions is None else conditions.target_columns
        return [*self.request.searched.target_names, *(name for name, _ in read)]

    def look_up(self, ranges: Sequence[RowRange]) -> None:
        """Find the rows of some ranges that are matched, or that some clause acts on."""
        searched = self.request.searched
        columns = [
            _column(kind, [searched_values(searched, n, one.column(n)) for one in ranges])
            for n, kind in enumerate(self.source.kinds)
        ]
        conditions = self.request.conditions
        read = () if conditions is None else conditions.target_columns
        batch = _Batch.of(ranges, [kind for _, kind in read], first_place=len(columns))
        rows, numbers = batch.live(*self.source.index.lookup(columns))
        if conditions is None:
            if self.request.finds_target:
                hits = self.source.index.counts[numbers]
                self._keep(self.request.clause, batch, rows, hits)
            self._matched_keys.append(numbers)
        else:
            self._decide(conditions, batch, rows, numbers)

    def _decide(
        self, conditions: ResidualConditions, batch: _Batch, rows: Numbers, numbers: Numbers
    ) -> None:
        """Pair rows with the source rows of their keys, and give every pair its clause."""
        pairs_max = self.request.limits.lookup_pairs
        if int(self.source.index.counts[numbers].sum()) > pairs_max:
            raise OnlySparkError(f"more than {pairs_max} pairs of equal keys at a time")
        at, source_rows = self.source.index.source_rows(numbers)
        pairs = Pairs(
            target=batch,
            target_rows=rows[at],
            source=self.source.columns,
            source_rows=source_rows,
            at_a_time=max(1, LIMITS.read_bytes // (self.source.row_bytes + batch.row_bytes())),
        )
        fits = np.flatnonzero(pairs.is_true(conditions.on))
        pairs = pairs.only(fits)
        rows, source_rows = pairs.target_rows, source_rows[fits]
        clauses = pairs.first_true(conditions.matched)
        for clause in range(NO_CLAUSE, len(conditions.matched)):
            fired = np.flatnonzero(clauses == clause)
            if not len(fired):
                continue
            if self.request.finds_target:
                self._keep(clause, batch, rows[fired], np.ones(len(fired), np.int64))
            if self.request.finds_source:
                self._matched_rows.setdefault(clause, []).append(source_rows[fired])
        if conditions.by_source:
            self._decide_unmatched(conditions, batch, batch.live_but(rows))

    def _decide_unmatched(
        self, conditions: ResidualConditions, batch: _Batch, rows: Numbers
    ) -> None:
        """Give unmatched rows their clause."""
        clauses = Pairs(target=batch, target_rows=rows).first_true(conditions.by_source)
        for clause in range(len(conditions.by_source)):
            fired = rows[clauses == clause]
            ones: Numbers = np.ones(len(fired), np.int64)
            self._keep(len(conditions.matched) + clause, batch, fired, ones)

    def _keep(self, clause: int, batch: _Batch, rows: Numbers, hits: Numbers) -> None:
        """Keep ascending rows of a batch, each with its file."""
        at = 0
        for one, within in batch.within(rows):
            some = hits[at : at + len(within)]
            self.found.append(found_rows(clause, one.file.ordinal, within + one.first_row, some))
            at += len(within)

    def source_rows(self) -> list[FoundRows]:
        """Return the matched source rows, clause by clause and file by file."""
        if not self.request.finds_source:
            return []
        index, found = self.source.index, []
        if self._matched_keys:
            by_key = np.bincount(np.concatenate(self._matched_keys), minlength=len(index))
            hits = np.zeros(int(self.source.starts[-1]), np.int64)
            if isinstance(index, RangeIndex):  # a row is in several segments
                np.add.at(hits, index.rows, np.repeat(by_key, index.counts))
            else:
                hits[index.rows] = np.repeat(by_key, index.counts)
            found += self._by_source_file(self.request.clause, hits)
        for clause, rows in self._matched_rows.items():
            hits = np.bincount(np.concatenate(rows), minlength=int(self.source.starts[-1]))
            found += self._by_source_file(clause, hits)
        return found

    def _by_source_file(self, clause: int, hits: Numbers) -> list[FoundRows]:
        rows = np.flatnonzero(hits)
        cuts = np.searchsorted(rows, self.source.starts).tolist()
        found: list[FoundRows] = []
        for file, first_row in enumerate(self.source.first_rows):
            some = rows[cuts[file] : cuts[file + 1]]
            if len(some):
                within = some - self.source.starts[file] + first_row
                found.append(found_rows(clause, file, within, hits[some], of_source=True))
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class _Batch(TargetColumns):
    """Rows of several ranges, numbered through."""

    ranges: Sequence[RowRange]
    starts: Numbers
    """Where each range begins, and where the last one ends."""
    is_live: Mask | None
    """Which rows no deletion vector deletes; ``None``: all."""
    kinds: Sequence[pa.DataType]
    """Of the columns that conditions read."""
    first_place: int
    """Where those columns begin among the columns of a range."""

    @classmethod
    def of(
        cls, ranges: Sequence[RowRange], kinds: Sequence[pa.DataType], *, first_place: int
    ) -> _Batch:
        starts = np.cumsum([0, *(one.num_rows for one in ranges)])
        is_live = _live(ranges, starts)
        return cls(
            ranges=ranges, starts=starts, is_live=is_live, kinds=kinds, first_place=first_place
        )

    def take(self, place: int, rows: Numbers) -> pa.Array:
        """Return what a condition reads of ascending rows; only ranges that have some decode it.

        Conditions may order the values, so calendars matter.
        """
        kind = self.kinds[place]
        taken = [
            cast_to(kind, one.column(self.first_place + place).take(pa.array(within)))
            for one, within in self.within(rows)
        ]
        values = pa.concat_arrays(taken) if taken else pa.array([], kind)
        require_one_calendar(values)
        return values

    def cost(self, place: int, rows: Numbers) -> int:
        """Return how many bytes the first range would decode that has some of the rows."""
        return next((one.cost(self.first_place + place) for one, _ in self.within(rows)), 0)

    def row_bytes(self) -> int:
        """Return about how many bytes a row has, in the range where it has most."""
        return max(one.decoded_bytes() // max(1, one.num_rows) for one in self.ranges)

    def within(self, rows: Numbers) -> Iterator[tuple[RowRange, Numbers]]:
        """Yield the ranges that have some of ascending rows, and their places in them."""
        cuts = np.searchsorted(rows, self.starts).tolist()
        for number, one in enumerate(self.ranges):
            low, high = cuts[number], cuts[number + 1]
            if low < high:
                yield one, rows[low:high] - self.starts[number]

    def live(self, rows: Numbers, numbers: Numbers) -> tuple[Numbers, Numbers]:
        """Keep those of some rows that are not deleted, and what runs parallel to them."""
        if self.is_live is None:
            return rows, numbers
        kept = self.is_live[rows]
        return rows[kept], numbers[kept]

    def live_but(self, rows: Numbers) -> Numbers:
        """Return all rows that are not deleted, but for some."""
        rest: Mask = np.ones(int(self.starts[-1]), np.bool_)
        if self.is_live is not None:
            rest = self.is_live.copy()
        rest[rows] = False
        return np.flatnonzero(rest)


def _live(ranges: Sequence[RowRange], starts: Numbers) -> Mask | None:
    """Return which rows of all ranges no deletion vector deletes; ``None``: all."""
    deleted = [(number, one.deleted()) for number, one in enumerate(ranges)]
    if all(mask is None for _, mask in deleted):
        return None
    live: Mask = np.ones(int(starts[-1]), np.bool_)
    for number, mask in deleted:
        if mask is not None:
            live[starts[number] : starts[number + 1]] = ~mask
    return live


def _column(kind: pa.DataType, parts: Sequence[pa.Array]) -> Column:
    """Return a column of several ranges, in the type of its values."""
    if is_text(kind):
        return pa.chunked_array([cast_to(kind, part) for part in parts], kind)
    first = parts[0].type
    if pa.types.is_dictionary(first) or any(part.type != first for part in parts):
        return pa.concat_arrays([cast_to(kind, part) for part in parts])
    return cast_to(kind, pa.concat_arrays(parts))


def key_column(stored: pa.ChunkedArray) -> Column:
    """Return a column of the source's key in the type that its values are compared in.

    Raises:
        OnlySparkError: a date or timestamp is of a time in which calendars differ.
    """
    kind = compared_type(stored.type)
    column = cast_to(kind, stored)
    if not is_text(kind):
        column = in_one_array(column)
        require_one_calendar(column)
    elif text_bytes(column) > _TEXT_BYTES_MAX:
        return column.cast(pa.large_string())
    return column


def compared_column(kind: pa.DataType, column: Column) -> Column:
    """Return a column that conditions read: they may order it, so calendars matter.

    Raises:
        OnlySparkError: a date or timestamp is of a time in which calendars differ.
    """
    values = cast_to(kind, column)
    require_one_calendar(values)
    return values


def found_rows(
    clause: int, file: int, rows: Numbers, hits: Numbers, *, of_source: bool = False
) -> FoundRows:
    """Pack ascending rows of a file to words; hits of the rows of a word are added up."""
    index = rows >> 6
    starts = run_starts(index)
    bits = np.left_shift(np.uint64(1), (rows & 63).astype(np.uint64))
    return FoundRows(
        of_source=of_source,
        clause=clause,
        file=file,
        words=index[starts].astype("<i8").tobytes(),
        bits=np.bitwise_or.reduceat(bits, starts).astype("<u8").tobytes(),
        hits=np.add.reduceat(hits, starts).astype("<i8").tobytes(),
    )
