"""The arithmetic of curves, without Spark."""

from __future__ import annotations

import itertools

import numpy as np
import pyarrow as pa
import pytest

from puredelta.spark.write.zorder_curves import NOISE_BITS, HilbertCurve, ZOrderCurve, cuts


@pytest.mark.parametrize("columns", [1, 2, 3, 7, 40, 55, 80])
def test_places_fit_a_long(columns: int) -> None:
    curve = ZOrderCurve(num_columns=columns, ranges_max=1000)
    assert len(curve.interleaved()) + NOISE_BITS <= 63
    assert 2 <= curve.num_ranges <= 1000


def test_bounds_divide_into_equal_ranges() -> None:
    curve = ZOrderCurve(num_columns=1, ranges_max=4)
    assert curve.bounds(pa.array([7, 0, 3, 1, None, 2, 5, 4, 6])).to_pylist() == [2, 4, 6]
    assert curve.bounds(pa.array([None, None], pa.int64())).to_pylist() == []


def test_few_values_use_the_whole_width() -> None:
    """So that a column of two values counts as much as one of a thousand."""
    curve = ZOrderCurve(num_columns=1, ranges_max=4)
    values = pa.array(["a", "b", "b", "a"])
    places = curve.places([values], [curve.bounds(values)], np.zeros(4, np.int64))
    assert (places >> NOISE_BITS).tolist() == [1, 3, 3, 1]


def test_curve_visits_quadrant_after_quadrant() -> None:
    x, y = pa.array([n // 4 for n in range(16)]), pa.array([n % 4 for n in range(16)])
    curve = ZOrderCurve(num_columns=2, ranges_max=4)
    bounds = [pa.array([1, 2, 3])] * 2
    places = curve.places([x, y], bounds, np.zeros(16, np.int64)) >> NOISE_BITS
    by_place = dict(zip(zip(x.to_pylist(), y.to_pylist(), strict=True), places, strict=True))
    quadrants = [
        max(by_place[x + i, y + j] for i in (0, 1) for j in (0, 1)) for x in (0, 2) for y in (0, 2)
    ]
    assert quadrants == [3, 7, 11, 15]


def test_cuts_make_equal_sections() -> None:
    places = np.array([5, 1, 4, 2, 3, 0], np.int64)
    assert cuts(places, 3).tolist() == [2, 4]
    assert cuts(places, 1).tolist() == []
    assert cuts(np.zeros(0, np.int64), 3).tolist() == []


@pytest.mark.parametrize(("columns", "bits"), [(1, 4), (2, 1), (2, 5), (3, 3), (4, 2), (4, 3)])
def test_hilberts_curve_goes_from_neighbour_to_neighbour(columns: int, bits: int) -> None:
    curve = HilbertCurve(num_columns=columns, ranges_max=1 << bits)
    cells = np.array(list(itertools.product(range(1 << bits), repeat=columns))).T
    places = curve.combined(list(cells))
    assert sorted(places.tolist()) == list(range(1 << bits * columns))
    walk = cells[:, np.argsort(places)]
    steps = np.abs(np.diff(walk, axis=1)).sum(axis=0)
    assert set(steps.tolist()) == {1}


def test_sections_end_with_cells() -> None:
    """A cut moves to the border of a cell if that is near, and by a tenth of a section at most."""
    places = np.arange(1000, dtype=np.int64) + 24
    assert cuts(places, 2).tolist() == [512]
    for number, cut in enumerate(cuts(places, 8).tolist(), 1):
        assert abs(cut - 24 - number * 125) <= 13
