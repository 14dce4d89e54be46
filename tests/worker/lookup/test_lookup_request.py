"""Files reach a worker as they were; none is left unopened that might hold a key."""

from __future__ import annotations

import pickle
import random
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest

from puredelta.worker.lookup.lookup_request import (
    LOOKUP_BATCHES,
    ColumnBounds,
    FileLookup,
    LookupBatch,
)
from tests.worker.lookup.batches import batch_of

Span = tuple[int, int] | None


def bounds_of(column: Sequence[Span]) -> ColumnBounds:
    lows, highs = zip(*[span or (9, -9) for span in column], strict=True)
    known = [span is not None for span in column]
    return ColumnBounds(
        known=np.array(known), lows=np.array(lows, np.int64), highs=np.array(highs, np.int64)
    )


def sent(batch: LookupBatch) -> LookupBatch:
    """Return what a worker gets."""
    return LOOKUP_BATCHES.decode(pickle.loads(pickle.dumps(LOOKUP_BATCHES.encode(batch))))


def candidates(
    columns: Sequence[pa.Array], *spans: Sequence[Span] | None, sorted_max: int = 1000
) -> list[int]:
    """Return the files that might hold a key; a worker must find the same."""
    num_files = len(next(column for column in spans if column is not None))
    batch = LookupBatch(
        ordinals=np.arange(num_files, dtype=np.int32),
        paths=[f"{n}.parquet" for n in range(num_files)],
        bounds=tuple(None if column is None else bounds_of(column) for column in spans),
    )
    found = batch.candidates(columns, sorted_max=sorted_max)
    assert sent(batch).candidates(columns, sorted_max=sorted_max) == found
    return [file.ordinal for file in found]


@pytest.mark.parametrize("seed", range(5))
def test_a_file_is_left_out_only_if_a_column_has_no_value_in_its_bounds(seed: int) -> None:
    dice = random.Random(seed)
    keys = [[dice.choice([None, dice.randrange(100)]) for _ in range(4)] for _ in range(2)]

    def span() -> Span:
        low, high = sorted(dice.randrange(-5, 105) for _ in range(2))
        return dice.choice([None, (low, high)])

    bounds = [[span() for _ in range(200)] for _ in keys]

    def may_hold(file: int) -> bool:
        return all(
            (span := column[file]) is None
            or any(k is not None and span[0] <= k <= span[1] for k in values)
            for column, values in zip(bounds, keys, strict=True)
        )

    columns = [pa.array(keys[0], pa.int32()), pa.array(keys[1], pa.int32()).cast(pa.date32())]
    found = candidates(columns, *bounds)
    assert found == [file for file in range(200) if may_hold(file)]
    assert 0 < len(found) < 200


def test_files_without_bounds_are_read() -> None:
    nothing, text = pa.array([], pa.int64()), pa.array(["a"])
    assert candidates([nothing], [None, None]) == [0, 1]
    assert candidates([nothing], [(1, 2), None]) == [1]
    assert candidates([text, pa.array([3])], None, [(1, 2), (3, 3)]) == [1]
    assert candidates([text], [None]) == [0]
    assert [f.ordinal for f in batch_of([FileLookup(7, "p")]).candidates([nothing])] == [7]
    many = pa.array([7, 8, 9])
    assert candidates([many], [(1, 2)]) == []
    assert candidates([many], [(1, 2)], sorted_max=2) == [0], "too many are not sorted"


def test_files_are_the_same_in_parts_and_in_a_worker() -> None:
    every = [
        FileLookup(
            ordinal=3 * n,
            path=f"a path/{n}",
            constants=(("p", n), ("q", None)),
            words=bytes([n] * 8) if n % 3 == 0 else b"",
            bits=bytes([255] * 8) if n % 3 == 0 else b"",
        )
        for n in range(10)
    ]
    batch = batch_of(every)
    assert len(batch) == 10
    assert batch.candidates([]) == every
    places = [7, 0, 9, 6]
    part = sent(batch.take(places))
    assert part.candidates([]) == [every[place] for place in places]
    assert set(part.deleted) == {0, 27, 18}
    known = LookupBatch(
        ordinals=np.array([5, 6], np.int32),
        paths=["a", "b"],
        bounds=(bounds_of([(1, 1), (2, 2)]),),
    )
    assert [file.path for file in known.take([1, 0]).candidates([pa.array([1])])] == ["a"]
    assert sent(batch.take([])).candidates([pa.array([1])]) == []
