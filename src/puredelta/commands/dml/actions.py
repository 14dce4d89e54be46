"""Stage 10: the commit of a statement, and its outcome."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from puredelta.commands.command import Command
from puredelta.commands.defined_columns import identity_tags
from puredelta.commands.dml.decide import Decision
from puredelta.commands.dml.metrics import (
    FileCounts,
    count_files,
    operation_metrics,
    skipping_metrics,
)
from puredelta.commands.dml.new_rows import with_generated_identities
from puredelta.commands.dml.resolve.resolved_statement import StatementKind
from puredelta.commands.dml.search_plan import SearchPlan
from puredelta.commands.dml.source import StatementContext
from puredelta.commands.dml.spec import Stage
from puredelta.commands.dml.verify import RowCounts
from puredelta.commands.dml.write import WrittenFiles
from puredelta.commands.finish import finish
from puredelta.commands.statement.stages import PhaseTimes, StageTimer
from puredelta.log.commit.commit_request import CommitRequest, changed_definition
from puredelta.log.commit.row_ids import PRESERVED_TAG
from puredelta.protocol.table.partitioning import Partitioning
from puredelta.protocol.table.table_config import TableConfig
from puredelta.quantities import counted

NOT_COUNTED = -1
"""Number of affected rows after the removal of whole files without a row count."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The outcome of a statement."""

    version: int | None
    """The version committed; ``None`` if there was nothing to commit."""
    rows: RowCounts
    metrics: Mapping[str, int]
    """As in the history; empty if the statement had been executed before (M-92)."""
    source: str = ""
    """The way the source was read, with the reason for staging; shown only in the UI."""
    fallbacks: tuple[str, ...] = ()
    """Work that Spark did in the place of its Python workers, with the reasons."""
    skipping: Mapping[str, int] = field(default_factory=dict)
    """Metrics of a MERGE that only the Spark UI shows."""
    plan: SearchPlan | None
    """``None`` if the statement had been executed before."""

    @classmethod
    def of_earlier(cls) -> Outcome:
        """Return the outcome of a statement that its application had executed before (M-92)."""
        return cls(version=None, rows=RowCounts(source=0), metrics={}, plan=None)

    @property
    def note(self) -> str:
        """The note in the UI: how the source was read, and work that Spark did for its workers."""
        return "\n".join((self.source, *self.fallbacks))

    def describe(self) -> str:
        """Return one line for the log."""
        return "no version" if self.version is None else f"version {self.version}"

    @property
    def was_executed(self) -> bool:
        """Whether the statement was executed now."""
        return self.plan is not None

    @property
    def affected(self) -> int | None:
        """The number of inserted, updated and deleted rows: `NOT_COUNTED` where it is unknown,
        ``None`` if the statement had been executed before.
        """
        rows = self.rows
        if not self.was_executed:
            return None
        return rows.inserted + rows.updated + rows.deleted if rows.is_counted else NOT_COUNTED


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedCommit:
    """A commit that is ready, and whether it is due."""

    request: CommitRequest
    is_due: bool
    """Whether there is anything to commit, or the session wants empty commits."""
    kind: StatementKind
    rows: RowCounts
    metrics: Mapping[str, int]
    fallbacks: tuple[str, ...]

    def describe(self) -> str:
        """Return one line for the log."""
        return counted(len(self.request.actions), "action") if self.is_due else "nothing to commit"


