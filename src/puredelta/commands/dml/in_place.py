"""Files whose changed rows keep their places: a part of stage 7.

Where every changed row of a file is updated, the file is written again with new values in the
changed columns, and all other chunks are copied as bytes. Workers compute the values; else Spark
computes those of at most half of the columns, so it reads no others. Where other rows leave the
file, a worker puts the values that it computes into the copy of the rows that stay.

Small files are brought together instead, as before, and so are the rows of tables that record
changes or track rows, where more than the changed columns is needed.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeAlias

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from puredelta.commands.dml.decide import (
    Decision,
    FilePlan,
    FiredUpdate,
    RowPlan,
    records_changes,
)
from puredelta.commands.dml.lookup_plan import HeldSource, source_keys
from puredelta.commands.dml.new_rows import (
    NewRows,
    copied_type,
    mark_of,
    marked_clause,
    marked_rows,
    new_rows,
    rows_with_values,
)
from puredelta.commands.dml.positions import RowPositions
from puredelta.commands.dml.resolve.resolved_statement import ResolvedUpdate
from puredelta.commands.dml.search_plan import SearchPlan
from puredelta.commands.dml.source import StatementContext
from puredelta.commands.dml.staged_source import ColumnNames
from puredelta.log.files.file_table import FileTable
from puredelta.log.files.value_order import stored_type
from puredelta.protocol.features.properties import ColumnMappingMode
from puredelta.protocol.schema.expression_names import referenced_paths
from puredelta.protocol.schema.types import (
    DATE,
    INTEGRAL,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VOID,
    StructField,
    StructType,
)
from puredelta.protocol.table.clustering import clustering_columns
from puredelta.protocol.table.partitioning import Partitioning
from puredelta.protocol.table.table_config import TableConfig
from puredelta.quantities import counted
from puredelta.spark.offload.arrow_values import (
    ArrowValue,
    NotInTableError,
    stored_as,
    value_of,
)
from puredelta.spark.offload.key_lookup import (
    KeyLookup,
    constants_of_files,
    in_files,
    read_columns,
)
from puredelta.spark.offload.rewrite import ComputedUpdate, RewriteOrder, Rewritten, small_groups
from puredelta.spark.offload.workers import ENABLED
from puredelta.spark.scan.bitmaps import RowsByFile
from puredelta.spark.session.names import CLAUSE, FILE_ORDINAL, ROW_INDEX
from puredelta.spark.session.row_bitmap import RowBitmap
from puredelta.spark.session.types import arrow_schema, from_spark
from puredelta.spark.values.constraints import table_checks
from puredelta.spark.write.writer import JobOptions, stored_values
from puredelta.worker.computed_rows import ComputedValues, MatchedSource
from puredelta.worker.expressions import Expression, InputColumn, with_columns
from puredelta.worker.lookup.lookup_request import Constants

_SHARE_MAX = 0.5
"""Of the columns of a file, to be worth copying the others where Spark computes the values."""
_MOST_BYTES_MAX = 64 * 1024 * 1024
"""A larger file is not updated in most of its columns: a worker holds them of a row group."""
_LISTED_MAX = 8_000_000
"""Keys that are no numbers, listed for all files together, which take about a second."""


_BY_WORKERS = "computed by workers, in the files"
_BY_SPARK = "computed by Spark"
_BY_SPARK_WHOLE = "computed by Spark, with whole rows"


@dataclass(frozen=True, slots=True, kw_only=True)
class InPlaceUpdate:
    """Files that get new values of some columns, and what is left to do besides."""

    orders: tuple[RewriteOrder, ...]
    """Each with the rows that are updated."""
    columns: tuple[str, ...]
    """The columns that change in some row."""
    values: Callable[[], tuple[DataFrame, pa.Schema]] = field(repr=False)
    """Makes the new values in stored form, then the number of the order and the position; and the
    schema of the values. Raises UnsupportedError if Arrow lacks a type."""
    computed: ComputedUpdate | None
    """The same values as workers compute them; ``None``: Spark does."""
    rest: Decision
    """The decision without these files and their rows."""
    rows: NewRows
    """The new rows of the rest."""
    others: Callable[[Collection[int]], tuple[Decision, NewRows]] = field(repr=False)
    """Returns the decision on the files of some orders alone, which are to be written otherwise,
    with their new rows."""


def plan_in_place(
    context: StatementContext, plan: SearchPlan, decision: Decision
) -> InPlaceUpdate | None:
    """Choose the files whose changed rows keep their places; ``None``: there are none."""
    row_plan = decision.rows
    if not row_plan.from_target or row_plan.recorded or context.tracked is not None:
        return None
    columns = changed_columns(context, [update.action for update in row_plan.from_target])
    if not columns:
        return None
    most = _are_most(context, columns)
    files = _files(context, plan, decision, bytes_max=_MOST_BYTES_MAX if most else None)
    asked = _asked(decision, files, columns)
    computed = _computed(context, plan, decision.positions, asked) if files else None
    if computed is None:
        files = {} if most else {n: order for n, order in files.items() if not order.leaving}
        asked = _asked(decision, files, columns)
    if not files:
        return None
    rest = _rest(decision, files)
    return InPlaceUpdate(
        computed=computed,
        orders=tuple(files.values()),
        columns=columns,
        values=partial(_values, context, plan, asked),
        rest=rest,
        rows=new_rows(context, plan, rest),
        others=partial(_others, context, plan, decision, files),
    )


def _asked(decision: Decision, files: _Files, columns: tuple[str, ...]) -> _Asked:
    fired = (_among(update, files) for update in decision.rows.from_target)
    return _Asked(tuple(update for update in fired if update.target), files, columns)


def _computed(
    context: StatementContext, plan: SearchPlan, positions: RowPositions, asked: _Asked
) -> ComputedUpdate | None:
    """Return the new values as workers compute them; ``None``: Spark does."""
    updates = [update.action for update in asked.fired]
    found = computed_values(context, plan, updates, asked.columns)
    if isinstance(found, str):
        return None
    values, source_bytes = found
    constants: Sequence[Constants] = ()
    if values.source is not None and plan.lookup is not None:
        if positions.fallback is not None or _is_slow(context, plan.lookup, asked):
            return None
        files = FileTable.of(order.add for order in asked.files.values())
        config = context.snapshot.config
        constants = constants_of_files(config, files, read_columns(plan.lookup))
        values = replace(values, source=_only_matched(context, plan, positions, values.source))
    nothing = RowBitmap.empty()
    return ComputedUpdate(
        values=values,
        rows=tuple(
            tuple(update.target.get(file, nothing) for update in asked.fired)
            for file in asked.files
        ),
        constants=tuple(constants) or ((),) * len(asked.files),
        source_files=() if values.source is None else context.source.files,
        source_bytes=source_bytes,
    )


def _only_matched(
    context: StatementContext, plan: SearchPlan, positions: RowPositions, source: MatchedSource
) -> MatchedSource:
    """Leave out the source rows without a match, where they are known."""
    if not plan.finds_source_rows:
        return source
    nothing = RowBitmap.empty()
    matched = positions.matched_source
    rows = (matched.get(number, nothing) for number in range(len(context.source.files)))
    return replace(source, rows=tuple(one.packed() for one in rows))


def _is_slow(context: StatementContext, lookup: KeyLookup, asked: _Asked) -> bool:
    """Tell whether workers would list the keys of a large source for each of many files."""
    keys = source_keys(context.statement, lookup.searched, context.source.names)
    numbers = {*INTEGRAL, DATE, TIMESTAMP, TIMESTAMP_NTZ}
    if lookup.within is not None or all(kind in numbers for _, kind in keys):
        return False
    listed = context.source.num_rows * len(asked.files)
    return listed > _LISTED_MAX + sum(len(order.dropped) for order in asked.files.values())


def values_choice(
    context: StatementContext, plan: SearchPlan, updated: Rewritten | None = None
) -> tuple[str, str] | None:
    """Return who computes new values of updated rows, and why; ``None``: no clause updates.

    After the write, ``updated`` are the files whose changed rows kept their places.
    """
    planned = _planned_values(context, plan)
    if planned is None or updated is None or planned[0] != _BY_WORKERS:
        return planned
    if updated.fallback is not None:
        return _BY_SPARK, updated.fallback
    if not updated.refused:
        return planned
    (reason, *_) = dict.fromkeys(updated.refused.values())
    if not updated.adds:
        return _BY_SPARK_WHOLE, reason
    return f"{_BY_WORKERS}; by Spark for {counted(len(updated.refused), 'file')}", reason


def _planned_values(context: StatementContext, plan: SearchPlan) -> tuple[str, str] | None:
    statement = context.statement
    actions = [
        *(clause.action for clause in statement.matched),
        *(clause.action for clause in statement.not_matched_by_source),
    ]
    updates = [action for action in actions if isinstance(action, ResolvedUpdate)]
    if not updates:
        return None
    # Rows of the others are, as a rule, rows of the source.
    updates = [update for update in updates if update.reads_target] or updates
    columns = changed_columns(context, updates)
    if records_changes(statement.config) or context.tracked is not None:
        reason = "the table records changes, or ids of rows"
    elif not columns:
        reason = "columns change that say where rows are"
    elif not context.settings.workers.enabled:
        reason = f"{ENABLED.key} is off"
    elif isinstance(found := computed_values(context, plan, updates, columns), str):
        if not _are_most(context, columns):
            return _BY_SPARK, found
        reason = f"more than half of the columns change, and {found}"
    else:
        return _BY_WORKERS, "Arrow computes them as Spark does"
    return _BY_SPARK_WHOLE, reason


def computed_values(
    context: StatementContext,
    plan: SearchPlan,
    updates: Sequence[ResolvedUpdate],
    columns: Sequence[str],
) -> tuple[ComputedValues, int] | str:
    """Return the values of some clauses as workers compute them, and the bytes that a task holds of
    the source; or the reason why Spark computes them.
    """
    statement = context.statement
    config, current = statement.config, context.snapshot.config
    if (rule := _rule(config, columns)) is not None:
        return rule
    reads: dict[str, pa.DataType] = {}
    of_source: dict[str, pa.DataType] = {}
    clauses: list[tuple[Expression, ...]] = []
    names = context.source.names
    try:
        for update in updates:
            values = [_value(context, update, name) for name in columns]
            clauses.append(tuple(_in_files(value.expression, config, names) for value in values))
            for value in values:
                reads |= value.columns
                of_source |= value.source
        matched = _matched_source(context, plan, of_source) if of_source else None
    except NotInTableError as reason:
        return str(reason)
    source, source_bytes = (None, 0) if matched is None else matched
    stored = {one.name: one for one in config.physical_data_schema(field_ids=True).fields}
    changed = tuple(stored[config.physical_name(name)] for name in columns)
    computed = ComputedValues(
        schema=arrow_schema(StructType(changed)),
        reads=pa.schema([(current.physical_name(name), kind) for name, kind in reads.items()]),
        clauses=tuple(clauses),
        required=tuple(field.name for field in changed if not field.nullable),
        source=source,
    )
    return computed, source_bytes


def _rule(config: TableConfig, columns: Sequence[str]) -> str | None:
    """Return the rule of the table that only Spark checks of new values; ``None``: there is none.

    Columns that keep their values keep what is true of them.
    """
    if config.generated_columns:
        return "the table has generated columns"
    limited = {path[0] for path in config.char_varchar_columns}
    for name in columns:
        if name in limited:
            return f"column {name} has a length that only Spark checks"
    for sql in (*config.check_constraints.values(), *config.invariants.values()):
        named = {path[0] for path in referenced_paths(sql, config.schema)}
        if found := sorted(named.intersection(columns)):
            return f"a constraint names column {found[0]}"
    return None


def _matched_source(
    context: StatementContext, plan: SearchPlan, columns: Mapping[str, pa.DataType]
) -> tuple[MatchedSource, int]:
    """Return how workers find source rows, and the bytes that a task holds of them.

    Raises:
        NotInTableError: only Spark finds them.
    """
    source, current = context.source, context.snapshot.config
    if plan.lookup is None:
        raise NotInTableError("a value of the source, whose rows are found by a join")
    if source.staged is not None and source.staged.only_spark:
        raise NotInTableError("a value of the source, whose files only Spark reads")
    lookup = in_files(plan.lookup, current)
    stored = {source.names.in_file(name): kind for name, kind in columns.items()}
    read = () if lookup.conditions is None else lookup.conditions.source_columns
    held = HeldSource.of(
        source.num_rows,
        keys=source_keys(context.statement, plan.lookup.searched, source.names),
        read={**stored, **dict(read)},
        texts=source.texts,
    )
    planned = held.in_parts(context.settings.workers.memory.task_max, 1)
    if planned is None:
        raise NotInTableError("a value of the source, which is too large for a worker")
    target: dict[str, pa.DataType] = {}
    for name in sorted(read_columns(plan.lookup) - {*current.partition_columns}):
        known = current.schema.find(name)
        kind = None if known is None else stored_type(known.type)
        if kind is None:
            raise NotInTableError(f"column {name} of ON is of a type that only Spark reads")
        target[current.physical_name(name)] = kind
    found = MatchedSource(
        keys=lookup.keys,
        within=lookup.within,
        on=lookup.conditions,
        target=pa.schema(list(target.items())),
        columns=pa.schema(list(stored.items())),
    )
    return found, planned[1]


def _value(context: StatementContext, update: ResolvedUpdate, name: str) -> ArrowValue:
    """Return the new value of a column, for rows of one clause."""
    found = context.statement.config.schema.find(name)
    kind = None if found is None else stored_type(found.type)
    if found is not None and kind is None:
        return _nested_value(context.statement.config, update, found)
    if kind is None:
        raise NotInTableError(f"there is no column {name}")
    if name in update.unchanged:
        return ArrowValue(InputColumn("target", name), kind, {name: kind})
    if (source := update.copies.get(name)) is not None:
        return ArrowValue(InputColumn("source", source), kind, {}, {source: kind})
    if (tree := update.trees.get(name)) is None:
        raise NotInTableError(f"the value of {name} is no plain expression, or is sent by Connect")
    value = stored_as(value_of(tree, ansi=context.command.session.ansi), kind)
    for read in context.snapshot.config.partition_columns:
        if read in value.columns:
            raise NotInTableError(f"column {read} is not in the files, it is a partition column")
    return value


def _nested_value(config: TableConfig, update: ResolvedUpdate, column: StructField) -> ArrowValue:
    """Return a nested column of the source, copied as it is."""
    kind, source = copied_type(column.type), update.copies.get(column.name)
    renamed = config.column_mapping is not ColumnMappingMode.NONE
    if kind is None or source is None or renamed:
        raise NotInTableError(f"column {column.name} is of a type that only Spark computes with")
    return ArrowValue(InputColumn("source", source), kind, {}, {source: kind})


def _in_files(value: Expression, config: TableConfig, source: ColumnNames) -> Expression:
    """Return a value whose columns have their names in files."""

    def named(column: InputColumn) -> InputColumn:
        in_file = config.physical_name if column.side == "target" else source.in_file
        return InputColumn(column.side, in_file(str(column.name)))

    return with_columns(value, named)


def changed_columns(
    context: StatementContext, updates: Sequence[ResolvedUpdate]
) -> tuple[str, ...]:
    """Return the columns that some clause changes, none if files are better written whole."""
    config = context.statement.config
    kept = frozenset.intersection(*(update.unchanged for update in updates))
    changed = [one for one in config.schema.fields if one.name not in kept]
    clustered = clustering_columns(config, context.snapshot.domain_metadata)
    places = {*config.partition_columns, *(path[0] for path in clustered)}
    asks = (
        any(one.name in places or one.type == VOID for one in changed)
        or config.column_mapping is ColumnMappingMode.ID
    )
    return () if asks else tuple(one.name for one in changed)


def _are_most(context: StatementContext, columns: Sequence[str]) -> bool:
    """Tell whether so many columns change that copying the others alone is not worth a file."""
    return len(columns) > _SHARE_MAX * len(context.statement.config.data_schema.fields)


_Files: TypeAlias = Mapping[int, RewriteOrder]
"""By number of the candidate file."""


def _files(
    context: StatementContext, plan: SearchPlan, decision: Decision, *, bytes_max: int | None
) -> _Files:
    """Return the files with an updated row, each with the rows that leave it."""
    touched = decision.positions.touched()
    numbers = sorted(touched)
    every = plan.candidates.take(numbers).adds()
    leaving = {order.add.path for order in decision.files.rewritten}
    leaving |= {add.path for add in decision.files.dropped}
    adds = {n: add for n, add in zip(numbers, every, strict=True) if add.path in leaving}
    groups = small_groups(
        list(adds.values()), [""] * len(adds), Partitioning.of(context.snapshot.config)
    )
    updated: dict[int, RowBitmap] = {}
    for update in decision.rows.from_target:
        for file, rows in update.target.items():
            updated[file] = updated[file] | rows if file in updated else rows
    return {
        number: RewriteOrder(
            add=add, dropped=touched[number], leaving=touched[number] - updated[number]
        )
        for (number, add), group in zip(adds.items(), groups, strict=True)
        if group is None
        and add.deletion_vector is None
        and number in updated
        and (bytes_max is None or add.size_bytes <= bytes_max)
    }


def _among(update: FiredUpdate, files: _Files) -> FiredUpdate:
    return replace(update, target={f: rows for f, rows in update.target.items() if f in files})


def _rest(decision: Decision, files: _Files) -> Decision:
    gone = {order.add.path for order in files.values()}
    row_plan: RowPlan = decision.rows
    left = [
        replace(update, target={f: rows for f, rows in update.target.items() if f not in files})
        for update in row_plan.from_target
    ]
    kept = tuple(order for order in decision.files.rewritten if order.add.path not in gone)
    dropped = tuple(add for add in decision.files.dropped if add.path not in gone)
    return replace(
        decision,
        rows=replace(row_plan, from_target=tuple(update for update in left if update.target)),
        files=replace(decision.files, rewritten=kept, dropped=dropped),
    )


def _others(
    context: StatementContext,
    plan: SearchPlan,
    decision: Decision,
    files: _Files,
    orders: Collection[int],
) -> tuple[Decision, NewRows]:
    """Return the decision on some of the files, with nothing of the rest of the statement."""
    numbers = list(files)
    chosen = {numbers[order]: files[numbers[order]] for order in orders}
    paths = {order.add.path for order in chosen.values()}
    rows = replace(
        decision.rows,
        from_source=(),
        from_target=tuple(
            update
            for update in (_among(one, chosen) for one in decision.rows.from_target)
            if update.target
        ),
        deleted={},
        inserts=False,
        num_inserts=0,
    )
    plans = FilePlan(
        rewritten=tuple(one for one in decision.files.rewritten if one.add.path in paths),
        dropped=tuple(add for add in decision.files.dropped if add.path in paths),
    )
    alone = replace(decision, rows=rows, files=plans)
    return alone, new_rows(context, plan, alone)


@dataclass(frozen=True, slots=True)
class _Asked:
    """New values of some columns, in some files."""

    fired: tuple[FiredUpdate, ...]
    files: _Files
    columns: tuple[str, ...]


def _values(
    context: StatementContext, plan: SearchPlan, asked: _Asked
) -> tuple[DataFrame, pa.Schema]:
    statement = context.statement
    computes = any(name not in u.action.values for u in asked.fired for name in asked.columns)
    checks = computes or bool(table_checks(statement.config, computed=statement.computed_columns))
    only = None if checks else asked.columns
    parts = [
        _part(context, plan, _of_kind(asked, by_source=by_source), only)
        for by_source in (False, True)
        if any(update.by_source is by_source for update in asked.fired)
    ]
    rows = functools.reduce(DataFrame.unionAll, parts)
    rows = statement.timestamp.bind(rows)
    if statement.has_subqueries:
        rows = context.command.bind(rows, only_subqueries=True)
    stored = stored_values(
        rows,
        statement.config,
        JobOptions(
            enforce_constraints=checks,
            computed=statement.computed_columns,
            only=frozenset(asked.columns),
            hidden={FILE_ORDINAL: FILE_ORDINAL, ROW_INDEX: ROW_INDEX},
        ),
    )
    values = from_spark(T.StructType(stored.schema.fields[: len(asked.columns)]))
    return stored, arrow_schema(values)


def _of_kind(asked: _Asked, *, by_source: bool) -> _Asked:
    """Return what is asked of clauses of one kind."""
    return replace(asked, fired=tuple(u for u in asked.fired if u.by_source is by_source))


def _part(
    context: StatementContext, plan: SearchPlan, asked: _Asked, only: Sequence[str] | None
) -> DataFrame:
    """Return the new values of the clauses of one kind, with file and position."""
    statement, fired = context.statement, asked.fired
    wanted = frozenset(statement.schema.names if only is None else only)
    needed: frozenset[str] = frozenset().union(
        *(u.action.target_columns | (u.action.unchanged & wanted) for u in fired)
    )
    matched = not fired[0].by_source
    if matched:
        needed |= statement.on.target_columns
    sets: dict[str, RowsByFile] = {mark_of(u.number): u.target for u in fired}
    old = marked_rows(context, plan, sets, needed, among=sorted(asked.files))
    frame = statement.frames.target(old)
    if matched:
        read = statement.on.source_columns.union(*(u.action.source_columns for u in fired))
        source = context.source_frame(read)
        source = F.broadcast(source) if plan.broadcast_source else source
        frame = frame.join(source, statement.on.column, how="inner")
    chosen = frame.withColumn(CLAUSE, marked_clause(fired))
    actions: dict[int, Mapping[str, Column]] = {u.number: u.action.values for u in fired}
    return rows_with_values(
        chosen,
        actions,
        statement.config,
        helpers=(FILE_ORDINAL, ROW_INDEX),
        unjudged=statement.computed_columns,
        only=only,
    )
