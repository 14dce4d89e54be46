"""The metrics of a MERGE, from counts that the stages returned (requirements 1.11).

Nothing here is an accumulator: a retried task cannot inflate a number (W-9). The history
holds every name the reference writes, with the reference's meaning.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from puredelta.log.row_counts import RowChanges


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeRows:
    """How many rows met which fate."""

    source: int
    inserted: int = 0
    matched_updated: int = 0
    matched_deleted: int = 0
    by_source_updated: int = 0
    """NOT MATCHED BY SOURCE clauses, like `by_source_deleted`."""
    by_source_deleted: int = 0
    copied: int = 0
    """Rows rewritten unchanged because a neighbour in their file changed."""

    @property
    def updated(self) -> int:
        """Rows a fired UPDATE replaced, also by equal values."""
        return self.matched_updated + self.by_source_updated

    @property
    def deleted(self) -> int:
        """Rows a fired DELETE removed; once, however many source rows matched (M-72)."""
        return self.matched_deleted + self.by_source_deleted

    @property
    def changes(self) -> RowChanges:
        """The same for the laws that every commit obeys."""
        return RowChanges(
            inserted=self.inserted, updated=self.updated, deleted=self.deleted, copied=self.copied
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeFiles:
    """How many files and bytes came and went."""

    added: int = 0
    added_bytes: int = 0
    removed: int = 0
    removed_bytes: int = 0
    deletion_vectors_removed: int = 0
    """Removed files that carried a deletion vector."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeTimes:
    """Wall-clock time of the phases; 0 for one that did not run."""

    execution_ms: int = 0
    materialize_source_ms: int = 0
    scan_ms: int = 0
    """Pruning and the search for positions."""
    rewrite_ms: int = 0
    """Writing changed rows and splitting touched files, which overlap."""


def operation_metrics(rows: MergeRows, files: MergeFiles, times: MergeTimes) -> Mapping[str, int]:
    """Return ``operationMetrics`` under the reference's names.

    >>> metrics = operation_metrics(MergeRows(source=3, inserted=1), MergeFiles(), MergeTimes())
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
        "numTargetChangeFilesAdded": 0,
        "numTargetDeletionVectorsAdded": 0,
        "numTargetDeletionVectorsRemoved": files.deletion_vectors_removed,
        "numTargetDeletionVectorsUpdated": 0,
        "executionTimeMs": times.execution_ms,
        "materializeSourceTimeMs": times.materialize_source_ms,
        "scanTimeMs": times.scan_ms,
        "rewriteTimeMs": times.rewrite_ms,
    }
