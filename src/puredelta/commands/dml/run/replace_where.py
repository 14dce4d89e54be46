"""``replaceWhere`` on data columns: rows of a condition are replaced, files are rewritten.

It is the MERGE that matches nothing: every new row is inserted, every old row of the condition
is deleted, in one commit that the history calls a WRITE.
"""

from __future__ import annotations

from pyspark.sql import DataFrame

from puredelta.commands.command import Command
from puredelta.commands.dml.actions import Outcome
from puredelta.commands.dml.explain.explain import execute_reported
from puredelta.commands.dml.spec.replace_where import SOURCE, TARGET, ReplaceSpec
from puredelta.commands.dml.spec.statement import InputRows
from puredelta.commands.report.report import Report
from puredelta.spark.resolve.table_attributes import table_identity


def replace_rows(
    command: Command, rows: DataFrame, spec: ReplaceSpec
) -> tuple[Outcome, Report | None]:
    """Delete the rows of the condition and insert the new ones, in one commit; with a report.

    Raises:
        InvalidRequestError: a row breaks a rule of the table.
        ConflictError: another writer changed what this write relies on.
    """
    return execute_reported(command, spec, replaced_input(command, rows))


def replaced_input(command: Command, rows: DataFrame) -> InputRows:
    """Return the table and the new rows under the names that `ReplaceSpec` uses."""
    target = table_identity(command.spark, command.snapshot.config.schema).alias(TARGET)
    return InputRows(target=target, source=rows.alias(SOURCE))
