"""The keys of a statement's source by number, inside a Spark worker.

A key of several columns becomes one integer: each column's value is a digit, by its distance
from the least value where values are numbers, else by its place among the source's values. So
a lookup is a search in ascending integers. Arrow finds the places of texts with a hash table
of its own, for all values of a column at once.

A key and its row are sorted as one integer where both fit: numpy sorts integers several times
faster than it finds the order in which they would be sorted.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, TypeAlias, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Numbers: TypeAlias = npt.NDArray[Any]
"""Integers of 64 bits, or of 32 where they are kept and fit."""
Known: TypeAlias = npt.NDArray[np.bool_]
Column: TypeAlias = pa.Array | pa.ChunkedArray
"""Texts may be in chunks, which are never copied to one array."""
Digits: TypeAlias = tuple[Numbers, "Known | None"]
"""A number for each value of a column, and whether it is one of the source's values (``None``: all
are)."""

_NUMBERS_MAX = 1 << 62
_PACKED_MAX = 1 << 63
_SMALL_MAX = 1 << 31
_STEPS_MAX = 3
"""Steps through a bucket, on average; a binary search takes as long as four (measured)."""
_SHORT_DIGITS = 18
"""Decimals of so many digits are integers of 64 bits."""
_BUCKET_MAX = 32
"""Numbers in one bucket: each is a step for all rows together, however few they are."""
FILTERED_KEYS_MAX = 1 << 20
"""Keys up to which a filter is made."""
_FILTER_BITS = 4
"""Entries of the filter per key, as a power of two: it lets one row in 16 pass for nothing."""
_MIX = 0x9E3779B97F4A7C15
"""The odd number next to 2**64 divided by the golden ratio: spreads neighbours."""


class KeyIndex:
    """The rows of the source by key. Keys are numbered from 0 in some order.

    Source rows that can match nothing, for a NULL in a column that is not null-safe, have none.
    """

    def __init__(
        self,
        columns: Sequence[Column],
        null_safe: Sequence[bool],
        *,
        filtered_max: int = FILTERED_KEYS_MAX,
    ) -> None:
        self._digits: list[_Digit] = []
        self._renumbered: list[_Ascending | None] = []
        small = np.int32 if len(columns[0]) < _SMALL_MAX else np.int64
        rows: Numbers | None = None
        numbers: Numbers | None = None
        size = 1
        for column, keeps_null in zip(columns, null_safe, strict=True):
            # After other columns a digit must leave room for every key so far.
            size_max = _NUMBERS_MAX // (1 if numbers is None else max(1, len(numbers)))
            digit, digits = _digit_of(column, keeps_null=keeps_null, size_max=size_max)
            values = None
            if numbers is not None and size * digit.size > _NUMBERS_MAX:
                values = _Ascending(np.unique(numbers), size)
                (numbers, _), size = values.find(numbers), max(1, len(values))
            size *= digit.size
            self._digits.append(digit)
            self._renumbered.append(values)
            rows, numbers = _appended(digit, digits, rows, numbers)
            del digits  # memory is for the order now
        numbers, order = _in_order(cast("Numbers", numbers), size)
        if rows is not None:
            order = rows[order]
        self.rows: Numbers = order.astype(small, copy=False)
        """Source rows that can match, key after key."""
        del rows, order
        starts = run_starts(numbers)
        self._starts: Numbers | None = None
        """Where the rows of each key begin in `rows`; ``None``: each has one."""
        self.counts: Numbers = np.broadcast_to(small(1), len(starts))
        """How many rows each key has."""
        if len(starts) < len(numbers):
            self.counts = np.diff(starts, append=len(numbers)).astype(small)
            numbers, self._starts = numbers[starts], starts.astype(small)
        del starts
        self._keys = _Ascending(numbers, size)
        self._filter = _Filter(numbers) if len(numbers) <= filtered_max else None

    def __len__(self) -> int:
        """How many keys there are."""
        return len(self._keys)

    @property
    def lookup_costs_all(self) -> bool:
        """Whether a lookup takes time for every value of the source, so that few are better."""
        return any(isinstance(digit, _Listed) for digit in self._digits)

    def lookup(self, columns: Sequence[Column]) -> tuple[Numbers, Numbers]:
        """Return the rows that have a key, ascending, and the number of each one's key."""
        nothing: Numbers = np.empty(0, np.int64)
        if not len(self):
            return nothing, nothing
        numbers, known = self._digits[0].numbers(columns[0])
        rows = np.arange(len(numbers)) if known is None else np.flatnonzero(known)
        if len(rows) < len(numbers):
            numbers = numbers[rows]
        others = zip(self._digits[1:], self._renumbered[1:], columns[1:], strict=True)
        for digit, values, column in others:
            if values is not None:
                places, known = values.find(numbers)
                rows, numbers = rows[known], places[known]
            rows, numbers = _extended(digit, column, rows, numbers)
        if self._filter is not None:
            likely = self._filter.may_hold(numbers)
            rows, numbers = rows[likely], numbers[likely]
        places, known = self._keys.find(numbers)
        return rows[known], places[known]

    def source_rows(self, keys: Numbers) -> tuple[Numbers, Numbers]:
        """Return every pair of (position in ``keys``, source row)."""
        if self._starts is None:
            return np.arange(len(keys)), self.rows[keys]
        counts = self.counts[keys]
        positions = np.repeat(np.arange(len(keys)), counts)
        firsts = np.cumsum(counts) - counts
        offsets = np.arange(len(positions)) - np.repeat(firsts, counts)
        return positions, self.rows[np.repeat(self._starts[keys], counts) + offsets]


