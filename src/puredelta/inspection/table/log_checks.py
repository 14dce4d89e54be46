"""What is wrong with a table's log: gaps, damage, features, checkpoints."""

from __future__ import annotations

from collections.abc import Iterator

from puredelta.errors import DeltaError, UnsupportedError
from puredelta.inspection.findings import Finding, Severity
from puredelta.log.replay.segment import LogListing, first_gap
from puredelta.log.replay.snapshot import Snapshot
from puredelta.protocol.features.feature_registry import Capability
from puredelta.quantities import counted

_COMMITS_WITHOUT_CHECKPOINT = 10
"""Times ``delta.checkpointInterval``: then reading the log costs more than it should."""
_DAY_MS = 86_400_000


def listing_findings(listing: LogListing, root_uri: str) -> Iterator[Finding]:
    """Say whether the files of the log are complete."""
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
    """Name commits without a byte: readers take them for commits that change nothing."""
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
    """Say why the newest version cannot be read."""
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
    """Say what this library can do with the table, and why not the rest."""
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
    """Return why this library cannot do something with a table, None if it can."""
    try:
        snapshot.config.require(capability)
    except DeltaError as error:
        return error.message
    return None


def checkpoint_findings(
    snapshot: Snapshot, listing: LogListing, *, now_ms: int
) -> Iterator[Finding]:
    """Say how far the newest checkpoint is behind."""
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
