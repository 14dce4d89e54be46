"""How work is assigned to the tasks of a Spark job, by size."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import TypeVar

_Item = TypeVar("_Item")

_TASK_BYTES = 8 * 1024 * 1024
"""How much a task should at least copy, once every core has one."""


def assign_to_tasks(
    items: Sequence[_Item], sizes_bytes: Sequence[int], *, num_tasks: int
) -> list[list[_Item]]:
    """Assign items so that all tasks are of about one size, the largest items first.

    Tasks without an item are left out.
    """
    tasks: list[list[_Item]] = [[] for _ in range(num_tasks)]
    loads = [(0, number) for number in range(num_tasks)]
    for number in sorted(range(len(sizes_bytes)), key=sizes_bytes.__getitem__, reverse=True):
        load, task = loads[0]
        tasks[task].append(items[number])
        heapq.heapreplace(loads, (load + max(1, sizes_bytes[number]), task))
    return [task for task in tasks if task]


def count_tasks(sizes_bytes: Sequence[int], parallelism: int) -> int:
    """Choose how many tasks share the files: one per core, more where there is much to copy."""
    return min(len(sizes_bytes), max(parallelism, -(-sum(sizes_bytes) // _TASK_BYTES)))
