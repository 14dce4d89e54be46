"""Where a stream without a checkpoint begins."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from puredelta.errors import ErrorCode, InvalidRequestError
from puredelta.log.replay.history import find_version_at, find_version_from
from puredelta.log.replay.segment import list_log, version_not_found
from puredelta.log.replay.table_log import TableLog

_LATEST = "latest"


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamStart:
    """Where a stream without a checkpoint begins: with the whole table, unless an option says."""

    version: int | None = None
    is_latest: bool = False
    """Behind the newest version."""
    timestamp_ms: int | None = None

    @classmethod
    def parse(
        cls, version: str | None, timestamp: str | None, millis: Callable[[str], int]
    ) -> StreamStart:
        """Read ``startingVersion`` (a number or ``latest``) and ``startingTimestamp``.

        Raises:
            InvalidRequestError: both are given (DELTA_STARTING_VERSION_AND_TIMESTAMP_BOTH_SET),
                or one is no version (DELTA_ILLEGAL_OPTION) or no time.
        """
        if version is not None and timestamp is not None:
            raise InvalidRequestError(
                "Please either provide 'startingVersion' or 'startingTimestamp', not both.",
                code=ErrorCode.STARTING_VERSION_AND_TIMESTAMP_BOTH_SET,
            )
        if timestamp is not None:
            return cls(timestamp_ms=millis(timestamp))
        if version is None:
            return cls()
        text = version.strip().lower()
        if text != _LATEST and not text.isdecimal():
            raise InvalidRequestError(
                f"Invalid value '{version}' for option 'startingVersion', must be greater than or "
                f"equal to zero, or '{_LATEST}'.",
                code=ErrorCode.INVALID_WRITE_OPTION,
                option="startingVersion",
                value=version,
            )
        return cls(is_latest=True) if text == _LATEST else cls(version=int(text))

    def first_version(self, log: TableLog) -> int | None:
        """Return the version whose commit comes first; None for the whole table.

        Raises:
            TableNotFoundError: there is no such version (DELTA_VERSION_NOT_FOUND).
            InvalidRequestError: the time lies behind the newest version
                (DELTA_TIMESTAMP_GREATER_THAN_COMMIT).
        """
        if self.is_latest:
            return newest_version(log) + 1
        if self.timestamp_ms is not None:
            return _version_from(log, self.timestamp_ms)
        return None if self.version is None else _existing(log, self.version)


def newest_version(log: TableLog) -> int:
    """Return the newest version; errors as `TableLog.snapshot` where there is no table."""
    version = log.latest_version()
    return log.snapshot().version if version is None else version


def _existing(log: TableLog, version: int) -> int:
    listing = list_log(log.store)
    latest = log.snapshot().version if listing.latest_version is None else listing.latest_version
    earliest = min(listing.commits, default=latest)
    if not earliest <= version <= latest:
        raise version_not_found(log.root_uri, version, earliest=earliest, latest=latest)
    return version


def _version_from(log: TableLog, moment_ms: int) -> int:
    listing, newest = list_log(log.store), log.snapshot()
    version = find_version_from(log.store, listing, newest.config, timestamp_ms=moment_ms)
    if version > newest.version:
        # Raises: the time lies after the newest version.
        find_version_at(log.store, listing, newest.config, timestamp_ms=moment_ms)
    return version
