"""Which files of a clustered table an OPTIMIZE clusters: pure decisions, no Spark and no storage.

As in delta-spark, clustering is incremental. A cube that is large enough stays as it is, so that
what an OPTIMIZE writes depends on what came since, and not on the size of the table.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from puredelta.log.files.row_counts import logical_rows, physical_rows
from puredelta.log.maintenance.file_bins import Bin
from puredelta.protocol.actions.actions import Add
from puredelta.protocol.table.z_cubes import LIQUID, ZCube, find_z_cube


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
        bins=tuple(_filled(wanted, limits)),
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


def _filled(files: Sequence[Add], limits: ClusterLimits) -> Iterable[Bin]:
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
