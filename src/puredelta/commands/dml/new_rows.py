"""Stage 7: new rows and change rows for the write job, or an order to copy source rows.

Workers copy source rows where each column of the table comes from a source column of the same type,
in all clauses that fire, as with ``UPDATE SET *`` and ``INSERT *``. The table must not need more
than the values: no constraint, no generated value, no row id, no change data feed. In all other
cases, or where workers fail, Spark computes a frame. The frame is made only when it is needed, so
that its analysis overlaps with the copy of touched files.

A column that a clause leaves out is computed after all others: a generated column
from its expression (M-101). So expressions see the new values, and names resolve as they do
over the table itself. They read values as the user gave them, unless another clause assigns the
generated column itself: then it is checked in every row, with values as the table stores them.

Positions are final, so no condition of a MATCHED clause is evaluated again: a row is
marked with the clause that fires for it.

For the change data feed every new row is made once and then doubled, so that the row in
the table and its post-image hold the same values even if an assignment is ``rand()``.
Pre-images and deleted rows come from one more scan of their files, by position:
a row that several source rows delete is one row there (M-128).
"""

from __future__ import annotations

import functools
import json
import operator
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from puredelta.commands.defined_columns import config_with_marks
from puredelta.commands.dml.decide import Decision, FiredUpdate, RowPlan
from puredelta.commands.dml.positions import RowPositions, united
from puredelta.commands.dml.resolve.resolved_statement import (
    NotMatchedClause,
    ResolvedInsert,
    ResolvedStatement,
)
from puredelta.commands.dml.search_plan import SearchPlan
from puredelta.commands.dml.source import StatementContext
from puredelta.commands.dml.staged_source import StagedSource
from puredelta.log.files.value_order import stored_type
from puredelta.protocol.actions.actions import Add
from puredelta.protocol.features.generated_columns import Identity
from puredelta.protocol.features.properties import ColumnMappingMode
from puredelta.protocol.schema.types import (
    BOOLEAN,
    DATE,
    INTEGRAL,
    STRING,
    ArrayType,
    DataType,
    MapType,
    StructField,
    StructType,
)
from puredelta.protocol.table.change_data import ChangeType
from puredelta.protocol.table.table_config import TableConfig
from puredelta.spark.offload.source_copy import SourceCopy
from puredelta.spark.scan.bitmaps import RowsByFile, mark_rows
from puredelta.spark.session.names import (
    CHANGE,
    CLAUSE,
    FILE_ORDINAL,
    MARK,
    ROW_ID,
    ROW_INDEX,
    SOURCE_FILE,
    SOURCE_ROW,
)
from puredelta.spark.session.types import arrow_schema, quoted
from puredelta.spark.values.inserted_rows import generated_value, identity_value
from puredelta.spark.write.writer import stored_rows

_PARTITION_TYPES = INTEGRAL | {BOOLEAN, DATE, STRING}
"""Types whose values are spelled in one way only."""


def copied_rows(context: StatementContext, decision: Decision) -> SourceCopy | None:
    """Return the source rows that are written unchanged; ``None`` if Spark has to make new rows."""
    source, statement, row_plan = context.source, context.statement, decision.rows
    staged = source.staged
    if context.settings.writer.codec is None or staged is None or staged.only_spark:
        return None
    if row_plan.from_target or row_plan.recorded or context.tracked is not None:
        return None
    columns = _columns(statement, row_plan)
    stored = stored_types(statement.config)
    if columns is None or stored is None:
        return None
    rows, include = _rows(decision.positions, row_plan)
    return SourceCopy(
        files=staged.files,
        group_rows=staged.group_rows,
        size_bytes=source.profile.size_bytes,
        rows=rows,
        include=include,
        columns=tuple(
            (source.names.in_file(columns[name]), name, kind) for name, kind in stored.items()
        ),
        num_partition_columns=len(statement.config.partition_columns),
    )


def _rows(positions: RowPositions, row_plan: RowPlan) -> tuple[RowsByFile, bool]:
    """Return the source rows to write; with inserts, the rows that are not written."""
    updated = united(*(fired.source or {} for fired in row_plan.from_source))
    if not row_plan.inserts:
        return updated, True
    left_out = {
        file: rows - updated[file] if file in updated else rows
        for file, rows in positions.matched_source.items()
    }
    return {file: rows for file, rows in left_out.items() if len(rows)}, False


def _columns(statement: ResolvedStatement, row_plan: RowPlan) -> dict[str, str] | None:
    """Return the source column of each table column, if all clauses that fire agree on it."""
    every: list[Mapping[str, Column]] = [fired.action.values for fired in row_plan.from_source]
    if row_plan.inserts:
        first = statement.not_matched[0]
        if first.condition is not None:
            return None
        every.append(first.action.values)
    frames = statement.frames
    staged = {id(frames.source_column(c.staged)): c.staged for c in statement.source_columns}
    found = [plain_columns(values, staged) for values in every]
    if not found or None in found or any(columns != found[0] for columns in found):
        return None
    return found[0]


