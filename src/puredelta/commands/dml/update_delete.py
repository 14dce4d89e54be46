"""UPDATE and DELETE: one call, its row in the UI and its result row."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession

from puredelta.commands.dml.pipeline import execute
from puredelta.commands.dml.start import start_statement
from puredelta.commands.dml.spec.statement import InputRows
from puredelta.commands.dml.spec.update_delete import RowSpec, UpdateSpec
from puredelta.commands.dml.verify import RowCounts
from puredelta.log.replay.table_log import TableLog
from puredelta.spark.plans.count_row import count_row
from puredelta.spark.plans.py4j_quickack import quick_answers
from puredelta.spark.plans.ui_metrics import shown_in_ui

NOT_COUNTED = -1
"""The number of affected rows where files without a row count went as a whole."""


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
        outcome = execute(start_statement(spark, log), spec, InputRows(target=target_rows))
        shown.report(outcome.metrics)
    counts = {"num_affected_rows": num_affected(outcome.rows)}
    return count_row(spark, counts, exists=outcome.was_executed)


def num_affected(rows: RowCounts) -> int:
    """Return how many rows an UPDATE or a DELETE changed; `NOT_COUNTED` where nobody knows."""
    return rows.updated + rows.deleted if rows.is_counted else NOT_COUNTED
