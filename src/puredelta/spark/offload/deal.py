"""How work is dealt out to the tasks of a Spark job, by size."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import TypeVar

_Task = TypeVar("_Task")

_TASK_BYTES = 8 * 1024 * 1024
"""How much a task should at least copy, once every core has one."""


def balanced(
    tasks: Sequence[_Task], sizes_bytes: Sequence[int], *, num_batches: int
) -> list[list[_Task]]:
    """Deal tasks out so that all batches are of about one size, largest first."""
    batches: list[list[_Task]] = [[] for _ in range(num_batches)]
    loads = [(0, number) for number in range(num_batches)]
    for number in sorted(range(len(sizes_bytes)), key=sizes_bytes.__getitem__, reverse=True):
        load, batch = loads[0]
        batches[batch].append(tasks[number])
        heapq.heapreplace(loads, (load + max(1, sizes_bytes[number]), batch))
    return [batch for batch in batches if batch]


def num_tasks(sizes_bytes: Sequence[int], parallelism: int) -> int:
    """Choose how many tasks share the files: one per core, more where there is much to copy."""
    return min(len(sizes_bytes), max(parallelism, -(-sum(sizes_bytes) // _TASK_BYTES)))
