"""Retries of a commit: attempts at version after version, until one is free or a conflict is found.

A commit is the creation of one file (section "Delta Log Entries", X-01). The store promises that
at most one caller creates it, but not that the caller learns of its success: a store that retries
by itself may report "already exists" for its own file, and after any failure the file may exist.
In all these cases the file is read back and its ``txnId`` decides (X-10).

Each attempt builds the content for its version and tries to create the commit file. If another
writer was faster, the staged commit is checked against every winning commit and bound to the
version after the last. The command itself is never run again (X-09).

During a long job the table may be dropped and replaced by another one at the same path. A
commit onto the version that was read would leave a gap in the new table's log, which makes that
table unreadable, or put rows of one schema into a table of another.

This module knows no rules of conflicts, and of the content of a commit only the ``txnId``.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import TypeAlias

from puredelta.errors import CommitUnknownError, CorruptTableError, InvalidRequestError, Message
from puredelta.log.commit.commit_checks import require_spoolable, require_valid_actions
from puredelta.log.commit.commit_content import (
    NO_VERSION,
    CommitBase,
    StagedCommit,
    build_actions,
    encode_commit,
    next_config,
)
from puredelta.log.commit.commit_request import Committed, Environment, IfCreated, Phase, ReadSet
from puredelta.log.commit.conflict_errors import (
    conflict_error,
    creation_conflict,
    never_listed,
    replaced,
    retries_exceeded,
)
from puredelta.log.commit.conflicts import WinningCommit, find_conflicts
from puredelta.log.commit.row_reconciliation import (
    follow_moves,
    reconcile_rows,
    with_later_reads,
    with_moved_files,
    with_unions,
)
from puredelta.log.files.deletion_vectors import discard_vectors, read_vector
from puredelta.log.files.file_table import FileTable
from puredelta.log.managed.managed_store import ManagedStore
from puredelta.log.managed.ratification import ManagedCommit, create_managed, ratify
from puredelta.log.managed.table_update import (
    CATALOG_MANAGED,
    require_still_managed,
    table_update,
)
from puredelta.log.replay.segment import list_log
from puredelta.log.replay.snapshot import Snapshot
from puredelta.log.replay.table_log import TableLog, by_path
from puredelta.protocol.actions.action_json import parse_action
from puredelta.protocol.actions.actions import Action, CommitInfo, DeletionVectorDescriptor
from puredelta.protocol.actions.deletion_vector import RowIndexes
from puredelta.protocol.actions.log_paths import commit_name, log_path
from puredelta.protocol.features.feature_registry import Capability
from puredelta.protocol.table.table_config import TableConfig
from puredelta.store.base import PutOutcome, Store, UnknownOutcomeError, put_parts_if_absent

READS_TO_SETTLE_MAX = 3
"""How often an unanswered commit is read back before its outcome counts as unknown."""


@dataclass(frozen=True, slots=True)
class Created:
    """Our commit is on disk as this version."""

    version: int


@dataclass(frozen=True, slots=True)
class LostRace:
    """Another writer owns the version; nothing of our commit is on disk."""

    version: int


CommitOutcome: TypeAlias = Created | LostRace


def create_version(
    store: Store, version: int, content: bytes, *, txn_id: str, more: Iterable[bytes] | None = None
) -> CommitOutcome:
    """Create the commit file of ``version`` unless another writer has.

    ``content`` holds a ``commitInfo`` with ``txn_id``; ``more`` follows it, part by part. An
    exception other than `CommitUnknownError` means that nothing was written: a store may lose the
    answer to a put, but a put it has reported as failed and does not show must never appear later,
    unless it said so (`UnknownOutcomeError`).
    """
    path = log_path(commit_name(version))
    try:
        if more is None:
            put = store.put_if_absent(path, content)
        else:
            put = put_parts_if_absent(store, path, itertools.chain((content,), more))
    except OSError as failure:
        return _settle(store, path, version, txn_id, failure)
    match put:
        case PutOutcome.CREATED:
            return Created(version)
        case PutOutcome.ALREADY_EXISTS:
            return _settle(store, path, version, txn_id, None)


def find_txn_id(content: bytes) -> str | None:
    """Return the ``txnId`` of a commit file, if its writer left one.

    Every line is searched for the provenance: this library and delta-spark write it first, but
    only in-commit timestamps make that a rule.
    """
    for line in content.split(b"\n"):
        if b'"commitInfo"' in line:
            try:
                action = parse_action(line)
            except CorruptTableError:
                return None
            if isinstance(action, CommitInfo):
                return action.txn_id
    return None


def _settle(
    store: Store, path: str, version: int, txn_id: str, failure: OSError | None
) -> CommitOutcome:
    problem = failure
    for _ in range(READS_TO_SETTLE_MAX):
        try:
            content = store.read(path)
        except FileNotFoundError as missing:  # noqa: PERF203 - a handful of tries
            if isinstance(failure, UnknownOutcomeError):
                continue  # what is not there now may come yet
            if failure is not None:
                raise failure from None
            problem = missing
        except OSError as unreadable:
            problem = unreadable
        else:
            ours = find_txn_id(content) == txn_id
            return Created(version) if ours else LostRace(version)
    raise CommitUnknownError(
        Message.COMMIT_STATE_UNKNOWN,
        root_uri=store.root_uri,
        reads_to_settle_max=READS_TO_SETTLE_MAX,
        version=version,
        txn_id=txn_id,
        path=path,
    ) from problem


REMOVED = -1
"""The version of a table that is there no more."""
_REREAD_WAITS_S = (0.05, 0.25, 1.0)
"""A listing out of a cache may lack the version that another listing has shown."""


def version_instead(log: TableLog, read: Snapshot, *, sleep: Callable[[float], None]) -> int | None:
    """Return the version of another table at a table's path, None if there is none.

    One listing where nothing has happened. A commit that a clean-up took, and one that came back
    from a copy of the table, are told by the table's id.
    """
    listing = list_log(log.store, start=read.version)
    for wait_s in _REREAD_WAITS_S:
        if listing.latest_version is None:
            sleep(wait_s)
            listing = list_log(log.store, start=read.version)
    if listing.latest_version is None:
        shorter = TableLog(log.store).latest_version()
        return REMOVED if shorter is None else shorter
    if read.commit_file is None:
        if read.version in listing.checkpoints:
            return None
    elif listing.commits.get(read.version) == read.commit_file:
        return None
    newest = TableLog(log.store).find_snapshot()
    if newest is None:
        return REMOVED
    return None if newest.metadata.id == read.metadata.id else newest.version


_WAITS_S = (0.01, 0.05, 0.25, 1.0, 5.0)
"""How long to wait for a commit that is there and not listed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempts:
    """What stays the same while a commit tries for one version after the other."""

    log: TableLog
    txn_id: str
    read: Snapshot | None
    """What the command has read; None where there was no table."""
    reads: ReadSet
    capability: Capability
    if_created: IfCreated
    environment: Environment

    def run(self, staged: StagedCommit) -> Committed:
        """Commit on the version that was read, or on whatever compatible version comes after it."""
        base = CommitBase.of(self.read)
        first_version = base.version + 1
        staged = with_moved_files(staged)
        config = self._require_committable(staged, base)
        if self.read is not None:
            self._require_same_table(self.read)
        self.environment.on_phase(Phase.STAGED)
        for _ in range(self.environment.attempts_max):
            committed = self._attempt(staged, base, config)
            if committed is not None:
                return committed
            self.environment.on_phase(Phase.LOST_RACE)
            lost_to = base
            staged, base = self._rebase_on_listed(staged, base)
            if base.config is not lost_to.config:
                config = self._require_committable(staged, base)
            self.environment.on_phase(Phase.REBASED)
        raise retries_exceeded(
            table=self._table_name(base.config),
            attempts=self.environment.attempts_max,
            first_version=first_version,
            last_version=base.version + 1,
            num_actions=len(staged.actions),
        )

    def _require_same_table(self, read: Snapshot) -> None:
        found = version_instead(self.log, read, sleep=self.environment.sleep)
        if found is not None:
            raise replaced(
                table=self._table_name(read.config),
                read_version=read.version,
                version=None if found == REMOVED else found,
            )

    def _attempt(
        self, staged: StagedCommit, base: CommitBase, config: TableConfig
    ) -> Committed | None:
        """Try for the version after the base; ``None`` if another writer has it."""
        store = self.log.store
        new_id = self.environment.new_id
        ready, vectors = with_unions(staged, store=store, config=config, new_id=new_id)
        try:
            actions = build_actions(ready, base, config)
            outcome = self._create(actions, staged, base, config)
        except CommitUnknownError:
            raise
        except BaseException:
            discard_vectors(vectors, store)
            raise
        match outcome:
            case Created(version):
                return Committed(
                    version=version, actions=actions, config=config, new_files=staged.new_files
                )
            case LostRace():
                discard_vectors(vectors, store)
                return None

    def _create(
        self,
        actions: tuple[Action, ...],
        staged: StagedCommit,
        base: CommitBase,
        config: TableConfig,
    ) -> CommitOutcome:
        """Create the version, on storage alone or through the catalog of the table."""
        store, version, content = self.log.store, base.version + 1, encode_commit(actions)
        more = None if staged.new_files is None else staged.new_files.lines()
        if not isinstance(store, ManagedStore):
            return create_version(store, version, content, txn_id=self.txn_id, more=more)
        info = actions[0]
        assert isinstance(info, CommitInfo)  # noqa: S101 - `build_actions` puts it first
        commit = ManagedCommit(
            version=version,
            content=b"".join((content, *(more or ()))),
            timestamp_ms=info.in_commit_timestamp_ms or 0,
            update=table_update(base.config, config, actions),
            txn_id=self.txn_id,
        )
        sleep = self.environment.sleep
        if base.config is None and store.new is not None:
            create_managed(store, store.new, commit, sleep=sleep)
            return Created(version)
        put = ratify(store, commit, new_id=self.environment.new_id, sleep=sleep)
        return Created(version) if put is PutOutcome.CREATED else LostRace(version)

    def _require_committable(self, staged: StagedCommit, base: CommitBase) -> TableConfig:
        """Return the table as the commit leaves it, if the commit may be made on the base."""
        after = next_config(base.config, staged.protocol, staged.metadata)
        if after is None:
            missing = "metaData" if staged.metadata is None else "protocol"
            raise InvalidRequestError(Message.METADATA_ABSENT, missing=missing)
        after.require(self.capability)
        self._require_catalog(base.config, after)
        require_valid_actions(
            staged.actions, before=base.config, after=after, operation=staged.info.operation
        )
        if staged.new_files is not None:
            require_spoolable(staged.new_files.partition_columns, after)
        return after

    def _require_catalog(self, before: TableConfig | None, after: TableConfig) -> None:
        """Let the table's commits stay with the catalog, or with the storage."""
        if isinstance(self.log.store, ManagedStore):
            require_still_managed(before, after)
        elif after.supports(CATALOG_MANAGED):
            raise by_path(self.log.root_uri)

    def _rebase_on_listed(
        self, staged: StagedCommit, base: CommitBase
    ) -> tuple[StagedCommit, CommitBase]:
        """Rebase; wait where a listing, perhaps out of a cache, lacks the commit that was faster.

        Raises:
            ConflictError: it is never listed (DELTA_MAX_COMMIT_RETRIES_EXCEEDED).
        """
        for wait_s in (0.0, *_WAITS_S):
            self.environment.sleep(wait_s)
            rebased, after = self._rebase(staged, base)
            if after.version > base.version:
                return rebased, after
        raise never_listed(table=self._table_name(base.config), version=base.version + 1)

    def _rebase(self, staged: StagedCommit, base: CommitBase) -> tuple[StagedCommit, CommitBase]:
        """Check the commit against every commit since the base and move it after the last."""
        for winner in map(WinningCommit.of, self.log.commits_after(base.version)):
            after = base.after(winner)
            if base.config is None:
                staged = self._join(staged, winner, after.table)
            table, seen = base.config or after.table, winner
            if self.reads.judges_rows_alone:
                staged, seen = reconcile_rows(staged, seen, read=self._read_vector)
            staged, seen = follow_moves(staged, seen, table, read=self._read_vector)
            self._require_no_conflict(staged, seen, table)
            staged, base = with_later_reads(staged, winner, self.reads), after
        return staged, base

    def _read_vector(self, vector: DeletionVectorDescriptor) -> RowIndexes:
        return read_vector(vector, self.log.root_uri, store=self.log.store)

    def _require_no_conflict(
        self, staged: StagedCommit, winner: WinningCommit, config: TableConfig
    ) -> None:
        reads = self.reads
        if staged.read_later:
            reads = replace(reads, scans=(*reads.scans, FileTable.of(staged.read_later)))
        conflicts = find_conflicts(staged.for_conflicts(), winner, read_set=reads, config=config)
        if conflicts:
            raise conflict_error(
                conflicts,
                winner,
                table=self._table_name(config),
                read_version=NO_VERSION if self.read is None else self.read.version,
            )

    def _join(
        self, staged: StagedCommit, winner: WinningCommit, theirs: TableConfig
    ) -> StagedCommit:
        """Turn the creation of a table into an append to the one another writer created."""
        reason = _why_not_joined(staged, theirs, self.if_created)
        if reason is not None:
            raise creation_conflict(winner, table=self._table_name(theirs), reason=reason)
        return staged.without_table_definition()

    def _table_name(self, config: TableConfig | None) -> str:
        name = None if config is None else config.metadata.name
        return name or f"delta.`{self.log.root_uri.removeprefix('file:')}`"


def _why_not_joined(staged: StagedCommit, theirs: TableConfig, if_created: IfCreated) -> str | None:
    """Say why rows written for our table cannot go into the other writer's, if they cannot."""
    if if_created is IfCreated.FAIL:
        return "this operation was to create the table"
    if not staged.is_blind_append:
        return "this operation does more than append"
    ours = next_config(None, staged.protocol, staged.metadata)
    if ours is None:
        return "it has no metadata"
    if ours.schema != theirs.schema:
        return "its schema is another one"
    if ours.partition_columns != theirs.partition_columns:
        return f"it is partitioned by {list(theirs.partition_columns)}"
    if dict(ours.metadata.configuration) != dict(theirs.metadata.configuration):
        return "its table properties are others"
    return None
