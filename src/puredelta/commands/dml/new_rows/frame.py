"""The rows of a statement as one frame for one write job: new rows, and change rows with them.

Positions are settled, so no condition of a MATCHED clause is evaluated again: a row is
marked with the clause that fires for it.

For the change data feed every new row is made once and then doubled, so that the row in
the table and its post-image hold the same values even if an assignment is ``rand()``.
Pre-images and deleted rows come from one more scan of the files they lie in, by position:
a row that several source rows delete is one row there (M-128).
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Mapping, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from puredelta.commands.dml.decide.decide import Decision
from puredelta.commands.dml.decide.row_plan import FiredUpdate, RowPlan
from puredelta.commands.dml.new_rows.identities import identity_values
from puredelta.commands.dml.new_rows.values import rows_with_values
from puredelta.commands.dml.prune.plan import SearchPlan
from puredelta.commands.dml.resolve.statement import NotMatchedClause, ResolvedInsert
from puredelta.commands.dml.search.positions import RowPositions, united
from puredelta.commands.dml.source.context import StatementContext
from puredelta.protocol.table.change_data import ChangeType
from puredelta.spark.scan.bitmaps import RowsByFile, mark_rows
from puredelta.spark.session.helper_columns import (
    CHANGE,
    CLAUSE,
    FILE_ORDINAL,
    MARK,
    ROW_ID,
    ROW_INDEX,
    SOURCE_FILE,
    SOURCE_ROW,
)

_MATCHED_MARK = f"{MARK}_matched"
_UPDATED_MARK = f"{MARK}_updated"
_DELETED_MARK = f"{MARK}_deleted"
FIRST_INSERT = 1 << 20
"""Numbers of INSERT clauses start here, to tell them from those of UPDATE clauses."""


def frame_of_new_rows(context: StatementContext, plan: SearchPlan, decision: Decision) -> DataFrame:
    """Return what is to be written with exactly the table's columns. Some row is, or may be.

    Where changes are recorded, `CHANGE` is one more column: NULL in rows of the table, else
    the row is one of the feed. Where rows keep their ids, `ROW_ID` is: NULL in new rows.
    Runs nothing. Expressions of clauses that do not fire are never evaluated.
    """
    parts = _new_parts(context, plan, decision)
    if decision.rows.recorded:
        parts = [*map(_doubled, parts), _old_images(context, plan, decision.rows)]
    rows = functools.reduce(DataFrame.unionAll, parts).drop(CLAUSE)
    return context.statement.timestamp.bind(rows)


def _new_parts(context: StatementContext, plan: SearchPlan, decision: Decision) -> list[DataFrame]:
    row_plan = decision.rows
    matched = [fired for fired in row_plan.from_target if not fired.by_source]
    by_source = [fired for fired in row_plan.from_target if fired.by_source]
    parts = []
    if row_plan.from_source or row_plan.inserts:
        parts.append(_from_source(context, decision.positions, row_plan))
    if matched:
        parts.append(_from_pairs(context, plan, row_plan, matched))
    if by_source:
        frame = _old_rows(context, plan, row_plan, by_source)
        clause = marked_clause(by_source)
        parts.append(_new_rows(context, row_plan, frame, clause, _values(by_source)))
    return parts


def _doubled(rows: DataFrame) -> DataFrame:
    """Return every row twice: for the table, and as a change of the kind `CLAUSE` tells.

    A generator stands above the values, so Spark cannot evaluate them once for each.
    """
    kind = F.when(F.col(CLAUSE) >= FIRST_INSERT, F.lit(ChangeType.INSERT.value)).otherwise(
        F.lit(ChangeType.UPDATE_POSTIMAGE.value)
    )
    return rows.withColumn(CHANGE, F.explode(F.array(F.lit(None).cast("string"), kind)))


def _old_images(context: StatementContext, plan: SearchPlan, row_plan: RowPlan) -> DataFrame:
    """Read updated and deleted rows as they were, in the columns of the table now (M-126)."""
    statement = context.statement
    sets = {_UPDATED_MARK: row_plan.updated, _DELETED_MARK: row_plan.deleted}
    sets = {mark: rows for mark, rows in sets.items() if rows}
    every = frozenset(context.snapshot.config.schema.names)
    frame = statement.frames.target(marked_rows(context, plan, sets, every))
    old = statement.pass_through()
    kind = F.lit(ChangeType.UPDATE_PREIMAGE.value)
    if _DELETED_MARK in sets:
        kind = F.when(F.col(_DELETED_MARK), F.lit(ChangeType.DELETE.value)).otherwise(kind)
    return frame.select(
        *(old[name].alias(name) for name in statement.schema.names),
        F.lit(None).cast("int").alias(CLAUSE),
        *([F.lit(None).cast("long").alias(ROW_ID)] if row_plan.keeps_row_ids else []),
        kind.alias(CHANGE),
    )


def _from_source(
    context: StatementContext, positions: RowPositions, row_plan: RowPlan
) -> DataFrame:
    """Make updated and inserted rows in one pass over the staged rows."""
    statement = context.statement
    inserts = statement.not_matched if row_plan.inserts else ()
    fired = row_plan.from_source
    columns = columns_of_inserts(inserts).union(*(f.action.source_columns for f in fired))
    frame, clause = marked_source(context, positions, fired, inserts, columns)
    actions = _values(fired)
    numbered = identity_values(statement.config, context.source) if inserts else {}
    actions |= {FIRST_INSERT + n: {**numbered, **c.action.values} for n, c in enumerate(inserts)}
    if row_plan.keeps_row_ids:
        frame = frame.withColumn(ROW_ID, F.lit(None).cast("long"))
    return _new_rows(context, row_plan, frame, clause, actions)


def marked_source(
    context: StatementContext,
    positions: RowPositions,
    fired: Sequence[FiredUpdate],
    inserts: Sequence[NotMatchedClause],
    columns: frozenset[str],
) -> tuple[DataFrame, Column]:
    """Return the source's rows and the number of the clause that makes a new row of each.

    INSERT clauses count from `FIRST_INSERT`; the number is NULL where no clause fires.
    """
    sets: dict[str, RowsByFile] = {mark_of(f.number): f.source or {} for f in fired}
    if inserts and positions.matched_source:
        sets[_MATCHED_MARK] = positions.matched_source
    rows = context.source.rows(context.spark, columns)
    marked = mark_rows(rows, sets, file=SOURCE_FILE, row=SOURCE_ROW) if sets else rows
    clause = _first_insert(inserts)
    if _MATCHED_MARK in sets:
        clause = F.when(~F.col(_MATCHED_MARK), clause)
    return context.statement.frames.source(marked), marked_clause(fired, clause)


def _from_pairs(
    context: StatementContext, plan: SearchPlan, row_plan: RowPlan, matched: Sequence[FiredUpdate]
) -> DataFrame:
    """Make updated rows from old rows, joined again with the source rows they match."""
    statement = context.statement
    old = _old_rows(context, plan, row_plan, matched, statement.on.target_columns)
    source = context.source_frame(
        statement.on.source_columns.union(*(f.action.source_columns for f in matched))
    )
    pairs = old.join(
        F.broadcast(source) if plan.broadcast_source else source, statement.on.column, how="inner"
    )
    return _new_rows(context, row_plan, pairs, marked_clause(matched), _values(matched))


def _old_rows(
    context: StatementContext,
    plan: SearchPlan,
    row_plan: RowPlan,
    fired: Sequence[FiredUpdate],
    columns: frozenset[str] = frozenset(),
) -> DataFrame:
    """Read the rows that clauses fire for, marked by clause: ``columns`` and what values need."""
    needed = columns.union(*(f.action.target_columns | f.action.unchanged for f in fired))
    sets = {mark_of(f.number): f.target for f in fired}
    rows = marked_rows(context, plan, sets, needed, with_row_ids=row_plan.keeps_row_ids)
    return context.statement.frames.target(rows)


def marked_rows(
    context: StatementContext,
    plan: SearchPlan,
    sets: Mapping[str, RowsByFile],
    columns: frozenset[str],
    *,
    with_row_ids: bool = False,
) -> DataFrame:
    """Read the rows that are in one of the sets, each with a mark per set; runs nothing.

    `FILE_ORDINAL` counts the files that have such rows.
    """
    files = sorted(united(*sets.values()))
    ordinals = {file: number for number, file in enumerate(files)}
    local = {
        mark: {ordinals[file]: bitmap for file, bitmap in rows.items()}
        for mark, rows in sets.items()
    }
    candidates = plan.candidates.take(files)
    rows = context.target_rows(candidates, columns, with_row_ids=with_row_ids)
    marked = mark_rows(rows, local, file=FILE_ORDINAL, row=ROW_INDEX)
    return marked.where(functools.reduce(operator.or_, map(F.col, local)))


def mark_of(number: int) -> str:
    """Return the column that marks the rows of an UPDATE or DELETE clause."""
    return f"{MARK}_{number}"


def _values(fired: Sequence[FiredUpdate]) -> dict[int, Mapping[str, Column]]:
    return {f.number: f.action.values for f in fired}


def marked_clause(fired: Sequence[FiredUpdate], otherwise: Column | None = None) -> Column:
    """Return the number of the clause whose mark a row bears, NULL if it bears none."""
    clause = F.lit(None).cast("int") if otherwise is None else otherwise
    for update in fired:
        clause = F.when(F.col(mark_of(update.number)), F.lit(update.number)).otherwise(clause)
    return clause


def _first_insert(inserts: Sequence[NotMatchedClause]) -> Column:
    """Return the number of the first INSERT whose condition is TRUE, NULL if there is none."""
    rest = F.lit(None).cast("int")
    for number, clause in reversed(list(enumerate(inserts, FIRST_INSERT))):
        fires = F.lit(number)
        rest = (
            fires
            if clause.condition is None
            else F.when(clause.condition.column, fires).otherwise(rest)
        )
    return rest


def columns_of_inserts(inserts: Sequence[NotMatchedClause]) -> frozenset[str]:
    """Return the staged names of what INSERT clauses read."""
    read: frozenset[str] = frozenset()
    for clause in inserts:
        action: ResolvedInsert = clause.action
        read |= action.source_columns
        if clause.condition is not None:
            read |= clause.condition.source_columns
    return read


def _new_rows(
    context: StatementContext,
    row_plan: RowPlan,
    frame: DataFrame,
    clause: Column,
    actions: Mapping[int, Mapping[str, Column]],
) -> DataFrame:
    """Give every row the values of its clause, which stays as `CLAUSE`; rows without one go."""
    chosen = frame.withColumn(CLAUSE, clause).where(F.col(CLAUSE).isNotNull())
    helpers = (ROW_ID,) if row_plan.keeps_row_ids else ()
    statement = context.statement
    unjudged = statement.computed_columns
    return rows_with_values(chosen, actions, statement.config, helpers=helpers, unjudged=unjudged)
