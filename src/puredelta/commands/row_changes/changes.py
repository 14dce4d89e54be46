"""The new rows of a statement: what UPDATE and INSERT clauses make, one frame for one write job.

Positions are settled, so no condition of a MATCHED clause is evaluated again: a row is
marked with the clause that fires for it. Where an UPDATE asks nothing of the old row and no
source row is used twice, the staged row alone makes the new one and the target is not read.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from puredelta.commands.row_changes.context import ChangeContext
from puredelta.commands.row_changes.plan import SearchPlan
from puredelta.commands.row_changes.positions import Positions, count_rows, united
from puredelta.commands.row_changes.statement import (
    MatchedClause,
    NotMatchedBySourceClause,
    NotMatchedClause,
    ResolvedInsert,
    ResolvedUpdate,
)
from puredelta.spark.bitmaps import FileRows, mark_rows
from puredelta.spark.names import (
    CLAUSE,
    FILE_ORDINAL,
    MARK,
    ROW_INDEX,
    SOURCE_FILE,
    SOURCE_ROW,
)

_MATCHED_MARK = f"{MARK}_matched"
_FIRST_INSERT = 1 << 20
"""Numbers of INSERT clauses start here, to tell them from those of UPDATE clauses."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fired:
    """An UPDATE clause that fires, and for which rows."""

    number: int
    """Among MATCHED, then NOT MATCHED BY SOURCE clauses."""
    action: ResolvedUpdate
    target: FileRows
    source: FileRows | None
    """The staged rows that make the new rows; ``None``: old rows are needed, or there is no
    source row.
    """
    by_source: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangePlan:
    """Which rows are to be written, before Spark is asked."""

    from_source: tuple[Fired, ...]
    from_target: tuple[Fired, ...]
    inserts: bool
    num_updates: int
    num_inserts: int | None
    """``None`` where INSERT conditions decide; then the written rows tell."""

    @property
    def is_empty(self) -> bool:
        """Whether nothing can be written."""
        return not self.from_source and not self.from_target and not self.inserts


def plan_changes(context: ChangeContext, positions: Positions) -> ChangePlan:
    """Choose how each clause's rows are made. Pure."""
    fired = list(_fired(context, positions))
    statement, num_rows = context.statement, context.source.num_rows
    unmatched = num_rows - count_rows(positions.matched_source)
    inserts = bool(statement.not_matched) and unmatched > 0
    unconditional = inserts and statement.not_matched[-1].condition is None
    return ChangePlan(
        from_source=tuple(f for f in fired if f.source is not None),
        from_target=tuple(f for f in fired if f.source is None),
        inserts=inserts,
        num_updates=sum(count_rows(f.target) for f in fired),
        num_inserts=unmatched if unconditional else None if inserts else 0,
    )


def _fired(context: ChangeContext, positions: Positions) -> list[Fired]:
    statement = context.statement
    fired = []
    clauses: list[MatchedClause | NotMatchedBySourceClause]
    clauses = [*statement.matched, *statement.not_matched_by_source]
    for number, (clause, rows) in enumerate(
        zip(clauses, [*positions.matched, *positions.by_source], strict=True)
    ):
        action = clause.action
        if not isinstance(action, ResolvedUpdate) or not rows:
            continue
        by_source = number >= len(statement.matched)
        known = None if by_source or action.reads_target else positions.source_of
        fired.append(
            Fired(
                number=number,
                action=action,
                target=rows,
                source=None if known is None else known[number],
                by_source=by_source,
            )
        )
    return fired


def changed_rows(
    context: ChangeContext, plan: SearchPlan, positions: Positions, changes: ChangePlan
) -> DataFrame | None:
    """Return the new rows with exactly the table's columns; ``None`` if there is none.

    Runs nothing. Expressions of clauses that do not fire are never evaluated.
    """
    matched = [fired for fired in changes.from_target if not fired.by_source]
    by_source = [fired for fired in changes.from_target if fired.by_source]
    parts = []
    if changes.from_source or changes.inserts:
        parts.append(_from_source(context, positions, changes))
    if matched:
        parts.append(_from_pairs(context, plan, matched))
    if by_source:
        frame = _old_rows(context, plan, by_source)
        parts.append(_new_rows(context, frame, _marked_clause(by_source), _values(by_source)))
    if not parts:
        return None
    return context.statement.instant.fix(functools.reduce(DataFrame.unionAll, parts))


