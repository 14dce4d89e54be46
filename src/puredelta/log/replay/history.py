"""When versions were committed: history, and finding a version by time (X-39).

A version's time is its in-commit timestamp where the table has those, else the time of its
commit file, pushed forward where the file system's clock went back, so that times grow
strictly with versions.
"""

from __future__ import annotations

import datetime as dt
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from puredelta.errors import ErrorCode, InvalidRequestError
from puredelta.log.replay.commit_files import log_file_not_found, read_commit_info
from puredelta.log.replay.segment import LogListing
from puredelta.protocol.actions.actions import CommitInfo
from puredelta.protocol.actions.log_paths import commit_name, log_path
from puredelta.protocol.table.table_config import TableConfig
from puredelta.store.base import Store

IN_COMMIT_TIMESTAMP = "inCommitTimestamp"
"""The table feature."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryEntry:
    """One commit, as DESCRIBE HISTORY shows it."""

    version: int
    timestamp_ms: int
    commit_info: CommitInfo | None
    """None where the commit says nothing about itself."""


def adjusted_times(modified_ms: Iterable[int]) -> list[int]:
    """Make the times of consecutive commit files strictly increasing, as the reference does.

    >>> adjusted_times([5, 3, 9])
    [5, 6, 9]
    """
    times: list[int] = []
    for time_ms in modified_ms:
        times.append(max(time_ms, times[-1] + 1) if times else time_ms)
    return times


def first_timestamped_version(config: TableConfig) -> int | None:
    """Return the version from which on in-commit timestamps count, None where disabled.

    A table that had them from the start names no version (X-11).
    """
    if not config.is_active(IN_COMMIT_TIMESTAMP):
        return None
    return config.properties.in_commit_timestamp_enablement_version or 0


def read_history(
    store: Store, listing: LogListing, config: TableConfig, *, limit: int | None = None
) -> list[HistoryEntry]:
    """Read the commits that are still there, newest first; ``limit`` bounds the files read.

    ``listing`` is that of the whole log, ``config`` that of its newest version.
    """
    versions = sorted(listing.commits)
    times = dict(
        zip(versions, adjusted_times(listing.commits[v].modified_ms for v in versions), strict=True)
    )
    timestamped_from = first_timestamped_version(config)
    entries = []
    for version in versions[::-1][:limit]:
        info = read_commit_info(store, listing.commits[version].path)
        time_ms = times[version]
        if timestamped_from is not None and version >= timestamped_from and info is not None:
            time_ms = info.in_commit_timestamp_ms or time_ms
        entries.append(HistoryEntry(version=version, timestamp_ms=time_ms, commit_info=info))
    return entries


def find_version_at(
    store: Store, listing: LogListing, config: TableConfig, *, timestamp_ms: int
) -> int:
    """Return the newest version committed at or before a time.

    ``listing`` is that of the whole log, ``config`` that of its newest version. Commit
    files are opened only where in-commit timestamps count, and few of them.

    Raises:
        InvalidRequestError: the time is before the first version that can be rebuilt, or
            after the last (DELTA_TIMESTAMP_EARLIER_THAN_COMMIT_RETENTION,
            DELTA_TIMESTAMP_GREATER_THAN_COMMIT).
        CorruptTableError: no commit file is left to tell any time (DELTA_LOG_FILE_NOT_FOUND).
    """
    earliest = listing.earliest_version or 0
    versions = [v for v in sorted(listing.commits) if v >= earliest]
    if not versions:
        raise log_file_not_found(store, log_path(commit_name(earliest)))
    timestamped_from = first_timestamped_version(config)
    time_of = _clock(store, listing, versions, timestamped_from)
    newest_ms = time_of(versions[-1])
    if timestamp_ms > newest_ms:
        raise _too_late(store.root_uri, timestamp_ms, newest_ms)
    version = _last_not_after(versions, time_of, timestamped_from, timestamp_ms)
    if version is None:
        raise _too_early(store.root_uri, timestamp_ms, time_of(versions[0]))
    return version


def find_version_from(
    store: Store, listing: LogListing, config: TableConfig, *, timestamp_ms: int
) -> int:
    """Return the oldest version committed at or after a time, its commit file still there.

    One more than the newest version if there is none. Arguments as of `find_version_at`.

    Raises:
        CorruptTableError: no commit file is left to tell any time (DELTA_LOG_FILE_NOT_FOUND).
    """
    versions = sorted(listing.commits)
    if not versions:
        raise log_file_not_found(store, log_path(commit_name(listing.earliest_version or 0)))
    timestamped_from = first_timestamped_version(config)
    time_of = _clock(store, listing, versions, timestamped_from)
    before = _last_not_after(versions, time_of, timestamped_from, timestamp_ms)
    if before is None:
        return versions[0]
    return before if time_of(before) == timestamp_ms else before + 1


def _last_not_after(
    versions: Sequence[int],
    time_of: Callable[[int], int],
    timestamped_from: int | None,
    timestamp_ms: int,
) -> int | None:
    """Return the newest version at or before a time.

    File times and in-commit timestamps come from different clocks: each part is in order,
    both together need not be.
    """
    split = len(versions) if timestamped_from is None else bisect_left(versions, timestamped_from)
    timestamped = versions[split:]
    if timestamped and timestamp_ms >= time_of(timestamped[0]):
        return timestamped[bisect_right(timestamped, timestamp_ms, key=time_of) - 1]
    position = bisect_right(versions[:split], timestamp_ms, key=time_of) - 1
    return None if position < 0 else versions[position]


def _clock(
    store: Store, listing: LogListing, versions: Sequence[int], timestamped_from: int | None
) -> Callable[[int], int]:
    adjusted = adjusted_times(listing.commits[v].modified_ms for v in versions)
    by_file = dict(zip(versions, adjusted, strict=True))

    def time_of(version: int) -> int:
        if timestamped_from is None or version < timestamped_from:
            return by_file[version]
        info = read_commit_info(store, listing.commits[version].path)
        in_commit_ms = None if info is None else info.in_commit_timestamp_ms
        return by_file[version] if in_commit_ms is None else in_commit_ms

    return time_of


def _too_late(root_uri: str, timestamp_ms: int, newest_ms: int) -> InvalidRequestError:
    return InvalidRequestError(
        f"Timestamp {_utc(timestamp_ms)} is after the latest version of {root_uri} "
        f"({_utc(newest_ms)}). Use a timestamp at or before {_utc(newest_ms)}.",
        code=ErrorCode.TIMESTAMP_GREATER_THAN_COMMIT,
        path=root_uri,
        timestamp_ms=timestamp_ms,
        latest_ms=newest_ms,
    )


def _too_early(root_uri: str, timestamp_ms: int, oldest_ms: int) -> InvalidRequestError:
    return InvalidRequestError(
        f"The provided timestamp ({_utc(timestamp_ms)}) is before the earliest version available "
        f"to {root_uri} ({_utc(oldest_ms)}). Please use a timestamp at or after "
        f"{_utc(oldest_ms)}.",
        code=ErrorCode.TIMESTAMP_EARLIER_THAN_COMMIT_RETENTION,
        path=root_uri,
        timestamp_ms=timestamp_ms,
        earliest_ms=oldest_ms,
    )


def _utc(time_ms: int) -> str:
    epoch = dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc)
    try:
        moment = epoch + dt.timedelta(milliseconds=time_ms)
    except OverflowError:
        return f"{time_ms} ms"
    return moment.strftime("%Y-%m-%d %H:%M:%S.") + f"{time_ms % 1000:03d} UTC"
