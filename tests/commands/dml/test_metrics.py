"""The names of the metrics, and what is counted where, as in delta-spark (M-160)."""

from __future__ import annotations

from dataclasses import replace

from puredelta.commands.dml.metrics import (
    FileCounts,
    count_files,
    delete_metrics,
    merge_metrics,
    skipping_metrics,
    update_metrics,
)
from puredelta.commands.dml.verify import RowCounts
from puredelta.commands.statement.stages import PhaseTimes
from puredelta.log.files.file_table import FileTable, remove_file
from puredelta.log.files.row_counts import RowChanges
from puredelta.protocol.actions.actions import Add, AddChangeFile, DeletionVectorDescriptor
from puredelta.protocol.schema.types import STRING
from puredelta.protocol.table.partitioning import PartitionColumn, Partitioning

VECTOR = DeletionVectorDescriptor(
    storage_type="u", path_or_inline="x", offset=1, size_bytes=34, cardinality=1
)

MERGE_NAMES = """
    numSourceRows numTargetRowsInserted numTargetRowsUpdated numTargetRowsMatchedUpdated
    numTargetRowsNotMatchedBySourceUpdated numTargetRowsDeleted numTargetRowsMatchedDeleted
    numTargetRowsNotMatchedBySourceDeleted numTargetRowsCopied numTargetBytesAdded
    numTargetBytesRemoved numOutputRows numTargetFilesAdded numTargetFilesRemoved
    numTargetChangeFilesAdded executionTimeMs materializeSourceTimeMs scanTimeMs rewriteTimeMs
    numTargetDeletionVectorsAdded numTargetDeletionVectorsRemoved numTargetDeletionVectorsUpdated
""".split()  # noqa: SIM905 - as the table of delta-spark's metrics
FILES = FileCounts(
    added=1, removed=2, change_files=3, vectors_added=10, vectors_removed=20, vectors_updated=30
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


def test_every_name_of_delta_spark_is_there_and_no_other() -> None:
    """1.11: rows of the table marked "In commitInfo: yes"."""
    metrics = merge_metrics(RowCounts(source=0), FileCounts(), PhaseTimes())
    assert sorted(metrics) == sorted(MERGE_NAMES)
    assert set(metrics.values()) == {0}


def test_totals_are_sums_of_their_kinds() -> None:
    rows = RowCounts(
        source=100,
        inserted=1,
        matched_updated=20,
        by_source_updated=3,
        matched_deleted=40,
        by_source_deleted=5,
        copied=600,
    )
    metrics = merge_metrics(rows, FileCounts(), PhaseTimes())
    assert metrics["numTargetRowsUpdated"] == 23
    assert metrics["numTargetRowsDeleted"] == 45
    assert metrics["numOutputRows"] == 1 + 23 + 600
    assert rows.changes == RowChanges(inserted=1, updated=23, deleted=45, copied=600)


def test_files_under_new_deletion_vectors() -> None:
    rows, times = RowCounts(source=0), PhaseTimes()
    deleted, updated = delete_metrics(rows, FILES, times), update_metrics(rows, FILES, times)
    assert (deleted["numRemovedFiles"], updated["numRemovedFiles"]) == (2, 42)
    for metrics in (deleted, updated):
        assert metrics["numDeletionVectorsAdded"] == 40
        assert metrics["numDeletionVectorsRemoved"] == 50
        assert metrics["numDeletionVectorsUpdated"] == 30
        assert metrics["numAddedChangeFiles"] == 3


def test_rows_that_nobody_counted() -> None:
    counted = delete_metrics(RowCounts(source=0, by_source_deleted=5), FILES, PhaseTimes())
    unknown = delete_metrics(RowCounts(source=0, is_counted=False), FILES, PhaseTimes())
    assert counted["numDeletedRows"] == 5
    assert counted.keys() - unknown.keys() == {"numDeletedRows", "numCopiedRows", "numAddedFiles"}


def in_partition(path: str, **values: str | None) -> Add:
    return replace(file(path, 10), partition_values=values)


def test_what_only_the_ui_shows_of_a_merge() -> None:
    parted = [in_partition("a", p="1"), in_partition("b", p="1"), in_partition("c", p=None)]
    files = FileTable.of([*parted, in_partition("d", p="2")])
    change = AddChangeFile(path="e", partition_values={"p": "1"}, size_bytes=7)
    actions = [
        remove_file(parted[0]),
        remove_file(parted[2]),
        in_partition("f", p="3"),
        in_partition("g", p="3"),
        change,
    ]
    column = PartitionColumn(physical_name="p", type=STRING, is_padded=False, time_zone=None)
    by_p = Partitioning(columns=(column,))
    assert skipping_metrics(files, FileTable.of(parted), by_p, actions) == {
        "numTargetFilesBeforeSkipping": 4,
        "numTargetFilesAfterSkipping": 3,
        "numTargetBytesBeforeSkipping": 40,
        "numTargetBytesAfterSkipping": 30,
        "numTargetPartitionsAfterSkipping": 2,
        "numTargetPartitionsRemovedFrom": 2,
        "numTargetPartitionsAddedTo": 1,
        "numTargetChangeFileBytes": 7,
    }


def test_a_table_without_partitions_counts_none() -> None:
    plain = file("a", 10)
    shown = skipping_metrics(
        FileTable.of([plain]), FileTable.of([]), Partitioning(columns=()), [plain]
    )
    assert [count for name, count in shown.items() if "Partitions" in name] == [0, 0, 0]
    assert shown["numTargetBytesAfterSkipping"] == 0
