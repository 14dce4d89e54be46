from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from puredelta.spark.session import row_bitmap
from puredelta.spark.session.row_bitmap import RowBitmap, count_rows, popcount

rows = st.lists(st.integers(0, 2**40) | st.integers(0, 300), max_size=50)


def bitmap(values: list[int]) -> RowBitmap:
    return RowBitmap.of_rows(np.array(values, np.int64))


@given(rows)
def test_rows_come_back_sorted_and_once(values: list[int]) -> None:
    made = bitmap(values)
    assert made.rows().tolist() == sorted(set(values))
    assert len(made) == len(set(values))
    assert made.last == max(values, default=None)
    assert made == bitmap(list(reversed(values)))


@given(rows, rows)
def test_union_is_the_union_of_sets(left: list[int], right: list[int]) -> None:
    assert (bitmap(left) | bitmap(right)).rows().tolist() == sorted({*left, *right})


@given(rows, st.integers(0, 400), st.integers(1, 400))
def test_rows_of_a_range_are_counted(values: list[int], start: int, length: int) -> None:
    expected = sum(start <= value < start + length for value in set(values))
    assert bitmap(values).count(start, start + length) == expected


@given(st.lists(rows, max_size=4))
def test_rows_of_several_sets_are_counted_for_each(sets: list[list[int]]) -> None:
    assert count_rows(map(bitmap, sets)) == sum(len(set(values)) for values in sets)


def test_words_of_no_bit_are_left_out() -> None:
    made = RowBitmap.of_words(np.array([5, 2]), np.array([0, 1], np.uint64))
    assert made == bitmap([128])
    assert RowBitmap.empty() == bitmap([])


def test_counting_without_numpy_2(monkeypatch: pytest.MonkeyPatch) -> None:
    bits = np.array([0, 1, 2**64 - 1, 5], np.uint64)
    monkeypatch.delattr(row_bitmap.np, "bitwise_count", raising=False)
    assert popcount(bits).tolist() == [0, 1, 64, 2]
    assert count_rows([]) == 0


@pytest.mark.parametrize("seed", range(5))
def test_a_difference_has_the_rows_of_one_that_the_other_lacks(seed: int) -> None:
    dice = np.random.default_rng(seed)
    one, other = (set(dice.integers(0, 400, 150).tolist()) for _ in range(2))
    left, right = (RowBitmap.of_rows(np.array(sorted(s), np.int64)) for s in (one, other))
    assert set((left - right).rows().tolist()) == one - other
    assert left - left == RowBitmap.empty()
    assert left - RowBitmap.empty() == left
