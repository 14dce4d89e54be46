"""``operationMetrics`` of UPDATE and DELETE, under the names the reference writes.

Row counts mean what they mean there. File counts are those of this implementation, where a
file that stays under another deletion vector was neither added nor removed; but an UPDATE
counts it among the removed ones, as the reference does.
"""

from __future__ import annotations

from collections.abc import Mapping

from puredelta.commands.row_changes.counts import FileCounts, PhaseTimes, RowCounts


def update_metrics(rows: RowCounts, files: FileCounts, times: PhaseTimes) -> Mapping[str, int]:
    """Return the metrics of an UPDATE.

    >>> update_metrics(RowCounts(source=0, by_source_updated=2), FileCounts(), PhaseTimes())[
    ...     "numUpdatedRows"
    ... ]
    2
    """
    return {
        "numUpdatedRows": rows.updated,
        "numCopiedRows": rows.copied,
        **_file_metrics(files),
        "numRemovedFiles": files.removed + files.vectors_added + files.vectors_updated,
        **_time_metrics(times),
    }


def delete_metrics(rows: RowCounts, files: FileCounts, times: PhaseTimes) -> Mapping[str, int]:
    """Return the metrics of a DELETE that read rows."""
    return {
        "numDeletedRows": rows.deleted,
        "numCopiedRows": rows.copied,
        **_file_metrics(files),
        **_time_metrics(times),
    }


def whole_files_metrics(
    deleted: int | None, files: FileCounts, times: PhaseTimes
) -> Mapping[str, int]:
    """Return the metrics of a DELETE of whole files; ``None``: nobody counted their rows.

    The names that need a count are left out then, as in the reference.

    >>> "numDeletedRows" in whole_files_metrics(None, FileCounts(removed=1), PhaseTimes())
    False
    """
    if deleted is None:
        some = _file_metrics(files)
        some.pop("numAddedFiles")
        return {**some, **_time_metrics(times)}
    rows = RowCounts(source=0, by_source_deleted=deleted)
    return delete_metrics(rows, files, times)


def _file_metrics(files: FileCounts) -> dict[str, int]:
    return {
        "numAddedFiles": files.added,
        "numAddedBytes": files.added_bytes,
        "numRemovedFiles": files.removed,
        "numRemovedBytes": files.removed_bytes,
        "numAddedChangeFiles": files.change_files,
        "numDeletionVectorsAdded": files.vectors_added + files.vectors_updated,
        "numDeletionVectorsRemoved": files.vectors_removed + files.vectors_updated,
        "numDeletionVectorsUpdated": files.vectors_updated,
    }


def _time_metrics(times: PhaseTimes) -> dict[str, int]:
    return {
        "executionTimeMs": times.execution_ms,
        "scanTimeMs": times.scan_ms,
        "rewriteTimeMs": times.rewrite_ms,
    }
