"""Which log files are old enough to go, and their removal (section "Metadata Cleanup", X-38).

Everything before the newest checkpoint that is itself older than the retention time goes: the
table, and every version from that checkpoint on, can be rebuilt without it. Files go oldest
first, so that a clean-up that is cut short leaves a log that is merely shorter.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone

from typing_extensions import assert_never

from puredelta.log.replay.checkpoint_read import sidecar_names
from puredelta.log.replay.history import adjusted_times
from puredelta.log.replay.segment import LogListing, list_log
from puredelta.protocol.actions.log_paths import (
    LOG_DIRECTORY,
    SIDECAR_DIRECTORY,
    ChecksumFile,
    ClassicCheckpoint,
    CommitFile,
    CompactedFile,
    LogName,
    MultiPartCheckpoint,
    V2Checkpoint,
    parse_log_name,
)
from puredelta.protocol.features.properties import TableProperties
from puredelta.store.base import Store, StoredFile

SIDECAR_AGE_MIN = timedelta(days=1)
"""A younger sidecar may belong to a checkpoint that is being written."""

_MILLISECOND = timedelta(milliseconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Expired:
    """Log files that may go."""

    files: tuple[StoredFile, ...]
    """Oldest version first."""
    has_checkpoint: bool
    """Whether a checkpoint is among them, so that sidecars may have lost their last user."""


NOTHING_EXPIRED = Expired(files=(), has_checkpoint=False)


def clean_up_log(store: Store, properties: TableProperties, *, now_ms: int) -> int:
    """Remove expired log files where the table allows it; return how many.

    Raises:
        StorageError, PermissionError: a file could not be removed; others may be gone.
    """
    if not properties.enable_expired_log_cleanup:
        return 0
    expired = find_expired(
        tuple(store.list_from(LOG_DIRECTORY)),
        list_log(store),
        cutoff_ms=cutoff_time(now_ms, properties.log_retention),
        protected_before=properties.require_checkpoint_protection_before_version,
    )
    for file in expired.files:
        store.delete(file.path)
    removed = len(expired.files)
    if expired.has_checkpoint:
        removed += _remove_lost_sidecars(store, now_ms=now_ms)
    return removed


def cutoff_time(now_ms: int, retention: timedelta) -> int:
    """Return the midnight (UTC) before the retention time began, in epoch milliseconds.

    >>> cutoff_time(1_700_000_000_000, timedelta(days=1)) % 86_400_000
    0
    """
    begin = datetime.fromtimestamp(now_ms / 1000, tz=timezone.utc) - retention
    midnight = begin.replace(hour=0, minute=0, second=0, microsecond=0)
    return (midnight - datetime(1970, 1, 1, tzinfo=timezone.utc)) // _MILLISECOND


def find_expired(
    files: Iterable[StoredFile], listing: LogListing, *, cutoff_ms: int, protected_before: int
) -> Expired:
    """Pick the files before the newest checkpoint that is as old as the cut-off.

    ``protected_before`` is the version up to which checkpoints may only go all together
    (feature ``checkpointProtection``). Names that are none of a log are left alone.
    """
    versions = sorted(listing.commits)
    times = adjusted_times(listing.commits[version].modified_ms for version in versions)
    old = [v for v, time_ms in zip(versions, times, strict=True) if time_ms <= cutoff_ms]
    checkpoint = listing.newest_checkpoint(old[-1]) if old else None
    if checkpoint is None or checkpoint.version < protected_before:
        return NOTHING_EXPIRED
    expired: list[tuple[int, StoredFile]] = []
    has_checkpoint = False
    for file in files:
        name = parse_log_name(file.name)
        if name is not None and _is_before(name, checkpoint.version):
            expired.append((name.version, file))
            has_checkpoint = has_checkpoint or isinstance(
                name, ClassicCheckpoint | MultiPartCheckpoint | V2Checkpoint
            )
    expired.sort(key=lambda entry: (entry[0], entry[1].name))
    return Expired(files=tuple(file for _, file in expired), has_checkpoint=has_checkpoint)


def _is_before(name: LogName, version: int) -> bool:
    match name:
        case CompactedFile():
            return name.low <= version
        case (
            CommitFile()
            | ChecksumFile()
            | ClassicCheckpoint()
            | MultiPartCheckpoint()
            | V2Checkpoint()
        ):
            return name.version < version
        case _:
            assert_never(name)


def _remove_lost_sidecars(store: Store, *, now_ms: int) -> int:
    """Remove old sidecars that no checkpoint names any more."""
    oldest_ms = now_ms - SIDECAR_AGE_MIN // _MILLISECOND
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
    lost = [file for file in old if file.name not in named]
    for file in lost:
        store.delete(file.path)
    return len(lost)
