"""UPDATE and DELETE from statement to commit."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession

from puredelta.commands.engine import engine_info
from puredelta.commands.row_changes.counts import FileCounts, PhaseTimes, ms_since
from puredelta.commands.row_changes.plan import by_source_predicate
from puredelta.commands.row_changes.run import RowCommand, already_committed, change_rows
from puredelta.commands.row_changes.settings import ExecutionSettings, persistent_vectors
from puredelta.commands.row_changes.statement import NotMatchedBySourceClause, ResolvedStatement
from puredelta.commands.update_delete.metrics import (
    delete_metrics,
    update_metrics,
    whole_files_metrics,
)
from puredelta.commands.update_delete.resolve import resolve_rows
from puredelta.commands.update_delete.spec import DeleteSpec, RowSpec, UpdateSpec
from puredelta.commands.update_delete.whole_files import decides_by_file, matching_files
from puredelta.log.commit.commit_checks import require_removable
from puredelta.log.commit.transaction import Phase, Transaction, ignore_phase
from puredelta.log.files.clock import wall_clock
from puredelta.log.files.tombstones import remove_file
from puredelta.log.replay.snapshot import Snapshot
from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.actions import operations
from puredelta.protocol.actions.actions import Action
from puredelta.protocol.actions.operations import Operation
from puredelta.protocol.features.feature_registry import Capability
from puredelta.spark.catalog.cached_frames import refresh_cached_frames
from puredelta.spark.plans.count_row import count_row
from puredelta.spark.plans.py4j_quickack import quick_answers
from puredelta.spark.plans.ui_metrics import shown_in_ui
from puredelta.spark.session.session import SessionInfo

NOT_COUNTED = -1
"""The number of affected rows where files without a row count went as a whole."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowOutcome:
    """What an UPDATE or a DELETE did."""

    version: int | None
    """The version it committed; ``None`` if there was nothing to commit."""
    affected: int | None
    """Rows; `NOT_COUNTED` where nobody knows, ``None`` if it had been executed before (M-92)."""
    metrics: Mapping[str, int]
    """As the history holds them."""


def run_rows(
    spark: SparkSession, log: TableLog, spec: RowSpec, *, target_rows: DataFrame
) -> DataFrame:
    """Execute an UPDATE or a DELETE and return its result row.

    One long column ``num_affected_rows``; no row if the session's ``txnVersion`` had been
    executed (M-92). -1 stands for rows that nobody counted.
    """
    name = "UPDATE" if isinstance(spec, UpdateSpec) else "DELETE FROM"
    with (
        quick_answers(spark),
        shown_in_ui(spark, f"{name} delta.`{log.root_uri}`") as shown,
    ):
        outcome = execute_rows(spark, log, spec, target_rows=target_rows)
        shown.report(outcome.metrics)
    affected = outcome.affected
    return count_row(spark, {"num_affected_rows": affected or 0}, exists=affected is not None)


