"""The ranges of a statement's source by the values that they hold, inside a Spark worker.

The bounds of all ranges, in ascending order, cut the values into segments: all values of a segment
are in the same ranges. So a lookup is one search in sorted bounds, and a segment plays the part
that a key plays in `puredelta.worker.lookup.key_index`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from puredelta.worker.lookup.key_index import Column, Numbers, whole_numbers
from puredelta.worker.read_rows import OnlySparkError, require_one_calendar

_LEAST, _GREATEST = -(1 << 63), (1 << 63) - 1
_COVERS_PER_ROW = 4
COVERS_MIN = 1 << 20
"""So many parts of ranges are held in any case."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyRange:
    """A column of the target that must be between columns of the source."""

    target: str
    low: str | None
    """``None``: there is no lower bound."""
    high: str | None
    low_open: bool = False
    """Whether the bound itself is outside of the range."""
    high_open: bool = False

    @property
    def sources(self) -> tuple[str, ...]:
        """The columns of the source, the lower bound first."""
        return tuple(name for name in (self.low, self.high) if name is not None)


def covers_max(num_rows: int) -> int:
    """Return how many parts of ranges a task holds for so many rows of a source."""
    return COVERS_MIN + _COVERS_PER_ROW * num_rows


class RangeIndex:
    """The rows of the source by segment. Segments are numbered from 0, in ascending order.

    Source rows with a NULL bound, or whose range is empty, match nothing.
    """

    lookup_costs_all = False

    def __init__(self, within: KeyRange, columns: Sequence[Column]) -> None:
        """Take the bounds, as ``within`` names them, as whole numbers, dates or timestamps.

        Raises:
            OnlySparkError: ranges overlap so much that they have too many parts.
        """
        lows, highs, rows = _closed(within, columns)
        starts = np.unique(np.concatenate([lows, highs[highs < _GREATEST] + 1]))
        firsts = np.searchsorted(starts, lows)
        held = np.searchsorted(starts, highs, "right") - firsts
        num_rows = len(columns[0])
        if (total := int(held.sum())) > covers_max(num_rows):
            raise OnlySparkError(f"{num_rows} ranges of the source overlap in {total} parts")
        self._starts = starts
        self._lows, self._highs = np.sort(lows), np.sort(highs)
        within_range = np.arange(total) - np.repeat(np.cumsum(held) - held, held)
        segments = np.repeat(firsts, held) + within_range
        order = np.argsort(segments, kind="stable")
        self.rows: Numbers = np.repeat(rows, held)[order]
        """Source rows, segment after segment; a row is in every segment of its range."""
        self.counts: Numbers = np.bincount(segments, minlength=len(starts))
        """How many rows each segment has."""
        self._offsets: Numbers = np.cumsum(self.counts) - self.counts

    def __len__(self) -> int:
        """How many segments there are."""
        return len(self._starts)

    def lookup(self, columns: Sequence[Column]) -> tuple[Numbers, Numbers]:
        """Return the rows that are in a range, ascending, and the number of each one's segment.

        Raises:
            OnlySparkError: a date or timestamp is of a time in which calendars differ.
        """
        (column,) = columns
        _require_one_calendar(column)
        if not len(self):
            return np.empty(0, np.int64), np.empty(0, np.int64)
        values, valid = whole_numbers(column)
        segments = np.searchsorted(self._starts, values, "right") - 1
        known = segments >= 0
        known &= self.counts[segments] > 0
        if valid is not None:
            known &= valid
        rows = np.flatnonzero(known)
        return rows, segments[rows]

    def source_rows(self, segments: Numbers) -> tuple[Numbers, Numbers]:
        """Return every pair of (position in ``segments``, source row)."""
        counts = self.counts[segments]
        positions = np.repeat(np.arange(len(segments)), counts)
        offsets = np.arange(len(positions)) - np.repeat(np.cumsum(counts) - counts, counts)
        return positions, self.rows[np.repeat(self._offsets[segments], counts) + offsets]

    def might_meet(self, lows: Numbers, highs: Numbers) -> npt.NDArray[np.bool_]:
        """Return for each pair of bounds whether a range holds a value between them."""
        begun = np.searchsorted(self._lows, highs, "right")
        return begun > np.searchsorted(self._highs, lows, "left")


def _closed(within: KeyRange, columns: Sequence[Column]) -> tuple[Numbers, Numbers, Numbers]:
    """Return the least and the greatest value of each range that has one, and its source row."""
    num_rows = len(columns[0])
    lows: Numbers = np.full(num_rows, _LEAST, np.int64)
    highs: Numbers = np.full(num_rows, _GREATEST, np.int64)
    kept = np.ones(num_rows, np.bool_)
    left = list(columns)
    if within.low is not None:
        values, valid = whole_numbers(left.pop(0))
        lows = values + 1 if within.low_open else values
        kept &= _usable(values, valid, _GREATEST if within.low_open else None)
    if within.high is not None:
        values, valid = whole_numbers(left.pop(0))
        highs = values - 1 if within.high_open else values
        kept &= _usable(values, valid, _LEAST if within.high_open else None)
    rows = np.flatnonzero(kept & (lows <= highs))
    return lows[rows], highs[rows], rows


def _usable(
    values: Numbers, valid: npt.NDArray[np.bool_] | None, but: int | None
) -> npt.NDArray[np.bool_]:
    """Return which bounds are no NULL, and not the one number that has no neighbour."""
    kept = np.ones(len(values), np.bool_) if valid is None else valid.copy()
    return kept if but is None else kept & (values != but)


def _require_one_calendar(column: Column) -> None:
    for part in column.chunks if isinstance(column, pa.ChunkedArray) else [column]:
        require_one_calendar(part)
