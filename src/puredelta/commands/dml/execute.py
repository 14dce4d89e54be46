"""Execution of MERGE, UPDATE, DELETE and ``replaceWhere``: call, UI entry and result row.

``replaceWhere`` runs as a MERGE that matches nothing: every new row is inserted, every old row of
the condition is deleted, in one commit that the history calls a WRITE.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame, SparkSession

from puredelta.commands.command import Command
from puredelta.commands.dml.actions import Outcome
from puredelta.commands.dml.explain import (
    ExplainMode,
    dry_run_statement,
    explain_statement,
)
from puredelta.commands.dml.named_tables import named_tables
from puredelta.commands.dml.pipeline import execute
from puredelta.commands.dml.preview import PREVIEW_ROWS, preview_statement
from puredelta.commands.dml.reports import executed_report
from puredelta.commands.dml.retry import DEFAULTS, ExecutionOptions
from puredelta.commands.dml.spec import (
    InputRows,
    MergeSpec,
    ReplaceSpec,
    RowSpec,
    StatementSpec,
    UpdateSpec,
    start_statement,
)
from puredelta.commands.dml.trial import Recording, run_statement
from puredelta.commands.statement.report import Report, with_report
from puredelta.errors import InvalidRequestError, Message
from puredelta.log.replay.table_log import TableLog
from puredelta.spark.resolve.bound_columns import under_alias
from puredelta.spark.resolve.table_attributes import table_identity
from puredelta.spark.session.pyspark_errors import methods_like_pyspark
from puredelta.spark.session.session import count_row
from puredelta.spark.session.ui_metrics import shown_in_ui


def execute_reported(
    command: Command,
    spec: StatementSpec,
    rows: InputRows,
    options: ExecutionOptions = DEFAULTS,
) -> tuple[Outcome, Report | None]:
    """Execute a statement, and return its report together with its outcome."""
    recording = Recording()

    def observe(stage: str, outcome: object) -> None:
        recording.observe(stage, outcome)
        options.observe(stage, outcome)

    with run_statement(command, spec) as running:
        recorded = replace(
            options,
            observe=observe,
            on_run=recording.on_run,
            around=(recording.timed, *running.around, *options.around),
        )
        outcome = execute(command, spec, rows, recorded)
        report = running.finish(
            lambda: executed_report(spec, recording, outcome, jobs_run=running.jobs_run())
        )
    return outcome, report


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


def replace_rows(
    command: Command, rows: DataFrame, spec: ReplaceSpec
) -> tuple[Outcome, Report | None]:
    """Delete the rows that are replaced, insert the new ones, in one commit; with a report."""
    return execute_reported(command, spec, replaced_input(command, rows, spec))


def replaced_input(command: Command, rows: DataFrame, spec: ReplaceSpec) -> InputRows:
    """Return the table and the new rows under the names that the statement uses."""
    target, source = spec.aliases
    table = table_identity(command.spark, command.snapshot.config.schema)
    source_rows = under_alias(spec.source(rows), source)
    return InputRows(target=table.alias(target), source=source_rows)


def run_rows(
    spark: SparkSession, log: TableLog, spec: RowSpec, *, target_rows: DataFrame
) -> DataFrame:
    """Execute an UPDATE or a DELETE and return its result row.

    One long column ``num_affected_rows``; no row if the session's ``txnVersion`` had been
    executed (M-92). -1 means that rows were not counted.
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


@methods_like_pyspark
@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedChange:
    """A statement that changes rows: `explain`, `dry_run`, `preview`, and finally `execute`.

    Every call reads the newest version of the table.
    """

    spark: SparkSession
    log: TableLog
    spec: MergeSpec | RowSpec
    target_rows: DataFrame
    """An empty frame whose columns resolve the names of the statement."""
    source_rows: DataFrame | None = None
    since: int | None = None
    """The version after which commits of other writers are reported."""

    def execute(self) -> DataFrame:
        """Run the statement and return one row of counts, with the attribute ``report``."""
        if not isinstance(self.spec, MergeSpec):
            return run_rows(self.spark, self.log, self.spec, target_rows=self.target_rows)
        if self.source_rows is None:
            raise ValueError("a MERGE needs a source")
        return run_merge(
            self.spark,
            self.log,
            self.spec,
            target_rows=self.target_rows,
            source_rows=self.source_rows,
        )

    def explain(self, mode: str = "plan") -> Report:
        """Return a report of the plan and its reasons; nothing is written, no row is read.

        ``"plan"`` runs no Spark job; ``"source"`` evaluates the source of a MERGE, so that its
        keys skip files. See ``docs/explain.md``.
        """
        parsed = explain_mode(mode)
        with self._started() as (command, rows):
            return explain_statement(command, self.spec, rows, parsed)

    def dry_run(self, *, check_new_rows: bool = True) -> Report:
        """Return a report with the counts that `execute` would have; nothing is changed.

        Rows and files are searched as in `execute`. New rows are computed, too, so that rows that
        the table refuses are refused now, unless ``check_new_rows`` is false.

        Raises the errors of `execute` that occur before it writes.
        """
        with self._started() as (command, rows):
            return dry_run_statement(
                command, self.spec, rows, since=self.since, check_new_rows=check_new_rows
            )

    def preview(self, limit: int = PREVIEW_ROWS) -> DataFrame:
        """Return up to ``limit`` changed rows before and after; nothing is changed.

        The columns are the table's, ``_change_type`` (``insert``, ``update_preimage``,
        ``update_postimage``, ``delete``) and ``_clause``, the number of the clause, from 1. An
        updated row has two lines. The driver holds the rows, so keep the limit small.

        Raises the errors of `execute` that occur before it writes.
        """
        with self._started() as (command, rows):
            return preview_statement(command, self.spec, rows, limit=limit)

    @contextmanager
    def _started(self) -> Iterator[tuple[Command, InputRows]]:
        with named_tables(self.spark, self.spec):
            command = start_statement(self.spark, self.log)
            source = None if self.source_rows is None else command.bind(self.source_rows)
            yield command, InputRows(target=self.target_rows, source=source)


def explain_mode(mode: object) -> ExplainMode:
    """Return the mode of a name.

    Raises:
        InvalidRequestError: there is no such mode.
    """
    modes = {known.value: known for known in ExplainMode}
    found = modes.get(mode.strip().lower()) if isinstance(mode, str) else None
    if found is None:
        raise InvalidRequestError(Message.OPERATION_NOT_ALLOWED_DETAIL_EXPLAIN_MODE, mode=mode)
    return found
