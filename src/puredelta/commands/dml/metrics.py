"""``operationMetrics`` of every statement, under the names that delta-spark writes (M-160).

Row counts have delta-spark's meaning. File counts are those of this implementation: a file that
only gets another deletion vector is neither added nor removed; but an UPDATE counts it as removed,
as delta-spark does.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from typing_extensions import assert_never

from puredelta.commands.dml.resolve.resolved_statement import StatementKind
from puredelta.commands.dml.verify import RowCounts
from puredelta.commands.statement.stages import PhaseTimes
from puredelta.log.files.file_table import FileTable
from puredelta.protocol.actions.actions import Action, Add, AddChangeFile, Remove
from puredelta.protocol.table.partitioning import Partitioning


@dataclass(frozen=True, slots=True, kw_only=True)
class FileCounts:
    """Numbers of files and bytes added and removed.

    A file that only gets another deletion vector counts as neither.
    """

    added: int = 0
    added_bytes: int = 0
    removed: int = 0
    removed_bytes: int = 0
    change_files: int = 0
    vectors_added: int = 0
    """Files that got their first deletion vector."""
    vectors_removed: int = 0
    """Removed files that had a deletion vector."""
    vectors_updated: int = 0
    """Files whose deletion vector was replaced by a larger one."""


def count_files(
    *,
    removes: Sequence[Remove],
    added: Sequence[Add],
    kept: Sequence[Add],
    changes: Sequence[AddChangeFile] = (),
) -> FileCounts:
    """Count the files of a commit; ``kept`` are those that get a new deletion vector.

    A path that is both removed and kept only changed its vector (M-133).
    """
    staying = {add.path for add in kept}
    gone = [remove for remove in removes if remove.path not in staying]
    updated = sum(r.path in staying and r.deletion_vector is not None for r in removes)
    return FileCounts(
        added=len(added),
        added_bytes=sum(add.size_bytes for add in added),
        removed=len(gone),
        removed_bytes=sum(remove.size_bytes or 0 for remove in gone),
        change_files=len(changes),
        vectors_added=len(kept) - updated,
        vectors_removed=sum(remove.deletion_vector is not None for remove in gone),
        vectors_updated=updated,
    )


def operation_metrics(
    kind: StatementKind, rows: RowCounts, files: FileCounts, times: PhaseTimes
) -> Mapping[str, int]:
    """Return the metrics of a statement, as in the history."""
    match kind:
        case StatementKind.MERGE:
            return merge_metrics(rows, files, times)
        case StatementKind.UPDATE:
            return update_metrics(rows, files, times)
        case StatementKind.DELETE:
            return delete_metrics(rows, files, times)
        case StatementKind.REPLACE_WHERE:
            return replace_metrics(rows, files)
        case _:
            assert_never(kind)


def skipping_metrics(
    files: FileTable,
    candidates: FileTable,
    partitioning: Partitioning,
    actions: Sequence[Action],
) -> Mapping[str, int]:
    """Return the metrics of a MERGE that delta-spark shows in the UI, but not in the history.

    For a table without partitions there are none.
    """
    removed = [action for action in actions if isinstance(action, Remove)]
    added = [action for action in actions if isinstance(action, Add)]
    changes = [action for action in actions if isinstance(action, AddChangeFile)]
    return {
        "numTargetFilesBeforeSkipping": len(files),
        "numTargetFilesAfterSkipping": len(candidates),
        "numTargetBytesBeforeSkipping": files.total_size_bytes,
        "numTargetBytesAfterSkipping": candidates.total_size_bytes,
        "numTargetPartitionsAfterSkipping": candidates.num_partitions(partitioning),
        "numTargetPartitionsRemovedFrom": _num_partitions(removed, partitioning),
        "numTargetPartitionsAddedTo": _num_partitions(added, partitioning),
        "numTargetChangeFileBytes": sum(change.size_bytes for change in changes),
    }


def _num_partitions(actions: Iterable[Add | Remove], partitioning: Partitioning) -> int:
    values = (action.partition_values for action in actions)
    return len({partitioning.key(found) for found in values if found})


def merge_metrics(rows: RowCounts, files: FileCounts, times: PhaseTimes) -> Mapping[str, int]:
    """Return the metrics of a MERGE.

    >>> metrics = merge_metrics(RowCounts(source=3, inserted=1), FileCounts(), PhaseTimes())
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
    """Return the metrics of a DELETE; names that need a count are left out where there is none.

    >>> uncounted = RowCounts(source=0, is_counted=False)
    >>> "numDeletedRows" in delete_metrics(uncounted, FileCounts(removed=1), PhaseTimes())
    False
    """
    counted = _file_metrics(files)
    if not rows.is_counted:
        counted.pop("numAddedFiles")
        return {**counted, **_time_metrics(times)}
    return {
        "numDeletedRows": rows.deleted,
        "numCopiedRows": rows.copied,
        **counted,
        **_time_metrics(times),
    }


def replace_metrics(rows: RowCounts, files: FileCounts) -> Mapping[str, int]:
    """Return the metrics of ``replaceWhere``: those of a write."""
    return {
        "numFiles": files.added,
        "numRemovedFiles": files.removed,
        "numRemovedBytes": files.removed_bytes,
        "numOutputRows": rows.inserted + rows.copied,
        "numOutputBytes": files.added_bytes,
        "numDeletedRows": rows.deleted,
        "numCopiedRows": rows.copied,
        "numAddedChangeFiles": files.change_files,
    }


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
