"""Checks of one table: its log, its data files, and the order of its rows."""

from __future__ import annotations

from collections.abc import Collection, Iterator

import pyarrow.compute as pc

from puredelta.errors import DeltaError, TableNotFoundError, UnsupportedError
from puredelta.inspection.findings import Finding, Severity
from puredelta.inspection.overlap import ColumnDepth, column_depths
from puredelta.log.files.clock import Clock, wall_clock
from puredelta.log.maintenance.garbage import find_garbage, referenced_files, visible_to_vacuum
from puredelta.log.replay.segment import LogListing, first_gap, list_log
from puredelta.log.replay.snapshot import Snapshot
from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.actions.paths import folded_path, short_uri
from puredelta.protocol.features.feature_registry import Capability
from puredelta.protocol.table.clustering import clustering_columns
from puredelta.protocol.table.partitioning import Partitioning
from puredelta.quantities import counted, in_milliseconds, size_text
from puredelta.store.base import Store, StoredFile

SMALL_BYTES = 16 << 20
"""A file below this size costs about as much to open as to read."""
_SMALL_MIN = 20
_SMALL_SHARE = 0.5
_NAMED_MAX = 5
_LOOKED_FOR_MAX = 1_000
_FOREVER_MS = 1 << 62


def storage_findings(snapshot: Snapshot, store: Store, *, now_ms: int) -> Iterator[Finding]:
    """Compare the files in the log with those in the storage; the root is listed once."""
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
    """Report active files that are missing; only those below the root."""
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
    """Report whether there are many small files."""
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
    # One small file per partition is the minimum.
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
    """Report the number of files without row counts or bounds, which queries cannot skip."""
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
    """Report the number of rows that are marked as deleted and still stored."""
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


_COMMITS_WITHOUT_CHECKPOINT = 10
"""Multiple of ``delta.checkpointInterval`` from which reading the log is too expensive."""
_DAY_MS = 86_400_000


def listing_findings(listing: LogListing, root_uri: str) -> Iterator[Finding]:
    """Report whether the files of the log are complete."""
    latest = listing.latest_version
    if latest is None:
        return
    yield from _empty_commits(listing)
    newest = listing.newest_checkpoint(latest)
    needed_after = -1 if newest is None else newest.version
    gap = first_gap(listing, after=needed_after, through=latest)
    if gap is not None:
        yield Finding(
            check="log-gap",
            severity=Severity.ERROR,
            message=f"Version {gap} is missing in {root_uri}/_delta_log, and no checkpoint "
            "replaces it: the newest version cannot be read.",
            mend=f"Restore {gap:020d}.json from a backup, or read an older version.",
        )
        return
    oldest = min(listing.commits, default=latest + 1)
    old_gap = first_gap(listing, after=oldest - 1, through=latest)
    if old_gap is not None:
        yield Finding(
            check="log-gap",
            severity=Severity.WARNING,
            message=f"Version {old_gap} is missing in the log. The newest version has a "
            "checkpoint after it; some older versions cannot be read.",
            mend=f"Restore {old_gap:020d}.json from a backup if you need time travel over it.",
        )
        return
    yield Finding(
        check="log-gap",
        severity=Severity.OK,
        message=f"The log has {counted(len(listing.commits), 'commit')} without a gap, up to "
        f"version {latest}.",
    )


def _empty_commits(listing: LogListing) -> Iterator[Finding]:
    """Report empty commit files: readers take them for commits without changes."""
    empty = sorted(version for version, file in listing.commits.items() if not file.size_bytes)
    if empty:
        more = f" and {len(empty) - 1} more" if len(empty) > 1 else ""
        yield Finding(
            check="empty-commits",
            severity=Severity.ERROR,
            message=f"{empty[0]:020d}.json{more} in the log has no content. No writer makes such a "
            "commit; a power cut leaves one where a writer does not flush. Readers see the table "
            "without what was committed there.",
            mend=f"Restore {empty[0]:020d}.json from a backup, or write its rows again. Do not run "
            "VACUUM before: its data files count as left over.",
        )


def unreadable(error: DeltaError) -> Finding:
    """Report why the newest version cannot be read."""
    is_feature = isinstance(error, UnsupportedError)
    return Finding(
        check="features" if is_feature else "log",
        severity=Severity.ERROR,
        message=str(error),
        mend="Use an engine that has the feature, or drop it there: ALTER TABLE ... DROP FEATURE."
        if is_feature
        else "Restore the file that is named from a backup. Newer or older versions may still "
        "be readable.",
    )


