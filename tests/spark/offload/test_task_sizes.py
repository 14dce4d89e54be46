from __future__ import annotations

from puredelta.spark.offload.task_sizes import assign_to_tasks, count_tasks


def test_items_are_assigned_by_size() -> None:
    items = [(n,) for n in range(5)]
    assert assign_to_tasks(items, [10, 1, 1, 1, 7], num_tasks=2) == [
        [(0,)],
        [(4,), (1,), (2,), (3,)],
    ]
    assert assign_to_tasks(items[:1], [5], num_tasks=4) == [[(0,)]]


def test_tasks_are_few_and_none_is_long() -> None:
    assert count_tasks([100] * 64, 2) == 2
    assert count_tasks([8_000_000] * 64, 2) == 62
    assert count_tasks([1], 8) == 1