class _Ascending:
    """Finds numbers among distinct ascending ones.

    The range is cut into buckets, about as many as there are numbers, so a number's place is
    near where its bucket begins. Where the numbers crowd in few of them, a search is binary.
    """

    def __init__(self, values: Numbers, size: int) -> None:
        """Take numbers from 0 to ``size`` - 1."""
        self._values, self._size = values, size
        bits = max(0, (size - 1).bit_length() - len(values).bit_length())
        self._shift = np.int64(bits)
        held = np.bincount(values >> self._shift, minlength=((size - 1) >> bits) + 1)
        self._bucket_max = int(held.max())
        steps = (np.dot(held, held) - len(values)) / 2 / max(1, len(values))
        self._firsts: Numbers | None = None
        """The place of the first number that is not before a bucket."""
        if self._bucket_max <= _BUCKET_MAX and steps <= _STEPS_MAX:
            ends = np.cumsum(held, out=held)
            firsts = np.zeros(len(ends), np.int32 if len(values) < _SMALL_MAX else np.int64)
            np.minimum(ends[:-1], len(values) - 1, out=firsts[1:], casting="same_kind")
            self._firsts = firsts

    def __len__(self) -> int:
        return len(self._values)

    def find(self, numbers: Numbers) -> tuple[Numbers, Known]:
        """Return the place of each number, if it is there, and whether it is.

        Numbers are from 0 to the size - 1, and there is something to find them in.
        """
        if self._firsts is None:
            places = self._searched(numbers)
            return places, self._values[places] == numbers
        places = self._firsts[numbers >> self._shift]
        values = self._values[places]
        smaller = np.flatnonzero(values < numbers)
        for _ in range(1, self._bucket_max):
            places[smaller] = nearer = np.minimum(places[smaller] + 1, len(self) - 1)
            values[smaller] = reached = self._values[nearer]
            smaller = smaller[reached < numbers[smaller]]
        return places, values == numbers

    def _searched(self, numbers: Numbers) -> Numbers:
        # In order, because then a search finds near the last one what it needs of the values.
        ascending, order = _in_order(numbers, self._size)
        places: Numbers = np.empty(len(numbers), np.int64)
        places[order] = np.searchsorted(self._values, ascending)
        return np.minimum(places, len(self) - 1)


