"""The range of versions in a request for changes, and checks that it can be read.

The feed must have been on at every version of the range, and no change of the schema may put rows
under wrong columns. Rules and error classes are those of delta-spark's reader.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from typing_extensions import assert_never

from puredelta.errors import DeltaError, ErrorCode, InvalidRequestError, Message, TableNotFoundError
from puredelta.log.replay.commit_files import Commit
from puredelta.log.replay.history import file_times, find_version_at, find_version_from
from puredelta.log.replay.segment import LogListing
from puredelta.log.replay.snapshot import Snapshot
from puredelta.protocol.actions.actions import Metadata
from puredelta.protocol.features.properties import TableProperties
from puredelta.protocol.table.schema_changes import TableShape, can_read
from puredelta.store.base import Store


@dataclass(frozen=True, slots=True)
class AtVersion:
    """A bound of the range: this version, included."""

    version: int


@dataclass(frozen=True, slots=True)
class AtTime:
    """A bound of the range: the first version at or after a time, or the last up to it."""

    timestamp_ms: int


RangeBound: TypeAlias = AtVersion | AtTime


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeRange:
    """Versions of a table, both ends included."""

    start: int
    end: int


def resolve_range(
    store: Store,
    listing: LogListing,
    newest: Snapshot,
    *,
    start: RangeBound,
    end: RangeBound | None,
    may_exceed_newest: bool,
) -> ChangeRange | None:
    """Turn the requested bounds into existing versions; None means that nothing changed.

    ``listing`` is that of the whole log. Without ``end``, or with an end beyond the newest
    version, the range goes up to the newest version. With ``may_exceed_newest`` a start beyond
    the newest version gives an empty range, and an end time beyond it means the newest version.

    Raises:
        InvalidRequestError: the end is before the start (DELTA_INVALID_CDC_RANGE), the
            start after the newest version (DELTA_CDC_START_VERSION_AFTER_LATEST), or a
            time outside of the history (DELTA_TIMESTAMP_GREATER_THAN_COMMIT,
            DELTA_TIMESTAMP_EARLIER_THAN_COMMIT_RETENTION).
        TableNotFoundError: the commit of the start is missing (DELTA_LOG_FILE_NOT_FOUND).
    """
    first = _start_version(store, listing, newest, start, may_exceed_newest=may_exceed_newest)
    last = _end_version(store, listing, newest, end, may_exceed_newest=may_exceed_newest)
    if first > newest.version:
        if may_exceed_newest:
            return None
        raise InvalidRequestError(
            Message.CDC_START_VERSION_AFTER_LATEST, start=first, latest=newest.version
        )
    if isinstance(start, AtTime) and isinstance(end, AtTime):
        if start.timestamp_ms > end.timestamp_ms:
            raise _end_before_start(first, last)
        if last == first - 1:  # both times are between two commits
            return None
    if last < first:
        raise _end_before_start(first, last)
    if first not in listing.commits:
        earliest = min(listing.commits, default=newest.version)
        raise TableNotFoundError(
            Message.LOG_FILE_NOT_FOUND_CHANGES,
            path=store.root_uri,
            version=first,
            earliest=earliest,
        )
    return ChangeRange(start=first, end=min(last, newest.version))


def _start_version(
    store: Store,
    listing: LogListing,
    newest: Snapshot,
    start: RangeBound,
    *,
    may_exceed_newest: bool,
) -> int:
    match start:
        case AtVersion(version):
            return version
        case AtTime(timestamp_ms):
            version = find_version_from(store, listing, newest.config, timestamp_ms=timestamp_ms)
            if version > newest.version and not may_exceed_newest:
                # Raises: the time is after the newest version.
                find_version_at(store, listing, newest.config, timestamp_ms=timestamp_ms)
            return version
        case _:
            assert_never(start)


def _end_version(
    store: Store,
    listing: LogListing,
    newest: Snapshot,
    end: RangeBound | None,
    *,
    may_exceed_newest: bool,
) -> int:
    match end:
        case None:
            return newest.version
        case AtVersion(version):
            return version
        case AtTime(timestamp_ms):
            try:
                return find_version_at(store, listing, newest.config, timestamp_ms=timestamp_ms)
            except DeltaError as error:
                if may_exceed_newest and error.code is ErrorCode.TIMESTAMP_GREATER_THAN_COMMIT:
                    return newest.version
                raise
        case _:
            assert_never(end)


def _end_before_start(start: int, end: int) -> InvalidRequestError:
    return InvalidRequestError(Message.INVALID_CDC_RANGE, start=start, end=end)


def commit_times(commits: Sequence[Commit], listing: LogListing) -> Mapping[int, int]:
    """Return the time of each commit in milliseconds, by version.

    The time is the in-commit timestamp, or else that of the commit file as the history shows it.
    ``listing`` is that of the whole log.
    """
    times = file_times(listing.commits)
    return {commit.version: commit_time(commit, times) for commit in commits}


def commit_time(commit: Commit, times: Mapping[int, int]) -> int:
    """Return the time of a commit; ``times`` are those of the commit files (`file_times`)."""
    info = commit.commit_info
    in_commit_ms = None if info is None else info.in_commit_timestamp_ms
    return times[commit.version] if in_commit_ms is None else in_commit_ms


def last_metadata(commits: Sequence[Commit]) -> Metadata | None:
    """Return the newest metadata action of the commits, None if there is none."""
    found = [metadata for commit in commits for metadata in commit.metadata]
    return found[-1] if found else None


def require_readable_range(
    commits: Sequence[Commit],
    start_metadata: Metadata,
    read: Snapshot | None,
    *,
    needs_feed: bool = True,
) -> None:
    """Refuse a range in which changes are missing or do not fit the schema of the reader.

    ``commits`` are all commits of the range, ``start_metadata`` is in force at the first of them.
    ``read`` is the version whose schema is used; without it no schema is checked. Without
    ``needs_feed`` the feed may be off.

    Raises:
        InvalidRequestError: the feed was off at some version (DELTA_MISSING_CHANGE_DATA), or
            columns were renamed, dropped or retyped
            (DELTA_CHANGE_DATA_FEED_INCOMPATIBLE_SCHEMA_CHANGE for a change in the range,
            DELTA_CHANGE_DATA_FEED_INCOMPATIBLE_DATA_SCHEMA for a later one).
    """
    start, end = commits[0].version, commits[-1].version
    if needs_feed:
        require_feed(start_metadata, start, start=start, end=end)
    for commit in commits:
        for metadata in commit.metadata:
            if needs_feed:
                require_feed(metadata, commit.version, start=start, end=end)
            if read is not None and commit.version > start:
                _require_readable(metadata, commit.version, read, start=start, end=end)
    if read is not None and not _is_readable(start_metadata, start, read):
        raise InvalidRequestError(
            Message.CHANGE_DATA_FEED_INCOMPATIBLE_DATA_SCHEMA,
            schema_string=read.metadata.schema_string,
            start=start,
            end=end,
            read_version=read.version,
            incompatible_version=start,
        )


def require_feed(metadata: Metadata, version: int, *, start: int, end: int) -> None:
    """Require that the feed is on at a version of a range.

    Raises:
        InvalidRequestError: the feed is off (DELTA_MISSING_CHANGE_DATA).
    """
    if TableProperties.of(metadata.configuration).enable_change_data_feed:
        return
    raise InvalidRequestError(Message.MISSING_CHANGE_DATA, start=start, end=end, version=version)


def _require_readable(
    metadata: Metadata, version: int, read: Snapshot, *, start: int, end: int
) -> None:
    if not _is_readable(metadata, version, read):
        raise InvalidRequestError(
            Message.CHANGE_DATA_FEED_INCOMPATIBLE_SCHEMA_CHANGE,
            schema_string=read.metadata.schema_string,
            version=version - 1,
            start=start,
            end=end,
            read_version=read.version,
            incompatible_version=version,
        )


def _is_readable(metadata: Metadata, version: int, read: Snapshot) -> bool:
    return can_read(
        TableShape.of(metadata),
        TableShape.of(read.metadata),
        stored_is_older=version <= read.version,
    )