def _from_source(context: ChangeContext, positions: Positions, changes: ChangePlan) -> DataFrame:
    """Make updated and inserted rows in one pass over the staged rows."""
    statement = context.statement
    inserts = statement.not_matched if changes.inserts else ()
    fired = changes.from_source
    columns = _columns_of_inserts(inserts).union(*(f.action.source_columns for f in fired))
    sets: dict[str, FileRows] = {_mark(f.number): f.source or {} for f in fired}
    if inserts and positions.matched_source:
        sets[_MATCHED_MARK] = positions.matched_source
    rows = context.source.rows(context.spark, columns)
    marked = mark_rows(rows, sets, file=SOURCE_FILE, row=SOURCE_ROW) if sets else rows
    frame = statement.frames.source(marked)
    clause = _first_insert(inserts)
    if _MATCHED_MARK in sets:
        clause = F.when(~F.col(_MATCHED_MARK), clause)
    clause = _marked_clause(fired, clause)
    actions = _values(fired)
    actions |= {_FIRST_INSERT + n: c.action.values for n, c in enumerate(inserts)}
    return _new_rows(context, frame, clause, actions)


def _from_pairs(context: ChangeContext, plan: SearchPlan, matched: Sequence[Fired]) -> DataFrame:
    """Make updated rows from old rows, joined again with the source rows they match."""
    statement = context.statement
    old = _old_rows(context, plan, matched, statement.on.target_columns)
    source = context.source_frame(
        statement.on.source_columns.union(*(f.action.source_columns for f in matched))
    )
    pairs = old.join(
        F.broadcast(source) if plan.broadcast_source else source, statement.on.column, how="inner"
    )
    return _new_rows(context, pairs, _marked_clause(matched), _values(matched))


def _old_rows(
    context: ChangeContext,
    plan: SearchPlan,
    fired: Sequence[Fired],
    columns: frozenset[str] = frozenset(),
) -> DataFrame:
    """Read the rows that clauses fire for, marked by clause: ``columns`` and what values need."""
    files = sorted(united(*(f.target for f in fired)))
    ordinals = {file: number for number, file in enumerate(files)}
    needed = columns.union(*(f.action.target_columns | f.action.unchanged for f in fired))
    sets = {
        _mark(f.number): {ordinals[file]: rows for file, rows in f.target.items()} for f in fired
    }
    rows = context.target_rows(plan.candidates.take(files), needed)
    marked = mark_rows(rows, sets, file=FILE_ORDINAL, row=ROW_INDEX)
    return context.statement.frames.target(marked.where(_marked_clause(fired).isNotNull()))


def _mark(number: int) -> str:
    return f"{MARK}_{number}"


def _values(fired: Sequence[Fired]) -> dict[int, Mapping[str, Column]]:
    return {f.number: f.action.values for f in fired}


def _marked_clause(fired: Sequence[Fired], otherwise: Column | None = None) -> Column:
    """Return the number of the clause whose mark a row bears, NULL if it bears none."""
    clause = F.lit(None).cast("int") if otherwise is None else otherwise
    for update in fired:
        clause = F.when(F.col(_mark(update.number)), F.lit(update.number)).otherwise(clause)
    return clause


def _first_insert(inserts: Sequence[NotMatchedClause]) -> Column:
    """Return the number of the first INSERT whose condition is TRUE, NULL if there is none."""
    rest = F.lit(None).cast("int")
    for number, clause in reversed(list(enumerate(inserts, _FIRST_INSERT))):
        fires = F.lit(number)
        rest = (
            fires
            if clause.condition is None
            else F.when(clause.condition.column, fires).otherwise(rest)
        )
    return rest


def _columns_of_inserts(inserts: Sequence[NotMatchedClause]) -> frozenset[str]:
    read: frozenset[str] = frozenset()
    for clause in inserts:
        action: ResolvedInsert = clause.action
        read |= action.source_columns
        if clause.condition is not None:
            read |= clause.condition.source_columns
    return read


def _new_rows(
    context: ChangeContext,
    frame: DataFrame,
    clause: Column,
    actions: Mapping[int, Mapping[str, Column]],
) -> DataFrame:
    """Give every row the values of its clause; rows without one are left out."""
    chosen = frame.withColumn(CLAUSE, clause).where(F.col(CLAUSE).isNotNull())
    return chosen.select(
        *(_value(name, actions).alias(name) for name in context.statement.schema.names)
    )


def _value(name: str, actions: Mapping[int, Mapping[str, Column]]) -> Column:
    numbers = list(actions)
    value = actions[numbers[-1]][name]
    for number in numbers[:-1]:
        value = F.when(F.col(CLAUSE) == number, actions[number][name]).otherwise(value)
    return value
