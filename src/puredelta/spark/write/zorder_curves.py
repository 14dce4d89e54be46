"""Z-order and Hilbert curves through several columns, and rows in their order.

A column's values fall into ranges that hold about the same number of rows each. The numbers of a
row's ranges, combined, are the row's place on the curve. The bounds of the ranges come from a
sample of the rows that is small enough for the driver. `range_number` and `Curve.combined_sql` say
in Spark SQL what `Curve.places` does to a sample in numpy.

The place of a row is built bit by bit: the next bit of each column's range is one cell of a
hypercube, and the state of the walk says in which order the cells of that cube are visited
(C. Hamilton, "Compact Hilbert Indices", Dalhousie University CS-2006-07, 2006). The walk has at
most ``num_columns * 2 ** num_columns`` states, so numpy and Spark SQL both look them up in a table.

The place of each row is computed by Spark SQL alone.
"""

from __future__ import annotations

import abc
import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from puredelta.protocol.schema.types import (
    DATE,
    DOUBLE,
    FLOAT,
    INTEGRAL,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    DataType,
    DecimalType,
)
from puredelta.spark.session.names import BIN, CURVE_PLACE, FILE_ORDINAL, PREFIX, ROW_INDEX
from puredelta.spark.session.session import arrow_rows
from puredelta.spark.session.types import quoted

NOISE_BITS = 8
"""The last bits of a place, which spread rows of equal values over several files."""
_SLACK = 0.1
"""By which share of its rows a section may differ."""
BITS_MAX = 63 - NOISE_BITS
"""Columns beyond so many have no bit left and do not count."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve(abc.ABC):
    """The number of columns of a curve, and its resolution."""

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
            f"get({_literal(walk.ordinals)}, {at}), 'state', get({_literal(walk.states)}, {at}))"
        )
        shifts = ", ".join(map(str, reversed(range(self.bits))))
        start = "named_struct('place', 0L, 'state', 0)"
        return (
            f"aggregate(array({shifts}), {start}, ({walked}, {shift}) -> {step}, "
            f"{walked} -> {walked}.place)"
        )


def _literal(values: npt.NDArray[np.int64]) -> str:
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


SECTION = f"{PREFIX}section"
SAMPLE_ROWS_MAX = 200_000
"""About so many rows come to the driver."""
RANGES_MAX = 1024
"""Of each column. A power of two, so that cells of one size hold equally many rows."""
BOUNDS_MAX = 2_000_000
"""So many bounds, of all bins and columns, go to the executors at most."""

_SEED = 20
_TEXT_LENGTH = 64
"""Of the bounds of text."""
_BOUNDS = f"{PREFIX}bounds_"
_NUMBER = f"{PREFIX}range_"
_CUTS = f"{PREFIX}cuts"
_NOISE = f"pmod(hash({FILE_ORDINAL}, {ROW_INDEX}), {1 << NOISE_BITS})"


@dataclass(frozen=True, slots=True, kw_only=True)
class CurveOrder:
    """By which columns rows are ordered."""

    columns: tuple[tuple[tuple[str, ...], DataType], ...]
    """Logical paths, with types."""
    curve: type[Curve]
    sampled_share: float
    """Which part of all rows is about `SAMPLE_ROWS_MAX`."""

    @property
    def column_names(self) -> tuple[str, ...]:
        """The top-level columns that are read."""
        return tuple(dict.fromkeys(path[0] for path, _ in self.columns))

    @property
    def keys(self) -> list[str]:
        """SQL of numbers or text that are ordered as the columns are."""
        return [_sort_key(".".join(map(quoted, path)), kind) for path, kind in self.columns]


def placed_rows(
    spark: SparkSession,
    rows: DataFrame,
    order: CurveOrder,
    positions: DataFrame,
    num_ranges: Sequence[int],
) -> DataFrame:
    """Add `CURVE_PLACE` and `SECTION` to rows that have their position and `BIN`.

    ``positions`` are the same rows with fewer columns; one Spark job reads a sample of them.
    ``num_ranges`` of each bin are about equally large.
    """
    allowed = BOUNDS_MAX // (len(num_ranges) * len(order.columns))
    curve = order.curve(num_columns=len(order.columns), ranges_max=max(2, min(RANGES_MAX, allowed)))
    names = [f"k{n}" for n in range(curve.num_columns)]
    keys = [f"{key} AS {name}" for key, name in zip(order.keys, names, strict=True)]
    chosen = positions.where(F.rand(_SEED) < order.sampled_share)
    sample = chosen.selectExpr(BIN, f"cast({_NOISE} AS BIGINT) AS noise", *keys).toArrow()
    ranges = F.broadcast(arrow_rows(spark, curve_table(curve, sample, names, num_ranges)))
    joined = rows.join(ranges, on=BIN, how="left")
    return _placed(joined, curve, order.keys, max(num_ranges))


def curve_table(
    curve: Curve, sample: pa.Table, names: Sequence[str], num_ranges: Sequence[int]
) -> pa.Table:
    """Return one row per bin: the bounds of each column's ranges, and where sections are cut."""
    bounds: list[list[list[object]]] = [[] for _ in names]
    sections: list[list[int]] = []
    for number, count in enumerate(num_ranges):
        rows = sample.filter(pc.equal(sample[BIN], number)).combine_chunks()
        columns = [_readable(_array(rows[name])) for name in names]
        between = [curve.bounds(column) for column in columns]
        for known, found in zip(bounds, between, strict=True):
            known.append(found.to_pylist())
        noise = _array(rows["noise"]).to_numpy(zero_copy_only=False)
        sections.append(cuts(curve.places(columns, between, noise), count).tolist())
    return pa.table(
        {
            BIN: pa.array(range(len(num_ranges)), pa.int32()),
            **{
                f"{_BOUNDS}{n}": pa.array(found, pa.list_(sample.schema.field(name).type))
                for n, (name, found) in enumerate(zip(names, bounds, strict=True))
            },
            _CUTS: pa.array(sections, pa.list_(pa.int64())),
        }
    )


