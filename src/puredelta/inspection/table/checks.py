"""All checks of one table, in the order in which a person wants to know."""

from __future__ import annotations

from collections.abc import Iterator

from puredelta.errors import DeltaError, TableNotFoundError
from puredelta.inspection.findings import Finding, Severity
from puredelta.inspection.table.file_checks import (
    size_findings,
    statistics_findings,
    storage_findings,
    vector_findings,
)
from puredelta.inspection.table.log_checks import (
    checkpoint_findings,
    feature_findings,
    listing_findings,
    unreadable,
)
from puredelta.inspection.table.overlap import ColumnDepth, column_depths
from puredelta.log.files.clock import Clock, wall_clock
from puredelta.log.replay.segment import list_log
from puredelta.log.replay.snapshot import Snapshot
from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.actions.paths import short_uri
from puredelta.protocol.table.clustering import clustering_columns
from puredelta.quantities import counted

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
    """Check what the newest version says of its own files; nothing is listed."""
    yield from size_findings(snapshot)
    yield from statistics_findings(snapshot)
    yield from vector_findings(snapshot)
    yield from clustering_findings(snapshot, column_depths(snapshot))


def clustering_findings(snapshot: Snapshot, depths: tuple[ColumnDepth, ...]) -> Iterator[Finding]:
    """Say whether the columns that should order the files do."""
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
