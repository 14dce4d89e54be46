"""Change data applied in the order of a sequence: a type 1 table as one MERGE.

Each row stores the sequence of its event. A deleted key keeps a row without values, so
that an older event that arrives later is recognised as too late.

With partial updates, a column shows the newest value that is not NULL and not older than the last
delete. The row stores the time of each of its columns, so the result does not depend on the order
of events. The row of a truncate's own key keeps the sequence of the truncate. Statistics tell which
files have such a row, so the search for truncates reads very little.

The contract is that of Databricks' ``AUTO CDC INTO`` (``APPLY CHANGES INTO``), under its names.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql import types as T
from typing_extensions import Unpack

from puredelta.commands.dml.spec import (
    Assignment,
    Clause,
    Delete,
    Matched,
    MergeSpec,
    NotMatched,
    NotMatchedBySource,
    Update,
)
from puredelta.recipes.arguments import (
    RecipeOptions,
    TableSettings,
    all_of,
    any_of,
    both_given,
    condition_of,
    equal_is_same,
    holds_null,
    is_true,
    keys_of,
    literal,
    names_of,
    refused,
    require_options,
    same,
    source_of,
    to_driver,
)
from puredelta.recipes.history import HistoryRecipe, sequence_of
from puredelta.recipes.plan import (
    ChangeResult,
    MergePlan,
    Recipe,
    equal_keys,
    insert_from_source,
    plan_recipe,
    run_recipe,
)
from puredelta.recipes.source_rows import (
    BAD,
    IS_DELETE,
    SEQUENCE,
    latest_rows,
    refuse_bad_sequences,
    with_sequence,
)
from puredelta.recipes.target import RecipeTable, TableOrPath, resolved
from puredelta.spark.session.names import quote

SET_AT = "__SET_AT"
"""A struct: for each column the sequence of the event that set it."""
DELETED_AT = "__DELETED_AT"
"""The sequence of the newest delete of the key."""
TRUNCATED_AT = "__TRUNCATED_AT"


ROW_SEQUENCE = "__SEQUENCE"
"""The sequence of the row's event."""
DELETED = "__DELETED"
"""Whether the row marks a deleted key."""
_STATE = (ROW_SEQUENCE, DELETED, DELETED_AT, SET_AT, TRUNCATED_AT)


