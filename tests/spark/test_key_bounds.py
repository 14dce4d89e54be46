"""Files that cannot hold a key of the source are not opened, and no others are left out."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

from puredelta.spark import key_bounds_task
from puredelta.spark.key_bounds_task import likely_orders
from puredelta.spark.probe_read_task import ProbeOrder


def order(*bounds: tuple[int, int] | None) -> ProbeOrder:
    return ProbeOrder(ordinal=0, path="p", constants=(), words=b"", bits=b"", bounds=bounds)


@pytest.mark.parametrize("seed", range(5))
def test_a_file_is_left_out_only_if_a_column_has_no_value_in_its_bounds(seed: int) -> None:
    dice = random.Random(seed)
    keys = [[dice.choice([None, dice.randrange(100)]) for _ in range(4)] for _ in range(2)]
    orders = []
    for _ in range(200):
        spans = [sorted(dice.randrange(-5, 105) for _ in range(2)) for _ in keys]
        orders.append(order(*[dice.choice([None, (low, high)]) for low, high in spans]))

    def may_hold(one: ProbeOrder) -> bool:
        return all(
            span is None or any(k is not None and span[0] <= k <= span[1] for k in column)
            for span, column in zip(one.bounds, keys, strict=True)
        )

    columns = [pa.array(keys[0], pa.int32()), pa.array(keys[1], pa.int32()).cast(pa.date32())]
    found = likely_orders(orders, columns)
    assert found == [one for one in orders if may_hold(one)]
    assert 0 < len(found) < len(orders)


def test_files_without_bounds_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    nothing = [pa.array([], pa.int64())]
    assert likely_orders([order(), order(None)], nothing) == [order(), order(None)]
    assert likely_orders([order((1, 2))], nothing) == []
    text = [pa.array(["a"])]
    assert likely_orders([order(None)], text) == [order(None)]
    monkeypatch.setattr(key_bounds_task, "VALUES_MAX", 2)
    assert likely_orders([order((1, 2))], [pa.array([7, 8, 9])]) == [order((1, 2))]
