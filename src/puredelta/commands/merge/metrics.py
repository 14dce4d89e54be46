"""The metrics of a MERGE: counts of rows, files and times under delta-spark's names (M-160)."""

from __future__ import annotations

from collections.abc import Mapping

from puredelta.commands.row_changes.counts import FileCounts, PhaseTimes, RowCounts


def operation_metrics(rows: RowCounts, files: FileCounts, times: PhaseTimes) -> Mapping[str, int]:
    """Return ``operationMetrics`` with every name the reference writes, in its meaning.

    >>> metrics = operation_metrics(RowCounts(source=3, inserted=1), FileCounts(), PhaseTimes())
    >>> metrics["numOutputRows"]
    1
    """
    return {
        "numSourceRows": rows.source,
        "numTargetRowsInserted": rows.inserted,
        "numTargetRowsUpdated": rows.updated,
        "numTargetRowsMatchedUpdated": rows.matched_updated,
        "numTargetRowsNotMatchedBySourceUpdated": rows.by_source_updated,
        "numTargetRowsDeleted": rows.deleted,
        "numTargetRowsMatchedDeleted": rows.matched_deleted,
        "numTargetRowsNotMatchedBySourceDeleted": rows.by_source_deleted,
        "numTargetRowsCopied": rows.copied,
        "numOutputRows": rows.inserted + rows.updated + rows.copied,
        "numTargetBytesAdded": files.added_bytes,
        "numTargetBytesRemoved": files.removed_bytes,
        "numTargetFilesAdded": files.added,
        "numTargetFilesRemoved": files.removed,
        "numTargetChangeFilesAdded": files.change_files,
        "numTargetDeletionVectorsAdded": files.vectors_added + files.vectors_updated,
        "numTargetDeletionVectorsRemoved": files.vectors_removed + files.vectors_updated,
        "numTargetDeletionVectorsUpdated": files.vectors_updated,
        "executionTimeMs": times.execution_ms,
        "materializeSourceTimeMs": times.materialize_source_ms,
        "scanTimeMs": times.scan_ms,
        "rewriteTimeMs": times.rewrite_ms,
    }
