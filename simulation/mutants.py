"""The safeties of the code under test, each of which can be taken out from outside."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from puredelta.commands.command import Command
from puredelta.commands.finish import finish
from puredelta.errors import CommitUnknownError
from puredelta.log.commit.commit_request import CommitRequest, Committed
from puredelta.log.commit.post_commit import CheckpointWish
from puredelta.log.replay.commit_files import Commit
from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.actions.actions import CommitInfo, DomainMetadata, Metadata, Protocol
from puredelta.store.base import PutOutcome, StorageError, Store
from simulation.plan import Mutant


class NoAnswerError(Exception):
    """What a store without settling makes of a lost answer: a plain failure."""


@dataclass(frozen=True, slots=True)
class Safety:
    """What a writer relies on; the mutant is what it lacks."""

    mutant: Mutant | None

    @property
    def flushes(self) -> bool:
        """Whether a file that was created is flushed."""
        return self.mutant is not Mutant.NO_FLUSH

    @property
    def declares_reads(self) -> bool:
        """Whether statements say what they have read."""
        return self.mutant is not Mutant.NO_READ_SET

    @property
    def keeps_order(self) -> bool:
        """Whether a compaction keeps the order of rows, as it says."""
        return self.mutant is not Mutant.WRONG_PLACES

    def store(self, store: Store) -> Store:
        """Return the store that the library gets."""
        return _Unsettled(store) if self.mutant is Mutant.NO_SETTLING else store

    def log(self, store: Store) -> TableLog:
        """Return the log that the library gets."""
        return _Blind(store) if self.mutant is Mutant.NO_CONFLICT_CHECK else TableLog(store)

    def finish(
        self,
        command: Command,
        request: CommitRequest,
        *,
        discard: Callable[[], None],
        checkpoint: CheckpointWish,
    ) -> Committed:
        """Commit as the library does."""
        try:
            return finish(command, request, discard=discard, checkpoint=checkpoint)
        except CommitUnknownError:
            if self.mutant is Mutant.HASTY_CLEANUP:
                discard()
            raise


class _Blind(TableLog):
    """Shows a transaction nothing of what rivals did to rows or said of applications."""

    def commits_after(self, version: int, *, through: int | None = None) -> tuple[Commit, ...]:
        """Return the commits with what a commit of ours is built upon, and no more."""
        kept = CommitInfo | DomainMetadata | Metadata | Protocol
        return tuple(
            replace(commit, actions=tuple(a for a in commit.actions if isinstance(a, kept)))
            for commit in super().commits_after(version, through=through)
        )


class _Unsettled:
    """A store whose lost answers nobody asks about again."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def put_if_absent(self, path: str, content: bytes) -> PutOutcome:
        """Create a file; without an answer it is taken not to be there."""
        try:
            return self._store.put_if_absent(path, content)
        except StorageError as lost:
            raise NoAnswerError(str(lost)) from lost
