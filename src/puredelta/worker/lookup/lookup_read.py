"""Reads of key columns, range by range, for a lookup inside a Spark worker.

A condition often decides after its first column. The others are then never decoded.

Trap this module knows: Spark finds columns of a file with case ignored. A file that spells one
otherwise is refused.
"""

from __future__ import annotations

import functools
import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from puredelta.worker.expressions import Expression, evaluated_rows
from puredelta.worker.files import DataPath, label
from puredelta.worker.lookup.key_index import Column, Numbers
from puredelta.worker.lookup.lookup_request import FileLookup, Searched
from puredelta.worker.range_file import fetched_ahead
from puredelta.worker.read_rows import (
    Mask,
    OnlySparkError,
    OpenFile,
    dropped_rows,
    opened,
    ranges_of_columns,
    require_one_calendar,
    require_read_alike,
)
from puredelta.worker.row_groups import GroupStatistics, has_hybrid_calendar
from puredelta.worker.small_files import FooterFile, FooterTemplate, MergedParquet
from puredelta.worker.wire import LIMITS, Limits

_NUMBER_BYTES = 4
_TEXT_BYTES = 16
"""Of a text at least: where it begins, and some characters."""
_DICTIONARIES = frozenset({"PLAIN_DICTIONARY", "RLE_DICTIONARY"})
_BY_DIFFERENCE = "DELTA_BYTE_ARRAY"
_UNSURE_BYTES = 4096
"""Of a text that is stored by its difference from the one before."""
_HARMLESS_BYTES = 256 * 1024 * 1024
"""Rows times bytes of a dictionary up to which the length of its texts does not matter."""


