"""Row positions of one file as the 64-bit words that hold a set bit.

The same shape travels everywhere: Spark aggregates positions to words, filters rows by
words, and workers expand words to a mask. A word costs 16 bytes however many of its
64 rows are set, so a sparse set costs little and a dense one two bits a row; plain bitmaps
of fixed size cost 4 KiB for a single row of a big file.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Words = npt.NDArray[np.int64]
Bits = npt.NDArray[np.uint64]

ROWS_PER_WORD = 64
_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)
_EXPANDED_WORDS = 1 << 16
"""How many words are unpacked at a time: 4 MiB."""


@dataclass(frozen=True, slots=True, eq=False)
class RowBitmap:
    """A set of row indices >= 0; row ``r`` is bit ``r % 64`` of word ``r // 64``.

    ``words`` ascends without repetition and no element of ``bits`` is 0.

    >>> rows = RowBitmap.of_rows(np.array([3, 64, 3]))
    >>> len(rows), rows.rows().tolist(), rows.last
    (2, [3, 64], 64)
    """

    words: Words
    bits: Bits

    @classmethod
    def empty(cls) -> RowBitmap:
        """Return the set without a row."""
        return cls(np.empty(0, np.int64), np.empty(0, np.uint64))

    @classmethod
    def of_rows(cls, rows: npt.NDArray[np.integer]) -> RowBitmap:
        """Build from row indices in any order; repetitions count once."""
        index = rows.astype(np.int64)
        bits = np.left_shift(np.uint64(1), (index & 63).astype(np.uint64))
        return cls.of_words(index >> 6, bits)

    @classmethod
    def of_words(cls, words: Words, bits: Bits) -> RowBitmap:
        """Build from words in any order; bits of a repeated word are united."""
        present = bits != 0
        words, bits = words[present], bits[present]
        if len(words) == 0:
            return cls.empty()
        if np.any(words[1:] <= words[:-1]):
            order = np.argsort(words, kind="stable")
            words, bits = words[order], bits[order]
            starts = np.flatnonzero(np.concatenate([[True], words[1:] != words[:-1]]))
            words, bits = words[starts], np.bitwise_or.reduceat(bits, starts)
        return cls(words, bits)

    def __len__(self) -> int:
        """How many rows the set has."""
        return int(popcount(self.bits).sum())

    def packed(self) -> tuple[bytes, bytes]:
        """Return words and bits as little-endian bytes, in which form workers get rows."""
        return self.words.astype("<i8").tobytes(), self.bits.astype("<u8").tobytes()

    def around(self, start: int, stop: int) -> RowBitmap:
        """Return its words that have a row from ``start`` on and below ``stop``; not a copy."""
        low, high = np.searchsorted(self.words, [start >> 6, ((stop - 1) >> 6) + 1])
        return RowBitmap(self.words[low:high], self.bits[low:high])

    def count(self, start: int, stop: int) -> int:
        """How many rows it has from ``start`` on and below ``stop``.

        >>> RowBitmap.of_rows(np.array([3, 64, 200])).count(3, 200)
        2
        """
        near = self.around(start, stop)
        words, bits = near.words, near.bits.copy()
        if len(words) and words[0] == start >> 6:
            bits[0] &= _ALL << np.uint64(start & 63)
        if len(words) and words[-1] == stop >> 6:
            bits[-1] &= ~(_ALL << np.uint64(stop & 63))
        return int(popcount(bits).sum())

    def __or__(self, other: RowBitmap) -> RowBitmap:
        """The rows of either."""
        return RowBitmap.of_words(
            np.concatenate([self.words, other.words]), np.concatenate([self.bits, other.bits])
        )

    def __sub__(self, other: RowBitmap) -> RowBitmap:
        """The rows of this set that the other lacks."""
        _, mine, others = np.intersect1d(
            self.words, other.words, assume_unique=True, return_indices=True
        )
        bits = self.bits.copy()
        bits[mine] &= ~other.bits[others]
        return RowBitmap.of_words(self.words, bits)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, RowBitmap)
            and np.array_equal(self.words, other.words)
            and np.array_equal(self.bits, other.bits)
        )

    __hash__ = None  # type: ignore[assignment]

    @property
    def last(self) -> int | None:
        """The greatest row index; ``None`` if there is no row."""
        if len(self.words) == 0:
            return None
        return int(self.words[-1]) * ROWS_PER_WORD + int(self.bits[-1]).bit_length() - 1

    def rows(self) -> npt.NDArray[np.int64]:
        """Return the row indices, ascending: 8 bytes each, so for tests and small sets."""
        parts = [np.empty(0, np.int64)]
        for start in range(0, len(self.words), _EXPANDED_WORDS):
            words = self.words[start : start + _EXPANDED_WORDS]
            bits = self.bits[start : start + _EXPANDED_WORDS].astype("<u8")
            flags = np.unpackbits(bits.view(np.uint8), bitorder="little").reshape(-1, 64)
            at, bit = np.nonzero(flags)
            parts.append(words[at] * ROWS_PER_WORD + bit)
        return np.concatenate(parts)


def count_rows(sets: Iterable[RowBitmap]) -> int:
    """Return the sum of the sizes of sets; a row of several sets counts once for each."""
    every = [np.empty(0, np.uint64), *(rows.bits for rows in sets)]
    return int(popcount(np.concatenate(every)).sum(dtype=np.int64))


def popcount(bits: Bits) -> npt.NDArray[np.uint8]:
    """Count the set bits of every element."""
    if hasattr(np, "bitwise_count"):  # numpy 2
        counted: npt.NDArray[np.uint8] = np.bitwise_count(bits)
        return counted
    flags = np.unpackbits(bits.astype("<u8").view(np.uint8)).reshape(-1, 64)
    summed: npt.NDArray[np.uint8] = flags.sum(axis=1, dtype=np.uint8)
    return summed
