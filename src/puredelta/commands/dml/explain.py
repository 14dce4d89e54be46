"""EXPLAIN and dry run of a statement."""

from __future__ import annotations

from enum import Enum

from puredelta.commands.command import Command
from puredelta.commands.dml.decide import Decision
from puredelta.commands.dml.new_rows import frame_of_new_rows, new_rows
from puredelta.commands.dml.report_files import count_copied
from puredelta.commands.dml.reports import (
    Tried,
    dry_report,
    planned_report,
)
from puredelta.commands.dml.spec import InputRows, Stage, StatementSpec
from puredelta.commands.dml.trial import (
    Trial,
    count_inserts,
    run_statement,
    tried_statement,
)
from puredelta.commands.statement.report import Report
from puredelta.spark.write.writer import check_rows


class ExplainMode(Enum):
    """The amount of data read for an explanation."""

    PLAN = "plan"
    """Only the log: no Spark job."""
    SOURCE = "source"
    """The source is evaluated once, so that its keys skip files."""


def explain_statement(
    command: Command, spec: StatementSpec, rows: InputRows, mode: ExplainMode = ExplainMode.PLAN
) -> Report:
    """Return the plan of a statement with its reasons, as far as they need no row of the table.

    Runs no Spark job, but `ExplainMode.SOURCE` evaluates the source. (A DELETE of whole files on
    Spark Connect runs one.) Nothing that is written is kept.
    """
    evaluates, done_before = mode is ExplainMode.SOURCE, command.already_committed()
    with (
        run_statement(command, spec) as running,
        tried_statement(command, spec, rows, evaluates=evaluates, around=running.around) as trial,
    ):
        return planned_report(trial, evaluated=evaluates, done_before=done_before)


def dry_run_statement(
    command: Command,
    spec: StatementSpec,
    rows: InputRows,
    *,
    since: int | None = None,
    check_new_rows: bool = True,
) -> Report:
    """Return the plan of a statement, with the counts of its execution.

    Runs stages 1 to 6, plus one job to count conditional inserts and, with ``check_new_rows``, one
    that computes the new rows and drops them, so that rows that the table refuses are refused here.
    Nothing that is written is kept. Commits of other writers are checked from version ``since`` on,
    by default from the start of the statement.
    """
    done_before = command.already_committed()
    with (
        run_statement(command, spec) as running,
        tried_statement(command, spec, rows, evaluates=True, around=running.around) as trial,
    ):
        decision = trial.decide()
        context = trial.context
        inserts = trial.stage(Stage.COUNT_INSERTS, count_inserts, context, decision)
        new = new_rows(context, trial.plan, decision)
        if check_new_rows and new.frame is not None and new.copy is None:
            trial.stage(Stage.CHECK_NEW_ROWS, _check, trial, decision)
        tried = Tried(
            decision=decision,
            new=new,
            inserts=inserts,
            copied=count_copied(context, decision),
            jobs_run=running.jobs_run(),
            since=since,
            done_before=done_before,
        )
        context.source.require_unchanged()
        return dry_report(trial, tried)


def _check(trial: Trial, decision: Decision) -> None:
    """Compute the new rows like the write, and drop them. Runs one Spark job."""
    context = trial.context
    rows = frame_of_new_rows(context, trial.plan, decision)
    if context.statement.has_subqueries:
        rows = context.command.bind(rows, only_subqueries=True)
    check_rows(
        rows,
        context.statement.config,
        computed=context.statement.computed_columns,
        with_changes=decision.rows.recorded,
    )
