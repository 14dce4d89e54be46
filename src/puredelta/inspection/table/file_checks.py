"""What is wrong with a table's data files: missing, not needed, too small, without statistics."""

from __future__ import annotations

from collections.abc import Collection, Iterator

import pyarrow.compute as pc

from puredelta.inspection.findings import Finding, Severity
from puredelta.inspection.table.overlap import column_depths
from puredelta.log.maintenance.garbage import find_garbage, visible_to_vacuum
from puredelta.log.maintenance.referenced_files import referenced_files
from puredelta.log.replay.snapshot import Snapshot
from puredelta.protocol.actions.paths import folded_path, short_uri
from puredelta.protocol.table.partitioning import Partitioning
from puredelta.quantities import counted, in_milliseconds, size_text
from puredelta.store.base import Store, StoredFile

SMALL_BYTES = 16 << 20
"""A file below this costs about as much to open as to read."""
_SMALL_MIN = 20
_SMALL_SHARE = 0.5
_NAMED_MAX = 5
_LOOKED_FOR_MAX = 1_000
_FOREVER_MS = 1 << 62


def storage_findings(snapshot: Snapshot, store: Store, *, now_ms: int) -> Iterator[Finding]:
    """Compare the files that the log names with those that are there; the root is listed once."""
    is_wanted = visible_to_vacuum(snapshot.config.physical_partition_columns)
    entries = list(store.inventory("", is_wanted=is_wanted))
    present = {folded_path(e.path) for e in entries if isinstance(e, StoredFile)}
    yield _missing(snapshot, store, present)
    retention = snapshot.config.properties.deleted_file_retention
    before_ms = now_ms - in_milliseconds(retention)
    needed = referenced_files(snapshot, removed_since_ms=before_ms)
    garbage = find_garbage(entries, referenced=needed, modified_before_ms=before_ms)
    if garbage.files:
        yield Finding(
            check="unreferenced-files",
            severity=Severity.WARNING,
            message=f"{counted(len(garbage.files), 'file')} of {size_text(garbage.size_bytes)} "
            "are older than the retention time and no version within it needs them: "
            f"{_named([file.path for file in garbage.files])}.",
            mend=f"VACUUM delta.`{short_uri(snapshot.root_uri)}` (puredelta vacuum TABLE shows "
            "them, with --delete it deletes them)",
        )
    else:
        yield Finding(
            check="unreferenced-files",
            severity=Severity.OK,
            message="VACUUM would delete nothing.",
        )


def _missing(snapshot: Snapshot, store: Store, present: Collection[str]) -> Finding:
    """Say which active files are not there; those below the root only."""
    active = referenced_files(snapshot, removed_since_ms=_FOREVER_MS)
    unseen = sorted(path for path in active if folded_path(path) not in present)
    missing = [p for p in unseen[:_LOOKED_FOR_MAX] if not store.exists(p)]
    if not missing:
        return Finding(
            check="missing-files",
            severity=Severity.OK,
            message=f"All {counted(len(active), 'file')} of the newest version are there.",
        )
    more = "at least " if len(unseen) > _LOOKED_FOR_MAX else ""
    return Finding(
        check="missing-files",
        severity=Severity.ERROR,
        message=f"{more}{counted(len(missing), 'file')} of the newest version are not there, so "
        f"reading fails: {_named(missing)}.",
        mend="Restore them from a backup, or go back to a version whose files are there: "
        "puredelta restore TABLE --version N. Rows of files that are gone for good are removed "
        "by deleting them by a condition that only they fulfil.",
    )


def size_findings(snapshot: Snapshot) -> Iterator[Finding]:
    """Say whether there are many small files."""
    files = snapshot.files
    if not len(files):
        yield Finding(check="small-files", severity=Severity.OK, message="The table is empty.")
        return
    small = pc.sum(pc.less(files.rows["size_bytes"], SMALL_BYTES)).as_py() or 0
    average = files.total_size_bytes / len(files)
    partitions = max(1, files.num_partitions(Partitioning.of(snapshot.config)))
    text = (
        f"{small:,} of {counted(len(files), 'file')} are smaller than {size_text(SMALL_BYTES)}; "
        f"the average is {size_text(average)}."
    )
    # One small file a partition is as good as it gets.
    if small >= max(_SMALL_MIN, _SMALL_SHARE * len(files)) and small > 2 * partitions:
        yield Finding(
            check="small-files",
            severity=Severity.WARNING,
            message=f"{text} Set 'delta.autoOptimize.autoCompact' = 'true' if they come back.",
            mend=f"OPTIMIZE delta.`{short_uri(snapshot.root_uri)}`",
        )
    else:
        yield Finding(check="small-files", severity=Severity.OK, message=text)


def statistics_findings(snapshot: Snapshot) -> Iterator[Finding]:
    """Say how many files lack row counts or bounds, so that queries cannot skip them."""
    files = snapshot.files
    if not len(files):
        return
    without_counts = files.record_counts().null_count
    depths = [d for d in column_depths(snapshot) if not d.is_partition][:1]
    without_bounds = max([without_counts, *(d.num_without_bounds for d in depths)])
    if without_bounds:
        yield Finding(
            check="statistics",
            severity=Severity.WARNING,
            message=f"{without_bounds:,} of {counted(len(files), 'file')} lack statistics: "
            "queries and MERGE cannot skip them.",
            mend=f"OPTIMIZE delta.`{short_uri(snapshot.root_uri)}`",
        )
    else:
        yield Finding(
            check="statistics", severity=Severity.OK, message="Every file has statistics."
        )


def vector_findings(snapshot: Snapshot) -> Iterator[Finding]:
    """Say how many rows are marked as deleted and still stored."""
    deleted = pc.sum(snapshot.files.deleted_counts()).as_py() or 0
    rows = snapshot.files.num_records()
    if deleted and rows is not None and deleted > rows:
        yield Finding(
            check="deleted-rows",
            severity=Severity.WARNING,
            message=f"{counted(deleted, 'deleted row')} are still in the files, more than the "
            f"{counted(rows, 'row')} that are left: every read skips over them.",
            mend=f"REORG TABLE delta.`{short_uri(snapshot.root_uri)}` APPLY (PURGE)",
        )


def _named(paths: list[str]) -> str:
    more = len(paths) - _NAMED_MAX
    return ", ".join(paths[:_NAMED_MAX]) + (f" and {more:,} more" if more > 0 else "")