@dataclass(frozen=True, slots=True, kw_only=True)
class StateRecipe:
    """The newest state of keys, as requested."""

    settings: TableSettings
    keys: tuple[str, ...]
    sequence_by: str | Column | tuple[str, ...]
    delete_when: str | Column | None = None
    truncate_when: str | Column | None = None
    null_keeps: bool = False
    columns: tuple[str, ...] | None = None
    """None: all columns of the source except ``except_columns``."""
    except_columns: tuple[str, ...] = ()

    def new_columns(self, source: DataFrame) -> T.StructType:
        """Return the columns of keys, data and state."""
        rows, keys, data = self._prepared(None, source, case_sensitive=False)
        sequence = rows.schema[SEQUENCE].dataType
        state = {ROW_SEQUENCE: sequence, DELETED: T.BooleanType()}
        if self.null_keeps:
            set_at = T.StructType([T.StructField(f.name, sequence) for f in data])
            state |= {DELETED_AT: sequence, SET_AT: set_at}
        if self.truncate_when is not None:
            state[TRUNCATED_AT] = sequence
        return T.StructType(
            [
                *(rows.schema[key] for key in keys),
                *data,
                *(T.StructField(name, kind) for name, kind in state.items()),
            ]
        )

    def plan(self, target: RecipeTable, source: DataFrame) -> MergePlan:
        """Return the MERGE; with truncates it evaluates the source, once."""
        rows, keys, data = self._prepared(
            target, target.aligned(source), case_sensitive=target.case_sensitive
        )
        resolved(keys, target.schema.names, "keys", case_sensitive=target.case_sensitive)
        kind = target.type_of(ROW_SEQUENCE) or rows.schema[SEQUENCE].dataType
        rows = rows.withColumn(SEQUENCE, F.col(SEQUENCE).cast(kind))
        truncated: TruncatedEvents | None = None
        if self.truncate_when is not None:
            truncated = truncate_events(rows, self.truncate_when, keys, target, kind)
            rows = truncated.events
        elif target.has(TRUNCATED_AT):
            rows = after_stored_truncates(rows, target)
        more = () if truncated is None else (TRUNCATED_AT,)
        events = rows.select(
            *map(quote, keys),
            *(F.when(~F.col(IS_DELETE), F.col(quote(f.name))).alias(f.name) for f in data),
            SEQUENCE,
            IS_DELETE,
            *more,
        )
        names = [field.name for field in data]
        if self.null_keeps:
            newest = newest_values(events, keys, data, *more)
            truncates = truncated is not None and truncated.newest is not None
            changed = _merged(target, names, more, truncates=truncates)
        else:
            newest = latest_rows(events, keys).withColumnRenamed(IS_DELETE, DELETED)
            changed = _replaced(target, [*names, *_keys_alike(target, newest, keys)], more)
        newest = newest.withColumnRenamed(SEQUENCE, ROW_SEQUENCE)
        truncate = None if truncated is None else truncated.newest
        if self.null_keeps:
            newest = newest.withColumn(DELETED, F.expr(is_deleted_text(ROW_SEQUENCE, DELETED_AT)))
        inserted = [name for name in newest.columns if name not in keys]
        if self.null_keeps and truncate is not None:
            newest = newest.withColumn(TRUNCATE, truncate)
        clauses: list[Clause] = [changed, NotMatched(insert_from_source(*keys, *inserted))]
        if truncate is not None:
            clauses += self._truncating(target, names, truncate)
        return MergePlan(
            target=target,
            spec=MergeSpec(
                on=equal_keys(target, newest, keys), clauses=tuple(clauses), evolve_schema=True
            ),
            source=newest,
        )

    def _prepared(
        self, target: RecipeTable | None, source: DataFrame, *, case_sensitive: bool
    ) -> tuple[DataFrame, tuple[str, ...], tuple[T.StructField, ...]]:
        """Return the source with its sequence, the keys, and the data columns of the table."""

        def columns(names: Sequence[str], argument: str) -> tuple[str, ...]:
            return resolved(names, source.columns, argument, case_sensitive=case_sensitive)

        keys = columns(self.keys, "keys")
        rows, _ = with_sequence(
            source, self.sequence_by, self.delete_when, case_sensitive=case_sensitive
        )
        left_out = {*keys, *columns(self.except_columns, "except_column_list")}
        wanted = source.columns if self.columns is None else columns(self.columns, "column_list")
        names = [name for name in wanted if name not in left_out]
        if taken := sorted({*names, *keys} & set(_STATE)):
            raise refused(
                f"The source has a column {taken[0]!r}, which holds the state of the table. "
                "Leave it out, or rename it.",
                column=taken[0],
            )
        evolves = target is None or self.settings.evolve_schema
        data = tuple(
            rows.schema[name] for name in names if evolves or (target and target.has(name))
        )
        return rows, keys, data

    def _truncating(
        self, target: RecipeTable, names: Sequence[str], newest: Column
    ) -> list[Clause]:
        """Return the effect of a truncate on rows without an event in the source.

        A row with the sequence of this truncate, or of a newer one, stays.
        """
        if not target.has(ROW_SEQUENCE):  # the age of its rows is unknown
            return [NotMatchedBySource(Delete())]
        shown = F.col(ROW_SEQUENCE)
        if target.has(DELETED_AT):
            shown = F.greatest(shown, F.col(DELETED_AT))
        outdated = shown.isNull() | (shown <= newest)
        if target.has(TRUNCATED_AT):
            marked = F.col(TRUNCATED_AT)
            outdated &= marked.isNull() | (marked < newest)
        covered = NotMatchedBySource(Delete(), outdated)
        kept = [name for name in names if target.has(name)]
        if not (self.null_keeps and kept and target.has(SET_AT)):
            return [covered]
        outlives, values = truncated_row(kept, ROW_SEQUENCE, newest)
        assigned = tuple(Assignment(quote(name), value) for name, value in values.items())
        return [covered, NotMatchedBySource(Update(assigned), outlives)]


