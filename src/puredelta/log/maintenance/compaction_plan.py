"""Files that OPTIMIZE rewrites together, by size or by clustering: pure decisions.

A bin is a group of files of one partition that are rewritten together, however the log spells the
partition. Bins are filled as in delta-spark: files in order of size, one bin after the other.

As in delta-spark, clustering is incremental. A cube that is large enough stays as it is, so that
what an OPTIMIZE writes depends on what came since, and not on the size of the table.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from puredelta.log.files.row_counts import logical_rows, physical_rows
from puredelta.protocol.actions.actions import Add
from puredelta.protocol.table.clustering import LIQUID, ZCube, find_z_cube
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
    """Put files that must all be rewritten into bins; each bin becomes one file."""
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


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterLimits:
    """How large the cubes of a table, and their files, become."""

    min_cube_size: int
    """A cube of so many bytes is not clustered again."""
    target_cube_size: int
    """Files are clustered together up to so many bytes."""
    max_file_size: int

    @property
    def cube_size(self) -> int:
        """The bytes of one cube at most."""
        return max(self.min_cube_size, self.target_cube_size)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusteringPlan:
    """What an OPTIMIZE clusters, and what it found."""

    columns: tuple[str, ...]
    bins: tuple[Bin, ...] = ()
    """Each becomes a cube."""
    clustered: tuple[Add, ...] = field(repr=False)
    """Files of cubes that count."""
    others: tuple[Add, ...] = field(repr=False)
    num_cubes: int

    @property
    def files(self) -> tuple[Add, ...]:
        """The files that are clustered now."""
        return tuple(add for each in self.bins for add in each.files)


def plan_clustering(
    files: Iterable[Add], columns: Sequence[str], limits: ClusterLimits, *, full: bool = False
) -> ClusteringPlan:
    """Choose files and put them into bins, each of which becomes a cube.

    Left alone are files that another provider has clustered, those clustered by other columns
    (unless ``full``), those of cubes that are large enough, and a cube that is alone.
    """
    clustered: list[Add] = []
    others: list[Add] = []
    ours: list[tuple[Add, ZCube | None]] = []
    ids: set[str] = set()
    for add in files:
        cube = find_z_cube(add)
        if add.clustering_provider in (None, LIQUID):
            ours.append((add, cube))
        if cube is not None and (full or _is_by(cube, columns)):
            ids.add(cube.id)
            clustered.append(add)
        else:
            others.append(add)
    new = [add for add, cube in ours if cube is None or (full and not _is_by(cube, columns))]
    small = [
        cube_files
        for cube_files in _by_cube((a, c) for a, c in ours if c and _is_by(c, columns))
        if sum(map(_live_bytes, cube_files)) < limits.min_cube_size
    ]
    wanted = [*new, *(add for cube_files in small for add in cube_files)]
    if not new and len(small) <= 1:
        wanted = []
    return ClusteringPlan(
        columns=tuple(columns),
        bins=tuple(_filled_cubes(wanted, limits)),
        clustered=tuple(clustered),
        others=tuple(others),
        num_cubes=len(ids),
    )


def _is_by(cube: ZCube, columns: Sequence[str]) -> bool:
    return cube.columns == tuple(columns)


def _by_cube(files: Iterable[tuple[Add, ZCube]]) -> Iterable[list[Add]]:
    ordered = sorted(files, key=lambda pair: pair[1].id)
    for _, members in groupby(ordered, key=lambda pair: pair[1].id):
        yield [add for add, _ in members]


def _live_bytes(add: Add) -> int:
    """Return about how large a file would be without its deleted rows."""
    physical, logical = physical_rows(add), logical_rows(add)
    if add.deletion_vector is None or not physical or logical is None:
        return add.size_bytes
    return add.size_bytes * logical // physical


def _filled_cubes(files: Sequence[Add], limits: ClusterLimits) -> Iterable[Bin]:
    members: list[Add] = []
    size = 0
    for add in files:
        if members and size + add.size_bytes > limits.cube_size:
            yield _bin(members, limits)
            members, size = [], 0
        members.append(add)
        size += add.size_bytes
    if members:
        yield _bin(members, limits)


def _bin(files: Sequence[Add], limits: ClusterLimits) -> Bin:
    size = sum(add.size_bytes for add in files)
    return Bin(files=tuple(files), num_ranges=max(1, size // limits.max_file_size))
