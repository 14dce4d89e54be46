"""Which files of a clustered table are clustered, without Spark."""

from __future__ import annotations

from dataclasses import replace

import pytest

from puredelta.log.maintenance.compaction_plan import ClusteringPlan, ClusterLimits, plan_clustering
from puredelta.protocol.actions.actions import Add
from puredelta.protocol.table.clustering import LIQUID, ZCube
from tests.log.files.test_file_table import VECTOR
from tests.log.tables import add

BY = ("a", "b")
LIMITS = ClusterLimits(min_cube_size=1000, target_cube_size=1500, max_file_size=100)


def file(path: str, size: int = 100, cube: str = "", by: tuple[str, ...] = BY) -> Add:
    plain = replace(add(path), size_bytes=size)
    if not cube:
        return plain
    return replace(plain, tags=ZCube(id=cube, columns=by).tags, clustering_provider=LIQUID)


def plan(*files: Add, full: bool = False) -> ClusteringPlan:
    return plan_clustering(files, BY, LIMITS, full=full)


def chosen(found: ClusteringPlan) -> list[str]:
    return [add.path for add in found.files]


def test_new_files_join_small_cubes() -> None:
    found = plan(file("c", cube="1"), file("n"), file("d", cube="1"))
    assert chosen(found) == ["n", "c", "d"]
    assert found.num_cubes == 1
    assert [add.path for add in found.clustered] == ["c", "d"]
    assert [add.path for add in found.others] == ["n"]
    assert [each.num_ranges for each in found.bins] == [3]


def test_a_large_cube_stays_as_it_is() -> None:
    large = [file(f"c{n}", 500, "1") for n in range(2)]
    assert chosen(plan(*large, file("n"))) == ["n"]
    assert chosen(plan(*large, file("d", cube="2"))) == []
    assert chosen(plan(*large, full=True)) == []


def test_a_cube_that_is_alone_is_clustered_already() -> None:
    assert plan(file("c", cube="1"), file("d", cube="1")).bins == ()
    assert chosen(plan(file("c", cube="1"), file("d", cube="2"))) == ["c", "d"]
    assert plan().bins == ()


def test_one_new_file_is_clustered_too() -> None:
    assert chosen(plan(file("n"))) == ["n"]


def test_other_columns_wait_for_full() -> None:
    old = file("o", 5000, "1", ("x",))
    mine = file("c", cube="2")
    incremental = plan(old, mine)
    assert incremental.bins == ()
    assert [add.path for add in incremental.others] == ["o"]
    everything = plan(old, mine, full=True)
    assert chosen(everything) == ["o", "c"]
    assert (everything.num_cubes, everything.others) == (2, ())
    reordered = file("r", cube="3", by=("b", "a"))
    assert chosen(plan(reordered)) == []


def test_files_of_another_provider_stay_as_they_are() -> None:
    theirs = replace(file("x", cube="1"), clustering_provider="other")
    assert chosen(plan(theirs, file("n"))) == ["n"]
    assert chosen(plan(theirs, file("n"), full=True)) == ["n"]


@pytest.mark.parametrize(("size", "bins"), [(100, [15, 5]), (1400, [14] * 20), (2000, [20] * 20)])
def test_a_bin_is_as_large_as_a_cube(size: int, bins: list[int]) -> None:
    found = plan(*(file(f"n{n}", size) for n in range(20)))
    assert [each.num_ranges for each in found.bins] == bins


def test_deleted_rows_do_not_count() -> None:
    """A cube that has lost most of its rows is small again."""
    vector = replace(VECTOR, cardinality=9)
    hollow = replace(file("c", 2000, "1"), deletion_vector=vector)
    assert chosen(plan(hollow, file("n"))) == ["n", "c"]
    assert chosen(plan(file("c", 2000, "1"), file("n"))) == ["n"]