def plain_columns(values: Mapping[str, Column], staged: Mapping[int, str]) -> dict[str, str] | None:
    """Return the source column of each value, ``None`` if one is any other expression.

    ``staged`` names source columns by the identity of their Columns: a cast makes another one.
    """
    found = {name: staged.get(id(value)) for name, value in values.items()}
    plain = {name: column for name, column in found.items() if column is not None}
    return plain if len(plain) == len(values) else None


def stored_types(config: TableConfig) -> dict[str, pa.DataType] | None:
    """Return the storage type of each table column, ``None`` if rows need more than storing.

    Partition columns come last, as if they were stored, in their own order.
    """
    asks = (
        config.check_constraints
        or config.invariants
        or config.generated_columns
        or config.identity_columns
        or config.char_varchar_columns
        or config.column_mapping is not ColumnMappingMode.NONE
        or config.materialized_partition_columns
    )
    if asks:
        return None
    stored: dict[str, pa.DataType] = {}
    for table_field in config.schema.fields:
        kind = copied_type(table_field.type)
        if kind is None or not table_field.nullable:
            return None
        stored[table_field.name] = kind
    if any(
        table_field.type not in _PARTITION_TYPES for table_field in config.partition_schema.fields
    ):
        return None
    for name in config.partition_columns:
        stored[name] = stored.pop(name)
    return stored


def copied_type(kind: DataType) -> pa.DataType | None:
    """Return the storage type of a column, nested ones included; ``None`` if Spark alone reads it
    or refuses a NULL.
    """
    if not isinstance(kind, StructType | ArrayType | MapType):
        return stored_type(kind)
    return arrow_schema(StructType((StructField("", kind),))).types[0] if _is_plain(kind) else None


def _is_plain(kind: DataType) -> bool:
    match kind:
        case StructType(fields):
            return all(field.nullable and _is_plain(field.type) for field in fields)
        case ArrayType(element, contains_null):
            return contains_null and _is_plain(element)
        case MapType(key, value, value_contains_null):
            return value_contains_null and _is_plain(key) and _is_plain(value)
        case _:
            return stored_type(kind) is not None


def rows_with_values(
    frame: DataFrame,
    actions: Mapping[int, Mapping[str, Column]],
    config: TableConfig,
    *,
    helpers: Sequence[str] = (),
    unjudged: Collection[str] = (),
    only: Sequence[str] | None = None,
) -> DataFrame:
    """Give every row the values of its clause: the table's columns, then `CLAUSE`, `helpers`.

    ``frame`` has the number of the clause in `CLAUSE`; ``actions`` maps that number to the values
    of every column except generated ones that are to be computed; ``unjudged`` are columns that
    are computed in every row of the statement, ``only`` the columns that are wanted, none of them
    computed. Runs nothing.
    """
    computed = {
        name: [number for number, values in actions.items() if name not in values]
        for name in config.generated_columns
        if only is None
    }
    missing = {name: numbers for name, numbers in computed.items() if numbers}
    fires = {number: F.col(CLAUSE) == number for number in list(actions)[:-1]}
    wanted = config.schema.names if only is None else only
    names = [*wanted, CLAUSE, *helpers]
    values = [_value(name, actions, fires) for name in wanted]
    rows = frame.select(*values, CLAUSE, *helpers).toDF(*names)
    if not missing.keys() <= {*unjudged}:
        rows = stored_rows(rows, config)
    generated = {
        name: F.when(F.col(CLAUSE).isin(numbers), generated_value(config, name)).otherwise(
            F.col(quoted(name))
        )
        for name, numbers in missing.items()
    }
    return rows.withColumns(generated) if generated else rows


def _value(
    name: str, actions: Mapping[int, Mapping[str, Column]], fires: Mapping[int, Column]
) -> Column:
    """Return the value of the clause that fires; NULL where it leaves the column out.

    ``fires`` has the condition of every clause but the last. A value shared by all of them, such
    as that of ``*``, needs no choice.
    """
    numbers = [number for number, values in actions.items() if name in values]
    if not numbers:
        return F.lit(None)
    value = actions[numbers[-1]][name]
    for number in numbers[:-1]:
        if actions[number][name] is not value:
            value = F.when(fires[number], actions[number][name]).otherwise(value)
    return value


def identity_values(config: TableConfig, source: StagedSource) -> Mapping[str, Column]:
    """Return the values of identity columns for rows inserted from staged rows (M-102).

    All INSERT clauses share them: a staged row has one value, whichever clause inserts it.
    """
    return {
        name: identity_value(identity, source.row_counts, file=SOURCE_FILE, row=SOURCE_ROW)
        for name, identity in config.identity_columns.items()
    }


