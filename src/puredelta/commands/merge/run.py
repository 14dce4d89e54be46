"""MERGE from statement to commit: resolved, its source staged, then executed."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession

from puredelta.commands.engine import engine_info
from puredelta.commands.merge.clauses import MergeSpec
from puredelta.commands.merge.history import merge_operation
from puredelta.commands.merge.metrics import operation_metrics
from puredelta.commands.merge.resolve import resolve_merge
from puredelta.commands.row_changes.ahead import statistics_ahead
from puredelta.commands.row_changes.counts import RowCounts
from puredelta.commands.row_changes.plan import SearchPlan
from puredelta.commands.row_changes.run import RowCommand, already_committed, change_rows
from puredelta.commands.row_changes.settings import ExecutionSettings, persistent_vectors
from puredelta.log.commit.transaction import Phase, Transaction, ignore_phase
from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.features.feature_registry import Capability
from puredelta.spark.plans.count_row import count_row
from puredelta.spark.plans.py4j_quickack import quick_answers
from puredelta.spark.plans.ui_metrics import shown_in_ui
from puredelta.spark.session.session import SessionInfo


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeOutcome:
    """What a MERGE did."""

    version: int | None
    """The version it committed; ``None`` if there was nothing to commit."""
    rows: RowCounts
    metrics: Mapping[str, int]
    """As the history holds them; empty if the statement had been executed before (M-92)."""
    plan: SearchPlan | None
    """``None`` if the statement had been executed before."""


def run_merge(
    spark: SparkSession,
    log: TableLog,
    spec: MergeSpec,
    *,
    target_rows: DataFrame,
    source_rows: DataFrame,
) -> DataFrame:
    """Execute a MERGE and return its result row (M-12).

    Long columns ``num_affected_rows``, ``num_updated_rows``, ``num_deleted_rows`` and
    ``num_inserted_rows``; no row if the session's ``txnVersion`` had been executed (M-92).
    """
    with (
        quick_answers(spark),
        shown_in_ui(spark, f"MERGE INTO delta.`{log.root_uri}`") as shown,
    ):
        outcome = execute_merge(spark, log, spec, target_rows=target_rows, source_rows=source_rows)
        shown.report(outcome.metrics)
    rows = outcome.rows
    counts = {
        "num_affected_rows": rows.updated + rows.deleted + rows.inserted,
        "num_updated_rows": rows.updated,
        "num_deleted_rows": rows.deleted,
        "num_inserted_rows": rows.inserted,
    }
    return count_row(spark, counts, exists=outcome.plan is not None)


def execute_merge(
    spark: SparkSession,
    log: TableLog,
    spec: MergeSpec,
    *,
    target_rows: DataFrame,
    source_rows: DataFrame,
    on_phase: Callable[[Phase], None] = ignore_phase,
) -> MergeOutcome:
    """Execute a MERGE on the latest version and commit it, unless it changes nothing.

    ``target_rows`` and ``source_rows`` are what the statement's names refer to; the target
    is read from the log, never through ``target_rows``.

    Raises:
        InvalidRequestError: the statement is wrong, a row breaks a rule of the table, or
            several source rows match one target row.
        UnsupportedError: the table uses a feature that MERGE here does not implement.
        ConflictError: another writer changed what this MERGE read.
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
    if already_committed(transaction, settings.marker):
        settings.reset_marker(spark)
        return MergeOutcome(version=None, rows=RowCounts(source=0), metrics={}, plan=None)
    with statistics_ahead(
        snapshot.files, snapshot.config, by_statistics=settings.skips_by_statistics
    ) as statistics:
        statistics.guess(spec.on)
        statement = resolve_merge(
            spec,
            target_rows=target_rows,
            source_rows=source_rows,
            config=snapshot.config,
            session=session,
        )
        statistics.ask(statement)
        outcome = change_rows(
            statement,
            RowCommand(
                operation=merge_operation(statement),
                metrics=operation_metrics,
                deletion_vectors=persistent_vectors(session.settings, "merge"),
                marks_always=True,
            ),
            spark=spark,
            log=log,
            snapshot=snapshot,
            transaction=transaction,
            settings=settings,
            started=started,
            source_rows=source_rows,
            statistics=statistics,
        )
    settings.reset_marker(spark)
    return MergeOutcome(
        version=outcome.version, rows=outcome.rows, metrics=outcome.metrics, plan=outcome.plan
    )