def _merged(
    target: RecipeTable, names: Sequence[str], more: Sequence[str], *, truncates: bool
) -> Matched:
    kind = target.type_of(SET_AT)
    known = KnownState(
        columns=frozenset(target.schema.names),
        set_at=frozenset(kind.names if isinstance(kind, T.StructType) else ()),
    )
    values = merged_text(names, known, ROW_SEQUENCE, DELETED, truncates=truncates)
    state = [name for name in values if name not in names]
    same = " AND ".join(f"{known.column(name)} <=> ({values[name]})" for name in state)
    values[DELETED] = is_deleted_text(values[ROW_SEQUENCE], values[DELETED_AT])
    return Matched(_update(target, values, more), f"NOT ({same})" if target.has(SET_AT) else None)


def _keys_alike(target: RecipeTable, newest: DataFrame, keys: tuple[str, ...]) -> tuple[str, ...]:
    """Return the keys that an update can set without changing anything.

    An update that sets every column makes its row from the source's row alone: nothing is joined.
    """
    kinds = {field.name: field.dataType for field in newest.schema.fields}
    are_alike = all(equal_is_same(target.type_of(key), kinds[key]) for key in keys)
    return keys if are_alike else ()


def _replaced(target: RecipeTable, names: Sequence[str], more: Sequence[str]) -> Matched:
    if target.has(SET_AT):
        raise refused(
            "The table was made with ignore_null_updates=True, so that its columns have sequences "
            "of their own. Pass ignore_null_updates=True."
        )
    values = {name: f"s.{quote(name)}" for name in (*names, ROW_SEQUENCE, DELETED)}
    newer = f"(t.{ROW_SEQUENCE} IS NULL OR s.{ROW_SEQUENCE} > t.{ROW_SEQUENCE})"
    return Matched(_update(target, values, more), newer if target.has(ROW_SEQUENCE) else None)


def _update(target: RecipeTable, values: dict[str, str], more: Sequence[str]) -> Update:
    kept = {
        name: f"greatest(t.{name}, s.{name})" if target.has(name) else f"s.{name}" for name in more
    }
    assigned = {**values, **kept}
    return Update(tuple(Assignment(quote(name), value) for name, value in assigned.items()))


START_AT = "__START_AT"
END_AT = "__END_AT"


class ApplyOptions(RecipeOptions, total=False):
    """Options of `apply_changes`."""

    apply_as_deletes: str | Column
    """Where this condition is true, the event deletes its key."""
    apply_as_truncates: str | Column
    """Where this condition is true, the event empties the table. Type 1 only."""
    ignore_null_updates: bool
    """Whether NULL in an event keeps the old value."""
    column_list: Sequence[str] | str
    except_column_list: Sequence[str] | str
    """Source columns that the table gets; keys are always included."""
    stored_as_scd_type: int | str
    """1, the default: one row a key, the newest. 2: every version."""
    track_history_column_list: Sequence[str] | str
    track_history_except_column_list: Sequence[str] | str
    """Columns whose change makes a new version. Type 2 only."""


def apply_changes(
    table: TableOrPath,
    source: DataFrame,
    keys: Sequence[str] | str,
    sequence_by: str | Column | Sequence[str],
    **options: Unpack[ApplyOptions],
) -> ChangeResult:
    """Apply change events to a table, in the order of ``sequence_by``: one MERGE, one commit.

    ``sequence_by`` is a column, an expression, or several columns, the most important first. The
    result is that of all events in order, in whatever batches they arrive; a repeated event changes
    nothing. Options: `ApplyOptions`.

    Type 1 keeps the newest row of a key. ``__SEQUENCE`` has the sequence of its event. A deleted
    key keeps a row without values, with ``__DELETED`` true, so that older events that arrive
    later are recognised: read the table ``WHERE NOT __DELETED``, and delete such rows once no
    older event can arrive. ``ignore_null_updates`` adds ``__SET_AT`` and ``__DELETED_AT``,
    ``apply_as_truncates`` adds ``__TRUNCATED_AT``.

    Type 2 keeps every version from ``__START_AT``, included, to ``__END_AT``, excluded, which is
    NULL in the version in force. Rows with a ``__ROLE`` are no versions, see `scd2`.

    Raises:
        InvalidRequestError: the sequence of an event is NULL (DELTA_SOURCE_SEQUENCE_IS_NULL),
            two different events of a key share one (DELTA_SOURCE_SEQUENCE_AMBIGUOUS), or an
            argument is wrong. Nothing is changed.
        TableNotFoundError: there is no table, and ``create`` is not set.
        ConflictError: another writer changed data that this call read.

    Examples:
        >>> apply_changes(
        ...     "/data/users",
        ...     feed,
        ...     "id",
        ...     "lsn",
        ...     apply_as_deletes="op = 'D'",
        ...     except_column_list=["op", "lsn"],
        ...     create=True,
        ... )  # doctest: +SKIP
    """
    recipe = _recipe("apply_changes", keys, sequence_by, options)
    return run_recipe(recipe, table, source_of(source))


