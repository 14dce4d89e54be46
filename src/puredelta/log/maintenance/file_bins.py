"""Which files an OPTIMIZE brings together: pure decisions, no Spark and no storage.

A bin is a group of files of one partition that are rewritten together. The rules, and so the
bins, are those of delta-spark: files in order of size, one bin filled after the other.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from puredelta.log.files.row_counts import physical_rows
from puredelta.protocol.actions.actions import Add

PartitionKey = tuple[tuple[str, str | None], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class BinLimits:
    """Which files are worth rewriting, and how large a bin may become."""

    min_file_size: int
    """Smaller files are brought together."""
    max_file_size: int
    """Of a bin, and so, roughly, of the file it becomes."""
    max_deleted_rows_ratio: float
    """Files that have lost a larger part of their rows are rewritten, whatever their size."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bin:
    """Files of one partition, in the order of the log, and into how many they are written."""

    files: tuple[Add, ...]
    num_pieces: int = 1

    @property
    def size_bytes(self) -> int:
        """Of all its files."""
        return sum(add.size_bytes for add in self.files)


def plan_compaction(files: Iterable[Add], limits: BinLimits) -> tuple[Bin, ...]:
    """Put small files, and files that lost many rows, into bins; each becomes one file.

    A bin of one file is left out unless that file has lost too many rows: rewriting it would
    change nothing, and so a second OPTIMIZE finds nothing to do.
    """
    wanted = [
        (number, add)
        for number, add in enumerate(files)
        if add.size_bytes < limits.min_file_size or is_worn(add, limits)
    ]
    return tuple(
        Bin(files=tuple(add for _, add in sorted(members, key=_number)))
        for partition in _by_partition(wanted)
        for members in _filled(partition, limits.max_file_size)
        if len(members) > 1 or is_worn(members[0][1], limits)
    )


def plan_z_order(files: Iterable[Add], limits: BinLimits) -> tuple[Bin, ...]:
    """Put every partition into a bin of its own, in as many pieces as its size wants."""
    return tuple(
        Bin(
            files=(members := tuple(add for _, add in partition)),
            num_pieces=max(1, sum(add.size_bytes for add in members) // limits.max_file_size),
        )
        for partition in _by_partition(enumerate(files))
    )


def is_worn(add: Add, limits: BinLimits) -> bool:
    """Tell whether a deletion vector hides too many rows, or nobody knows of how many."""
    if add.deletion_vector is None:
        return False
    rows = physical_rows(add)
    if not rows:
        return True
    return add.deletion_vector.cardinality / rows > limits.max_deleted_rows_ratio


def partition_key(add: Add) -> PartitionKey:
    """Return what files of one partition have in common; empty text is NULL."""
    return tuple(sorted((name, value or None) for name, value in add.partition_values.items()))


_Numbered = tuple[int, Add]


def _number(member: _Numbered) -> int:
    return member[0]


def _by_partition(files: Iterable[_Numbered]) -> Iterable[list[_Numbered]]:
    partitions: defaultdict[PartitionKey, list[_Numbered]] = defaultdict(list)
    for number, add in files:
        partitions[partition_key(add)].append((number, add))
    return partitions.values()


def _filled(files: Sequence[_Numbered], capacity: int) -> Iterable[list[_Numbered]]:
    """Fill bins with files in order of their size; one that is too large has its own."""
    members: list[_Numbered] = []
    size = 0
    for number, add in sorted(files, key=lambda member: member[1].size_bytes):
        if members and size + add.size_bytes > capacity:
            yield members
            members, size = [], 0
        members.append((number, add))
        size += add.size_bytes
    if members:
        yield members
