"""Files of a commit, counted as delta-spark counts them (M-160)."""

from __future__ import annotations

from dataclasses import replace

from puredelta.commands.row_changes.counts import FileCounts, count_files
from puredelta.log.files.tombstones import remove_file
from puredelta.protocol.actions.actions import Add, AddChangeFile, DeletionVectorDescriptor

VECTOR = DeletionVectorDescriptor(
    storage_type="u", path_or_inline="x", offset=1, size_bytes=34, cardinality=1
)


def file(path: str, size_bytes: int, vector: DeletionVectorDescriptor | None = None) -> Add:
    return Add(
        path=path,
        partition_values={},
        size_bytes=size_bytes,
        modified_ms=0,
        data_change=True,
        deletion_vector=vector,
    )


def test_copies_count_what_came_and_went() -> None:
    old = [file("a", 10), file("b", 20, VECTOR)]
    changes = [AddChangeFile(path="c", partition_values={}, size_bytes=7)]
    counts = count_files(
        removes=[remove_file(f, deleted_ms=0) for f in old],
        added=[file("n", 5)],
        kept=[],
        changes=changes,
    )
    assert counts == FileCounts(
        added=1,
        added_bytes=5,
        removed=2,
        removed_bytes=30,
        change_files=1,
        change_bytes=7,
        vectors_removed=1,
    )


def test_a_file_with_another_vector_neither_came_nor_went() -> None:
    plain, hidden, emptied = file("a", 10), file("b", 20, VECTOR), file("c", 40, VECTOR)
    larger = replace(VECTOR, cardinality=2, offset=50)
    counts = count_files(
        removes=[remove_file(f, deleted_ms=0) for f in (plain, hidden, emptied)],
        added=[file("n", 5)],
        kept=[replace(plain, deletion_vector=VECTOR), replace(hidden, deletion_vector=larger)],
    )
    assert counts == FileCounts(
        added=1,
        added_bytes=5,
        removed=1,
        removed_bytes=40,
        vectors_added=1,
        vectors_updated=1,
        vectors_removed=1,
    )