def plan_apply_changes(
    table: TableOrPath,
    source: DataFrame,
    keys: Sequence[str] | str,
    sequence_by: str | Column | Sequence[str],
    **options: Unpack[ApplyOptions],
) -> MergePlan:
    """Return the MERGE that `apply_changes` would run. It may read the source; changes nothing."""
    recipe = _recipe("plan_apply_changes", keys, sequence_by, options)
    return plan_recipe(recipe, table, source_of(source))


def _recipe(
    function: str,
    keys: Sequence[str] | str,
    sequence_by: str | Column | Sequence[str],
    options: ApplyOptions,
) -> Recipe:
    require_options(function, options, ApplyOptions)
    both_given(
        column_list=options.get("column_list"),
        except_column_list=options.get("except_column_list"),
    )
    match str(options.get("stored_as_scd_type", 1)):
        case "1":
            return _state(keys, sequence_by, options)
        case "2":
            return _history(keys, sequence_by, options)
        case other:
            raise refused(f"stored_as_scd_type is {other!r}. Use 1 or 2.")


def _state(
    keys: Sequence[str] | str, sequence_by: str | Column | Sequence[str], options: ApplyOptions
) -> StateRecipe:
    for name in ("track_history_column_list", "track_history_except_column_list"):
        if options.get(name) is not None:
            raise refused(f"{name} is for stored_as_scd_type=2: type 1 keeps no history.")
    return StateRecipe(
        settings=TableSettings.of(options),
        keys=keys_of(keys),
        sequence_by=sequence_of(sequence_by, "sequence_by"),
        delete_when=condition_of(options.get("apply_as_deletes"), "apply_as_deletes"),
        truncate_when=condition_of(options.get("apply_as_truncates"), "apply_as_truncates"),
        null_keeps=bool(options.get("ignore_null_updates", False)),
        columns=_column_list(options),
        except_columns=names_of(options.get("except_column_list"), "except_column_list"),
    )


def _history(
    keys: Sequence[str] | str, sequence_by: str | Column | Sequence[str], options: ApplyOptions
) -> HistoryRecipe:
    if options.get("apply_as_truncates") is not None:
        raise refused("apply_as_truncates is for stored_as_scd_type=1: a history forgets nothing.")
    tracked = options.get("track_history_column_list")
    untracked = options.get("track_history_except_column_list")
    both_given(track_history_column_list=tracked, track_history_except_column_list=untracked)
    return HistoryRecipe(
        settings=TableSettings.of(options),
        keys=keys_of(keys),
        sequence_by=sequence_of(sequence_by, "sequence_by"),
        delete_when=condition_of(options.get("apply_as_deletes"), "apply_as_deletes"),
        columns=_column_list(options),
        except_columns=names_of(options.get("except_column_list"), "except_column_list"),
        tracked=None if tracked is None else names_of(tracked, "track_history_column_list"),
        untracked=names_of(untracked, "track_history_except_column_list"),
        keeps_sequence_column=True,
        null_keeps=bool(options.get("ignore_null_updates", False)),
        valid_from=START_AT,
        valid_to=END_AT,
        is_current=None,
    )


def _column_list(options: ApplyOptions) -> tuple[str, ...] | None:
    given = options.get("column_list")
    return None if given is None else names_of(given, "column_list")


TRUNCATE = "__recipe_truncate"
"""For rows of a source: the sequence of the newest truncate among their events."""
_LAST_DELETE = "__recipe_last_delete"


