"""A catalog in memory with faults: requests and answers are lost, delayed, wrong, or too early.

The rules are those of the open-source server: the next version only, a file name counts once, few
unpublished commits, reported versions are forgotten. It looks at no storage.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from random import Random

from puredelta.catalogs.catalog import (
    MANAGED_FEATURE,
    NO_UPDATE,
    KeylessCatalog,
    ListedTable,
    LoadedTable,
    RatifiedCommit,
    StagedTable,
    TableCreation,
    TableIdentifier,
    TableKind,
    TableUpdate,
)
from puredelta.catalogs.failures import CatalogRequestError, Refusal

NAME = TableIdentifier("main", "sales", "orders")
LIMIT = 3
"""Unpublished commits."""


class CatalogFault(Enum):
    """The ways in which a request goes wrong."""

    LOST_REQUEST = "request lost"
    NOT_SENT = "no connection or no token"
    LOST_ANSWER = "carried out, answer lost"
    DELAYED = "carried out later, answer lost"
    SERVER_ERROR = "server error, nothing happened"
    UNREADABLE = "carried out, answer cannot be read"
    OLD_ANSWER = "answer of one commit ago"
    WRONG_NAME = "answer names a file elsewhere"
    GAP = "answer leaves a commit out"


_OF_READS = (
    CatalogFault.LOST_REQUEST,
    CatalogFault.NOT_SENT,
    CatalogFault.SERVER_ERROR,
    CatalogFault.OLD_ANSWER,
    CatalogFault.WRONG_NAME,
    CatalogFault.GAP,
)
_OF_WRITES = (
    CatalogFault.LOST_REQUEST,
    CatalogFault.NOT_SENT,
    CatalogFault.LOST_ANSWER,
    CatalogFault.DELAYED,
    CatalogFault.SERVER_ERROR,
    CatalogFault.UNREADABLE,
)


class Ledger:
    """Receives what happens in the catalog; see `simulation.catalogs.ledger`."""

    def ratified(self, commit: RatifiedCommit) -> None:
        """Judge a commit that the catalog accepts."""

    def reported(self, version: int) -> None:
        """Judge a report of publication."""


@dataclass(slots=True)
class CatalogState:
    """What the catalog keeps of its one table."""

    random: Random
    fault_rate: float
    ledger: Ledger
    commits: list[RatifiedCommit] = field(default_factory=list)
    """All after version 0, oldest first."""
    published: int = 0
    etag: int = 1
    faults: Counter[CatalogFault] = field(default_factory=Counter)
    delayed: list[Callable[[], None]] = field(default_factory=list)
    num_refused_by_limit: int = 0
    was_restored: bool = False

    @property
    def latest(self) -> int:
        """The newest version."""
        return len(self.commits)

    def loaded(self, *, back: int = 0) -> LoadedTable:
        """Return the table as it is, or as it was some commits ago."""
        kept = self.commits[: self.latest - back]
        return LoadedTable(
            name=NAME,
            table_id="table-1",
            kind=TableKind.MANAGED,
            location="sim:/table",
            etag=f"etag-{self.etag}",
            properties={MANAGED_FEATURE: "supported"},
            commits=tuple(c for c in kept if c.version > self.published),
            latest_version=len(kept),
        )

    def add(self, etag: str | None, commit: RatifiedCommit, update: TableUpdate) -> None:
        """Accept a commit, or refuse it."""
        if commit in self.commits:
            if commit.version <= self.published:
                raise refused(Refusal.VERSION_TAKEN)
            return
        if update.changes_metadata and etag != f"etag-{self.etag}":
            raise refused(Refusal.CHANGED)
        if commit.version <= self.latest:
            raise refused(Refusal.VERSION_TAKEN)
        if commit.version != self.latest + 1:
            raise refused(Refusal.INVALID)
        if self.latest - self.published >= LIMIT:
            self.num_refused_by_limit += 1
            raise refused(Refusal.TOO_MANY_COMMITS)
        self.ledger.ratified(commit)
        self.commits.append(commit)
        if update.changes_metadata or update.domains:
            self.etag += 1

    def report(self, version: int) -> None:
        """Forget commits up to a version."""
        if version > self.latest:
            raise refused(Refusal.INVALID)
        self.ledger.reported(version)
        self.published = max(self.published, version)

    def restore(self) -> None:
        """Go back by one commit, as a database that was restored from a backup."""
        self.commits.pop()
        self.published = min(self.published, self.latest)
        self.was_restored = True


def refused(refusal: Refusal) -> CatalogRequestError:
    """Return a refusal, or the lack of an answer."""
    return CatalogRequestError(refusal.value, refusal=refusal)


_UNSEEN = {CatalogFault.LOST_REQUEST, CatalogFault.NOT_SENT, CatalogFault.SERVER_ERROR}
"""Faults of which the catalog notices nothing."""


def _unanswered(fault: CatalogFault | None) -> CatalogRequestError:
    failure = refused(Refusal.NO_ANSWER)
    failure.may_be_done = fault is not CatalogFault.NOT_SENT
    return failure


class WriterCatalog(KeylessCatalog):
    """The catalog as one process reaches it; ``pause`` lets others run."""

    name = "main"

    def __init__(self, state: CatalogState, pause: Callable[[str], None]) -> None:
        self._state, self._pause = state, pause

    def load(self, name: TableIdentifier) -> LoadedTable:
        """Return the table, perhaps an older one or a wrong one."""
        self._pause("load")
        fault = self._fault(_OF_READS)
        if fault in _UNSEEN:
            raise _unanswered(fault)
        table = replace(self._state.loaded(), name=name)
        if fault is CatalogFault.OLD_ANSWER and self._state.latest > 0:
            table = self._state.loaded(back=1)
        elif fault is CatalogFault.WRONG_NAME and table.commits:
            raise refused(Refusal.INVALID)  # `puredelta.catalogs.answers` has refused it
        elif fault is CatalogFault.GAP and len(table.commits) > 1:
            raise refused(Refusal.INVALID)
        self._pause("loaded")
        return table

    def ratify(
        self, table: LoadedTable, commit: RatifiedCommit, update: TableUpdate = NO_UPDATE
    ) -> LoadedTable:
        """Accept a commit, now or later."""
        self._write(lambda: self._state.add(table.etag, commit, update))
        return self._state.loaded()

    def report_published(self, table: LoadedTable, version: int) -> None:
        """Forget commits that are published, now or later."""
        del table
        self._write(lambda: self._state.report(version))

    def _write(self, change: Callable[[], None]) -> None:
        self._pause("send")
        fault = self._fault(_OF_WRITES)
        if fault in _UNSEEN:
            raise _unanswered(fault)
        if fault is CatalogFault.DELAYED:
            self._state.delayed.append(change)
            raise refused(Refusal.NO_ANSWER)
        change()
        self._pause("answered")
        if fault is not None:
            raise refused(Refusal.NO_ANSWER)

    def _fault(self, kinds: Sequence[CatalogFault]) -> CatalogFault | None:
        state = self._state
        while state.delayed and state.random.random() < 0.3:
            late = state.delayed.pop(state.random.randrange(len(state.delayed)))
            with contextlib.suppress(CatalogRequestError):  # its sender has gone
                late()
        if state.random.random() >= state.fault_rate:
            return None
        kind = state.random.choice(kinds)
        state.faults[kind] += 1
        return kind

    def schemas(self) -> Iterator[str]:
        """Yield the one schema."""
        yield NAME.schema

    def tables(self, schema: str) -> Iterator[ListedTable]:
        """Yield the one table."""
        del schema
        yield ListedTable(name=NAME, format="delta", kind=TableKind.MANAGED.value)

    def stage(self, name: TableIdentifier) -> StagedTable:
        """Refuse: the table is there."""
        del name
        raise refused(Refusal.EXISTS)

    def create(self, creation: TableCreation) -> LoadedTable:
        """Refuse: the table is there."""
        del creation
        raise refused(Refusal.EXISTS)

    def rename(self, name: TableIdentifier, new_name: str) -> None:
        """Refuse."""
        del name, new_name
        raise refused(Refusal.INVALID)

    def drop(self, name: TableIdentifier) -> None:
        """Refuse."""
        del name
        raise refused(Refusal.INVALID)


def fault_counts(states: Mapping[CatalogFault, int]) -> str:
    """Return the faults as one line."""
    return ", ".join(f"{count:,} {kind.value}" for kind, count in sorted(states.items(), key=str))
