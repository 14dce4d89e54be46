"""Optimistic transaction: read one version, commit on top of any compatible one.

The life of a transaction: a command reads a snapshot, says what it depends on
(`Transaction.read_files`, `Transaction.read_app_id`), writes its data files, and commits
once. If other writers were faster, the commit is checked against each of theirs and bound to
the next free version (`puredelta.log.commit.commit_retry`). What cannot stand raises a
`puredelta.errors.ConflictError` and leaves the table as the other writers made it.
"""

from __future__ import annotations

from dataclasses import dataclass

from puredelta.log.commit.commit_checks import distinct_transactions, require_single_actions
from puredelta.log.commit.commit_content import NO_VERSION, StagedCommit
from puredelta.log.commit.commit_request import (
    DEFAULT_ENVIRONMENT,
    CommitRequest,
    Committed,
    Environment,
    Phase,
    ReadSet,
)
from puredelta.log.commit.commit_retry import Attempts
from puredelta.log.commit.conflicts import isolation_level
from puredelta.log.files.file_table import FileTable
from puredelta.log.managed.table_update import require_no_iceberg
from puredelta.log.replay.snapshot import Snapshot
from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.actions.actions import AddChangeFile, CommitInfo, Remove
from puredelta.protocol.actions.operations import Operation
from puredelta.protocol.features.feature_registry import Capability
from puredelta.protocol.schema.predicates import Predicate


@dataclass(frozen=True, slots=True)
class Spent:
    """What is left of a transaction that was asked to commit, whatever came of it."""


class Transaction:
    """One commit in the making. Not shared between threads.

    ``snapshot`` is what the command reads, None when it creates the table. ``engine_info``
    goes into the history (``Apache-Spark/4.1.0 puredelta/0.1.0``), ``capability`` is what the
    command does to the table. A commit consumes what was read: after it there is nothing that
    could be read more of, or committed again.

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
        environment: Environment = DEFAULT_ENVIRONMENT,
    ) -> None:
        if snapshot is not None:
            snapshot.config.require(capability)
            if log.managed is not None and capability is not Capability.ADMINISTER:
                require_no_iceberg(snapshot.config)
        self._log = log
        self._snapshot = snapshot
        self._engine_info = engine_info
        self._capability = capability
        self._environment = environment
        self._reads: ReadSet | Spent = ReadSet()

    @property
    def read_version(self) -> int:
        """The version the command reads; -1 when there is no table yet."""
        return NO_VERSION if self._snapshot is None else self._snapshot.version

    @property
    def has_read_rows(self) -> bool:
        """Whether the commit will depend on rows of the table, as far as was declared."""
        return self._open().depends_on_data

    def on(self, snapshot: Snapshot) -> Transaction:
        """Return a transaction for the same purpose on another version; nothing is read yet."""
        return Transaction(
            self._log,
            snapshot,
            engine_info=self._engine_info,
            capability=self._capability,
            environment=self._environment,
        )

    def read_files(
        self, predicate: Predicate | None, files: FileTable, *, judges_rows_alone: bool = False
    ) -> None:
        """Declare that every row matching ``predicate`` was read, in these files.

        ``files`` are the candidates: what pruning left, not only what will change.
        ``predicate`` is over target columns and at least as wide as the rows the result
        depends on; None stands for the whole table. Declaring too much costs conflicts,
        declaring too little costs correct results. ``judges_rows_alone`` says that what happens
        to a row depends on no other row of the table: then a writer that deletes other rows of the
        same files is no conflict.
        """
        self._reads = self._open().with_files(predicate, files, judges_rows_alone=judges_rows_alone)

    def read_app_id(self, app_id: str) -> int | None:
        """Return the last version the application committed, and depend on it (M-92).

        A version that ``delta.setTransactionRetentionDuration`` no longer keeps is forgotten.
        """
        self._reads = self._open().with_app_id(app_id)
        if self._snapshot is None:
            return None
        kept = self._snapshot.unexpired_transactions(self._environment.clock())
        transaction = kept.get(app_id)
        return None if transaction is None else transaction.version

    def commit(self, request: CommitRequest) -> Committed:
        """Commit the actions as one version, and be spent.

        Any exception but `CommitUnknownError` means that the table is as before.
        """
        reads, self._reads = self._open(), Spent()
        txn_id = self._environment.new_id()
        attempts = Attempts(
            log=self._log,
            txn_id=txn_id,
            read=self._snapshot,
            reads=reads,
            capability=self._capability,
            if_created=request.if_created,
            environment=self._environment,
        )
        staged = self._staged(request, reads, txn_id)
        committed = attempts.run(staged)
        self._environment.on_phase(Phase.WRITTEN)
        return committed

    def _open(self) -> ReadSet:
        match self._reads:
            case ReadSet() as reads:
                return reads
            case Spent():
                raise ValueError("a transaction commits once; start a new one")

    def _staged(self, request: CommitRequest, reads: ReadSet, txn_id: str) -> StagedCommit:
        if request.new_files is not None and self._snapshot is not None:
            raise ValueError("files are spooled for a table that is created")
        require_single_actions(request.actions)
        kept = distinct_transactions(request.actions)
        adds_only = not any(isinstance(action, Remove | AddChangeFile) for action in kept)
        blind = adds_only and not reads.depends_on_data
        if request.is_blind_append and not blind:
            raise ValueError("a commit that read or removed files is no blind append")
        blind = blind and request.is_blind_append is not False
        metadata = None if self._snapshot is None else self._snapshot.metadata
        level = isolation_level(kept, metadata)
        metrics, operation = request.metrics, request.operation
        info = CommitInfo(
            timestamp_ms=self._environment.clock(),
            operation=operation.name,
            operation_parameters=operation.parameters,
            operation_metrics=None
            if metrics is None
            else {name: str(value) for name, value in metrics.items()},
            read_version=_recorded_read_version(self.read_version, operation),
            isolation_level=level.value,
            is_blind_append=blind,
            user_metadata=request.user_metadata,
            engine_info=self._engine_info,
            txn_id=txn_id,
            tags=request.tags or None,
        )
        return StagedCommit(
            info=info,
            actions=kept,
            isolation=level,
            is_blind_append=blind,
            new_files=request.new_files,
        )


def _recorded_read_version(read_version: int, operation: Operation) -> int | None:
    """Leave out -1 as delta-spark does; its CONVERT and CLONE alone write it (C-56)."""
    if read_version == NO_VERSION and operation.name not in {"CONVERT", "CLONE"}:
        return None
    return read_version