class _Digit(Protocol):
    """The numbering of one column's values."""

    @property
    def size(self) -> int:
        """How many numbers there are, at least 1."""
        ...

    def numbers(self, column: Column) -> Digits:
        """Return the number of each value, and whether the source has or may have it."""
        ...


class _Spread:
    """Integers by their distance from the least one; NULL, if it counts, comes first."""

    def __init__(self, least: int, greatest: int, *, keeps_null: bool) -> None:
        self._least, self._greatest, self._keeps_null = least, greatest, keeps_null
        self.size = greatest - least + 2

    def own_numbers(self, values: Numbers, valid: Known | None) -> Digits:
        """Number the values that the least and the greatest one are of."""
        numbers = values - self._least
        numbers += 1
        if valid is None or not self._keeps_null:
            return numbers, valid
        return np.where(valid, numbers, 0), None

    def numbers(self, column: Column) -> Digits:
        values, valid = whole_numbers(column)
        known = (values >= self._least) & (values <= self._greatest)
        numbers = values - self._least  # what overflows is not known
        numbers += 1
        if valid is not None:
            known &= valid
            if self._keeps_null:
                numbers = np.where(valid, numbers, 0)
                known |= ~valid
        return numbers, known


class _Listed:
    """Values by their place among those of the source, which are held once."""

    def __init__(self, values: pa.Array) -> None:
        self._values = values
        self.size = max(1, len(values))

    @classmethod
    def of(cls, column: Column, *, keeps_null: bool) -> tuple[_Listed, Digits]:
        """Number the values of a column as they come."""
        encoded = column.dictionary_encode(null_encoding="encode" if keeps_null else "mask")
        chunks = encoded.chunks if isinstance(encoded, pa.ChunkedArray) else [encoded]
        if not chunks:
            return cls(pa.array([], column.type)), (np.empty(0, np.int64), None)
        places = pa.chunked_array([chunk.indices for chunk in chunks])
        return cls(chunks[-1].dictionary), _known_places(places)

    def numbers(self, column: Column) -> Digits:
        return _known_places(pc.index_in(column, value_set=self._values))


class _Filter:
    """Tells quickly that most numbers are no keys: a bit of each, spread over a table."""

    def __init__(self, keys: Numbers) -> None:
        bits = max(1, len(keys)).bit_length() + _FILTER_BITS
        self._shift = np.uint64(64 - bits)
        self._held = np.zeros(1 << bits, np.bool_)
        self._held[self._spread(keys)] = True

    def may_hold(self, numbers: Numbers) -> Known:
        held: Known = self._held[self._spread(numbers)]
        return held

    def _spread(self, numbers: Numbers) -> npt.NDArray[np.uint64]:
        mixed = numbers.view(np.uint64) * np.uint64(_MIX)
        places: npt.NDArray[np.uint64] = mixed >> self._shift
        return places


def _digit_of(column: Column, *, keeps_null: bool, size_max: int) -> tuple[_Digit, Digits]:
    """Choose how the values of a column are numbered, and number them."""
    if is_numbered(column.type):
        values, valid = whole_numbers(column)
        held = values if valid is None else values[valid]
        if len(held):
            spread = _Spread(int(held.min()), int(held.max()), keeps_null=keeps_null)
            if spread.size <= size_max:
                return spread, spread.own_numbers(values, valid)
    return _Listed.of(column, keeps_null=keeps_null)


def _known_places(places: pa.Array | pa.ChunkedArray) -> Digits:
    """Return places as numbers, and which of them are not NULL."""
    if isinstance(places, pa.ChunkedArray):
        places = pa.concat_arrays(places.chunks) if places.num_chunks else pa.array([], pa.int32())
    if not places.null_count:
        return places.to_numpy(zero_copy_only=False).astype(np.int64), None
    known = places.is_valid().to_numpy(zero_copy_only=False)
    return places.fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64), known


