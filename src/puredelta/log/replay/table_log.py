"""The log of one table: snapshots, history, and the commits after a version."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace

from puredelta.catalogs.catalog import name_of_address
from puredelta.errors import (
    ErrorCode,
    InvalidRequestError,
    Message,
    TableNotFoundError,
    UnsupportedError,
)
from puredelta.log.managed.managed_store import ManagedStore
from puredelta.log.managed.table_update import CATALOG_MANAGED, refuse_operation
from puredelta.log.replay.checkpoint_read import read_checkpoint_hint
from puredelta.log.replay.commit_files import Commit, read_actions
from puredelta.log.replay.history import HistoryEntry, find_version_at, read_history
from puredelta.log.replay.load import LISTINGS_MAX, advance_snapshot, load_snapshot
from puredelta.log.replay.segment import LogListing, first_gap, list_log, require_contiguous
from puredelta.log.replay.snapshot import Snapshot
from puredelta.store.base import Store
from puredelta.store.registry import Storage, is_same_location


class TableLog:
    """Reads the log of the table in a store; nothing here writes.

    The newest snapshot is kept, so that the next one costs only the new commits. Threads may
    share a log: refreshing is serialised, snapshots are immutable.

    Examples:
        >>> log = TableLog.open("/data/events")  # doctest: +SKIP
        >>> log.snapshot().files.num_records()  # doctest: +SKIP
        1200
    """

    def __init__(
        self,
        store: Store,
        *,
        address: str | None = None,
        before_writing: Callable[[], None] | None = None,
        has_vended_keys: bool = False,
    ) -> None:
        """``address`` opens the log of a catalog's table again; ``before_writing`` is called
        before the first write: a catalog has other storage keys for writers.
        """
        self.has_vended_keys = has_vended_keys
        """Whether a catalog has handed out the keys of the storage, which no session has."""
        self.store = store
        self.address = store.root_uri if address is None else address
        """The location by which a session opens this log again."""
        self._before_writing = before_writing
        self._lock = threading.Lock()
        self._known: Snapshot | None = None

    @classmethod
    def open(cls, location: str, *, storage: Storage | None = None) -> TableLog:
        """Open the log at a table location; the table need not exist yet.

        ``storage`` has the settings of a session, by default those of none.
        """
        return cls((Storage() if storage is None else storage).open(location))

    @property
    def root_uri(self) -> str:
        """The table root as an absolute, decoded URI without a trailing slash."""
        return self.store.root_uri

    def is_at(self, location: str) -> bool:
        """Return whether a location, in any spelling, is that of this table; links are followed."""
        if name_of_address(location) is not None:
            return location == self.address
        return is_same_location(self.store.at(location).root_uri, self.root_uri)

    def allow_writes(self) -> None:
        """Get ready for writes of data files and commits."""
        if self._before_writing is not None:
            self._before_writing()

    def exists(self) -> bool:
        """Return whether there is a Delta table, in whatever state; a catalog has said so."""
        is_named = self.managed is not None and self.managed.is_named
        return is_named or self.latest_version() is not None

    def latest_version(self) -> int | None:
        """Return the newest version from a listing, None if there is no table."""
        known = read_checkpoint_hint(self.store) if self._known is None else self._known
        start = 0 if known is None else known.version
        version = list_log(self.store, start=start).latest_version
        if version is None and start > 0:
            version = list_log(self.store).latest_version
        return version

    def snapshot(self, *, version: int | None = None, timestamp_ms: int | None = None) -> Snapshot:
        """Return the newest version, or a given version, or that at a time (epoch milliseconds).

        The log is listed at every call.

        Raises:
            TableNotFoundError: no table, or no such version (DELTA_TABLE_NOT_FOUND,
                DELTA_PATH_DOES_NOT_EXIST, DELTA_VERSION_NOT_FOUND).
            InvalidRequestError: the time is outside of the table's history (see
                `find_version_at`), or both ways to choose are used (DELTA_ONEOF_IN_TIMETRAVEL).
            CorruptTableError: see `load_snapshot`.
            UnsupportedError: see `load_snapshot`, or the table is catalog-managed and was named
                by its path (DELTA_PATH_BASED_ACCESS_TO_CATALOG_MANAGED_TABLE_BLOCKED).
        """
        if version is not None and timestamp_ms is not None:
            raise InvalidRequestError(
                Message.ONE_OF_IN_TIME_TRAVEL_LOG, version=version, timestamp_ms=timestamp_ms
            )
        with self._lock:
            if timestamp_ms is not None:
                version = self._version_at(timestamp_ms)
            found = self._refreshed() if version is None else self._at(version)
        if found.config.supports(CATALOG_MANAGED) and not isinstance(self.store, ManagedStore):
            raise by_path(self.root_uri)
        is_known_by_root = self.address == found.address
        return found if is_known_by_root else replace(found, opened_as=self.address)

    def find_snapshot(self) -> Snapshot | None:
        """Return the newest version, None if there is no table; the log is listed."""
        try:
            return self.snapshot()
        except TableNotFoundError:
            return None

    def history(self, *, limit: int | None = None) -> list[HistoryEntry]:
        """Return the commits whose files still exist, newest first, at most ``limit``."""
        newest = self.snapshot()
        self._list_with_answer(newest.version)
        return read_history(self.store, list_log(self.store), newest.config, limit=limit)

    def commits_after(self, version: int, *, through: int | None = None) -> tuple[Commit, ...]:
        """Read the commits with a higher version, oldest first, without a gap.

        ``version`` -1 means all commits. The result is empty if there is no newer commit.
        """
        return tuple(self.read_commits(version, through=through))

    def read_commits(self, version: int, *, through: int | None = None) -> Iterator[Commit]:
        """Read as `commits_after`, one commit at a time; the log is listed before the first."""
        listing, last = self._list_after(version, through)
        files = {v: listing.commits[v] for v in range(version + 1, last + 1)}
        store = self.store.read_ahead(list(files.values()))
        for v, file in files.items():
            actions = tuple(read_actions(store, file.path))
            yield Commit(version=v, modified_ms=file.modified_ms, actions=actions)

    def read_commits_left(self, first: int, *, through: int | None = None) -> Iterator[Commit]:
        """Read the commits from a version on that are left in the log, one at a time."""
        listing, last = self._listed_after(first - 1, through)
        for _ in range(LISTINGS_MAX - 1):
            if first_gap(listing, after=first - 1, through=last) is None:
                break
            # It may be the listing, which is not atomic.
            listing, last = self._listed_after(first - 1, through)
        files = {v: file for v, file in sorted(listing.commits.items()) if first <= v <= last}
        store = self.store.read_ahead(list(files.values()))
        for v, file in files.items():
            actions = tuple(read_actions(store, file.path))
            yield Commit(version=v, modified_ms=file.modified_ms, actions=actions)

    def _list_after(self, version: int, through: int | None) -> tuple[LogListing, int]:
        for _ in range(LISTINGS_MAX - 1):
            listing, last = self._listed_after(version, through)
            if first_gap(listing, after=version, through=last) is None:
                return listing, last
        # A listing is not atomic: only a gap in the last listing means a damaged log.
        listing, last = self._listed_after(version, through)
        require_contiguous(listing, self.root_uri, after=version, through=last)
        return listing, last

    def _listed_after(self, version: int, through: int | None) -> tuple[LogListing, int]:
        self._list_with_answer(through)
        listing = list_log(self.store, start=version + 1)
        newest = max(listing.commits, default=version)
        return listing, newest if through is None else min(newest, through)

    def _refreshed(self) -> Snapshot:
        snapshot = self._advanced(None)
        if snapshot is None:
            self._known = snapshot = self._loaded(None)
        return snapshot

    def _at(self, version: int) -> Snapshot:
        self._list_with_answer(version)
        return self._advanced(version) or self._loaded(version)

    def _advanced(self, version: int | None) -> Snapshot | None:
        """Advance the newest known snapshot; None if that does not lead to the version."""
        known = self._known
        if known is None or (version is not None and version < known.version):
            return None
        listing = list_log(self.store, start=known.version)
        newest = listing.latest_version
        if newest is None or (version is not None and version > newest):
            return None
        through = newest if version is None else version
        snapshot = advance_snapshot(self.store, known, listing, through=through)
        if snapshot is not None:
            self._known = snapshot
        return snapshot

    def _loaded(self, version: int | None) -> Snapshot:
        try:
            return load_snapshot(self.store, version=version)
        except TableNotFoundError as error:
            if error.code is ErrorCode.TABLE_NOT_FOUND and not self.store.exists(""):
                raise TableNotFoundError(
                    Message.PATH_DOES_NOT_EXIST_LOADED, path=self.root_uri
                ) from error
            raise

    @property
    def managed(self) -> ManagedStore | None:
        """The storage with its catalog, where that ratifies the commits of the table."""
        return self.store if isinstance(self.store, ManagedStore) else None

    def require_unmanaged(self, operation: str) -> None:
        """Refuse an operation that only the catalog may do to a catalog-managed table.

        Raises:
            UnsupportedError: DELTA_UNSUPPORTED_CATALOG_MANAGED_TABLE_OPERATION.
        """
        if self.managed is not None:
            raise refuse_operation(operation, str(self.managed.table.name))

    def _version_at(self, timestamp_ms: int) -> int:
        newest = self._refreshed()
        self._list_with_answer(newest.version)
        listing = list_log(self.store)
        return find_version_at(self.store, listing, newest.config, timestamp_ms=timestamp_ms)

    def _list_with_answer(self, version: int | None) -> None:
        """Let the next listing do without a question, if the catalog has named its versions."""
        if self.managed is not None and version is not None:
            self.managed.list_named(version)


def by_path(root_uri: str) -> UnsupportedError:
    """Return the error for a catalog-managed table that was named by its path."""
    return UnsupportedError(Message.CATALOG_MANAGED_TABLE_BY_PATH, path=root_uri)
