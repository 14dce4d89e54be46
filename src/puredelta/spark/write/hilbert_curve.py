"""The Hilbert curve: neighbours on it differ in one column, and there by one range only.

The place of a row is built bit by bit: the next bit of each column's range is one cell of a
hypercube, and the state of the walk says in which order the cells of that cube are visited
(C. Hamilton, "Compact Hilbert Indices", Dalhousie University CS-2006-07, 2006). The walk has at
most ``num_columns * 2 ** num_columns`` states, so numpy and Spark SQL both look them up in a table.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from puredelta.spark.session.helper_columns import PREFIX
from puredelta.spark.write.curves import Curve

_State: TypeAlias = tuple[int, int]
"""The cell by which the cube is entered, and the column along which it is left."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Walk:
    """For each state and each cell: which number the cell has, and the state inside of it."""

    ordinals: npt.NDArray[np.int64]
    """By ``state << num_columns | cell``."""
    states: npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class HilbertCurve(Curve):
    """A curve through a few columns, the clustering columns of a table."""

    def combined(self, numbers: Sequence[npt.NDArray[np.int64]]) -> npt.NDArray[np.int64]:
        """Return the places, without noise, of rows whose columns are in these ranges."""
        walk = _walk(self.num_columns)
        place = np.zeros(len(numbers[0]), np.int64)
        state = np.zeros(len(numbers[0]), np.int64)
        for shift in reversed(range(self.bits)):
            at = state
            for number in numbers:
                at = at << 1 | (number >> shift & 1)
            place = place << self.num_columns | walk.ordinals[at]
            state = walk.states[at]
        return place

    def combined_sql(self, numbers: Sequence[str]) -> str:
        """Return the SQL of a row's place, without noise, from the numbers of its ranges."""
        walk = _walk(self.num_columns)
        walked, shift = f"{PREFIX}walked", f"{PREFIX}shift"
        at = f"{walked}.state"
        for number in numbers:
            at = f"shiftleft({at}, 1) | (shiftright({number}, {shift}) & 1)"
        step = (
            f"named_struct('place', shiftleft({walked}.place, {self.num_columns}) | "
            f"get({_array(walk.ordinals)}, {at}), 'state', get({_array(walk.states)}, {at}))"
        )
        shifts = ", ".join(map(str, reversed(range(self.bits))))
        start = "named_struct('place', 0L, 'state', 0)"
        return (
            f"aggregate(array({shifts}), {start}, ({walked}, {shift}) -> {step}, "
            f"{walked} -> {walked}.place)"
        )


def _array(values: npt.NDArray[np.int64]) -> str:
    return f"array({', '.join(map(str, values.tolist()))})"


@functools.cache
def _walk(num_columns: int) -> _Walk:
    """Number the states that the walk comes to, from the one in which it begins."""
    numbered: dict[_State, int] = {(0, 0): 0}
    found = [(0, 0)]
    ordinals: list[int] = []
    states: list[int] = []
    for state in found:  # grows meanwhile
        for cell in range(1 << num_columns):
            ordinal, inside = _step(state, cell, num_columns)
            if inside not in numbered:
                numbered[inside] = len(found)
                found.append(inside)
            ordinals.append(ordinal)
            states.append(numbered[inside])
    return _Walk(ordinals=np.array(ordinals, np.int64), states=np.array(states, np.int64))


def _step(state: _State, cell: int, num_columns: int) -> tuple[int, _State]:
    """Return the number of a cell in the order of a state, and the state inside of the cell."""
    entry, direction = state
    ordinal = _ungrayed(_rotated(cell ^ entry, -(direction + 1), num_columns))
    turned = _rotated(_entry(ordinal), direction + 1, num_columns)
    return ordinal, (
        entry ^ turned,
        (direction + _direction(ordinal, num_columns) + 1) % num_columns,
    )


def _entry(ordinal: int) -> int:
    """Return the cell by which the walk enters the n-th cell of a cube."""
    return 0 if ordinal == 0 else _grayed((ordinal - 1) // 2 * 2)


def _direction(ordinal: int, num_columns: int) -> int:
    """Return the column along which the walk goes through the n-th cell of a cube."""
    if ordinal == 0:
        return 0
    after = ordinal if ordinal % 2 else ordinal - 1
    return _trailing_ones(after) % num_columns


def _grayed(number: int) -> int:
    return number ^ number >> 1


def _ungrayed(code: int) -> int:
    number = code
    while code := code >> 1:
        number ^= code
    return number


def _trailing_ones(number: int) -> int:
    return (~number & number + 1).bit_length() - 1


def _rotated(bits: int, left: int, width: int) -> int:
    left %= width
    return (bits << left | bits >> (width - left)) & (1 << width) - 1
