"""Curves through the ranges of several columns: pure arithmetic, no Spark session.

A column's values fall into ranges that hold about the same number of rows each. The numbers of a
row's ranges, combined, are the row's place on the curve. The bounds of the ranges come from a
sample of the rows. `range_number` and `Curve.combined_sql` say in Spark SQL what `Curve.places`
does to a sample in numpy.
"""

from __future__ import annotations

import abc
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from puredelta.spark.session.helper_columns import PREFIX

NOISE_BITS = 8
"""The last bits of a place, which spread rows of equal values over several files."""
_SLACK = 0.1
"""By which share of its rows a section may differ."""
BITS_MAX = 63 - NOISE_BITS
"""Columns beyond so many have no bit left and do not count."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve(abc.ABC):
    """How many columns a curve runs through, and how finely."""

    num_columns: int
    ranges_max: int

    @property
    def bits(self) -> int:
        """Of a range's number."""
        return max(1, min((self.ranges_max - 1).bit_length(), BITS_MAX // self.num_columns))

    @property
    def num_ranges(self) -> int:
        """Of each column; NULL lies in the first."""
        return min(self.ranges_max, 1 << self.bits)

    def bounds(self, values: pa.Array) -> pa.Array:
        """Return what lies between the ranges of a sample, one less than there are ranges.

        A value that is frequent stands there several times, so that few values use the whole
        width of a range's number.
        """
        known = values.drop_null()
        ordered = known.take(pc.array_sort_indices(known))
        count, ranges = len(ordered), self.num_ranges
        if count == 0:
            return ordered
        return ordered.take(pa.array(np.arange(1, ranges) * count // ranges))

    def places(
        self, columns: Sequence[pa.Array], bounds: Sequence[pa.Array], noise: npt.NDArray[np.int64]
    ) -> npt.NDArray[np.int64]:
        """Return the places of sampled rows on the curve."""
        numbers = [_range_numbers(c, b) for c, b in zip(columns, bounds, strict=True)]
        return self.combined(numbers) << NOISE_BITS | noise

    @abc.abstractmethod
    def combined(self, numbers: Sequence[npt.NDArray[np.int64]]) -> npt.NDArray[np.int64]:
        """Return the places, without noise, of rows whose columns are in these ranges."""

    @abc.abstractmethod
    def combined_sql(self, numbers: Sequence[str]) -> str:
        """Return the SQL of a row's place, without noise, from the numbers of its ranges."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ZOrderCurve(Curve):
    """Numbers interleaved bit by bit.

    >>> ZOrderCurve(num_columns=2, ranges_max=3).combined_sql(["a", "b"])[:50]
    'shiftleft(cast(shiftright(a, 1) & 1 AS BIGINT), 3)'
    """

    def combined(self, numbers: Sequence[npt.NDArray[np.int64]]) -> npt.NDArray[np.int64]:
        """Return the places, without noise, of rows whose columns are in these ranges."""
        place = np.zeros(len(numbers[0]), np.int64)
        for number, shift in self.interleaved():
            place = place << 1 | (numbers[number] >> shift & 1)
        return place

    def combined_sql(self, numbers: Sequence[str]) -> str:
        """Return the SQL of a row's place, without noise, from the numbers of its ranges."""
        bits = self.interleaved()
        return " | ".join(
            f"shiftleft(cast(shiftright({numbers[column]}, {shift}) & 1 AS BIGINT), {left})"
            for left, (column, shift) in zip(reversed(range(len(bits))), bits, strict=True)
        )

    def interleaved(self) -> list[tuple[int, int]]:
        """Return column and bit of a range's number, from the first bit of a place to its last."""
        counting = range(min(self.num_columns, BITS_MAX))
        return [(column, shift) for shift in reversed(range(self.bits)) for column in counting]


def cuts(places: npt.NDArray[np.int64], num_ranges: int) -> npt.NDArray[np.int64]:
    """Return the places at which a curve is cut into sections of about equally many rows.

    Each cut moves by up to a tenth of a section, to the border of the largest cell of the curve
    that begins there: a section that ends a little beyond a cell would cover two.
    """
    num_rows = len(places)
    if num_rows == 0:
        return np.zeros(0, np.int64)
    ordered = np.sort(places)
    chosen = np.arange(1, num_ranges) * num_rows // num_ranges
    slack = int(num_rows // num_ranges * _SLACK)
    before = ordered[np.maximum(chosen - slack - 1, 0)]
    after = ordered[np.minimum(chosen + slack, num_rows - 1)]
    found = map(_roundest, before.tolist(), after.tolist())
    return np.fromiter(found, np.int64, len(chosen))


def _roundest(low: int, high: int) -> int:
    """Return the number above ``low``, up to ``high``, that ends with the most zero bits.

    >>> _roundest(0b10011, 0b11010), _roundest(5, 5)
    (24, 5)
    """
    shift = max(0, (low ^ high).bit_length() - 1)
    return high >> shift << shift


def _range_numbers(values: pa.Array, bounds: pa.Array) -> npt.NDArray[np.int64]:
    known = values.is_valid().to_numpy(zero_copy_only=False)
    found = np.searchsorted(_numpy(bounds), _numpy(values.drop_null()), side="right")
    numbers = np.zeros(len(values), np.int64)
    numbers[known] = found
    return numbers


def _numpy(values: pa.Array) -> npt.NDArray[Any]:
    found: npt.NDArray[Any] = values.to_numpy(zero_copy_only=False)
    return found


# --- the same in Spark SQL ------------------------------------------------------------------


def range_number(value: str, bounds: str, num_bounds: int) -> str:
    """Return the SQL of a value's range: the number of bounds up to it, 0 for NULL.

    A bisection: where a step leads past the end, or the value is NULL, the condition is NULL.

    >>> range_number("v", "b", 3).replace(PREFIX, "")
    'aggregate(array(2, 1), 0, (n, step) -> if(get(b, n + step - 1) <= v, n + step, n))'
    """
    if num_bounds == 0:
        return "0"
    steps = ", ".join(str(1 << bit) for bit in reversed(range(num_bounds.bit_length())))
    # A variable hides a column of its name.
    n, step = f"{PREFIX}n", f"{PREFIX}step"
    found = f"if(get({bounds}, {n} + {step} - 1) <= {value}, {n} + {step}, {n})"
    return f"aggregate(array({steps}), 0, ({n}, {step}) -> {found})"


def with_noise(place: str, noise: str) -> str:
    """Return the SQL of a place whose last bits are noise."""
    return f"shiftleft({place}, {NOISE_BITS}) | {noise}"