def feature_findings(snapshot: Snapshot) -> Iterator[Finding]:
    """Report the supported operations on the table, and the reasons against all others."""
    wanted = (Capability.APPEND, Capability.MERGE, Capability.ADMINISTER)
    refused = next(filter(None, (_refusal(snapshot, capability) for capability in wanted)), None)
    if refused is not None:
        yield Finding(
            check="features",
            severity=Severity.WARNING,
            message=refused,
            mend="Do that with an engine that has the feature; reading works here.",
        )
        return
    protocol = snapshot.protocol
    names = ", ".join(sorted(snapshot.config.supported_features)) or "none"
    yield Finding(
        check="features",
        severity=Severity.OK,
        message=f"Reader version {protocol.min_reader_version}, writer version "
        f"{protocol.min_writer_version}; every feature is supported: {names}.",
    )


def _refusal(snapshot: Snapshot, capability: Capability) -> str | None:
    """Return the reason why this library cannot access a table, None if it can."""
    try:
        snapshot.config.require(capability)
    except DeltaError as error:
        return error.message
    return None


def checkpoint_findings(
    snapshot: Snapshot, listing: LogListing, *, now_ms: int
) -> Iterator[Finding]:
    """Report the number of commits since the newest checkpoint."""
    interval = snapshot.config.properties.checkpoint_interval
    checkpoint = listing.newest_checkpoint(snapshot.version)
    behind = snapshot.version - (-1 if checkpoint is None else checkpoint.version)
    if behind > interval * _COMMITS_WITHOUT_CHECKPOINT:
        yield Finding(
            check="checkpoint",
            severity=Severity.WARNING,
            message=f"{counted(behind, 'commit')} since the newest checkpoint, although "
            f"delta.checkpointInterval is {interval}: every reader reads them one by one.",
            mend="OPTIMIZE the table, or commit anything with puredelta: a commit writes a "
            "checkpoint that is due. See in its log why the last ones were not written.",
        )
        return
    if checkpoint is None:
        text = f"None yet; one is written every {counted(interval, 'commit')}."
    else:
        newest_ms = max(file.modified_ms for file in checkpoint.files)
        days = max(0, now_ms - newest_ms) // _DAY_MS
        age, distance = counted(days, "day"), counted(behind, "commit")
        text = f"Of version {checkpoint.version}, {age} old, {distance} behind."
    yield Finding(check="checkpoint", severity=Severity.OK, message=text)


_FILES_MIN = 20
_DEEP_SHARE = 0.5


def table_findings(
    log: TableLog, *, lists_files: bool = True, clock: Clock = wall_clock
) -> Iterator[Finding]:
    """Check the log and the files of a table; nothing is written.

    With ``lists_files`` the whole table root is listed once.

    Raises:
        TableNotFoundError: there is no table.
        PermissionError, StorageError: the storage cannot be read.
    """
    now_ms = clock()
    listing = list_log(log.store)
    yield from listing_findings(listing, log.root_uri)
    try:
        snapshot = log.snapshot()
    except TableNotFoundError:
        raise
    except DeltaError as error:
        yield unreadable(error)
        return
    yield from feature_findings(snapshot)
    yield from checkpoint_findings(snapshot, listing, now_ms=now_ms)
    if lists_files:
        yield from storage_findings(snapshot, log.store, now_ms=now_ms)
    yield from state_findings(snapshot)


def state_findings(snapshot: Snapshot) -> Iterator[Finding]:
    """Check the newest version's own files; nothing is listed."""
    yield from size_findings(snapshot)
    yield from statistics_findings(snapshot)
    yield from vector_findings(snapshot)
    yield from clustering_findings(snapshot, column_depths(snapshot))


def clustering_findings(snapshot: Snapshot, depths: tuple[ColumnDepth, ...]) -> Iterator[Finding]:
    """Report whether the files are ordered by the columns that should order them."""
    wanted = {".".join(p) for p in clustering_columns(snapshot.config, snapshot.domain_metadata)}
    for depth in depths:
        if depth.column not in wanted or depth.num_files < _FILES_MIN:
            continue
        if depth.average > _DEEP_SHARE * depth.num_files:
            yield Finding(
                check="clustering",
                severity=Severity.WARNING,
                message=f"The table is clustered by {depth.column}, but a value of it may be in "
                f"{depth.average:.1f} of {counted(depth.num_files, 'file')}.",
                mend=f"OPTIMIZE delta.`{short_uri(snapshot.root_uri)}`",
            )
