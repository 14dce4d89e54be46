"""Optimistic transaction: prepare against one version, commit on top of any compatible one.

The life of a transaction: a command reads a snapshot, says what it depends on
(`Transaction.read_files`, `Transaction.read_app_id`), writes its data files, and commits
once. If rivals were faster, the commit is checked against each of them and bound to the
next free version; the command itself is never run again (X-09). What cannot stand raises a
`puredelta.errors.ConflictError` and leaves the table as the rivals made it.

After a checkpoint, log files beyond the retention time are removed. No ``.crc`` is written: it
is optional, and a wrong one costs readers the table.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from puredelta.errors import ConflictError, ErrorCode, InvalidRequestError
from puredelta.log.checkpoint.checkpoint_write import write_checkpoint
from puredelta.log.checkpoint.cleanup import clean_up_log
from puredelta.log.commit.commit import Created, LostRace, create_version
from puredelta.log.commit.commit_checks import (
    distinct_transactions,
    require_single_actions,
    require_valid_actions,
)
from puredelta.log.commit.commit_content import (
    NO_VERSION,
    CommitBase,
    StagedCommit,
    build_actions,
    config_after,
    encode_commit,
)
from puredelta.log.commit.commit_request import IfCreated
from puredelta.log.commit.conflict_errors import conflict_error, creation_conflict, retries_exceeded
from puredelta.log.commit.conflicts import (
    Conflict,
    find_application_conflicts,
    find_conflicts,
)
from puredelta.log.commit.isolation import isolation_level
from puredelta.log.commit.read_set import ReadSet
from puredelta.log.commit.winning_commit import WinningCommit
from puredelta.log.files.clock import Clock, IdSource, random_id, wall_clock
from puredelta.log.files.file_table import FileTable
from puredelta.log.replay.load import first_snapshot
from puredelta.log.replay.snapshot import Snapshot
from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.actions.actions import Action, AddChangeFile, CommitInfo, Remove
from puredelta.protocol.actions.operations import Operation
from puredelta.protocol.features.feature_registry import Capability
from puredelta.protocol.table.table_config import TableConfig
from puredelta.protocol.values.predicates import Predicate

logger = logging.getLogger(__name__)

ATTEMPTS_MAX = 1_000
"""How many versions a commit tries for. Each loss means that another writer got on."""


class Phase(Enum):
    """Where a commit stands, for progress reporting and for tests that interleave writers."""

    STAGED = "checked by itself, nothing written"
    LOST_RACE = "another writer has the version, its commit is not read yet"
    REBASED = "compatible with all winners seen, bound to the next version"
    WRITTEN = "the commit file is on disk"
    FINISHED = "the checkpoint is written, failed or not due"


def ignore_phase(_: Phase) -> None:
    """Do nothing."""


class CheckpointWish(Enum):
    """When to write a checkpoint after the commit."""

    AT_INTERVAL = "at interval"
    """At every multiple of ``delta.checkpointInterval`` but 0 (X-32)."""
    ALWAYS = "always"
    """Also now: CONVERT lists many files in version 0 (C-58)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Committed:
    """The commit is part of the table."""

    version: int
    timestamp_ms: int
    """Its in-commit timestamp, else the time its writer put into ``commitInfo``."""
    actions: tuple[Action, ...]
    """As written, provenance first."""
    config: TableConfig
    """The table as this commit leaves it."""

    @property
    def info(self) -> CommitInfo:
        """Its provenance."""
        info = self.actions[0]
        assert isinstance(info, CommitInfo)  # noqa: S101 - build_actions puts it first
        return info