def execute_rows(
    spark: SparkSession,
    log: TableLog,
    spec: RowSpec,
    *,
    target_rows: DataFrame,
    on_phase: Callable[[Phase], None] = ignore_phase,
) -> RowOutcome:
    """Execute a statement on the latest version and commit it, unless it changes nothing.

    ``target_rows`` is what the statement's names refer to; the table is read from the log.

    Raises:
        InvalidRequestError: the statement is wrong, a row breaks a rule of the table, or
            the table only takes appends.
        pyspark.errors.PySparkException: Spark refuses an expression.
        UnsupportedError: the table uses a feature that is not implemented.
        ConflictError: another writer changed what this statement read.
    """
    started = time.monotonic()
    session = SessionInfo.of(spark)
    settings = ExecutionSettings.parse(session.settings)
    snapshot = log.snapshot()
    transaction = Transaction(
        log,
        snapshot,
        engine_info=engine_info(spark),
        on_phase=on_phase,
        capability=Capability.MERGE,
    )
    statement = resolve_rows(spec, target_rows=target_rows, config=snapshot.config, session=session)
    require_removable(snapshot.config)
    if already_committed(transaction, settings.marker):
        settings.reset_marker(spark)
        return RowOutcome(version=None, affected=None, metrics={})
    run = _Run(
        spark=spark,
        log=log,
        spec=spec,
        snapshot=snapshot,
        statement=statement,
        transaction=transaction,
        session=session,
        settings=settings,
        started=started,
    )
    outcome = run.remove_files() if run.decides_by_file else run.change_rows()
    settings.reset_marker(spark)
    return outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class _Run:
    """A statement that is resolved and allowed."""

    spark: SparkSession
    log: TableLog
    spec: RowSpec
    snapshot: Snapshot
    statement: ResolvedStatement
    transaction: Transaction
    session: SessionInfo
    settings: ExecutionSettings
    started: float

    @property
    def clause(self) -> NotMatchedBySourceClause:
        """What happens, and to which rows."""
        (clause,) = self.statement.not_matched_by_source
        return clause

    @property
    def operation(self) -> Operation:
        """What the history says of it: plain SQL, where the reference writes plan ids (W-16)."""
        condition = self.clause.condition
        predicate = None if condition is None else condition.sql
        if isinstance(self.spec, UpdateSpec):
            return operations.update(predicate)
        return operations.delete(predicate)

    @property
    def decides_by_file(self) -> bool:
        """Whether files go as a whole."""
        return isinstance(self.spec, DeleteSpec) and decides_by_file(
            self.clause.condition, self.snapshot.config
        )

    def remove_files(self) -> RowOutcome:
        """Remove the files whose rows match; runs no job on a classic session."""
        files = matching_files(self.spark, self.snapshot, self.statement)
        self.transaction.read_files(by_source_predicate((self.clause,)), files)
        now_ms = wall_clock()
        removes = tuple(remove_file(add, deleted_ms=now_ms) for add in files.adds())
        deleted = files.num_records()
        elapsed_ms = ms_since(self.started)
        metrics = whole_files_metrics(
            deleted,
            FileCounts(
                removed=len(removes),
                removed_bytes=files.total_size_bytes,
                vectors_removed=sum(remove.deletion_vector is not None for remove in removes),
            ),
            PhaseTimes(execution_ms=elapsed_ms, scan_ms=elapsed_ms),
        )
        version = None
        if removes or not self.settings.skips_empty_commits:
            version = self._commit(removes, metrics)
        affected = NOT_COUNTED if deleted is None else deleted
        return RowOutcome(version=version, affected=affected, metrics=metrics)

    def change_rows(self) -> RowOutcome:
        """Find the rows, write what becomes of them and what stays beside them."""
        is_update = isinstance(self.spec, UpdateSpec)
        outcome = change_rows(
            self.statement,
            RowCommand(
                operation=self.operation,
                metrics=update_metrics if is_update else delete_metrics,
                deletion_vectors=persistent_vectors(
                    self.session.settings, self.operation.name.lower()
                ),
                infers_deletes=True,
            ),
            spark=self.spark,
            log=self.log,
            snapshot=self.snapshot,
            transaction=self.transaction,
            settings=self.settings,
            started=self.started,
        )
        version, rows, metrics = outcome.version, outcome.rows, outcome.metrics
        if version is None and is_update and self.settings.marker is not None:
            # An UPDATE that finds no row counts as executed all the same; a DELETE does not.
            version = self._commit((), metrics)
        return RowOutcome(version=version, affected=rows.updated + rows.deleted, metrics=metrics)

    def _commit(self, actions: tuple[Action, ...], metrics: Mapping[str, int]) -> int:
        settings = self.settings
        marker = () if settings.marker is None else (settings.marker,)
        committed = self.transaction.commit(
            (*actions, *marker),
            self.operation,
            metrics=metrics if settings.records_metrics else None,
            is_blind_append=False,
            user_metadata=settings.user_metadata,
        )
        refresh_cached_frames(self.spark, self.log)
        return committed.version
