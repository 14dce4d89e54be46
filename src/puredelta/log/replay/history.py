"""The history of versions with their times, and the version at a time (X-39).

The time of a version is its in-commit timestamp, if the table has those. Otherwise it is the time
of the commit file, moved forward where the clock of the file system went back, so that times grow
strictly with versions.
"""

from __future__ import annotations

import datetime as dt
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from puredelta.errors import CorruptTableError, ErrorCode, InvalidRequestError, Message
from puredelta.log.replay.commit_files import log_file_not_found, read_commit_info
from puredelta.log.replay.segment import LogListing
from puredelta.protocol.actions.actions import CommitInfo
from puredelta.protocol.actions.log_paths import commit_name, log_path
from puredelta.protocol.table.table_config import TableConfig
from puredelta.store.base import Store, StoredFile

IN_COMMIT_TIMESTAMP = "inCommitTimestamp"
"""The table feature."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryEntry:
    """One commit, as DESCRIBE HISTORY shows it."""

    version: int
    timestamp_ms: int
    commit_info: CommitInfo | None
    """None if the commit has no ``commitInfo``."""


def file_times(commits: Mapping[int, StoredFile]) -> Mapping[int, int]:
    """Return the times of commit files by version, made strictly increasing as in delta-spark."""
    times: dict[int, int] = {}
    newest = None
    for version in sorted(commits):
        own = commits[version].modified_ms
        times[version] = newest = own if newest is None else max(own, newest + 1)
    return times


def first_timestamped_version(config: TableConfig) -> int | None:
    """Return the first version with an in-commit timestamp, None if they are disabled.

    A table that had them from the start records no version (X-11).
    """
    if not config.is_active(IN_COMMIT_TIMESTAMP):
        return None
    return config.properties.in_commit_timestamp_enablement_version or 0


def read_history(
    store: Store, listing: LogListing, config: TableConfig, *, limit: int | None = None
) -> list[HistoryEntry]:
    """Read the commits whose files still exist, newest first and at most ``limit``.

    ``listing`` is that of the whole log, ``config`` that of its newest version.
    """
    times = file_times(listing.commits)
    timestamped_from = first_timestamped_version(config)
    entries = []
    chosen = sorted(times, reverse=True)[:limit]
    ahead = store.read_ahead([listing.commits[version] for version in chosen])
    for version in chosen:
        try:
            info = read_commit_info(ahead, listing.commits[version].path)
        except CorruptTableError as error:
            if error.code is not ErrorCode.LOG_FILE_NOT_FOUND:
                raise
            continue  # a clean-up has removed it since the listing
        time_ms = times[version]
        if timestamped_from is not None and version >= timestamped_from and info is not None:
            time_ms = info.in_commit_timestamp_ms or time_ms
        entries.append(HistoryEntry(version=version, timestamp_ms=time_ms, commit_info=info))
    return entries


def find_version_at(
    store: Store, listing: LogListing, config: TableConfig, *, timestamp_ms: int
) -> int:
    """Return the newest version committed at or before a time.

    ``listing`` is that of the whole log, ``config`` that of its newest version. Commit files
    are opened only for in-commit timestamps, and only a few of them.

    Raises:
        InvalidRequestError: the time is before the first version that can be rebuilt, or
            after the last (DELTA_TIMESTAMP_EARLIER_THAN_COMMIT_RETENTION,
            DELTA_TIMESTAMP_GREATER_THAN_COMMIT).
        CorruptTableError: no commit file is left (DELTA_LOG_FILE_NOT_FOUND).
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
    """Return the oldest version with a commit file that was committed at or after a time.

    Returns one more than the newest version if there is none. The arguments are those of
    `find_version_at`.

    Raises:
        CorruptTableError: no commit file is left (DELTA_LOG_FILE_NOT_FOUND).
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

    File times and in-commit timestamps come from different clocks: each kind is in order, but
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
    by_file = file_times({v: listing.commits[v] for v in versions})

    def time_of(version: int) -> int:
        if timestamped_from is None or version < timestamped_from:
            return by_file[version]
        info = read_commit_info(store, listing.commits[version].path)
        in_commit_ms = None if info is None else info.in_commit_timestamp_ms
        return by_file[version] if in_commit_ms is None else in_commit_ms

    return time_of


def _too_late(root_uri: str, timestamp_ms: int, newest_ms: int) -> InvalidRequestError:
    return InvalidRequestError(
        Message.TIMESTAMP_GREATER_THAN_COMMIT,
        time=_utc(timestamp_ms),
        newest=_utc(newest_ms),
        path=root_uri,
        timestamp_ms=timestamp_ms,
        latest_ms=newest_ms,
    )


def _too_early(root_uri: str, timestamp_ms: int, oldest_ms: int) -> InvalidRequestError:
    return InvalidRequestError(
        Message.TIMESTAMP_EARLIER_THAN_COMMIT_RETENTION,
        time=_utc(timestamp_ms),
        oldest=_utc(oldest_ms),
        path=root_uri,
        timestamp_ms=timestamp_ms,
        earliest_ms=oldest_ms,
    )


def _utc(time_ms: int) -> str:
    epoch = dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc)
    try:
        time = epoch + dt.timedelta(milliseconds=time_ms)
    except OverflowError:
        return f"{time_ms} ms"
    return time.strftime("%Y-%m-%d %H:%M:%S.") + f"{time_ms % 1000:03d} UTC"