class Transaction:
    """One commit in the making. Not shared between threads, and used for one commit.

    ``snapshot`` is what the command reads, None when it creates the table. ``engine_info``
    goes into the history (``Apache-Spark/4.1.0 puredelta/0.1.0``), ``capability`` is what the
    command does to the table.

    Raises:
        UnsupportedError: the table lists a feature that this library cannot write
            (DELTA_UNSUPPORTED_FEATURES_FOR_WRITE): before any data file is written.
    """

    def __init__(
        self,
        log: TableLog,
        snapshot: Snapshot | None,
        *,
        engine_info: str,
        capability: Capability = Capability.APPEND,
        on_phase: Callable[[Phase], None] = ignore_phase,
        clock: Clock = wall_clock,
        new_id: IdSource = random_id,
    ) -> None:
        if snapshot is not None:
            snapshot.config.require(capability)
        self._log = log
        self._store = log.store
        self._snapshot = snapshot
        self._engine_info = engine_info
        self._capability = capability
        self._on_phase = on_phase
        self._clock = clock
        self._txn_id = new_id()
        self._read_set = ReadSet()
        self._committing = False

    @property
    def txn_id(self) -> str:
        """The id by which this commit will be known, whatever version it gets."""
        return self._txn_id

    @property
    def read_version(self) -> int:
        """The version the command reads; -1 when there is no table yet."""
        return NO_VERSION if self._snapshot is None else self._snapshot.version

    @property
    def read_set(self) -> ReadSet:
        """What has been read so far."""
        return self._read_set

    def read_files(self, predicate: Predicate | None, files: FileTable) -> None:
        """Declare that every row matching ``predicate`` was read, in these files.

        ``files`` are the candidates: what pruning left, not only what will change.
        ``predicate`` is over target columns and at least as wide as the rows the result
        depends on; None stands for the whole table. Declaring too much costs conflicts,
        declaring too little costs correct results.
        """
        self._read_set = self._read_set.with_files(predicate, files)

    def read_app_id(self, app_id: str) -> int | None:
        """Return the last version the application committed, and depend on it (M-92)."""
        self._read_set = self._read_set.with_app_id(app_id)
        if self._snapshot is None:
            return None
        transaction = self._snapshot.set_transactions.get(app_id)
        return None if transaction is None else transaction.version

    def commit(
        self,
        actions: Sequence[Action],
        operation: Operation,
        *,
        metrics: Mapping[str, int | str] | None = None,
        is_blind_append: bool | None = None,
        user_metadata: str | None = None,
        tags: Mapping[str, str] | None = None,
        if_created: IfCreated = IfCreated.FAIL,
        checkpoint: CheckpointWish = CheckpointWish.AT_INTERVAL,
    ) -> Committed:
        """Commit the actions as one version and write a checkpoint when one is due.

        ``is_blind_append`` is found out (no file removed, nothing read) unless it is given
        as False. Any exception but `CommitUnknownError` means that the table is as before.

        Raises:
            ConflictError: a rival's commit and this one cannot both stand; the subclass and
                code say why (X-20 to X-27).
            InvalidRequestError: the actions would break the table.
            UnsupportedError: a rival made the table one that this library cannot write.
            CommitUnknownError: the store does not say whether the commit landed; the data
                files must be kept.
            OSError: the store failed before anything was written.
        """
        if self._committing:
            raise ValueError("a transaction commits once; start a new one")
        self._committing = True
        draft = self._draft(
            actions,
            operation,
            metrics=metrics,
            is_blind_append=is_blind_append,
            user_metadata=user_metadata,
            tags=tags,
        )
        base = CommitBase.of(self._snapshot)
        self._require_committable(draft, base)
        self._on_phase(Phase.STAGED)
        committed = self._commit_somewhere(draft, base, if_created)
        self._on_phase(Phase.WRITTEN)
        self._checkpoint_if_due(committed, checkpoint)
        self._on_phase(Phase.FINISHED)
        return committed

    def _draft(
        self,
        actions: Sequence[Action],
        operation: Operation,
        *,
        metrics: Mapping[str, int | str] | None,
        is_blind_append: bool | None,
        user_metadata: str | None,
        tags: Mapping[str, str] | None,
    ) -> StagedCommit:
        require_single_actions(actions)
        kept = distinct_transactions(actions)
        adds_only = not any(isinstance(action, Remove | AddChangeFile) for action in kept)
        blind = adds_only and not self._read_set.depends_on_data
        if is_blind_append and not blind:
            raise ValueError("a commit that read or removed files is no blind append")
        blind = blind and is_blind_append is not False
        metadata = None if self._snapshot is None else self._snapshot.metadata
        level = isolation_level(kept, metadata)
        info = CommitInfo(
            timestamp_ms=self._clock(),
            operation=operation.name,
            operation_parameters=operation.parameters,
            operation_metrics=None
            if metrics is None
            else {name: str(value) for name, value in metrics.items()},
            read_version=_recorded_read_version(self.read_version, operation),
            isolation_level=level.value,
            is_blind_append=blind,
            user_metadata=user_metadata,
            engine_info=self._engine_info,
            txn_id=self._txn_id,
            tags=tags or None,
        )
        return StagedCommit(info=info, actions=kept, isolation=level, is_blind_append=blind)

    def _require_committable(self, draft: StagedCommit, base: CommitBase) -> None:
        if base.config is None and (draft.metadata is None or draft.protocol is None):
            missing = "metaData" if draft.metadata is None else "protocol"
            raise InvalidRequestError(
                f"Couldn't find Metadata while committing the first version of the Delta table: "
                f"the {missing} action is missing.",
                code=ErrorCode.METADATA_ABSENT,
                missing=missing,
            )
        after = config_after(draft, base)
        after.require(self._capability)
        require_valid_actions(
            draft.actions, before=base.config, after=after, operation=draft.info.operation
        )

    def _commit_somewhere(
        self, draft: StagedCommit, base: CommitBase, if_created: IfCreated
    ) -> Committed:
        first_version = base.version + 1
        for _ in range(ATTEMPTS_MAX):
            actions = build_actions(draft, base)
            content = encode_commit(actions)
            match create_version(self._store, base.version + 1, content, txn_id=self._txn_id):
                case Created(version):
                    return _committed(version, actions, config_after(draft, base))
                case LostRace():
                    self._on_phase(Phase.LOST_RACE)
            draft, base = self._rebase(draft, base, if_created)
            self._on_phase(Phase.REBASED)
        raise retries_exceeded(
            table=self._table_name(base.config),
            attempts=ATTEMPTS_MAX,
            first_version=first_version,
            last_version=base.version + 1,
            num_actions=len(draft.actions),
        )

    def _rebase(
        self, draft: StagedCommit, base: CommitBase, if_created: IfCreated
    ) -> tuple[StagedCommit, CommitBase]:
        """Check the draft against every commit since the base and move it behind the last."""
        checked_for = base.config
        for winner in map(WinningCommit.of, self._log.commits_after(base.version)):
            after = base.after(winner)
            if base.config is None:
                draft = self._join(draft, winner, after, if_created)
            else:
                self._require_no_conflict(draft, winner, base.config)
            base = after
        if base.config is not checked_for:
            self._require_committable(draft, base)
        return draft, base

    def _require_no_conflict(
        self, draft: StagedCommit, winner: WinningCommit, config: TableConfig
    ) -> None:
        conflicts = find_conflicts(
            draft.for_conflicts(), winner, read_set=self._read_set, config=config
        )
        if conflicts:
            raise self._conflict(conflicts, winner, config)

    def _join(
        self, draft: StagedCommit, winner: WinningCommit, after: CommitBase, if_created: IfCreated
    ) -> StagedCommit:
        """Turn the creation of a table into an append to the one a rival created."""
        reason = _why_not_joined(draft, after, if_created)
        if reason is not None:
            raise creation_conflict(winner, table=self._table_name(after.config), reason=reason)
        if conflicts := find_application_conflicts(winner, self._read_set):
            raise self._conflict(conflicts, winner, after.config)
        return draft.without_table_definition()

    def _conflict(
        self, conflicts: tuple[Conflict, ...], winner: WinningCommit, config: TableConfig | None
    ) -> ConflictError:
        return conflict_error(
            conflicts, winner, table=self._table_name(config), read_version=self.read_version
        )

    def _checkpoint_if_due(self, committed: Committed, wish: CheckpointWish) -> None:
        """Write a checkpoint; whatever goes wrong, the commit stands.

        An exception from here would tell the caller to remove files that the table has.
        """
        version, config = committed.version, committed.config
        try:
            interval = config.properties.checkpoint_interval
            due = version != 0 and version % interval == 0
            if not due and wish is not CheckpointWish.ALWAYS:
                return
            snapshot = self._snapshot_of(committed)
            write_checkpoint(self._store, snapshot, now_ms=self._clock())
        except Exception as error:
            logger.warning(
                "Version %d of %s is committed, but no checkpoint was written for it: %s",
                version,
                self._store.root_uri,
                error,
                exc_info=True,
            )
            return
        self._clean_up(config)

    def _snapshot_of(self, committed: Committed) -> Snapshot:
        """Return the committed version; the first one, which may list many files, is not read."""
        if committed.version == 0:
            return first_snapshot(
                self._store.root_uri,
                committed.config,
                committed.actions,
                timestamp_ms=committed.timestamp_ms,
            )
        return self._log.snapshot(version=committed.version)

    def _clean_up(self, config: TableConfig) -> None:
        """Remove expired log files; what cannot be removed now is found again next time."""
        try:
            clean_up_log(self._store, config.properties, now_ms=self._clock())
        except Exception as error:
            logger.warning(
                "Expired log files of %s could not all be removed: %s",
                self._store.root_uri,
                error,
                exc_info=True,
            )

    def _table_name(self, config: TableConfig | None) -> str:
        name = None if config is None else config.metadata.name
        return name or f"delta.`{self._store.root_uri.removeprefix('file:')}`"


