"""MERGE: one call, its row in the UI and its result row."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession

from puredelta.commands.dml.explain.explain import execute_reported
from puredelta.commands.dml.named_tables import named_tables
from puredelta.commands.dml.spec.merge import MergeSpec
from puredelta.commands.dml.spec.statement import InputRows
from puredelta.commands.dml.start import start_statement
from puredelta.commands.report.latest import with_report
from puredelta.log.replay.table_log import TableLog
from puredelta.spark.session.small_frames import count_row
from puredelta.spark.session.ui_metrics import shown_in_ui


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
    The frame has the attribute ``report``.
    """
    with (
        shown_in_ui(spark, f"MERGE INTO delta.`{log.root_uri}`") as shown,
        named_tables(spark, spec),
    ):
        command = start_statement(spark, log)
        rows = InputRows(target=target_rows, source=command.bind(source_rows))
        outcome, report = execute_reported(command, spec, rows)
        command.settings.reset_set_transaction(spark)
        shown.report({**outcome.metrics, **outcome.skipping}, note=outcome.note)
    counted = outcome.rows
    counts = {
        "num_affected_rows": outcome.affected or 0,
        "num_updated_rows": counted.updated,
        "num_deleted_rows": counted.deleted,
        "num_inserted_rows": counted.inserted,
    }
    return with_report(count_row(spark, counts, exists=outcome.was_executed), report)