def with_generated_identities(
    statement: ResolvedStatement, source: StagedSource, written: Iterable[Add], *, num_inserted: int
) -> TableConfig:
    """Return the table after the insert, with higher high water marks (M-103).

    A mark becomes the furthest value in the new files, as far as it is known, but never exceeds
    the values that were generated: the user's own values do not change it.
    """
    generated = [
        identity
        for name, identity in statement.config.identity_columns.items()
        if any(name not in clause.action.values for clause in statement.not_matched)
    ]
    if not generated or not num_inserted:
        return statement.config
    files = list(written)
    marks = {}
    for identity in generated:
        given = identity.last_of(source.num_rows)
        seen = _furthest(identity, statement.config.physical_name(identity.column), files)
        reached = given if seen is None else identity.nearer(given, seen)
        if identity.is_beyond(reached):
            marks[identity.column] = reached
    return config_with_marks(statement.config, marks)


def _furthest(identity: Identity, column: str, files: Iterable[Add]) -> int | None:
    """Return the furthest value in the files; ``None`` if it is unknown for one of them."""
    key = "maxValues" if identity.step > 0 else "minValues"
    furthest: int | None = None
    for file in files:
        value = json.loads(file.stats or "{}").get(key, {}).get(column)
        if value is None:
            return None
        furthest = value if furthest is None else identity.further(furthest, value)
    return furthest


_MATCHED_MARK = f"{MARK}_matched"
_UPDATED_MARK = f"{MARK}_updated"
_DELETED_MARK = f"{MARK}_deleted"
FIRST_INSERT = 1 << 20
"""Numbers of INSERT clauses start here, to tell them from those of UPDATE clauses."""


def frame_of_new_rows(context: StatementContext, plan: SearchPlan, decision: Decision) -> DataFrame:
    """Return the rows to write, with exactly the table's columns. Some row may exist.

    Where changes are recorded, `CHANGE` is one more column: NULL in rows of the table, else
    the row belongs to the feed. Where rows keep their ids, `ROW_ID` is: NULL in new rows.
    Runs nothing. Expressions of clauses that do not fire are never evaluated.
    """
    parts = _new_parts(context, plan, decision)
    if decision.rows.recorded:
        parts = [*map(_doubled, parts), _preimages(context, plan, decision.rows)]
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
    """Return every row twice: for the table, and as a change of the kind in `CLAUSE`.

    A generator is placed above the values, so Spark cannot evaluate them once for each.
    """
    kind = F.when(F.col(CLAUSE) >= FIRST_INSERT, F.lit(ChangeType.INSERT.value)).otherwise(
        F.lit(ChangeType.UPDATE_POSTIMAGE.value)
    )
    return rows.withColumn(CHANGE, F.explode(F.array(F.lit(None).cast("string"), kind)))


def _preimages(context: StatementContext, plan: SearchPlan, row_plan: RowPlan) -> DataFrame:
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
    """Return the source's rows with the number of the clause that makes a new row of each.

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
    """Make updated rows from old rows, joined again with their matching source rows."""
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
    """Read the rows for which clauses fire, marked by clause: ``columns`` and inputs of values."""
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
    among: Sequence[int] | None = None,
) -> DataFrame:
    """Read the rows of the sets, each with a mark per set; runs nothing.

    `FILE_ORDINAL` counts the files with such rows, or those ``among`` which they are.
    """
    files = sorted(united(*sets.values())) if among is None else among
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
    """Return the number of the clause of a row's mark, NULL for a row without a mark."""
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
    """Return the staged names of the columns that INSERT clauses read."""
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
    """Add the values of each row's clause, and keep `CLAUSE`; drop rows without a clause."""
    chosen = frame.withColumn(CLAUSE, clause).where(F.col(CLAUSE).isNotNull())
    helpers = (ROW_ID,) if row_plan.keeps_row_ids else ()
    statement = context.statement
    unjudged = statement.computed_columns
    return rows_with_values(chosen, actions, statement.config, helpers=helpers, unjudged=unjudged)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewRows:
    """Rows to write beside the copies of touched files."""

    frame: Callable[[], DataFrame] | None = field(default=None, repr=False)
    """Makes the frame; ``None`` if nothing is to be written."""
    copy: SourceCopy | None = None
    """The same rows as rows of the source, if they are unchanged source rows."""

    def describe(self) -> str:
        """Return one line for the log."""
        if self.frame is None:
            return "no new row"
        return "rows of the source" if self.copy is not None else "computed by Spark"


def new_rows(context: StatementContext, plan: SearchPlan, decision: Decision) -> NewRows:
    """Prepare the rows of the decision; runs nothing."""
    if decision.rows.is_empty:
        return NewRows()
    return NewRows(
        frame=partial(_frame, context, plan, decision),
        copy=copied_rows(context, decision),
    )


def _frame(context: StatementContext, plan: SearchPlan, decision: Decision) -> DataFrame:
    rows = frame_of_new_rows(context, plan, decision)
    if not context.statement.has_subqueries:
        return rows
    return context.command.bind(rows, only_subqueries=True)
