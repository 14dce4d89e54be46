"""Stage 6: rows to write, and files to rewrite, to mark or to drop.

Where an UPDATE reads nothing of the old row and no source row is used twice, the staged row
alone makes the new one and the target is not read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy.typing as npt
from typing_extensions import assert_never

from puredelta.commands.dml.positions import RowPositions, united
from puredelta.commands.dml.resolve.resolved_statement import (
    MatchedClause,
    NotMatchedBySourceClause,
    ResolvedDelete,
    ResolvedStatement,
    ResolvedUpdate,
    StatementKind,
)
from puredelta.commands.dml.search_plan import Search, SearchPlan
from puredelta.commands.dml.settings import persistent_vectors
from puredelta.commands.dml.source import StatementContext
from puredelta.log.commit.commit_checks import require_valid_actions
from puredelta.log.files.deletion_vectors import read_positions
from puredelta.log.files.file_table import FileTable, remove_file
from puredelta.log.files.row_counts import physical_rows
from puredelta.protocol.actions.actions import Add, Remove
from puredelta.protocol.table.table_config import TableConfig
from puredelta.quantities import counted
from puredelta.spark.offload.rewrite import RewriteOrder
from puredelta.spark.scan.bitmaps import RowsByFile
from puredelta.spark.session.row_bitmap import RowBitmap, count_rows

_DEAD_BYTES_MIN = 8 * 1024 * 1024
"""Dead bytes, read in vain by every later scan, from which a copy is worth one more task."""
_DEAD_PER_LIVE_ROW_MIN = 2
"""From this ratio on, a copy writes at most half of the bytes that it saves the next reader."""


class RewriteStrategy(Enum):
    """Ways to keep the unchanged rows of a touched file."""

    COPY_ON_WRITE = "copied to new files"
    DELETION_VECTORS = "left where they are, the others under a deletion vector"
    PER_FILE = "file by file, whichever costs less"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FilePlan:
    """Plans for the touched files, in which some clause fired (M-82, W-3)."""

    rewritten: tuple[RewriteOrder, ...] = ()
    """Files with rows to keep, which are copied to new files."""
    marked: tuple[RewriteOrder, ...] = ()
    """Files that stay, with the changed rows under a deletion vector (M-131)."""
    dropped: tuple[Add, ...] = ()
    """Files that lose every row: no task, no new file (M-83, M-133)."""

    @property
    def touched(self) -> tuple[Add, ...]:
        """Every file that leaves the table as it was."""
        return (*(order.add for order in (*self.rewritten, *self.marked)), *self.dropped)

    def removes(self) -> tuple[Remove, ...]:
        """Return the actions that remove the touched files."""
        return tuple(map(remove_file, self.touched))

    def describe(self) -> str:
        """Return a text for the log."""
        return (
            f"{counted(len(self.rewritten), 'file')} rewritten, {len(self.marked)} marked, "
            f"{len(self.dropped)} dropped"
        )


def uses_deletion_vectors(config: TableConfig) -> bool:
    """Tell whether the table wants deletion vectors instead of copies (M-130)."""
    return config.supports("deletionVectors") and config.properties.enable_deletion_vectors


def plan_files(
    files: FileTable,
    rows: Mapping[int, RowBitmap],
    strategy: RewriteStrategy,
    *,
    deleted: Mapping[int, npt.NDArray[Any]],
) -> FilePlan:
    """Decide file by file how its unchanged rows are kept.

    Args:
        files: the touched files.
        rows: the rows that are removed, by index of ``files``.
        strategy: how the unchanged rows are kept.
        deleted: the rows already in a deletion vector, by index of ``files``.
    """
    rewritten: list[RewriteOrder] = []
    marked: list[RewriteOrder] = []
    dropped: list[Add] = []
    for place, add in enumerate(files.adds()):
        gone = rows[place]
        if place in deleted:
            gone |= RowBitmap.of_rows(deleted[place])
        if _loses_every_row(add, gone):
            dropped.append(add)
        elif _is_copied(add, gone, strategy):
            rewritten.append(RewriteOrder(add=add, dropped=gone))
        else:
            marked.append(RewriteOrder(add=add, dropped=gone))
    return FilePlan(rewritten=tuple(rewritten), marked=tuple(marked), dropped=tuple(dropped))


def _is_copied(add: Add, dropped: RowBitmap, strategy: RewriteStrategy) -> bool:
    match strategy:
        case RewriteStrategy.COPY_ON_WRITE:
            return True
        case RewriteStrategy.DELETION_VECTORS:
            return False
        case RewriteStrategy.PER_FILE:
            rows = physical_rows(add)
            if not rows:
                return False
            dead, live = len(dropped), rows - len(dropped)
            return (
                dead >= _DEAD_PER_LIVE_ROW_MIN * live
                and add.size_bytes * dead // rows >= _DEAD_BYTES_MIN
            )
        case _:
            assert_never(strategy)


def _loses_every_row(add: Add, dropped: RowBitmap) -> bool:
    """Tell from the log alone; a row count is trusted only if the positions confirm it."""
    rows = physical_rows(add)
    return rows is not None and len(dropped) == rows and dropped.last == rows - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class FiredUpdate:
    """An UPDATE clause that fires, with its rows."""

    number: int
    """Among MATCHED, then NOT MATCHED BY SOURCE clauses."""
    action: ResolvedUpdate
    target: RowsByFile
    source: RowsByFile | None
    """The staged rows that make the new rows; ``None`` if old rows are needed, or there is no
    source row.
    """
    by_source: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RowPlan:
    """The rows to write."""

    from_source: tuple[FiredUpdate, ...]
    from_target: tuple[FiredUpdate, ...]
    deleted: RowsByFile
    inserts: bool
    num_inserts: int | None
    """``None`` where INSERT conditions decide; then the written rows are counted."""
    recorded: bool
    """Whether every change is also written to change files (M-120, M-123)."""
    keeps_row_ids: bool
    """Whether updated rows take their row ids along (M-110)."""

    @property
    def updates(self) -> tuple[FiredUpdate, ...]:
        """Every UPDATE clause that fires."""
        return (*self.from_source, *self.from_target)

    @property
    def num_updates(self) -> int:
        """The number of updated rows."""
        return sum(count_rows(fired.target.values()) for fired in self.updates)

    @property
    def updated(self) -> RowsByFile:
        """The updated target rows."""
        return united(*(fired.target for fired in self.updates))

    @property
    def has_new_rows(self) -> bool:
        """Whether the table can get a new row."""
        return bool(self.updates) or self.inserts

    @property
    def is_empty(self) -> bool:
        """Whether nothing can be written."""
        return not self.has_new_rows and not self.recorded

    def describe(self) -> str:
        """Return a text for the log."""
        inserts = "some" if self.num_inserts is None else self.num_inserts
        return f"{self.num_updates} rows updated, {inserts} inserted"


def plan_rows(
    statement: ResolvedStatement,
    positions: RowPositions,
    *,
    num_source_rows: int,
    tracks_rows: bool = False,
    infers_deletes: bool = False,
) -> RowPlan:
    """Choose how each clause's rows are made.

    ``tracks_rows``: rows of the table keep their ids. ``infers_deletes``: readers of the change
    data feed can tell deleted rows without change files.
    """
    clauses: list[MatchedClause | NotMatchedBySourceClause]
    clauses = [*statement.matched, *statement.not_matched_by_source]
    sets = [*positions.matched, *positions.by_source]
    fired = _fired(positions, clauses, sets, tracks_rows=tracks_rows)
    deleted = united(
        *(r for c, r in zip(clauses, sets, strict=True) if isinstance(c.action, ResolvedDelete))
    )
    unmatched = num_source_rows - count_rows(positions.matched_source.values())
    inserts = bool(statement.not_matched) and unmatched > 0
    unconditional = inserts and statement.not_matched[-1].condition is None
    return RowPlan(
        from_source=tuple(f for f in fired if f.source is not None),
        from_target=tuple(f for f in fired if f.source is None),
        deleted=deleted,
        inserts=inserts,
        num_inserts=unmatched if unconditional else None if inserts else 0,
        recorded=records_changes(statement.config)
        and bool(fired or (deleted and not infers_deletes)),
        keeps_row_ids=tracks_rows and bool(fired),
    )


def records_changes(config: TableConfig) -> bool:
    """Tell whether the table keeps a change data feed.

    A statement that only inserts still writes no change files (M-124): without change files,
    readers take the rows of added files for inserts.
    """
    return config.is_active("changeDataFeed")


def _fired(
    positions: RowPositions,
    clauses: Sequence[MatchedClause | NotMatchedBySourceClause],
    sets: Sequence[RowsByFile],
    *,
    tracks_rows: bool,
) -> list[FiredUpdate]:
    fired: list[FiredUpdate] = []
    for number, (clause, rows) in enumerate(zip(clauses, sets, strict=True)):
        action = clause.action
        if not isinstance(action, ResolvedUpdate) or not rows:
            continue
        by_source = isinstance(clause, NotMatchedBySourceClause)
        # The row id belongs to the old row.
        needs_old = by_source or action.reads_target or tracks_rows
        known = None if needs_old else positions.source_of
        fired.append(
            FiredUpdate(
                number=number,
                action=action,
                target=rows,
                source=None if known is None else known[number],
                by_source=by_source,
            )
        )
    return fired


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Decision:
    """The files and rows that a statement writes and removes."""

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
        """Whether no file is written or removed."""
        return self.rows.is_empty and not self.removes


def decide(context: StatementContext, plan: SearchPlan, positions: RowPositions) -> Decision:
    """Decide from the positions; reads only the deletion vectors of touched files."""
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
    """Return the strategy for untouched rows; readers of the feed see no delete in a copy."""
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
