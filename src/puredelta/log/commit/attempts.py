"""The attempts of a commit: one version after the other, until one is free or a conflict is found.

Each attempt builds the content for its version and tries to create the commit file. Where
another writer was faster, the staged commit is checked against every winning commit and
bound to the version after the last. The command itself is never run again (X-09).
"""

from __future__ import annotations

from dataclasses import dataclass

from puredelta.errors import CommitUnknownError, ErrorCode, InvalidRequestError
from puredelta.log.commit.commit import Created, LostRace, create_version
from puredelta.log.commit.commit_checks import require_spoolable, require_valid_actions
from puredelta.log.commit.commit_content import (
    NO_VERSION,
    CommitBase,
    StagedCommit,
    build_actions,
    encode_commit,
    next_config,
)
from puredelta.log.commit.commit_request import Committed, IfCreated
from puredelta.log.commit.conflict_errors import (
    conflict_error,
    creation_conflict,
    never_listed,
    replaced,
    retries_exceeded,
)
from puredelta.log.commit.conflicts import find_conflicts
from puredelta.log.commit.environment import Environment, Phase
from puredelta.log.commit.read_set import ReadSet
from puredelta.log.commit.row_reconciliation import reconcile_rows, with_unions
from puredelta.log.commit.winning_commit import WinningCommit
from puredelta.log.replay.same_table import REMOVED, version_instead
from puredelta.log.replay.snapshot import Snapshot
from puredelta.log.replay.table_log import TableLog
from puredelta.log.vectors.read import read_vector
from puredelta.log.vectors.write import discard_vectors
from puredelta.protocol.actions.actions import DeletionVectorDescriptor
from puredelta.protocol.actions.deletion_vector import RowIndexes
from puredelta.protocol.features.feature_registry import Capability
from puredelta.protocol.table.table_config import TableConfig

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
            content = encode_commit(actions)
            more = None if staged.new_files is None else staged.new_files.lines()
            outcome = create_version(
                store, base.version + 1, content, txn_id=self.txn_id, more=more
            )
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

    def _require_committable(self, staged: StagedCommit, base: CommitBase) -> TableConfig:
        """Return the table as the commit leaves it, if the commit may be made on the base."""
        after = next_config(base.config, staged.protocol, staged.metadata)
        if after is None:
            missing = "metaData" if staged.metadata is None else "protocol"
            raise InvalidRequestError(
                f"Couldn't find Metadata while committing the first version of the Delta table: "
                f"the {missing} action is missing.",
                code=ErrorCode.METADATA_ABSENT,
                missing=missing,
            )
        after.require(self.capability)
        require_valid_actions(
            staged.actions, before=base.config, after=after, operation=staged.info.operation
        )
        if staged.new_files is not None:
            require_spoolable(staged.new_files.partition_columns, after)
        return after

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
            seen = winner
            if self.reads.judges_rows_alone:
                staged, seen = reconcile_rows(staged, winner, read=self._read_vector)
            self._require_no_conflict(staged, seen, base.config or after.table)
            base = after
        return staged, base

    def _read_vector(self, vector: DeletionVectorDescriptor) -> RowIndexes:
        return read_vector(vector, self.log.root_uri, store=self.log.store)

    def _require_no_conflict(
        self, staged: StagedCommit, winner: WinningCommit, config: TableConfig
    ) -> None:
        conflicts = find_conflicts(
            staged.for_conflicts(), winner, read_set=self.reads, config=config
        )
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
