"""Stage 6: which rows are written, and which files are rewritten, marked or dropped."""

from __future__ import annotations

from dataclasses import dataclass

from typing_extensions import assert_never

from puredelta.commands.dml.decide.file_plan import (
    FilePlan,
    RewriteStrategy,
    plan_files,
    uses_deletion_vectors,
)
from puredelta.commands.dml.decide.row_plan import RowPlan, plan_rows, records_changes
from puredelta.commands.dml.prune.plan import Search, SearchPlan
from puredelta.commands.dml.resolve.statement import StatementKind
from puredelta.commands.dml.search.positions import RowPositions
from puredelta.commands.dml.source.context import StatementContext
from puredelta.commands.dml.spec.settings import persistent_vectors
from puredelta.log.commit.commit_checks import require_valid_actions
from puredelta.log.vectors.read import read_positions
from puredelta.protocol.actions.actions import Remove


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Decision:
    """What a statement writes and removes."""

    positions: RowPositions
    rows: RowPlan
    files: FilePlan
    removes: tuple[Remove, ...]
    """Of the touched files."""

    def describe(self) -> str:
        """Return one line for the log."""
        return f"{self.rows.describe()}; {self.files.describe()}"

    @property
    def changes_nothing(self) -> bool:
        """Whether no file is written and none is removed."""
        return self.rows.is_empty and not self.removes


def decide(context: StatementContext, plan: SearchPlan, positions: RowPositions) -> Decision:
    """Decide from the positions; reads the deletion vectors of touched files, nothing else.

    Raises:
        InvalidRequestError: files would be removed from a table that only takes appends (M-111).
    """
    statement = context.statement
    if plan.search is Search.WHOLE_FILES:
        files = FilePlan(dropped=tuple(plan.candidates.adds()))
    else:
        files = _file_plan(context, plan, positions, strategy_of(context))
    removes = files.removes()
    require_valid_actions(removes, before=context.snapshot.config, after=statement.config)
    rows = plan_rows(
        statement,
        positions,
        num_source_rows=context.source.num_rows,
        tracks_rows=context.tracked is not None,
        infers_deletes=_infers_deletes(context),
    )
    return Decision(positions=positions, rows=rows, files=files, removes=removes)


def _file_plan(
    context: StatementContext,
    plan: SearchPlan,
    positions: RowPositions,
    strategy: RewriteStrategy,
) -> FilePlan:
    touched = positions.touched()
    numbers = sorted(touched)
    files = plan.candidates.take(numbers)
    return plan_files(
        files,
        {place: touched[number] for place, number in enumerate(numbers)},
        strategy,
        deleted=read_positions(files, context.snapshot.root_uri, open_at=context.snapshot.open_at),
    )


def _wants_vectors(context: StatementContext) -> bool:
    """Tell whether the session wants deletion vectors of such a statement (M-130)."""
    match context.statement.kind:
        case StatementKind.MERGE:
            command = "merge"
        case StatementKind.UPDATE:
            command = "update"
        case StatementKind.DELETE | StatementKind.REPLACE_WHERE:
            command = "delete"
        case _:
            assert_never(context.statement.kind)
    return persistent_vectors(context.command.session.settings, command)


def strategy_of(context: StatementContext) -> RewriteStrategy:
    """Return how untouched rows are kept; readers of the feed see no delete in a copy."""
    if not _marks(context):
        return RewriteStrategy.COPY_ON_WRITE
    if _infers_deletes(context) and records_changes(context.statement.config):
        return RewriteStrategy.DELETION_VECTORS
    return RewriteStrategy.PER_FILE


def _marks(context: StatementContext) -> bool:
    return _wants_vectors(context) and uses_deletion_vectors(context.statement.config)


def _infers_deletes(context: StatementContext) -> bool:
    """Tell whether readers of the change data feed can tell deleted rows from vectors alone."""
    kind = context.statement.kind
    return _marks(context) and kind in (StatementKind.UPDATE, StatementKind.DELETE)
