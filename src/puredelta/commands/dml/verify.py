"""Stage 9: the number of written rows compared with the plan.

No number comes from an accumulator, since retried tasks could inflate it (W-9).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from puredelta.commands.dml.decide import Decision, RowPlan
from puredelta.commands.dml.resolve.resolved_statement import (
    MatchedClause,
    NotMatchedBySourceClause,
    ResolvedDelete,
    ResolvedUpdate,
)
from puredelta.commands.dml.search_plan import Search, SearchPlan
from puredelta.commands.dml.source import StatementContext
from puredelta.commands.dml.write import WrittenFiles
from puredelta.errors import DeltaError, Message
from puredelta.log.files.row_counts import RowChanges, count_file_rows, require_row_counts
from puredelta.protocol.actions.actions import Action
from puredelta.spark.scan.bitmaps import RowsByFile
from puredelta.spark.session.row_bitmap import count_rows
from puredelta.spark.write.written_files import WriteResult


@dataclass(frozen=True, slots=True, kw_only=True)
class RowCounts:
    """Row counts of a statement, by what happened to the rows."""

    source: int
    inserted: int = 0
    matched_updated: int = 0
    matched_deleted: int = 0
    by_source_updated: int = 0
    """For NOT MATCHED BY SOURCE clauses, like `by_source_deleted`."""
    by_source_deleted: int = 0
    copied: int = 0
    """Unchanged rows, rewritten because another row of their file changed."""
    is_counted: bool = True
    """False where whole files without a row count were removed."""

    @property
    def updated(self) -> int:
        """Rows that a fired UPDATE replaced, also by equal values."""
        return self.matched_updated + self.by_source_updated

    @property
    def deleted(self) -> int:
        """Rows that a fired DELETE removed; once each, however many source rows matched (M-72)."""
        return self.matched_deleted + self.by_source_deleted

    @property
    def changes(self) -> RowChanges:
        """The same counts for the rules of every commit."""
        return RowChanges(
            inserted=self.inserted, updated=self.updated, deleted=self.deleted, copied=self.copied
        )

    def describe(self) -> str:
        """Return one line for the log."""
        return f"{self.inserted} inserted, {self.updated} updated, {self.deleted} deleted"


def verify(
    context: StatementContext, plan: SearchPlan, decision: Decision, written: WrittenFiles
) -> RowCounts:
    """Compare the written rows with the planned ones, and count rows."""
    context.source.require_unchanged()
    if plan.search is Search.WHOLE_FILES:
        deleted = plan.candidates.num_records()
        return RowCounts(source=0, by_source_deleted=deleted or 0, is_counted=deleted is not None)
    rows = _counted(context, decision, written)
    name = context.statement.operation.name
    require_changes_recorded(name, rows, decision.rows, written.new)
    if context.settings.checks_row_counts:
        _require_laws(context, rows, decision, written)
    return rows


def _counted(context: StatementContext, decision: Decision, written: WrittenFiles) -> RowCounts:
    statement, positions = context.statement, decision.positions
    matched, by_source = statement.matched, statement.not_matched_by_source
    return RowCounts(
        source=context.source.num_rows,
        inserted=count_inserted(
            statement.operation.name,
            decision.rows,
            written.new,
            num_in_place=written.updated.num_updated,
        ),
        matched_updated=_num_rows(matched, positions.matched, ResolvedUpdate),
        matched_deleted=_num_rows(matched, positions.matched, ResolvedDelete),
        by_source_updated=_num_rows(by_source, positions.by_source, ResolvedUpdate),
        by_source_deleted=_num_rows(by_source, positions.by_source, ResolvedDelete),
        copied=written.copied.num_rows + written.updated.num_rows,
    )


def count_inserted(
    operation: str, plan: RowPlan, new: WriteResult, *, num_in_place: int = 0
) -> int:
    """Return the number of inserted rows among the new rows; ``num_in_place`` updated rows are not
    among them.

    Raises:
        DeltaError: it differs from the plan (DELTA_NUM_RECORDS_MISMATCH).
    """
    num_rows = new.num_rows + num_in_place
    inserted, expected = num_rows - plan.num_updates, plan.num_inserts
    if inserted < 0 or (expected is not None and inserted != expected):
        wanted = "any number of" if expected is None else expected
        raise DeltaError(
            Message.NUM_RECORDS_MISMATCH_INSERTS,
            operation=operation,
            num_rows=num_rows,
            num_updates=plan.num_updates,
            wanted=wanted,
        )
    return inserted


def require_changes_recorded(
    operation: str, rows: RowCounts, plan: RowPlan, new: WriteResult
) -> None:
    """Compare the number of written change rows with the plan (M-121).

    Raises:
        DeltaError: they differ (DELTA_NUM_RECORDS_MISMATCH).
    """
    due = 2 * rows.updated + rows.deleted + rows.inserted if plan.recorded else 0
    if new.num_changes != due:
        raise DeltaError(
            Message.NUM_RECORDS_MISMATCH_CHANGES,
            operation=operation,
            num_changes=new.num_changes,
            due=due,
        )


def _require_laws(
    context: StatementContext, rows: RowCounts, decision: Decision, written: WrittenFiles
) -> None:
    statement = context.statement
    actions: tuple[Action, ...] = (*decision.removes, *written.vectors.adds, *written.adds)
    require_row_counts(
        statement.operation.name,
        rows.changes,
        count_file_rows(actions),
        may_insert=bool(statement.not_matched),
        may_delete=any(isinstance(c.action, ResolvedDelete) for c in statement.clauses),
    )


def _num_rows(
    clauses: Sequence[MatchedClause | NotMatchedBySourceClause],
    sets: Sequence[RowsByFile],
    kind: type,
) -> int:
    """Count the rows for which clauses with actions of one kind fired."""
    return sum(
        count_rows(rows.values())
        for clause, rows in zip(clauses, sets, strict=True)
        if isinstance(clause.action, kind)
    )
