"""The laws of row counts (M-94)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from puredelta.errors import DeltaError, ErrorCode
from puredelta.log.files.file_table import FileTable, remove_file
from puredelta.log.files.row_counts import (
    FileRowCounts,
    RowChanges,
    count_file_rows,
    logical_rows,
    physical_rows,
    require_row_counts,
    row_count_problems,
)
from puredelta.protocol.actions.actions import Add, DeletionVectorDescriptor, SetTransaction

VECTOR = DeletionVectorDescriptor(
    storage_type="u", path_or_inline="x", offset=1, size_bytes=40, cardinality=3
)
FILE = Add(
    path="a",
    partition_values={},
    size_bytes=1,
    modified_ms=1,
    data_change=True,
    stats='{"numRecords":10,"minValues":{"numRecords":99}}',
)
MARKED = replace(FILE, path="b", deletion_vector=VECTOR)

# An upsert of 20 rows: 5 updated, 2 deleted, 4 inserted, 6 copied, 7 left under a vector.
CHANGES = RowChanges(inserted=4, updated=5, deleted=2, copied=6)
FILES = FileRowCounts(added=22, removed=20, not_copied=7)


def test_rows_of_a_file() -> None:
    assert (physical_rows(FILE), logical_rows(FILE)) == (10, 10)
    assert (physical_rows(MARKED), logical_rows(MARKED)) == (10, 7)


@pytest.mark.parametrize("stats", [None, "", "{}", "[]", "{", '{"numRecords":"10"}'])
def test_rows_nobody_counted_are_unknown(stats: str | None) -> None:
    file = replace(FILE, stats=stats)
    assert physical_rows(file) is None
    assert logical_rows(file) is None
    assert count_file_rows([FILE, file]) == FileRowCounts(added=None, removed=0, not_copied=0)


@pytest.mark.parametrize(
    "stats",
    [
        '{"maxValues":{"numRecords":7,"a":"{\\"numRecords\\":8}"},"numRecords":3}',
        ' { "numRecords" : 3 }',
        '{"numRecords":3,',
        '{"numRecords":3,"minValues":{"numRecords":9}}',
    ],
)
def test_rows_are_counted_where_the_count_stands(stats: str) -> None:
    assert physical_rows(replace(FILE, stats=stats)) == 3
    assert FileTable.of([replace(FILE, stats=stats)]).num_records() == 3


def test_rows_of_a_commit() -> None:
    actions = [
        FILE,
        MARKED,
        remove_file(replace(FILE, path="c"), deleted_ms=1),
        SetTransaction(app_id="a", version=1),
    ]
    assert count_file_rows(actions) == FileRowCounts(added=17, removed=10, not_copied=7)


def test_counts_that_add_up_have_no_problem() -> None:
    assert row_count_problems(CHANGES, FILES, may_insert=True, may_delete=True) == ()


@pytest.mark.parametrize(
    ("changes", "files", "may_insert", "may_delete", "said"),
    [
        pytest.param({"inserted": 0}, {"added": 21}, False, True, "rows were added", id="1"),
        pytest.param({"deleted": 0}, {"added": 19}, True, False, "rows were lost", id="2"),
        pytest.param({}, {}, False, True, "counted as inserted", id="3 inserts"),
        pytest.param({}, {}, True, False, "counted as deleted", id="3 deletes"),
        pytest.param({"updated": -1}, {}, True, True, "negative", id="4"),
        pytest.param({}, {"removed": 21}, True, True, "is not the 21 rows removed", id="5"),
        pytest.param({}, {"added": 23}, True, True, "is not the 23 rows added", id="6"),
    ],
)
def test_each_law_is_checked(
    changes: dict[str, int],
    files: dict[str, int],
    may_insert: bool,
    may_delete: bool,
    said: str,
) -> None:
    problems = row_count_problems(
        replace(CHANGES, **changes),
        replace(FILES, **files),
        may_insert=may_insert,
        may_delete=may_delete,
    )
    assert any(said in problem for problem in problems), problems


def test_laws_that_need_an_unknown_count_are_passed_over() -> None:
    unknown = FileRowCounts(added=None, removed=None, not_copied=None)
    assert row_count_problems(CHANGES, unknown, may_insert=True, may_delete=True) == ()


def test_the_error_names_the_operation_and_the_totals() -> None:
    with pytest.raises(DeltaError, match=r"MERGE.*Added 23 records and removed 20") as caught:
        require_row_counts(
            "MERGE", CHANGES, replace(FILES, added=23), may_insert=True, may_delete=True
        )
    assert caught.value.code is ErrorCode.NUM_RECORDS_MISMATCH
    assert caught.value.details["numAddedRecords"] == 23


def test_a_tombstone_keeps_what_readers_need_x13() -> None:
    file = replace(MARKED, tags={"k": "v"}, base_row_id=7, default_row_commit_version=3)
    tombstone = remove_file(file, deleted_ms=5)
    assert tombstone.extended_file_metadata
    assert tombstone.data_change
    assert tombstone.stats == '{"numRecords":10}'
    assert (tombstone.deletion_vector, tombstone.base_row_id, tombstone.tags) == (
        VECTOR,
        7,
        {"k": "v"},
    )
    assert (tombstone.size_bytes, tombstone.partition_values, tombstone.deleted_ms) == (1, {}, 5)
