"""Removal of expired log files (section "Metadata Cleanup", X-38).

A file expires if it is older than the newest checkpoint beyond the retention time: every version
from that checkpoint on can be rebuilt without the file. Files are removed oldest first, so that
an interrupted clean-up leaves a log that is only shorter.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta, timezone

from puredelta.log.replay.checkpoint_read import sidecar_names
from puredelta.log.replay.history import file_times
from puredelta.log.replay.segment import LogListing, list_log
from puredelta.protocol.actions.log_paths import (
    LOG_DIRECTORY,
    SIDECAR_DIRECTORY,
    ClassicCheckpoint,
    CompactedFile,
    LogName,
    MultiPartCheckpoint,
    V2Checkpoint,
    parse_log_name,
)
from puredelta.protocol.features.properties import TableProperties
from puredelta.quantities import in_milliseconds
from puredelta.store.base import Store, StoredFile, is_temporary

UNFINISHED_AGE_MIN = timedelta(days=1)
"""A younger sidecar or temporary file may belong to what is being written."""

_MINUTE_MS = 60_000
_CHECKPOINTS = (ClassicCheckpoint, MultiPartCheckpoint, V2Checkpoint)


def clean_up_log(store: Store, properties: TableProperties, *, now_ms: int) -> int:
    """Remove expired log files if the table allows that; return how many.

    Temporary files that a killed process has left go in any case.
    """
    _remove_temporaries(store, now_ms=now_ms)
    if not properties.enable_expired_log_cleanup:
        return 0
    return _remove_before(store, properties, cutoff_time(now_ms, properties.log_retention), now_ms)


def truncate_log(store: Store, properties: TableProperties, *, now_ms: int) -> int:
    """Remove log files beyond ``delta.dropFeatureTruncateHistory.retentionDuration``.

    For DROP FEATURE: the time counts by the minute, and the table's own clean-up may be off.
    """
    begin_ms = now_ms - in_milliseconds(properties.truncated_log_retention)
    return _remove_before(store, properties, begin_ms - begin_ms % _MINUTE_MS, now_ms)


def _remove_before(store: Store, properties: TableProperties, cutoff_ms: int, now_ms: int) -> int:
    expired = find_expired(
        tuple(store.list_from(LOG_DIRECTORY)),
        list_log(store),
        cutoff_ms=cutoff_ms,
        protected_before=properties.require_checkpoint_protection_before_version,
    )
    for file in expired:
        store.delete(file.path)
    # Once a checkpoint is removed, its sidecars may be unused.
    has_checkpoint = any(isinstance(parse_log_name(f.name), _CHECKPOINTS) for f in expired)
    unused = _remove_unused_sidecars(store, now_ms=now_ms) if has_checkpoint else 0
    return len(expired) + unused


def cutoff_time(now_ms: int, retention: timedelta) -> int:
    """Return the midnight (UTC) before the retention time began, in epoch milliseconds.

    >>> cutoff_time(1_700_000_000_000, timedelta(days=1)) % 86_400_000
    0
    """
    begin = datetime.fromtimestamp(now_ms / 1000, tz=timezone.utc) - retention
    midnight = begin.replace(hour=0, minute=0, second=0, microsecond=0)
    return in_milliseconds(midnight - datetime(1970, 1, 1, tzinfo=timezone.utc))


def find_expired(
    files: Iterable[StoredFile], listing: LogListing, *, cutoff_ms: int, protected_before: int
) -> tuple[StoredFile, ...]:
    """Return the files before the newest checkpoint beyond the cut-off, oldest version first.

    Checkpoints before ``protected_before`` may only be removed all together (feature
    ``checkpointProtection``). Files with names that no log has are kept.
    """
    times = file_times(listing.commits)
    old = [version for version, time_ms in times.items() if time_ms <= cutoff_ms]
    checkpoint = listing.newest_checkpoint(old[-1]) if old else None
    if checkpoint is None or checkpoint.version < protected_before:
        return ()
    expired: list[tuple[int, str, StoredFile]] = []
    for file in files:
        name = parse_log_name(file.name)
        if name is not None and _is_before(name, checkpoint.version):
            expired.append((name.version, file.name, file))
    return tuple(file for *_, file in sorted(expired, key=lambda entry: entry[:2]))


def _remove_temporaries(store: Store, *, now_ms: int) -> None:
    """Remove the unfinished files of killed writers."""
    oldest_ms = now_ms - in_milliseconds(UNFINISHED_AGE_MIN)

    def is_wanted(path: str) -> bool:
        return path == SIDECAR_DIRECTORY or is_temporary(path)

    for entry in store.inventory(LOG_DIRECTORY, is_wanted=is_wanted):
        if isinstance(entry, StoredFile) and entry.modified_ms < oldest_ms:
            store.delete(entry.path)


def _is_before(name: LogName, version: int) -> bool:
    return name.low <= version if isinstance(name, CompactedFile) else name.version < version


def _remove_unused_sidecars(store: Store, *, now_ms: int) -> int:
    """Remove old sidecars that no checkpoint refers to."""
    oldest_ms = now_ms - in_milliseconds(UNFINISHED_AGE_MIN)
    old = [file for file in store.list_from(SIDECAR_DIRECTORY) if file.modified_ms < oldest_ms]
    if not old:
        return 0
    named = sidecar_names(
        store,
        (
            file.path
            for file in store.list_from(LOG_DIRECTORY)
            if isinstance(parse_log_name(file.name), ClassicCheckpoint | V2Checkpoint)
        ),
    )
    unused = [file for file in old if file.name not in named]
    for file in unused:
        store.delete(file.path)
    return len(unused)
