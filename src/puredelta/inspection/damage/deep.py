"""The deep check of a table: its whole log, then its data files; nothing is written."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from puredelta.errors import DeltaError
from puredelta.inspection.damage.checkpoints import (
    check_checkpoint,
    check_checksum,
    check_compactions,
    check_hint,
    checksum_files,
)
from puredelta.inspection.damage.data_files import (
    check_change_files,
    check_data_files,
    check_orphans,
)
from puredelta.inspection.damage.history import History
from puredelta.inspection.damage.kinds import Damage, Damages
from puredelta.inspection.findings import Finding, Severity
from puredelta.log.files.clock import Clock, wall_clock
from puredelta.log.replay.commit_files import Commit, read_actions
from puredelta.log.replay.segment import LogListing, list_log
from puredelta.log.replay.snapshot import Snapshot
from puredelta.log.replay.table_log import TableLog
from puredelta.quantities import counted, in_milliseconds

_COMMITS_BETWEEN_NOTES = 1_000


def deep_findings(
    log: TableLog, *, clock: Clock = wall_clock, progress: Callable[[str], None] = lambda _: None
) -> Iterator[Finding]:
    """Yield a finding for each kind of damage, with evidence, or one that says there is none.

    Reads every commit and checkpoint that is left, and the footers, deletion vectors and change
    files of the data files. ``progress`` is called with a line of text from time to time.

    Examples:
        >>> for finding in deep_findings(TableLog.open("/data/events")):  # doctest: +SKIP
        ...     print(finding.check, finding.evidence)
    """
    found = Damages()
    listing = list_log(log.store)
    history = _read_history(log, listing, found, progress)
    check_hint(log.store, listing, found)
    check_compactions(log.store, listing, found)
    snapshot = _newest(log)
    if snapshot is not None:
        now_ms = clock()
        check_data_files(snapshot, log.store, found, progress)
        retention = snapshot.config.properties.deleted_file_retention
        kept_since_ms = now_ms - in_milliseconds(retention)
        progress(f"{counted(len(history.changes), 'commit')} with change files")
        check_change_files(history.changes, log.store, found, kept_since_ms=kept_since_ms)
        oldest_ms = min((file.modified_ms for file in listing.commits.values()), default=now_ms)
        since_ms = 0 if 0 in listing.commits else oldest_ms
        check_orphans(
            snapshot, log.store, found, named=history.named, written_ms=(since_ms, now_ms)
        )
    if found.counts:
        yield from found.findings()
        return
    yield Finding(
        check="damage",
        severity=Severity.OK,
        message=f"{counted(len(listing.commits), 'commit')} and "
        f"{counted(0 if snapshot is None else len(snapshot.files), 'data file')} agree.",
    )


def _newest(log: TableLog) -> Snapshot | None:
    """Return the newest version; None if it cannot be read, as other checks say."""
    try:
        return log.snapshot()
    except DeltaError:
        return None


def _read_history(
    log: TableLog, listing: LogListing, found: Damages, progress: Callable[[str], None]
) -> History:
    history = History(found=found)
    checksums = checksum_files(log.store)
    first = _begin(log, listing, history)
    expected = min(listing.commits, default=0)
    for count, (version, file) in enumerate(sorted(listing.commits.items()), start=1):
        for missing in range(expected, version):
            found.add(Damage.COMMIT_MISSING, f"version {missing}")
            history.is_complete = history.is_complete and missing <= first
        expected = version + 1
        try:
            actions = tuple(read_actions(log.store, file.path))
        except (DeltaError, OSError) as error:
            found.add(Damage.COMMIT_UNREADABLE, f"version {version}: {_line(error)}")
            history.is_complete = history.is_complete and version <= first
            continue
        if not actions:
            found.add(Damage.COMMIT_UNREADABLE, f"version {version}: has no action")
            history.is_complete = history.is_complete and version <= first
            continue
        commit = Commit(version=version, modified_ms=file.modified_ms, actions=actions)
        if version <= first:
            history.see_older(commit)
        else:
            history.see(commit)
        if version in listing.checkpoints and version > first:
            check_checkpoint(log.store, listing.checkpoints[version], history, found)
        if version in checksums and version >= first:
            check_checksum(log.store, checksums[version], version, history, found)
        if count % _COMMITS_BETWEEN_NOTES == 0:
            progress(f"{count:,} of {counted(len(listing.commits), 'commit')} are checked")
    history.finish()
    return history


def _begin(log: TableLog, listing: LogListing, history: History) -> int:
    """Start the history at the oldest version that is known; return it, -1 for the creation."""
    if 0 in listing.commits or not listing.checkpoints:
        return -1
    version = min(listing.checkpoints)
    try:
        history.begin(log.snapshot(version=version))
    except DeltaError as error:
        history.found.add(Damage.CHECKPOINT_UNREADABLE, f"version {version}: {_line(error)}")
        history.is_complete = False
    return version


def _line(error: Exception) -> str:
    return str(error).partition("\n")[0]
