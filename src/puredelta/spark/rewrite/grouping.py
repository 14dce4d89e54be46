"""Which small files become one when they are rewritten anyway. Pure.

Rewriting a file of some kilobytes costs what opening, encoding and describing a new one costs, and
leaves the next reader as many files as before. Small files of one partition that follow each
other are rewritten into one instead, up to a size at which statistics still skip much.
"""

from __future__ import annotations

from collections.abc import Sequence

from puredelta.protocol.actions.actions import Add
from puredelta.protocol.table.partitioning import Partitioning

SMALL_BYTES = 2 * 1024 * 1024
"""A file of less is brought together with others."""
GROUP_BYTES_MAX = 16 * 1024 * 1024
GROUP_FILES_MAX = 128
"""A task has all files of a group open."""
SMALL_FILES_MIN = 16
"""With fewer in one place there is nothing to gain, and files stay what they were."""


def small_groups(
    adds: Sequence[Add], directories: Sequence[str], partitioning: Partitioning
) -> list[int | None]:
    """Return for each file the number of its group, ``None`` if it is rewritten alone.

    ``directories`` are where new files go. Files that bear tags or were clustered stay alone:
    what is said of them is not true of another file.
    """
    groups: list[int | None] = [None] * len(adds)
    count = 0
    for members in _by_place(adds, directories, partitioning):
        if len(members) < SMALL_FILES_MIN:
            continue
        for run in _runs(members, adds):
            for number in run:
                groups[number] = count
            count += 1
    return groups


def _by_place(
    adds: Sequence[Add], directories: Sequence[str], partitioning: Partitioning
) -> list[list[int]]:
    """Return the small files of each directory and partition, in their order."""
    places: dict[object, list[int]] = {}
    for number, (add, directory) in enumerate(zip(adds, directories, strict=True)):
        if add.size_bytes < SMALL_BYTES and not add.tags and add.clustering_provider is None:
            place = (directory, partitioning.key(add.partition_values))
            places.setdefault(place, []).append(number)
    return list(places.values())


def _runs(members: Sequence[int], adds: Sequence[Add]) -> list[list[int]]:
    """Cut files that follow each other into runs of a bounded size."""
    runs: list[list[int]] = []
    size_bytes = 0
    for number in members:
        size_bytes += adds[number].size_bytes
        if not runs or size_bytes > GROUP_BYTES_MAX or len(runs[-1]) == GROUP_FILES_MAX:
            runs.append([])
            size_bytes = adds[number].size_bytes
        runs[-1].append(number)
    return runs
