"""Which files an OPTIMIZE rewrites together: pure decisions, no Spark and no storage.

A bin is a group of files of one partition that are rewritten together, however the log spells the
partition. Bins are filled as in delta-spark: files in order of size, one bin after the other.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from puredelta.log.files.row_counts import physical_rows
from puredelta.protocol.actions.actions import Add
from puredelta.protocol.table.partitioning import Partitioning, PartitionKey


@dataclass(frozen=True, slots=True, kw_only=True)
class BinLimits:
    """Which files are worth rewriting, and how large a bin may become."""

    min_file_size: int
    """Smaller files are rewritten together."""
    max_file_size: int
    """The largest size of a bin, and so roughly of the file it becomes."""
    max_deleted_rows_ratio: float
    """Files of any size are rewritten once a larger part of their rows is deleted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bin:
    """Files of one partition, in the order of the log, and how many files they become."""

    files: tuple[Add, ...]
    num_ranges: int = 1

    @property
    def size_bytes(self) -> int:
        """The size of all its files."""
        return sum(add.size_bytes for add in self.files)


def plan_compaction(
    files: Iterable[Add], limits: BinLimits, partitioning: Partitioning
) -> tuple[Bin, ...]:
    """Put small files, and files with many deleted rows, into bins; each bin becomes one file.

    A bin of one file is left out unless that file has many deleted rows: rewriting it would
    change nothing. So a second OPTIMIZE finds nothing to do.
    """
    wanted = [
        (number, add)
        for number, add in enumerate(files)
        if add.size_bytes < limits.min_file_size or has_many_deletes(add, limits)
    ]
    return tuple(
        Bin(files=tuple(add for _, add in sorted(members, key=_number)))
        for partition in _by_partition(wanted, partitioning)
        for members in _filled(partition, limits.max_file_size)
        if len(members) > 1 or has_many_deletes(members[0][1], limits)
    )


def plan_rewrite(
    files: Iterable[Add], limits: BinLimits, partitioning: Partitioning
) -> tuple[Bin, ...]:
    """Put files into bins that all have to be written anew; each bin becomes one file."""
    return tuple(
        Bin(files=tuple(add for _, add in sorted(members, key=_number)))
        for partition in _by_partition(enumerate(files), partitioning)
        for members in _filled(partition, limits.max_file_size)
    )


def plan_z_order(
    files: Iterable[Add], limits: BinLimits, partitioning: Partitioning
) -> tuple[Bin, ...]:
    """Put every partition into a bin of its own; its size decides how many files it becomes."""
    return tuple(
        Bin(
            files=(members := tuple(add for _, add in partition)),
            num_ranges=max(1, sum(add.size_bytes for add in members) // limits.max_file_size),
        )
        for partition in _by_partition(enumerate(files), partitioning)
    )


def has_many_deletes(add: Add, limits: BinLimits) -> bool:
    """Return whether too many rows of a file are deleted, or an unknown share of them."""
    if add.deletion_vector is None:
        return False
    rows = physical_rows(add)
    if not rows:
        return True
    return add.deletion_vector.cardinality / rows > limits.max_deleted_rows_ratio


_Numbered = tuple[int, Add]


def _number(member: _Numbered) -> int:
    return member[0]


def _by_partition(
    files: Iterable[_Numbered], partitioning: Partitioning
) -> Iterable[list[_Numbered]]:
    partitions: defaultdict[PartitionKey, list[_Numbered]] = defaultdict(list)
    for number, add in files:
        partitions[partitioning.key(add.partition_values)].append((number, add))
    return partitions.values()


def _filled(files: Sequence[_Numbered], capacity: int) -> Iterable[list[_Numbered]]:
    """Fill bins with files in order of their size; a file that is too large gets its own bin."""
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