class LateColumns:
    """Columns of an open file, each decoded only as far as its rows are asked for.

    Rows are asked for in ascending ranges. Its methods raise Arrow's errors.
    """

    def __init__(self, path: str, file: OpenFile, batch_rows: int) -> None:
        self._path, self._file = path, file
        self._batch_rows = batch_rows
        groups = [file.metadata.row_group(n).num_rows for n in range(file.num_row_groups)]
        self._starts: Numbers = np.cumsum([0, *groups])
        self._decoding: dict[str, _Decoding] = {}

    def size(self, name: str) -> int:
        """Return about how many bytes the column has in the first row group, decoded."""
        (leaf,) = self._file.leaves_of([name])
        self._file.require_sound()
        chunk = self._file.metadata.row_group(0).column(leaf)
        is_text = chunk.physical_type == "BYTE_ARRAY"
        # Of a dictionary, and indices of some bits, come values of their own.
        least = chunk.num_values * (_TEXT_BYTES if is_text else _NUMBER_BYTES)
        return int(max(chunk.total_uncompressed_size, least))

    def row_bytes(self, names: Iterable[str]) -> int:
        """Return about how many bytes a row has in some columns, at least 1.

        Of a dictionary of long texts the longest one counts.
        """
        self._file.require_sound()
        footer, leaves = self._file.metadata, self._file.leaves_of(names)
        groups = range(footer.num_row_groups)
        return max(1, *(sum(self._value_bytes(group, n) for n in leaves) for group in groups))

    def _value_bytes(self, group: int, leaf: int) -> int:
        chunk = self._file.metadata.row_group(group).column(leaf)
        values, stored = max(1, int(chunk.num_values)), int(chunk.total_uncompressed_size)
        if _BY_DIFFERENCE in chunk.encodings:
            return max(stored // values, _UNSURE_BYTES)
        if chunk.physical_type != "BYTE_ARRAY":
            return max(stored // values, _NUMBER_BYTES)
        least = max(stored // values, _TEXT_BYTES)
        if _DICTIONARIES.isdisjoint(chunk.encodings):
            return least
        if min(self._batch_rows, values) * stored <= _HARMLESS_BYTES:
            return least
        return max(least, self._longest_in_dictionary(group, chunk.path_in_schema))

    def _longest_in_dictionary(self, group: int, path: str) -> int:
        """Read the dictionary of a column of texts, and none of its rows but the first."""
        footer = self._file.metadata
        with pq.ParquetFile(self._path, metadata=footer, read_dictionary=[path]) as file:
            batches = file.iter_batches(1, row_groups=[group], columns=[path], use_threads=False)
            texts = next(batches).column(0)
        texts = texts.dictionary if pa.types.is_dictionary(texts.type) else texts
        return int(pc.max(pc.binary_length(texts)).as_py() or 0)

    def rows(self, name: str, first_row: int, num_rows: int) -> pa.Array:
        """Return a column's values in some rows of the file."""
        decoding = self._decoding.get(name)
        if decoding is None:
            group = int(np.searchsorted(self._starts, first_row, "right")) - 1
            batches = self._file.read(
                self._batch_rows,
                groups=range(group, self._file.num_row_groups),
                leaves=self._file.leaves_of([name]),
            )
            decoding = self._decoding[name] = _Decoding(batches, int(self._starts[group]))
        return decoding.rows(first_row, num_rows)


@dataclass(slots=True)
class _Decoding:
    """A column that is decoded as far as it was asked for."""

    batches: Iterator[pa.RecordBatch]
    next_row: int
    """Of the file: where the values begin that are decoded next, or left."""
    left: pa.Array | None = None
    """Values that are decoded and were not asked for yet."""

    def rows(self, first_row: int, num_rows: int) -> pa.Array:
        """Return values of rows; those before them are forgotten."""
        found: list[pa.Array] = []
        end = first_row + num_rows
        while self.next_row < end:
            values = next(self.batches).column(0) if self.left is None else self.left
            low = max(first_row - self.next_row, 0)
            high = min(end - self.next_row, len(values))
            if low < high:
                found.append(values.slice(low, high - low))
            self.left = values.slice(high) if high < len(values) else None
            self.next_row += high
        return found[0] if len(found) == 1 else pa.concat_arrays(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class RowRange:
    """Rows of one file that follow each other."""

    file: FileLookup
    first_row: int
    num_rows: int
    """Deleted ones included."""
    names: Sequence[str]
    """Of the columns, in the order asked for."""
    late: LateColumns | None = None
    """Decodes the columns that are not there yet."""
    late_row_bytes: int = 0
    """About how many bytes a row has in these."""
    columns: list[pa.Array | None] = field(repr=False)
    """In the types of the file; ``None``: not decoded."""

    def column(self, place: int) -> pa.Array:
        """Return a column, decoded now if it was not. Raises Arrow's errors."""
        found = self.columns[place]
        if found is None:
            late = cast("LateColumns", self.late)
            found = late.rows(self.names[place], self.first_row, self.num_rows)
            self.columns[place] = found
        return found

    def cost(self, place: int) -> int:
        """Return about how many bytes are decoded for a column; 0: none, for it is there."""
        if self.late is None or self.columns[place] is not None:
            return 0
        return self.late.size(self.names[place])

    def decoded_bytes(self) -> int:
        """Return how many bytes its columns have; of those that are not decoded, about."""
        decoded = sum(column.nbytes for column in self.columns if column is not None)
        return int(decoded) + self.late_row_bytes * self.num_rows

    def deleted(self) -> Mask | None:
        """Return which of its rows are deleted; ``None`` if none is."""
        return dropped_rows(self.file.words, self.file.bits, self.first_row, self.num_rows)


_TEMPLATES_MAX = 4
"""Kinds of small files: tables have one, and one for every change of their columns."""
_OPEN_FILES_MAX = 128
"""Files that are kept open at a time, for columns that may be needed later."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourcePart:
    """One of the equal parts in which rows of the source are held, one after the other."""

    number: int = 0
    count: int = 1

    def rows(self, num_rows: int) -> tuple[int, int]:
        """Return where the part of a file begins and ends."""
        return num_rows * self.number // self.count, num_rows * (self.number + 1) // self.count


def read_columns(
    path: DataPath, names: Sequence[str], part: SourcePart, *, batch_rows: int
) -> tuple[int, pa.Table]:
    """Read columns of one part of a file, and return where it begins.

    Of the other rows only a batch is held at a time, and batches are bounded by their bytes, so
    a column of long texts comes in many chunks.
    """
    file = OpenFile(path)
    schema = file.schema_arrow
    require_columns(path, schema, names)
    num_rows = file.metadata.num_rows
    start, stop = part.rows(num_rows)
    # What is needed whole is decoded whole, unless its values are large.
    rows = max(1, num_rows) if part.count == 1 else batch_rows
    empty = [pa.RecordBatch.from_pylist([], schema=pa.schema([schema.field(n) for n in names]))]
    batches = itertools.chain(file.read(rows, leaves=file.leaves_of(names)), empty)
    ordered = (batch.select(list(names)) for batch in batches)
    return start, _between(ordered, start, stop)


def require_columns(path: DataPath, schema: pa.Schema, names: Sequence[str]) -> None:
    """Refuse a file that is not any more what the driver has seen."""
    found = Counter(schema.names)
    for name in names:
        if found[name] != 1:
            problem = "has several columns" if found[name] else "lacks column"
            raise OnlySparkError(f"{label(path)} {problem} {name}")


def _between(batches: Iterator[pa.RecordBatch], start: int, stop: int) -> pa.Table:
    """Return the rows from ``start`` on and below ``stop``; there is a batch at least."""
    kept: list[pa.RecordBatch] = []
    begin = 0
    for batch in batches:
        end = begin + batch.num_rows
        if begin < stop and start < end:
            low = max(start - begin, 0)
            kept.append(batch.slice(low, min(stop, end) - begin - low))
        begin = end
    return pa.Table.from_batches(kept, batch.schema)


def read_ranges(
    files: Sequence[FileLookup],
    names: Sequence[str],
    *,
    first: int | None = None,
    condition: Expression | None = None,
    limits: Limits = LIMITS,
) -> Iterator[RowRange]:
    """Read columns of files; those that a file lacks are NULL.

    Of a file on a disk the first columns are decoded, ``first`` many, and others when they are
    asked for; ``None``: all. Those of an object are brought and decoded together. Row groups
    without a row of which ``condition`` is true may be left out.

    Small files that are alike are decoded together, and therefore come later than others.
    """
    early = frozenset(names[:first])
    small = _SmallFiles(names, limits)
    ranges = functools.partial(ranges_of_columns, names)
    for file in fetched_ahead(files, lambda file: file.path, ranges):
        merged = small.add(file)
        if merged is None:
            num_rows = end = 0
            for rows in _read_alone(file, names, early, limits, condition):
                yield rows
                num_rows, end = num_rows + rows.num_rows, rows.first_row + rows.num_rows
            if num_rows == end:  # no row group was left out
                small.learn(file, num_rows)
        elif merged.num_rows >= limits.lookup_rows:
            yield from merged.read(names, limits)
    for merged in small.unread():
        yield from merged.read(names, limits)


def coalesced(
    ranges: Iterable[RowRange], *, num_rows: int, num_bytes: int
) -> Iterator[list[RowRange]]:
    """Bring small ranges together, up to a number of rows and of decoded bytes."""
    together: list[RowRange] = []
    together_rows = together_bytes = open_files = 0
    for rows in ranges:
        decoded = rows.decoded_bytes()
        is_full = (
            together_rows + rows.num_rows > num_rows
            or together_bytes + decoded > num_bytes
            or open_files == _OPEN_FILES_MAX
        )
        if together and is_full:
            yield together
            together, together_rows, together_bytes, open_files = [], 0, 0, 0
        together.append(rows)
        together_rows += rows.num_rows
        together_bytes += decoded
        open_files += rows.late is not None
    if together:
        yield together


class _SmallFiles:
    """Files that are decoded together with others like them."""

    def __init__(self, names: Sequence[str], limits: Limits) -> None:
        self._names = names
        self._rows_max = limits.small_file_rows
        self._merged: list[_MergedFiles] = []
        self._templates_left = _TEMPLATES_MAX if self._rows_max else 0

    def add(self, file: FileLookup) -> _MergedFiles | None:
        """Add a file to those that are like it; ``None`` if it has to be read alone."""
        if not self._merged:
            return None
        stored = _stored_names(file, self._names)
        try:
            footer = FooterFile.opened(file.path)
            if footer is None:
                return None
            with closing(footer):
                for merged in self._merged:
                    if merged.stored == stored and merged.add(file, footer):
                        return merged
        except OSError:
            return None  # reading the file alone says what is wrong
        return None

    def learn(self, file: FileLookup, num_rows: int) -> None:
        """Look at a file that was read alone: the next ones may be like it."""
        stored = _stored_names(file, self._names)
        if not self._templates_left or num_rows > self._rows_max or not stored:
            return
        self._templates_left -= 1
        template = FooterTemplate.of(file.path, stored)
        if template is not None:
            self._merged.append(_MergedFiles(template, stored, self._rows_max))

    def unread(self) -> Iterator[_MergedFiles]:
        """Yield the files that were added and not read."""
        return (merged for merged in self._merged if merged.num_rows)


class _MergedFiles:
    """Files that are alike, added but not read."""

    def __init__(self, template: FooterTemplate, stored: set[str], rows_max: int) -> None:
        self._template = template
        self._rows_max = rows_max
        self._parquet = MergedParquet(template, rows_max=rows_max)
        self._files: list[FileLookup] = []
        self.stored = stored
        """The columns that are read from the files."""

    @property
    def num_rows(self) -> int:
        """How many rows they have."""
        return self._parquet.num_rows

    def add(self, file: FileLookup, footer: FooterFile) -> bool:
        """Add a file, unless it is unlike the others."""
        if not self._parquet.add(footer):
            return False
        self._files.append(file)
        return True

    def read(self, names: Sequence[str], limits: Limits) -> list[RowRange]:
        """Read the files, and begin an empty batch."""
        parquet, files = self._parquet, self._files
        self._parquet, self._files = MergedParquet(self._template, rows_max=self._rows_max), []
        stored = [name for name in names if name in self.stored]
        try:
            found = list(parquet.read(stored))
        except (OSError, pa.ArrowException):  # reading each file alone says what is wrong
            early = frozenset(names)
            return [row for file in files for row in _read_alone(file, names, early, limits)]
        return [
            _range(file, 0, names, dict(zip(stored, columns, strict=True)))
            for file, columns in zip(files, found, strict=True)
            if len(columns[0])
        ]


def _stored_names(file: FileLookup, names: Sequence[str]) -> set[str]:
    """Return the columns that are read from the file itself."""
    return set(names).difference(name for name, _ in file.constants)


def _read_alone(
    file: FileLookup,
    names: Sequence[str],
    early: frozenset[str],
    limits: Limits,
    condition: Expression | None = None,
) -> Iterator[RowRange]:
    """Read a file; columns that are not among the ``early`` ones may stay undecoded."""
    stored = _stored_names(file, names)
    if condition is not None:
        yield from _read_kept_groups(file, names, condition, limits)
        return
    late: LateColumns | None = None
    late_row_bytes = 0
    batches: Iterator[pa.RecordBatch] | None = None
    if (first := stored & early) and first != stored and not isinstance(file.path, tuple):
        source = opened(file.path)
        require_read_alike(source, limits.only_spark, stored)
        if source.num_row_groups and len(source.leaves_of(stored)) == len(stored):
            late = LateColumns(file.path, source, limits.lookup_rows)
            late_row_bytes = late.row_bytes(stored - first)
            rows = min(limits.lookup_rows, max(1, LIMITS.read_bytes // late_row_bytes))
            batches = source.read(rows, leaves=source.leaves_of(first))
    first_row = 0
    if batches is None:
        batches = _batches(file.path, opened(file.path), stored, limits)
    for batch in batches:
        found = dict(zip(batch.schema.names, batch.columns, strict=True))
        if batch.num_rows:
            one = _range(file, first_row, names, found, late=late)
            yield one if late is None else replace(one, late_row_bytes=late_row_bytes)
        first_row += batch.num_rows


def _read_kept_groups(
    file: FileLookup, names: Sequence[str], condition: Expression, limits: Limits
) -> Iterator[RowRange]:
    """Read the row groups of a file in which some row may have what is asked for."""
    stored = _stored_names(file, names)
    source = opened(file.path)
    counts = [source.metadata.row_group(n).num_rows for n in range(source.num_row_groups)]
    kept: list[int] = [*range(len(counts))]
    if len(counts) > 1 and not has_hybrid_calendar(source, limits.only_spark):
        source.require_sound()
        statistics = GroupStatistics.of(source, {name: name for name in stored})
        kept = [group for group in kept if statistics.may_hold(group, condition)]
    runs = [kept] if len(kept) == len(counts) else [[group] for group in kept]
    for run in runs:
        first_row = sum(counts[: run[0]]) if run else 0
        for batch in _batches(file.path, source, stored, limits, run):
            found = dict(zip(batch.schema.names, batch.columns, strict=True))
            if batch.num_rows:
                yield _range(file, first_row, names, found)
            first_row += batch.num_rows


def _batches(
    path: DataPath,
    file: OpenFile,
    wanted: set[str],
    limits: Limits,
    groups: Sequence[int] | None = None,
) -> Iterator[pa.RecordBatch]:
    """Read those of some columns that a file has; without any, batches still have rows."""
    require_read_alike(file, limits.only_spark, wanted)
    if wanted:
        batches = file.read(limits.lookup_rows, groups=groups, leaves=file.leaves_of(wanted))
        first = next(batches, None)
        if first is not None and sorted(first.schema.names) == sorted(wanted):
            return itertools.chain([first], batches)
    # Asking for the schema takes as long as a column of a small file: only where one is missing.
    every = file.schema_arrow.names
    for name in wanted:
        if name not in every and name.lower() in {column.lower() for column in every}:
            raise OnlySparkError(f"{label(path)} spells column {name} otherwise")
        if every.count(name) > 1:
            raise OnlySparkError(f"{label(path)} has several columns {name}")
    read = [name for name in every if name in wanted] or [every[0]]
    return file.read(limits.lookup_rows, groups=groups, leaves=file.leaves_of(read))


def _range(
    file: FileLookup,
    first_row: int,
    names: Sequence[str],
    found: Mapping[str, pa.Array],
    *,
    late: LateColumns | None = None,
) -> RowRange:
    """Return rows with all columns: found ones, constants, and those to be decoded late.

    What the file lacks is NULL. One column at least is found.
    """
    num_rows = len(next(iter(found.values())))
    constants = dict(file.constants)

    def column(name: str) -> pa.Array | None:
        if name not in constants:
            if name in found:
                return found[name]
            if late is not None:
                return None
        return pa.repeat(pa.scalar(constants.get(name)), num_rows)

    return RowRange(
        file=file,
        first_row=first_row,
        num_rows=num_rows,
        names=names,
        late=late,
        columns=[column(name) for name in names],
    )


def one_column(tables: Sequence[pa.Table], name: str) -> pa.ChunkedArray:
    """Return a column of several tables; nothing is copied."""
    return pa.concat_tables([table.select([name]) for table in tables])[name]


def compared_type(stored: pa.DataType) -> pa.DataType:
    """Return the one type that values of a column stored as ``stored`` are compared in."""
    if pa.types.is_dictionary(stored):
        stored = stored.value_type
    if pa.types.is_integer(stored):
        return pa.int64()
    if pa.types.is_binary(stored) or pa.types.is_large_string(stored):
        return pa.string()
    return stored


def cast_to(kind: pa.DataType, column: Column) -> Column:
    """Return a column in the type ``kind``; raises Arrow's error for a value that it lacks."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    return column if column.type == kind else column.cast(kind)


def searched_values(searched: Searched, place: int, column: pa.Array) -> pa.Array:
    """Return what is compared with the source of some rows of a column of the target.

    Raises:
        pa.ArrowException: there is no value, or no proof of it.
        OnlySparkError: a date or timestamp is of a time in which calendars differ.
    """
    key = searched.keys[place] if searched.keys else None
    if key is None or key.value is None or key.read_as is None:
        return column
    read = cast_to(key.read_as, column)
    require_one_calendar(read)
    return evaluated_rows(key.value, lambda _: read, len(read))


def in_one_array(column: Column) -> pa.Array:
    """Return the values of a column in one array: a copy, if they are in several chunks."""
    if isinstance(column, pa.Array):
        return column
    chunks = [chunk for chunk in column.chunks if len(chunk)]
    if len(chunks) == 1:
        return chunks[0]
    return pa.concat_arrays(chunks) if chunks else pa.array([], column.type)


def is_text(kind: pa.DataType) -> bool:
    """Tell whether values have any length, so that they are never copied to one array."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def text_bytes(column: Column) -> int:
    """Return how many bytes the texts of a column have; 0: it has none."""
    if not is_text(column.type):
        return 0
    return int(pc.sum(pc.binary_length(column)).as_py() or 0)


def longest_text(column: pa.Array) -> int:
    """Return the bytes of the longest text of a column; 0: it has none."""
    return pc.max(pc.binary_length(column)).as_py() or 0 if is_text(column.type) else 0
