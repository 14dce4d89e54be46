"""Keys by number: every row of the source is found under its key, and nothing else is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from puredelta.worker.lookup.key_index import KeyIndex

Key: TypeAlias = tuple[int | str | None, ...]

ANY = st.integers(-(2**63), 2**63 - 1)
NEAR = st.integers(0, 40)
CROWDED = st.one_of(st.integers(10**12, 10**12 + 300), st.just(-1))
"""Neighbours, and one value far away."""
NUMBERS = st.one_of(ANY, NEAR, CROWDED, st.none())


def columns_of(keys: Sequence[Key], kinds: Sequence[pa.DataType]) -> list[pa.Array]:
    return [pa.array([key[n] for key in keys], kind) for n, kind in enumerate(kinds)]


def looked_up(index: KeyIndex, columns: Sequence[pa.Array]) -> list[tuple[int, int]]:
    """Return pairs of (row looked up, source row)."""
    rows, keys = index.lookup(columns)
    assert (np.diff(rows) > 0).all()
    at, source_rows = index.source_rows(keys)
    assert len(source_rows) == int(index.counts[keys].sum())
    return sorted(zip(rows[at].tolist(), source_rows.tolist(), strict=True))


def joined(
    targets: Sequence[Key], sources: Sequence[Key], null_safe: Sequence[bool]
) -> list[tuple[int, int]]:
    def equal(one: Key, other: Key) -> bool:
        values = zip(one, other, null_safe, strict=True)
        return all(a == b and (a is not None or safe) for a, b, safe in values)

    pairs = ((t, s) for t in range(len(targets)) for s in range(len(sources)))
    return [(t, s) for t, s in pairs if equal(targets[t], sources[s])]


@given(
    sources=st.lists(st.tuples(NUMBERS), max_size=60),
    targets=st.lists(st.tuples(NUMBERS), max_size=60),
    safe=st.booleans(),
)
def test_one_number(sources: list[Key], targets: list[Key], *, safe: bool) -> None:
    kinds = [pa.int64()]
    both = [*targets, *sources]
    index = KeyIndex(columns_of(sources, kinds), [safe])
    assert looked_up(index, columns_of(both, kinds)) == joined(both, sources, [safe])


@given(
    sources=st.lists(st.tuples(NUMBERS, NEAR, st.sampled_from(["a", "b", None])), max_size=40),
    targets=st.lists(st.tuples(NUMBERS, NEAR, st.sampled_from(["a", "b", None])), max_size=40),
    safe=st.tuples(st.booleans(), st.booleans(), st.booleans()),
)
def test_several_columns(sources: list[Key], targets: list[Key], safe: tuple[bool, ...]) -> None:
    kinds = [pa.int64(), pa.int32(), pa.string()]
    both = [*targets, *sources]
    index = KeyIndex(columns_of(sources, kinds), safe)
    assert looked_up(index, columns_of(both, kinds)) == joined(both, sources, safe)


def test_columns_too_wide_for_one_integer_are_numbered_anew() -> None:
    rng = np.random.default_rng(1)
    keys = [tuple(map(int, rng.integers(0, 2**40, 3))) for _ in range(500)]
    kinds = [pa.int64()] * 3
    index = KeyIndex(columns_of(keys, kinds), [False] * 3)
    mixed = [(a, b, c + n % 2) for n, (a, b, c) in enumerate(keys)]
    assert looked_up(index, columns_of(mixed, kinds)) == [(n, n) for n in range(0, 500, 2)]


def test_without_any_key_columns_may_be_as_wide() -> None:
    keys = [(None, 0, 0), (None, 2**60, 2**60)]
    columns = columns_of(keys, [pa.int64()] * 3)
    assert looked_up(KeyIndex(columns, [False] * 3), columns) == []


@pytest.mark.parametrize("span", [400_000, 10**6, 2**61])
def test_keys_that_crowd_are_found(span: int) -> None:
    """A bucket with many keys would be walked through; and rows may not fit beside keys."""
    keys = np.append(np.arange(5_000) * 3, span)
    index = KeyIndex([pa.array(np.random.default_rng(2).permutation(keys))], [False])
    rows, numbers = index.lookup([pa.array(np.arange(15_000))])
    assert rows.tolist() == list(range(0, 15_000, 3))
    _, source_rows = index.source_rows(numbers)
    assert len(set(source_rows.tolist())) == 5_000


def test_without_a_filter_the_same_is_found() -> None:
    rng = np.random.default_rng(3)
    keys = rng.choice(100_000, 20_000, replace=False)
    index = KeyIndex([pa.array(keys)], [False], filtered_max=0)
    rows, numbers = index.lookup([pa.array(np.arange(100_000))])
    assert rows.tolist() == sorted(keys.tolist())
    _, source_rows = index.source_rows(numbers)
    assert keys[source_rows].tolist() == rows.tolist()
