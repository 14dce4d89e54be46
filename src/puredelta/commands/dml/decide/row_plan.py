"""Which rows a statement writes, decided from the positions it found. Pure.

Where an UPDATE asks nothing of the old row and no source row is used twice, the staged row
alone makes the new one and the target is not read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from puredelta.commands.dml.resolve.statement import (
    MatchedClause,
    NotMatchedBySourceClause,
    ResolvedDelete,
    ResolvedStatement,
    ResolvedUpdate,
)
from puredelta.commands.dml.search.positions import RowPositions, united
from puredelta.protocol.table.table_config import TableConfig
from puredelta.spark.scan.bitmaps import RowsByFile
from puredelta.spark.session.row_bitmap import count_rows


@dataclass(frozen=True, slots=True, kw_only=True)
class FiredUpdate:
    """An UPDATE clause that fires, and for which rows."""

    number: int
    """Among MATCHED, then NOT MATCHED BY SOURCE clauses."""
    action: ResolvedUpdate
    target: RowsByFile
    source: RowsByFile | None
    """The staged rows that make the new rows; ``None``: old rows are needed, or there is no
    source row.
    """
    by_source: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RowPlan:
    """Which rows are to be written."""

    from_source: tuple[FiredUpdate, ...]
    from_target: tuple[FiredUpdate, ...]
    deleted: RowsByFile
    inserts: bool
    num_inserts: int | None
    """``None`` where INSERT conditions decide; then the written rows tell."""
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
        """How many rows are updated."""
        return sum(count_rows(fired.target.values()) for fired in self.updates)

    @property
    def updated(self) -> RowsByFile:
        """The target rows that are updated."""
        return united(*(fired.target for fired in self.updates))

    @property
    def has_new_rows(self) -> bool:
        """Whether the table may get a row."""
        return bool(self.updates) or self.inserts

    @property
    def is_empty(self) -> bool:
        """Whether nothing can be written."""
        return not self.has_new_rows and not self.recorded

    def describe(self) -> str:
        """Return it for the log."""
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

    A statement that only inserts writes no change files all the same (M-124): readers take
    the rows of added files for inserts where a commit has none.
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
        # The id of a row is part of the old row.
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
