from __future__ import annotations

from puredelta.commands.merge.metrics import operation_metrics
from puredelta.commands.row_changes.counts import FileCounts, PhaseTimes, RowCounts
from puredelta.log.files.row_counts import RowChanges

REFERENCE_NAMES = """
    numSourceRows numTargetRowsInserted numTargetRowsUpdated numTargetRowsMatchedUpdated
    numTargetRowsNotMatchedBySourceUpdated numTargetRowsDeleted numTargetRowsMatchedDeleted
    numTargetRowsNotMatchedBySourceDeleted numTargetRowsCopied numTargetBytesAdded
    numTargetBytesRemoved numOutputRows numTargetFilesAdded numTargetFilesRemoved
    numTargetChangeFilesAdded executionTimeMs materializeSourceTimeMs scanTimeMs rewriteTimeMs
    numTargetDeletionVectorsAdded numTargetDeletionVectorsRemoved numTargetDeletionVectorsUpdated
""".split()  # noqa: SIM905 - as the table of the reference


def test_every_name_of_the_reference_is_there_and_no_other() -> None:
    """M-160: the names that delta-spark writes into ``commitInfo``."""
    metrics = operation_metrics(RowCounts(source=0), FileCounts(), PhaseTimes())
    assert sorted(metrics) == sorted(REFERENCE_NAMES)
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
    metrics = operation_metrics(rows, FileCounts(), PhaseTimes())
    assert metrics["numTargetRowsUpdated"] == 23
    assert metrics["numTargetRowsDeleted"] == 45
    assert metrics["numOutputRows"] == 1 + 23 + 600
    assert rows.changes == RowChanges(inserted=1, updated=23, deleted=45, copied=600)
