"""Which files OPTIMIZE brings together: no Spark, no storage."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from puredelta.log.maintenance.compaction_plan import BinLimits, plan_compaction, plan_z_order
from puredelta.protocol.actions.actions import Add, DeletionVectorDescriptor
from puredelta.protocol.schema.types import INTEGER
from puredelta.protocol.table.partitioning import PartitionColumn, Partitioning

BY_NUMBER = Partitioning(
    columns=(PartitionColumn(physical_name="p", type=INTEGER, is_padded=False, time_zone=None),)
)
LIMITS = BinLimits(min_file_size=100, max_file_size=100, max_deleted_rows_ratio=0.05)


def add(
    path: str, size: int, *, p: str | None = "1", deleted: int = 0, rows: int | None = 100
) -> Add:
    vector = DeletionVectorDescriptor(
        storage_type="u", path_or_inline="x", offset=1, size_bytes=10, cardinality=deleted
    )
    return Add(
        path=path,
        partition_values={"p": p},
        size_bytes=size,
        modified_ms=0,
        data_change=True,
        stats=None if rows is None else f'{{"numRecords":{rows}}}',
        deletion_vector=vector if deleted else None,
    )


def paths(files: list[Add], limits: BinLimits = LIMITS) -> list[str]:
    return [
        "".join(a.path for a in each.files) for each in plan_compaction(files, limits, BY_NUMBER)
    ]


@pytest.mark.parametrize(
    ("files", "bins"),
    [
        pytest.param([], [], id="no-files"),
        pytest.param([add("a", 10)], [], id="one-file-is-left-alone"),
        pytest.param([add("a", 10), add("b", 20)], ["ab"], id="two-small-files"),
        pytest.param([add("a", 10), add("b", 100)], [], id="large-files-do-not-count"),
        pytest.param([add("b", 60), add("a", 40)], ["ba"], id="up-to-the-limit-in-log-order"),
        pytest.param(
            [add("a", 70), add("b", 10), add("c", 80), add("d", 15)],
            ["abd"],
            id="smallest-first-and-single-left-over",
        ),
        pytest.param(
            [add("a", 50), add("b", 50), add("c", 50), add("d", 50)], ["ab", "cd"], id="two-bins"
        ),
        pytest.param(
            [add("a", 10), add("b", 10, p="2"), add("c", 10), add("d", 10, p="2")],
            ["ac", "bd"],
            id="partitions-apart",
        ),
        pytest.param([add("a", 10, p=None), add("b", 10, p="")], ["ab"], id="empty-text-is-null"),
        pytest.param([add("a", 10, p="01"), add("b", 10, p="1")], ["ab"], id="one-value-two-texts"),
        pytest.param([add("a", 500, deleted=6)], ["a"], id="lost-many-rows"),
        pytest.param([add("a", 500, deleted=5)], [], id="lost-few-rows"),
        pytest.param([add("a", 500, deleted=1, rows=None)], ["a"], id="nobody-counted"),
        pytest.param([add("a", 10, deleted=5)], [], id="small-single-that-lost-few"),
    ],
)
def test_compaction(files: list[Add], bins: list[str]) -> None:
    assert paths(files) == bins


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 150), st.sampled_from(["1", "2", None])), max_size=30),
    st.integers(1, 150),
)
def test_bins_are_sound(shapes: list[tuple[int, str | None]], capacity: int) -> None:
    limits = BinLimits(min_file_size=100, max_file_size=capacity, max_deleted_rows_ratio=0.05)
    files = [add(str(n), size, p=p) for n, (size, p) in enumerate(shapes)]
    bins = plan_compaction(files, limits, BY_NUMBER)
    chosen = [a.path for each in bins for a in each.files]
    assert len(chosen) == len(set(chosen))
    for each in bins:
        assert len(each.files) > 1
        assert each.size_bytes <= capacity
        assert len({a.partition_values["p"] for a in each.files}) == 1
    # What was brought together is large or alone: the same again has nothing to do.
    left = [a for a in files if a.path not in set(chosen)]
    merged = [
        add(f"m{n}", each.size_bytes, p=each.files[0].partition_values["p"])
        for n, each in enumerate(bins)
    ]
    again = plan_compaction([*left, *merged], limits, BY_NUMBER)
    assert len(again) <= len(bins)


def test_z_order_takes_every_file_of_a_partition() -> None:
    files = [add("a", 150), add("b", 160), add("c", 10, p="2")]
    assert [
        ("".join(a.path for a in each.files), each.num_ranges)
        for each in plan_z_order(files, LIMITS, BY_NUMBER)
    ] == [("ab", 3), ("c", 1)]