def _readable(values: pa.Array) -> pa.Array:
    """Return texts that Python can hold: Spark's may be any bytes. Bounds need not be exact."""
    if not pa.types.is_string(values.type):
        return values
    try:
        values.validate(full=True)
    except pa.ArrowInvalid:
        texts = (value.as_py() for value in values.view(pa.binary()))
        return pa.array([t if t is None else t.decode(errors="replace") for t in texts], "string")
    return values


def _placed(rows: DataFrame, curve: Curve, keys: Sequence[str], sections_max: int) -> DataFrame:
    kept = [quoted(name) for name in rows.columns if not name.startswith((_BOUNDS, _CUTS))]
    numbers = [f"{_NUMBER}{n}" for n in range(len(keys))]
    numbered = rows.selectExpr(
        *kept,
        _CUTS,
        *(
            f"{range_number(key, f'{_BOUNDS}{n}', curve.num_ranges - 1)} AS {name}"
            for n, (key, name) in enumerate(zip(keys, numbers, strict=True))
        ),
    )
    on_curve = numbered.selectExpr(*kept, _CUTS, f"{curve.combined_sql(numbers)} AS {CURVE_PLACE}")
    section = range_number(with_noise(CURVE_PLACE, _NOISE), _CUTS, sections_max - 1)
    return on_curve.selectExpr(*kept, CURVE_PLACE, f"{section} AS {SECTION}")


def _array(column: pa.ChunkedArray) -> pa.Array:
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)


def _sort_key(column: str, kind: DataType) -> str:
    """Return SQL of a bigint, double or string that is ordered as the column, more or less."""
    if kind in INTEGRAL:
        return f"cast({column} AS BIGINT)"
    if kind in (FLOAT, DOUBLE) or isinstance(kind, DecimalType):
        return f"cast({column} AS DOUBLE)"
    if kind == DATE:
        return f"cast(unix_date({column}) AS BIGINT)"
    if kind in (TIMESTAMP, TIMESTAMP_NTZ):
        return f"unix_micros(cast({column} AS TIMESTAMP))"
    if kind == STRING:
        return f"substring({column}, 1, {_TEXT_LENGTH})"
    return f"substring(cast({column} AS STRING), 1, {_TEXT_LENGTH})"
