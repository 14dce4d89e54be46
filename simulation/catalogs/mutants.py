"""Rules of publishing and ratification, each of which can be taken out of the library."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import Enum
from typing import Any
from unittest.mock import patch

from puredelta.catalogs.catalog import LoadedTable
from puredelta.catalogs.failures import Refusal
from puredelta.errors import CommitUnknownError
from puredelta.log.managed import ratification
from puredelta.log.managed.managed_store import ManagedStore
from puredelta.protocol.actions.log_paths import LOG_DIRECTORY, parse_log_name
from puredelta.store.base import PutOutcome


class CatalogMutant(Enum):
    """A rule that is missing."""

    REPORT_FIRST = "report before the copy"
    NEWEST_FIRST = "publish the newest first"
    NEW_NAME = "another file name after a lost answer"
    NO_SETTLING = "a taken version belongs to another writer"
    LIST_FIRST = "list before the catalog is asked"
    PLAIN_ONLY = "staged files are not read"
    FAILED_UNKNOWN = "an unknown outcome is a failure"
    NO_MEMORY = "a catalog may go back"


def _report_first(store: ManagedStore, table: LoadedTable) -> None:
    if table.commits:
        store.catalog.report_published(table, table.commits[-1].version)
    for commit in table.commits:
        ratification._publish_one(store, commit)  # noqa: SLF001 - the mutant replaces its caller


def _newest_first(store: ManagedStore, table: LoadedTable) -> None:
    for commit in reversed(table.commits):
        ratification._publish_one(store, commit)  # noqa: SLF001 - the mutant replaces its caller
    if table.commits:
        store.catalog.report_published(table, table.commits[-1].version)


def _new_name(original: Callable[..., PutOutcome]) -> Callable[..., PutOutcome]:
    def ratify(store: ManagedStore, commit: Any, **rest: Any) -> PutOutcome:
        for _ in range(4):
            try:
                return original(store, commit, **rest)
            except CommitUnknownError:  # noqa: PERF203 - a few times
                continue
        return original(store, commit, **rest)

    return ratify


def _unsettled(self: Any, failure: Any) -> PutOutcome | None:
    if failure.refusal is Refusal.VERSION_TAKEN:
        return PutOutcome.ALREADY_EXISTS
    outcome: PutOutcome | None = _REFUSED(self, failure)
    return outcome


_REFUSED: Any = ratification._Ratification._refused  # noqa: SLF001 - the mutant replaces it


def _unknown(self: Any) -> Exception:
    return OSError(f"version {self.commit.version} has failed")


def _list_first(self: ManagedStore, directory: str, start: str = "") -> Iterator[Any]:
    early = list(self.files.list_from(directory, start))
    files = self.files
    if directory == LOG_DIRECTORY:
        self.files = _Listed(files, early)
    try:
        yield from list(_LIST_FROM(self, directory, start))
    finally:
        self.files = files


class _Listed:
    """Storage whose listing is already made."""

    def __init__(self, files: Any, early: list[Any]) -> None:
        self._files, self._early = files, early

    def __getattr__(self, name: str) -> Any:
        return getattr(self._files, name)

    def list_from(self, directory: str, start: str = "") -> Iterator[Any]:
        """Yield what was there before."""
        del directory, start
        yield from self._early


_LIST_FROM: Any = ManagedStore.list_from


def _plain_only(self: ManagedStore, directory: str, start: str = "") -> Iterator[Any]:
    latest = self.refresh().latest_version or 0
    for file in self.files.list_from(directory, start):
        kind = parse_log_name(file.name)
        if kind is None or kind.version <= latest:
            yield file


@contextmanager
def mutated(mutant: CatalogMutant | None) -> Iterator[None]:
    """Take a rule out of the library inside the context."""
    ratify = "puredelta.log.commit.commit_retry.ratify"
    changes: dict[CatalogMutant, list[Any]] = {
        CatalogMutant.REPORT_FIRST: [patch.object(ratification, "publish", _report_first)],
        CatalogMutant.NEWEST_FIRST: [patch.object(ratification, "publish", _newest_first)],
        CatalogMutant.NEW_NAME: [
            patch.object(ratification, "_WAITS_S", (0.0,)),
            patch(ratify, _new_name(ratification.ratify)),
        ],
        CatalogMutant.NO_SETTLING: [
            patch.object(ratification._Ratification, "_refused", _unsettled)  # noqa: SLF001
        ],
        CatalogMutant.LIST_FIRST: [patch.object(ManagedStore, "list_from", _list_first)],
        CatalogMutant.PLAIN_ONLY: [patch.object(ManagedStore, "list_from", _plain_only)],
        CatalogMutant.FAILED_UNKNOWN: [
            patch.object(ratification._Ratification, "_unknown", _unknown)  # noqa: SLF001
        ],
        CatalogMutant.NO_MEMORY: [patch.object(ratification, "_is_lost", lambda *_: False)],
    }
    chosen = [] if mutant is None else changes[mutant]
    for change in chosen:
        change.start()
    try:
        yield
    finally:
        for change in chosen:
            change.stop()
