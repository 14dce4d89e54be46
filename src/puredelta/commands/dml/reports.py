"""Reports of planned, tried and executed statements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from puredelta.commands.dml.actions import Outcome, file_counts
from puredelta.commands.dml.decide import Decision
from puredelta.commands.dml.new_rows import NewRows
from puredelta.commands.dml.report_choices import (
    choices,
    deciding_settings,
    expected_jobs,
    planning_notes,
    selected_files,
)
from puredelta.commands.dml.report_clauses import (
    clause_reports,
    fired_rows,
    stated_clauses,
    statement_name,
)
from puredelta.commands.dml.report_files import (
    TriedCommit,
    file_decisions,
    file_totals,
    foreign_commits,
)
from puredelta.commands.dml.search_plan import Search, SearchPlan
from puredelta.commands.dml.spec import Asked, Stage, StatementSpec
from puredelta.commands.dml.trial import Recording, Trial, known_inserts
from puredelta.commands.dml.write import WrittenFiles
from puredelta.commands.statement.parts import ReportState, RowTotals
from puredelta.commands.statement.report import Report

_DONE_BEFORE = (
    "This application has executed this version of its statement (txnAppId, txnVersion): nothing "
    "would happen."
)
_UNCOUNTED = (
    "Deleted rows are not counted: statistics of a file that goes as a whole lack numRecords."
)
_UNKNOWN_FILES = "How many files are added, and their size: the rows have to be written."


def planned_report(trial: Trial, *, evaluated: bool, done_before: bool) -> Report:
    """Return the facts known before a row of the table is read."""
    context, plan = trial.context, trial.plan
    notes = planning_notes(context, plan)
    return Report(
        statement=trial.name,
        table=context.command.log.root_uri,
        state=ReportState.SOURCE_READ if evaluated else ReportState.PLANNED,
        read_version=context.snapshot.version,
        clauses=clause_reports(trial.clauses, whole_files=_whole_files(plan)),
        selected=selected_files(context, plan),
        choices=choices(context, plan),
        rows=RowTotals(source=context.source.num_rows) if context.source.is_known else None,
        jobs_expected=expected_jobs(context, plan),
        stages=trial.recording.stages(),
        retries_allowed=context.settings.retries,
        settings=deciding_settings(context),
        notes=(_DONE_BEFORE, *notes) if done_before else notes,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """The result of a dry run."""

    decision: Decision
    new: NewRows
    inserts: Sequence[int]
    """By NOT MATCHED clause."""
    copied: int
    jobs_run: int | None
    since: int | None
    """The version after which commits of others are reported; that of the statement."""
    done_before: bool


def dry_report(trial: Trial, tried: Tried) -> Report:
    """Return the future outcome of an execution; reads the commits of others from the log."""
    context, plan, decision = trial.context, trial.plan, tried.decision
    statement, whole = context.statement, _whole_files(plan)
    decisions, left_out = file_decisions(decision)
    since = context.snapshot.version if tried.since is None else tried.since
    commit = TriedCommit(
        plan=plan, removes=decision.removes, judges_rows_alone=not statement.not_matched
    )
    deleted = fired_rows(statement, decision.positions, deletes=True)
    is_whole = plan.search is Search.WHOLE_FILES
    notes = [_UNKNOWN_FILES] if decision.rows.has_new_rows or decision.files.rewritten else []
    return Report(
        statement=trial.name,
        table=context.command.log.root_uri,
        state=ReportState.DRY_RUN,
        read_version=context.snapshot.version,
        clauses=clause_reports(
            trial.clauses, decision.positions, inserts=tried.inserts, whole_files=whole
        ),
        selected=selected_files(context, plan),
        choices=choices(context, plan, tried.new, positions=decision.positions),
        rows=RowTotals(
            source=context.source.num_rows,
            inserted=sum(tried.inserts),
            updated=fired_rows(statement, decision.positions, deletes=False),
            deleted=whole if is_whole else deleted,
            copied=tried.copied,
        ),
        files=file_totals(decision),
        decisions=decisions,
        decisions_left_out=left_out,
        jobs_expected=expected_jobs(context, plan, decision),
        jobs_run=tried.jobs_run,
        stages=trial.recording.stages(),
        retries_allowed=context.settings.retries,
        since_version=since,
        foreign_commits=foreign_commits(context.command, commit, since=since),
        settings=deciding_settings(context),
        notes=(
            *([_DONE_BEFORE] if tried.done_before else []),
            *([_UNCOUNTED] if is_whole and whole is None else []),
            *notes,
        ),
    )


def executed_report(
    spec: StatementSpec, recording: Recording, outcome: Outcome, *, jobs_run: int | None
) -> Report | None:
    """Return the outcome of an execution; ``None`` if it did not complete."""
    context, plan = recording.context, outcome.plan
    asked = recording.find(Stage.SPEC, Asked)
    if asked is not None and not outcome.was_executed:
        return _done_before(spec, asked)
    decision, written = (
        recording.find(Stage.DECIDE, Decision),
        recording.find(Stage.WRITE, WrittenFiles),
    )
    new = recording.find(Stage.NEW_ROWS, NewRows)
    if context is None or plan is None or decision is None or written is None:
        return None
    rows, statement = outcome.rows, context.statement
    decisions, left_out = file_decisions(decision)
    inserts = known_inserts(decision, len(statement.not_matched), rows.inserted)
    return Report(
        statement=statement_name(spec),
        table=context.command.log.root_uri,
        state=ReportState.EXECUTED,
        read_version=context.snapshot.version,
        committed_version=outcome.version,
        clauses=clause_reports(
            stated_clauses(spec, statement),
            decision.positions,
            inserts=inserts,
            whole_files=_whole_files(plan),
        ),
        selected=selected_files(context, plan),
        choices=choices(context, plan, new, positions=decision.positions, written=written),
        rows=RowTotals(
            source=rows.source,
            inserted=rows.inserted,
            updated=rows.updated,
            deleted=rows.deleted if rows.is_counted else None,
            copied=rows.copied,
        ),
        files=file_totals(decision, counted=file_counts(decision, written)),
        decisions=decisions,
        decisions_left_out=left_out,
        jobs_run=jobs_run,
        stages=recording.stages(),
        attempts=recording.runs,
        retries_allowed=context.settings.retries,
        settings=deciding_settings(context),
        metrics=dict(outcome.metrics),
        notes=() if rows.is_counted else (_UNCOUNTED,),
    )


def _done_before(spec: StatementSpec, asked: Asked) -> Report:
    return Report(
        statement=statement_name(spec),
        table=asked.command.log.root_uri,
        state=ReportState.EXECUTED,
        read_version=asked.command.snapshot.version,
        notes=(_DONE_BEFORE,),
    )


def _whole_files(plan: SearchPlan) -> int | None:
    return plan.candidates.num_records() if plan.search is Search.WHOLE_FILES else None
