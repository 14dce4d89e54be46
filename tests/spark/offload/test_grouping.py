"""Which files are copied together."""

from __future__ import annotations

from typing import Any

from puredelta.protocol.actions.actions import Add
from puredelta.protocol.schema.types import STRING
from puredelta.protocol.table.partitioning import PartitionColumn, Partitioning
from puredelta.spark.offload.rewrite import (
    GROUP_BYTES_MAX,
    GROUP_FILES_MAX,
    SMALL_BYTES,
    SMALL_FILES_MIN,
    small_groups,
)

BY_TEXT = Partitioning(
    columns=(PartitionColumn(physical_name="p", type=STRING, is_padded=False, time_zone=None),)
)


def add(size_bytes: int = 1000, **more: Any) -> Add:
    return Add(
        path="f",
        partition_values=more.pop("partition_values", {}),
        size_bytes=size_bytes,
        modified_ms=0,
        data_change=True,
        **more,
    )


def groups(*adds: Add, directories: list[str] | None = None) -> list[int | None]:
    return small_groups(adds, directories or [""] * len(adds), BY_TEXT)


def test_a_few_files_stay_what_they_were() -> None:
    few = SMALL_FILES_MIN - 1
    assert groups(*[add()] * few) == [None] * few
    assert groups(*[add()] * SMALL_FILES_MIN) == [0] * SMALL_FILES_MIN


def test_other_files_are_copied_alone() -> None:
    others = [
        add(SMALL_BYTES),
        add(tags={"ZCUBE_ID": "x"}),
        add(clustering_provider="liquid"),
    ]
    found = groups(*others, *[add()] * SMALL_FILES_MIN, add(SMALL_BYTES - 1))
    assert found == [None] * 3 + [0] * (SMALL_FILES_MIN + 1)


def test_partitions_and_directories_stay_apart() -> None:
    parts = [add(partition_values={"p": str(n % 2)}) for n in range(2 * SMALL_FILES_MIN)]
    assert groups(*parts) == [0, 1] * SMALL_FILES_MIN
    same = [add()] * 2 * SMALL_FILES_MIN
    places = [f"d{n % 2}" for n in range(len(same))]
    assert groups(*same, directories=places) == [0, 1] * SMALL_FILES_MIN


def test_groups_are_of_bounded_size() -> None:
    size = GROUP_BYTES_MAX // 10
    assert groups(*[add(size)] * 25) == [0] * 10 + [1] * 10 + [2] * 5
    many = groups(*[add(1)] * (GROUP_FILES_MAX + 1))
    assert many == [0] * GROUP_FILES_MAX + [1]
