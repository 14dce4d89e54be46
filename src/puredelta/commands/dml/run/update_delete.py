"""UPDATE and DELETE: one call, its row in the UI and its result row."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession

from puredelta.commands.dml.explain.explain import execute_reported
from puredelta.commands.dml.named_tables import named_tables
from puredelta.commands.dml.spec.statement import InputRows
from puredelta.commands.dml.spec.update_delete import RowSpec, UpdateSpec
from puredelta.commands.dml.start import start_statement
from puredelta.commands.report.latest import with_report
from puredelta.log.replay.table_log import TableLog
from puredelta.spark.session.small_frames import count_row
from puredelta.spark.session.ui_metrics import shown_in_ui


def run_rows(
    spark: SparkSession, log: TableLog, spec: RowSpec, *, target_rows: DataFrame
) -> DataFrame:
    """Execute an UPDATE or a DELETE and return its result row.

    One long column ``num_affected_rows``; no row if the session's ``txnVersion`` had been
    executed (M-92). -1 stands for rows that were not counted.
    """
    name = "UPDATE" if isinstance(spec, UpdateSpec) else "DELETE FROM"
    with (
        shown_in_ui(spark, f"{name} delta.`{log.root_uri}`") as shown,
        named_tables(spark, spec),
    ):
        command = start_statement(spark, log)
        outcome, report = execute_reported(command, spec, InputRows(target=target_rows))
        command.settings.reset_set_transaction(spark)
        shown.report(outcome.metrics, note="\n".join(outcome.fallbacks))
    affected = outcome.affected
    counts = {"num_affected_rows": affected or 0}
    return with_report(count_row(spark, counts, exists=outcome.was_executed), report)