def newest_values(
    rows: DataFrame, keys: Sequence[str], data: Sequence[T.StructField], *more: str
) -> DataFrame:
    """Return one row a key: `SEQUENCE` of its newest upsert, `DELETED_AT`, values and `SET_AT`.

    ``more`` are columns that are the same in all rows of a key.
    """
    by_key = Window.partitionBy(*map(quote, keys))
    in_order = by_key.orderBy(SEQUENCE)
    content = [*data, T.StructField(IS_DELETE, T.BooleanType())]
    alike = all_of(
        [
            same(F.lag(quote(f.name)).over(in_order), F.col(quote(f.name)), f.dataType)
            for f in content
        ]
    )
    again = F.lag(SEQUENCE).over(in_order).eqNullSafe(F.col(SEQUENCE))
    is_null = F.expr(holds_null(SEQUENCE, rows.schema[SEQUENCE].dataType))
    deleted, at = F.col(IS_DELETE), F.col(SEQUENCE)
    marked = rows.withColumns(
        {
            BAD: F.when(is_null, 1).when(again & ~alike, 2).otherwise(0),
            _LAST_DELETE: F.max(F.when(deleted, at)).over(by_key),
        }
    )
    alive = ~deleted & (F.col(_LAST_DELETE).isNull() | (at > F.col(_LAST_DELETE)))
    since = {f.name: F.when(alive & F.col(quote(f.name)).isNotNull(), at) for f in data}
    merged = marked.groupBy(*map(quote, keys)).agg(
        F.max(F.when(~deleted, at)).alias(SEQUENCE),
        F.max(_LAST_DELETE).alias(DELETED_AT),
        F.struct(*(F.max(column).alias(name) for name, column in since.items())).alias(SET_AT),
        *(F.max_by(quote(name), column).alias(name) for name, column in since.items()),
        *(F.max(quote(name)).alias(name) for name in more),
        F.max(BAD).alias(BAD),
    )
    return refuse_bad_sequences(merged, keys).drop(BAD)


def is_deleted_text(sequence: str, deleted_at: str) -> str:
    """Return SQL that tells whether a key is deleted, from its newest upsert and delete."""
    return f"coalesce({deleted_at} >= {sequence}, {sequence} IS NULL)"


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownState:
    """State columns of the table's rows, as SQL; NULL where the table lacks a column.

    A row without sequences of its columns uses that of the row for each.
    """

    columns: frozenset[str]
    set_at: frozenset[str]
    """Fields of `SET_AT`."""

    def column(self, name: str) -> str:
        """Return a column of the table."""
        return f"t.{quote(name)}" if name in self.columns else "NULL"

    def since(self, name: str, sequence: str) -> str:
        """Return the sequence of the event that set a column."""
        row = self.column(sequence)
        if SET_AT not in self.columns:
            return row
        known = f"t.{SET_AT}.{quote(name)}" if name in self.set_at else "NULL"
        return f"CASE WHEN t.{SET_AT} IS NULL THEN {row} ELSE {known} END"

    def deleted_at(self, sequence: str, deleted: str) -> str:
        """Return the sequence of the newest delete."""
        if not {sequence, deleted} <= self.columns:
            return self.column(DELETED_AT)
        row = f"CASE WHEN {self.column(deleted)} THEN {self.column(sequence)} END"
        return f"coalesce({self.column(DELETED_AT)}, {row})"


