"""Orders reach a worker as they were; no file is left unopened that may hold a key."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest

from puredelta.worker import lookup_batch
from puredelta.worker.lookup_batch import FileLookup, LookupBatch, Spans
from tests.spark.probe_orders import orders_of

Span = tuple[int, int] | None


def spans(column: Sequence[Span]) -> Spans:
    lows, highs = zip(*[span or (9, -9) for span in column], strict=True)
    known = [span is not None for span in column]
    return Spans(np.array(known), np.array(lows, np.int64), np.array(highs, np.int64))


def likely(columns: Sequence[pa.Array], *bounds: Sequence[Span] | None) -> list[int]:
    """Return the files that may hold a key; the same must be found behind the way to a worker."""
    num_files = len(next(column for column in bounds if column is not None))
    orders = LookupBatch(
        ordinals=np.arange(num_files, dtype=np.int32),
        paths=[f"{n}.parquet" for n in range(num_files)],
        spans=[None if column is None else spans(column) for column in bounds],
    )
    found = orders.likely(columns)
    assert LookupBatch.unpacked(orders.packed()).likely(columns) == found
    return [order.ordinal for order in found]


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
    found = likely(columns, *bounds)
    assert found == [file for file in range(200) if may_hold(file)]
    assert 0 < len(found) < 200


def test_files_without_bounds_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    nothing, text = pa.array([], pa.int64()), pa.array(["a"])
    assert likely([nothing], [None, None]) == [0, 1]
    assert likely([nothing], [(1, 2), None]) == [1]
    assert likely([text, pa.array([3])], None, [(1, 2), (3, 3)]) == [1]
    assert likely([text], [None]) == [0]
    assert [order.ordinal for order in orders_of([FileLookup(7, "p")]).likely([nothing])] == [7]
    monkeypatch.setattr(lookup_batch, "VALUES_MAX", 2)
    assert likely([pa.array([7, 8, 9])], [(1, 2)]) == [0]


def test_orders_are_the_same_in_parts_and_behind_the_way_to_a_worker() -> None:
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
    orders = orders_of(every)
    assert len(orders) == 10
    assert orders.likely([]) == every
    places = [7, 0, 9, 6]
    part = LookupBatch.unpacked(orders.some(places).packed())
    assert part.likely([]) == [every[place] for place in places]
    assert set(part.deleted) == {0, 27, 18}
    known = LookupBatch(
        ordinals=np.array([5, 6], np.int32), paths=["a", "b"], spans=[spans([(1, 1), (2, 2)])]
    )
    assert [order.path for order in known.some([1, 0]).likely([pa.array([1])])] == ["a"]
    assert LookupBatch.unpacked(orders.some([]).packed()).likely([pa.array([1])]) == []
