"""The names of the metrics, and what is counted where."""

from __future__ import annotations

from puredelta.commands.row_changes.counts import FileCounts, PhaseTimes, RowCounts
from puredelta.commands.update_delete.metrics import (
    delete_metrics,
    update_metrics,
    whole_files_metrics,
)

FILES = FileCounts(
    added=1, removed=2, change_files=3, vectors_added=10, vectors_removed=20, vectors_updated=30
)


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
    counted = whole_files_metrics(5, FILES, PhaseTimes())
    unknown = whole_files_metrics(None, FILES, PhaseTimes())
    assert counted["numDeletedRows"] == 5
    assert counted.keys() - unknown.keys() == {"numDeletedRows", "numCopiedRows", "numAddedFiles"}