def _appended(
    digit: _Digit, found: Digits, rows: Numbers | None, numbers: Numbers | None
) -> tuple[Numbers | None, Numbers]:
    """Append a digit that is known for all rows to the numbers of some; ``None``: of all rows, and
    no numbers so far.
    """
    digits, known = found
    if rows is not None:
        digits, known = digits[rows], None if known is None else known[rows]
    if known is not None and not known.all():
        kept = np.flatnonzero(known)
        rows = kept if rows is None else rows[kept]
        digits, numbers = digits[kept], None if numbers is None else numbers[kept]
    return rows, digits if numbers is None else _with_digits(digit, digits, numbers)


def _extended(
    digit: _Digit, column: Column, rows: Numbers, numbers: Numbers
) -> tuple[Numbers, Numbers]:
    """Append a digit to the numbers of some rows; rows whose value the source lacks go."""
    if len(rows) < len(column):
        column = column.take(pa.array(rows))
    digits, known = digit.numbers(column)
    if known is not None and not known.all():
        rows, numbers, digits = rows[known], numbers[known], digits[known]
    return rows, _with_digits(digit, digits, numbers)


def _with_digits(digit: _Digit, digits: Numbers, numbers: Numbers) -> Numbers:
    """Append digits to numbers, which are changed."""
    numbers = numbers.astype(np.int64, copy=False)
    numbers *= digit.size
    numbers += digits
    return numbers


def _in_order(numbers: Numbers, size: int) -> tuple[Numbers, Numbers]:
    """Return numbers from 0 to ``size`` - 1 ascending, and where each of them was."""
    bits = len(numbers).bit_length()
    if size > _PACKED_MAX >> bits:
        order = np.argsort(numbers)
        return numbers[order], order
    packed = numbers << np.int64(bits)
    packed |= np.arange(len(numbers))
    packed.sort()
    order = packed & np.int64((1 << bits) - 1)
    packed >>= np.int64(bits)
    return packed, order


def run_starts(ascending: Numbers) -> Numbers:
    """Return where in ascending integers each value is for the first time."""
    first: Known = np.ones(len(ascending), np.bool_)
    np.not_equal(ascending[1:], ascending[:-1], out=first[1:])
    return np.flatnonzero(first)


def is_numbered(kind: pa.DataType) -> bool:
    """Tell whether values of a type are whole numbers of 64 bits, in their order."""
    if pa.types.is_decimal128(kind):
        return int(kind.precision) <= _SHORT_DIGITS
    return bool(pa.types.is_integer(kind) or pa.types.is_date(kind) or pa.types.is_timestamp(kind))


def whole_numbers(column: Column) -> tuple[Numbers, Known | None]:
    """Return integers, dates as days, timestamps as what they count, short decimals without their
    point; and which are not NULL (``None``: all).
    """
    if pa.types.is_decimal(column.type):
        return _of_decimals(column)
    if pa.types.is_date(column.type):
        column = column.cast(pa.int32())
    elif pa.types.is_timestamp(column.type):
        column = column.cast(pa.int64())
    if column.null_count == 0:
        return column.cast(pa.int64()).to_numpy(zero_copy_only=False), None
    valid = column.is_valid().to_numpy(zero_copy_only=False)
    return column.fill_null(0).cast(pa.int64()).to_numpy(zero_copy_only=False), valid


def _of_decimals(column: Column) -> tuple[Numbers, Known | None]:
    """Return the lower half of each decimal, which is all of a short one."""
    parts = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    halves = [
        np.frombuffer(part.buffers()[1], "<i8")[2 * part.offset : 2 * (part.offset + len(part)) : 2]
        for part in (part.fill_null(0) for part in parts)
        if len(part)
    ]
    numbers = np.concatenate(halves) if halves else np.empty(0, np.int64)
    if column.null_count == 0:
        return numbers, None
    return numbers, column.is_valid().to_numpy(zero_copy_only=False)