def _recorded_read_version(read_version: int, operation: Operation) -> int | None:
    """Leave out -1 as the reference does; its CONVERT and CLONE alone write it (C-56)."""
    if read_version == NO_VERSION and operation.name not in {"CONVERT", "CLONE"}:
        return None
    return read_version


def _committed(version: int, actions: tuple[Action, ...], config: TableConfig) -> Committed:
    info = actions[0]
    assert isinstance(info, CommitInfo)  # noqa: S101 - build_actions puts it first
    in_commit = info.in_commit_timestamp_ms
    timestamp_ms = info.timestamp_ms if in_commit is None else in_commit
    return Committed(
        version=version, timestamp_ms=timestamp_ms or 0, actions=actions, config=config
    )


def _why_not_joined(draft: StagedCommit, after: CommitBase, if_created: IfCreated) -> str | None:
    """Say why rows written for our table cannot go into the rival's, if they cannot."""
    if if_created is IfCreated.FAIL:
        return "this operation was to create the table"
    if not draft.is_blind_append:
        return "this operation does more than append"
    theirs = after.config
    if draft.metadata is None or draft.protocol is None or theirs is None:
        return "it has no metadata"
    ours = TableConfig.of(draft.protocol, draft.metadata)
    if ours.schema != theirs.schema:
        return "its schema is another one"
    if ours.partition_columns != theirs.partition_columns:
        return f"it is partitioned by {list(theirs.partition_columns)}"
    if dict(ours.metadata.configuration) != dict(theirs.metadata.configuration):
        return "its table properties are others"
    return None
