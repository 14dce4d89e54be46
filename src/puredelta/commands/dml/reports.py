"""Reports of planned, tried and executed statements: choices, reasons, settings and Spark jobs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from puredelta.commands.dml.actions import Outcome, file_counts
from puredelta.commands.dml.decide import Decision, RewriteStrategy, strategy_of
from puredelta.commands.dml.in_place import values_choice
from puredelta.commands.dml.new_rows import NewRows
from puredelta.commands.dml.positions import RowPositions
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
from puredelta.commands.dml.resolve.resolved_statement import StatementKind
from puredelta.commands.dml.search_plan import Search, SearchPlan
from puredelta.commands.dml.source import StatementContext
from puredelta.commands.dml.spec import Asked, Stage, StatementSpec
from puredelta.commands.dml.trial import Recording, Trial, known_inserts
from puredelta.commands.dml.write import WrittenFiles
from puredelta.commands.statement.parts import (
    Choice,
    JobCount,
    PruningStep,
    ReportState,
    RowTotals,
    SelectedFiles,
    SettingValue,
    setting_values,
)
from puredelta.commands.statement.report import Report
from puredelta.spark.offload.key_lookup import KeyLookup
from puredelta.spark.offload.workers import ENABLED, LOOKUP_BYTES, last_refusal
from puredelta.spark.session import delta_conf
from puredelta.spark.session.delta_conf import DeltaConf

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


_LOOKED_UP = "keys of the source are looked up in the files, in Python workers"
_TESTED = "conditions are tested on each row, in Python workers"
_STRATEGY_REASONS = {
    RewriteStrategy.COPY_ON_WRITE: "the table, or the session, has no deletion vectors",
    RewriteStrategy.DELETION_VECTORS: "the change data feed reads what they hide",
    RewriteStrategy.PER_FILE: (
        "files without a row left are removed, files of which more than two thirds and 8 MB are "
        "dead are copied, all others get a deletion vector"
    ),
}


def selected_files(context: StatementContext, plan: SearchPlan) -> SelectedFiles:
    """Return the files left by each rule."""
    files = context.snapshot.files
    left, left_bytes = plan.num_files, files.total_size_bytes
    total_bytes = left_bytes
    steps = []
    for some in plan.skipped:
        left, left_bytes = left - some.num_files, left_bytes - some.size_bytes
        steps.append(
            PruningStep(
                rule=some.rule.value,
                by=some.by.value,
                files_skipped=some.num_files,
                bytes_skipped=some.size_bytes,
                files_left=left,
                bytes_left=left_bytes,
            )
        )
    return SelectedFiles(
        files_total=plan.num_files,
        bytes_total=total_bytes,
        steps=tuple(steps),
        files_left=len(plan.candidates),
        bytes_left=plan.candidates.total_size_bytes,
        files_added_back=plan.extra_candidates,
    )


def choices(
    context: StatementContext,
    plan: SearchPlan,
    new: NewRows | None = None,
    *,
    positions: RowPositions | None = None,
    written: WrittenFiles | None = None,
) -> tuple[Choice, ...]:
    """Return the known choices for reading source and target and for writing new rows."""
    made = [
        _source_choice(context),
        _search_choice(context, plan, positions),
        _file_choice(context, plan, written),
    ]
    updated = None if written is None else written.updated
    if (values := values_choice(context, plan, updated)) is not None:
        made.append(Choice(subject="new values", chosen=values[0], reason=values[1]))
    if new is not None and new.frame is not None:
        made_by = "" if written is None else written.made_by
        made.append(Choice(subject="new rows", chosen=new.describe(), reason=made_by))
    return tuple(made)


def _source_choice(context: StatementContext) -> Choice:
    source = context.source
    if source.staged is None and source.is_known:
        return Choice(subject="source", chosen="none", reason="the statement has no source")
    if source.in_place is not None:
        chosen, reason = "read in place", source.describe()
    elif source.is_known:
        chosen, reason = "staged", source.describe()
    else:
        chosen, reason = "to be staged", source.describe()
    return Choice(subject="source", chosen=chosen, reason=reason)


def _search_choice(
    context: StatementContext, plan: SearchPlan, positions: RowPositions | None
) -> Choice:
    if plan.lookup is None:
        return Choice(subject="search", chosen=_by_spark(plan), reason=_join_reason(context, plan))
    if not context.settings.workers.enabled:
        reason = "spark.puredelta.workers.enabled is off"
        return Choice(subject="search", chosen=_by_spark(plan), reason=reason)
    if positions is not None and positions.fallback is not None:
        return Choice(subject="search", chosen=_by_spark(plan), reason=positions.fallback)
    reason = _lookup_reason(context, plan, plan.lookup)
    refused = last_refusal(context.spark) if positions is None else None
    if refused is not None:
        reason += f"; Spark searches if they refuse as they did before ({refused})"
    chosen = _TESTED if plan.search is Search.TARGET_ONLY else _LOOKED_UP
    return Choice(subject="search", chosen=chosen, reason=reason)


def _lookup_reason(context: StatementContext, plan: SearchPlan, lookup: KeyLookup) -> str:
    if plan.search is Search.TARGET_ONLY:
        return "workers decide the conditions as Spark does"
    asked = "equal keys" if lookup.within is None else "keys between bounds"
    if not context.source.is_known:
        return f"ON asks for {asked}; a larger source may have to be joined"
    reason = f"ON asks for {asked}, and a worker can hold those of the source"
    return reason if lookup.parts == 1 else f"{reason} in {lookup.parts} parts"


def _join_reason(context: StatementContext, plan: SearchPlan) -> str:
    if plan.search in (Search.NOTHING, Search.WHOLE_FILES):
        return ""
    if plan.search is Search.TARGET_ONLY:
        reads = bool(context.statement.target_columns)
        return "a condition asks for what only Spark decides" if reads else "no condition"
    reason = "ON or a condition asks for more than equal keys of plain types, or keys in a range"
    if context.statement.on.parts.pairs and context.source.is_known:
        reason += ", or a worker cannot hold the keys of the source"
    return reason


def _by_spark(plan: SearchPlan) -> str:
    if plan.search in (Search.NOTHING, Search.WHOLE_FILES, Search.TARGET_ONLY):
        return str(plan.search.value)
    how = "the source is broadcast" if plan.broadcast_source else "Spark chooses how"
    return f"{plan.search.value}, {how}"


def _file_choice(
    context: StatementContext, plan: SearchPlan, written: WrittenFiles | None
) -> Choice:
    if plan.search is Search.WHOLE_FILES:
        return Choice(
            subject="touched files",
            chosen="removed as a whole",
            reason="partition values decide, no data file is read",
        )
    strategy = strategy_of(context)
    refused = None if written is None else written.copied.fallback
    return Choice(
        subject="touched files",
        chosen=f"other rows are {strategy.value}",
        reason=_STRATEGY_REASONS[strategy] + ("" if refused is None else f"; by Spark: {refused}"),
    )


def expected_jobs(
    context: StatementContext, plan: SearchPlan, decision: Decision | None = None
) -> tuple[JobCount, ...]:
    """Return the expected number of Spark jobs of each stage."""
    searches = plan.search not in (Search.NOTHING, Search.WHOLE_FILES)
    return (
        _source_jobs(context),
        JobCount(
            stage="search",
            jobs=int(searches),
            reason="adaptive execution may split a join into more"
            if plan.lookup is None and searches
            else "",
        ),
        _write_jobs(context, plan, decision),
    )


def _source_jobs(context: StatementContext) -> JobCount:
    source = context.source
    if source.in_place is not None or (source.staged is None and source.is_known):
        return JobCount(stage="source", jobs=0)
    return JobCount(stage="source", jobs=1, reason="and what the source's own plan adds")


def _write_jobs(context: StatementContext, plan: SearchPlan, decision: Decision | None) -> JobCount:
    if plan.search is Search.WHOLE_FILES:
        return JobCount(stage="write", jobs=0)
    if decision is None:
        return JobCount(stage="write", jobs=1, reason="at most 2; none if nothing changes")
    copies, news = bool(decision.files.rewritten), not decision.rows.is_empty
    if copies and news:
        together = context.settings.workers.enabled
        return JobCount(
            stage="write",
            jobs=1 if together else 2,
            reason="2 where Spark makes the new rows beside the copies" if together else "",
        )
    return JobCount(stage="write", jobs=int(copies or news))


def planning_notes(context: StatementContext, plan: SearchPlan) -> tuple[str, ...]:
    """Return the facts that a plan cannot know, with the way to learn each."""
    notes = []
    if not context.source.is_known:
        notes.append(
            "The number of source rows and their keys: the source is evaluated first, so files may "
            "be skipped by its keys, too. explain('source') evaluates it."
        )
    if plan.search is not Search.WHOLE_FILES:
        notes.append(
            "How many rows and files change: dry_run() searches them, and changes nothing."
        )
    if context.settings.must_stage is None and not delta_conf.STATS_SKIPPING.flag(
        context.command.session.settings
    ):
        notes.append("Statistics are not used to skip files: stats.skipping is off.")
    return tuple(notes)


_VECTORS = {
    StatementKind.MERGE: delta_conf.MERGE_DELETION_VECTORS,
    StatementKind.UPDATE: delta_conf.UPDATE_DELETION_VECTORS,
    StatementKind.DELETE: delta_conf.DELETE_DELETION_VECTORS,
    StatementKind.REPLACE_WHERE: delta_conf.DELETE_DELETION_VECTORS,
}
_BROADCAST = DeltaConf(
    name="autoBroadcastJoinThreshold",
    default="10MB",
    effect="a source up to this size is sent to every task of a join",
    prefix="spark.sql.",
)
_PROPERTIES = {
    "delta.enableDeletionVectors": "whether rows may be hidden instead of files copied",
    "delta.enableChangeDataFeed": "whether every change is also written to change files",
    "delta.enableRowTracking": "whether updated rows keep their ids",
    "delta.isolationLevel": "which commits of others are conflicts",
}


def deciding_settings(context: StatementContext) -> tuple[SettingValue, ...]:
    """Return the deciding settings with their values and sources."""
    return (*_of_session(context), *_of_table(context))


def _of_session(context: StatementContext) -> tuple[SettingValue, ...]:
    kind = context.statement.kind
    confs = [delta_conf.STATS_SKIPPING, _VECTORS[kind], ENABLED, delta_conf.IO]
    if kind in (StatementKind.MERGE, StatementKind.REPLACE_WHERE):
        confs += [delta_conf.MATERIALIZE_SOURCE, LOOKUP_BYTES, _BROADCAST]
        confs += [delta_conf.AUTO_MERGE, delta_conf.REPARTITION_BEFORE_WRITE]
    confs += [delta_conf.RETRIES, delta_conf.SKIP_EMPTY_COMMITS]
    return setting_values(confs, context.command.session.settings)


def _of_table(context: StatementContext) -> Iterator[SettingValue]:
    configuration = context.statement.config.metadata.configuration
    for key, effect in _PROPERTIES.items():
        if key in configuration:
            yield SettingValue(key=key, value=configuration[key], origin="table", effect=effect)