def merged_text(
    names: Sequence[str], known: KnownState, sequence: str, deleted: str, *, truncates: bool
) -> dict[str, str]:
    """Return the values of a row after the events, as SQL by column.

    ``sequence`` and ``deleted`` name the columns with these facts about rows. With ``truncates``
    the source has `TRUNCATE`, and older values are removed; the row need not record it.
    """
    stored = f"greatest({known.deleted_at(sequence, deleted)}, s.{DELETED_AT})"
    deleted_at = f"greatest({stored}, s.{TRUNCATE})" if truncates else stored
    newest = f"greatest({known.column(sequence)}, s.{sequence})"
    never_deleted = f"{deleted_at} IS NULL"  # a value of unknown age may be older
    values: dict[str, str] = {}
    set_at: list[str] = []
    for name in names:
        column = quote(name)
        ours, theirs = f"s.{SET_AT}.{column}", f"({known.since(name, sequence)})"
        here = f"({ours} IS NOT NULL AND coalesce({ours} > {deleted_at}, true))"
        there = f"({theirs} IS NOT NULL AND coalesce({theirs} > {deleted_at}, true))"
        wins = f"({here} AND (NOT {there} OR {ours} > {theirs}))"
        values[name] = (
            f"CASE WHEN {wins} THEN s.{column} "
            f"WHEN {there} OR {never_deleted} THEN {known.column(name)} END"
        )
        set_at += [
            f"'{_escaped(name)}'",
            f"CASE WHEN {wins} THEN {ours} WHEN {there} THEN {theirs} END",
        ]
    return {
        **values,
        sequence: newest,
        DELETED_AT: stored,
        SET_AT: f"named_struct({', '.join(set_at)})",
    }


def truncated_row(
    names: Sequence[str], sequence: str, newest: Column
) -> tuple[Column, dict[str, Column]]:
    """Return the condition of rows that survive a truncate with older values, and those values."""
    since = {name: F.col(SET_AT).getField(name) for name in names}
    outdated = any_of([F.coalesce(at <= newest, F.lit(False)) for at in since.values()])  # noqa: FBT003
    values = {name: F.when(at > newest, F.col(quote(name))) for name, at in since.items()}
    left = [F.when(at > newest, at).alias(name) for name, at in since.items()]
    return (F.col(sequence) > newest) & outdated, {
        **values,
        SET_AT: F.struct(*left),
    }


def _escaped(name: str) -> str:
    return name.replace("\\", "\\\\").replace("'", "\\'")


_LIMIT = "__recipe_limit"


@dataclass(frozen=True, slots=True, kw_only=True)
class TruncatedEvents:
    """Events not covered by a truncate."""

    events: DataFrame
    """With `TRUNCATED_AT`: the sequence of the newest truncate of the row's key, if any."""
    newest: Column | None
    """The sequence of the newest truncate among the events, None if there is none."""


def truncate_events(
    events: DataFrame,
    is_truncate: str | Column,
    keys: Sequence[str],
    target: RecipeTable,
    sequence: T.DataType,
) -> TruncatedEvents:
    """Drop events covered by a truncate, one of these events or an older one of the table.

    Evaluates the events, once, and keeps them on the executors. A truncate becomes a delete of
    its own key.
    """
    flag = "__recipe_is_truncate"
    kept = events.withColumn(flag, is_true(is_truncate)).localCheckpoint()
    truncates = kept.where(flag)
    [row] = truncates.agg(
        F.max(to_driver(F.col(SEQUENCE), sequence)).alias("newest"), F.count(F.lit(1)).alias("n")
    ).collect()
    newest = literal(row["newest"], sequence) if row["n"] and row["newest"] is not None else None
    by_key = Window.partitionBy(*map(quote, keys))
    marked = kept.withColumns(
        {
            TRUNCATED_AT: F.max(F.when(F.col(flag), F.col(SEQUENCE))).over(by_key),
            IS_DELETE: F.col(IS_DELETE) | F.col(flag),
        }
    )
    if newest is not None:
        is_newest = F.col(flag) & (F.col(SEQUENCE) == newest)
        marked = marked.where(F.col(SEQUENCE).isNull() | (F.col(SEQUENCE) > newest) | is_newest)
    if target.has(TRUNCATED_AT):
        marked = after_stored_truncates(marked, target)
    return TruncatedEvents(events=marked.drop(flag), newest=newest)


def after_stored_truncates(events: DataFrame, target: RecipeTable) -> DataFrame:
    """Drop events covered by a truncate of the table; a later truncate conflicts with the MERGE.

    The truncates are read as part of the source, from the same version that is merged into.
    """
    known = target.table.rows().where(F.col(TRUNCATED_AT).isNotNull())
    limit = known.agg(F.max(TRUNCATED_AT).alias(_LIMIT))
    after = F.col(_LIMIT).isNull() | F.col(SEQUENCE).isNull() | (F.col(SEQUENCE) > F.col(_LIMIT))
    return events.crossJoin(F.broadcast(limit)).where(after).drop(_LIMIT)