def prepare_commit(
    context: StatementContext,
    plan: SearchPlan,
    decision: Decision,
    written: WrittenFiles,
    *,
    rows: RowCounts,
    times: StageTimer,
) -> PreparedCommit:
    """Put the actions, the operation and its metrics together; commits nothing."""
    statement, before = context.statement, context.snapshot.config
    # An insert depends on the table, in which no row matches: the new rows are no blind append.
    context.command.transaction.read_files(
        plan.read_predicate, plan.candidates, judges_rows_alone=not statement.not_matched
    )
    after = with_generated_identities(
        statement, context.source, written.new.adds, num_inserted=rows.inserted
    )
    actions = (
        *changed_definition(before, after),
        *decision.removes,
        *written.vectors.adds,
        *written.adds,
        *written.new.changes,
    )
    metrics = operation_metrics(
        statement.kind,
        rows,
        file_counts(decision, written),
        _phase_times(context, decision, times),
    )
    request = CommitRequest(
        actions=actions,
        operation=statement.operation,
        metrics=metrics,
        is_blind_append=False,
        tags=_tags(context, after),
    )
    is_due = bool(actions) or _commits_alone(context)
    return PreparedCommit(
        request=request,
        is_due=is_due,
        kind=statement.kind,
        rows=rows,
        metrics=metrics,
        fallbacks=_fallbacks(decision, written),
    )


def commit(
    context: StatementContext,
    prepared: PreparedCommit,
    plan: SearchPlan,
    *,
    discard: Callable[[], None],
) -> Outcome:
    """Commit if due; remove the files if the commit is known to have failed."""
    command, version = context.command, None
    if prepared.is_due:
        version = finish(command, prepared.request, discard=discard).version
    return Outcome(
        version=version,
        rows=prepared.rows,
        metrics=prepared.metrics,
        source=context.source.describe(),
        fallbacks=prepared.fallbacks,
        skipping=_skipping(command, prepared, plan),
        plan=plan,
    )


def _skipping(command: Command, prepared: PreparedCommit, plan: SearchPlan) -> Mapping[str, int]:
    if prepared.kind is not StatementKind.MERGE:
        return {}
    partitioning = Partitioning.of(command.snapshot.config, command.session.time_zone)
    actions = prepared.request.actions
    return skipping_metrics(command.snapshot.files, plan.candidates, partitioning, actions)


def _commits_alone(context: StatementContext) -> bool:
    """Tell whether a version is made even if nothing changes.

    A MERGE or an UPDATE commits the version of an application even without changes (M-92), a
    DELETE does not.
    """
    kind, settings = context.statement.kind, context.command.settings
    if kind in (StatementKind.MERGE, StatementKind.UPDATE) and settings.set_transaction:
        return True
    return kind is not StatementKind.REPLACE_WHERE and not context.settings.skips_empty_commits


def _tags(context: StatementContext, after: TableConfig) -> Mapping[str, str] | None:
    """Return the tag for preserved row ids, if the table tracks rows (M-110)."""
    tags = identity_tags(context.snapshot.config, after)
    return tags if context.tracked is None else {**(tags or {}), PRESERVED_TAG: "true"}


def _fallbacks(decision: Decision, written: WrittenFiles) -> tuple[str, ...]:
    """Return the work that Spark did in the place of its Python workers, with the reasons."""
    asked = {
        "Spark joined": decision.positions.fallback,
        "Spark copied rows": written.copied.fallback,
        "Spark wrote the new rows": written.fallback,
    }
    return tuple(f"{what}: {why}" for what, why in asked.items() if why is not None)


def file_counts(decision: Decision, written: WrittenFiles) -> FileCounts:
    """Count the files of a commit."""
    return count_files(
        removes=decision.removes,
        added=written.adds,
        kept=written.vectors.adds,
        changes=written.new.changes,
    )


def _phase_times(context: StatementContext, decision: Decision, times: StageTimer) -> PhaseTimes:
    source = context.source
    return PhaseTimes(
        execution_ms=max(1, context.command.elapsed_ms()),
        materialize_source_ms=times.elapsed_ms(Stage.SOURCE) if source.is_materialized else 0,
        scan_ms=times.elapsed_ms(Stage.PRUNE, Stage.SEARCH, Stage.DECIDE),
        rewrite_ms=0 if decision.changes_nothing else times.elapsed_ms(Stage.NEW_ROWS, Stage.WRITE),
    )
