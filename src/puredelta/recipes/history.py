"""Slowly changing dimensions of type 2 as one MERGE."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T
from typing_extensions import Unpack

from puredelta.commands.dml.spec import Delete, Matched, MergeSpec, NotMatched
from puredelta.recipes.arguments import (
    RecipeOptions,
    TableSettings,
    all_of,
    both_given,
    condition_of,
    has_bounds,
    keys_of,
    literal,
    names_of,
    refused,
    require_options,
    source_of,
    to_driver,
)
from puredelta.recipes.plan import (
    ChangeResult,
    MergePlan,
    equal_keys,
    insert_from_source,
    plan_recipe,
    run_recipe,
    set_to_source,
)
from puredelta.recipes.source_rows import IS_DELETE, SEQUENCE, with_sequence
from puredelta.recipes.target import RecipeTable, TableOrPath, resolved
from puredelta.recipes.timeline import (
    OPERATION,
    ORIGINAL,
    REMOVE,
    ROLE,
    TimelineShape,
    timeline_changes,
)
from puredelta.spark.session.names import quote

_KEYS_BROADCAST_MAX = 200_000
"""Number of keys up to which every task gets all of them, without a shuffle of the table."""
_KEY = "__recipe_key_{}"


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryRecipe:
    """A history of keys, as requested."""

    settings: TableSettings
    keys: tuple[str, ...]
    sequence_by: str | Column | tuple[str, ...]
    delete_when: str | Column | None = None
    columns: tuple[str, ...] | None = None
    """None: all columns of the source except ``except_columns``."""
    except_columns: tuple[str, ...] = ()
    tracked: tuple[str, ...] | None = None
    untracked: tuple[str, ...] = ()
    keeps_sequence_column: bool = False
    """Whether the sequence columns are data, too."""
    null_keeps: bool = False
    remembers: bool = True
    valid_from: str = "valid_from"
    valid_to: str = "valid_to"
    is_current: str | None = "is_current"

    def new_columns(self, source: DataFrame) -> T.StructType:
        """Return the columns of keys, data, times and state."""
        rows, shape = self._prepared(None, source, case_sensitive=False)
        keys = [rows.schema[key] for key in shape.keys]
        start = T.StructField(shape.valid_from, shape.sequence)
        return T.StructType([*keys, *shape.data, start, *shape.values[len(shape.data) :]])

    def plan(self, target: RecipeTable, source: DataFrame) -> MergePlan:
        """Return the MERGE; evaluates the source, once, and keeps it on the executors."""
        rows, shape = self._prepared(
            target, target.aligned(source), case_sensitive=target.case_sensitive
        )
        resolved(
            (*shape.keys, shape.valid_from, shape.valid_to),
            target.schema.names,
            "keys and times",
            case_sensitive=target.case_sensitive,
        )
        events = rows.select(
            *map(quote, shape.keys),
            *(quote(name) for name in shape.names if name in rows.columns),
            SEQUENCE,
            IS_DELETE,
        ).localCheckpoint()
        changes = timeline_changes(events, _existing(target, events, shape.keys), shape)
        values = [field.name for field in shape.values]
        on = equal_keys(target, changes, shape.keys)
        start = quote(shape.valid_from)
        return MergePlan(
            target=target,
            spec=MergeSpec(
                on=f"{on} AND t.{start} = s.{start}",
                clauses=(
                    Matched(Delete(), f"s.{OPERATION} = '{REMOVE}'"),
                    Matched(set_to_source(*values)),
                    NotMatched(
                        insert_from_source(*shape.keys, shape.valid_from, *values),
                        f"s.{OPERATION} <> '{REMOVE}'",
                    ),
                ),
                evolve_schema=True,
            ),
            source=changes,
        )

    def _prepared(
        self, target: RecipeTable | None, source: DataFrame, *, case_sensitive: bool
    ) -> tuple[DataFrame, TimelineShape]:
        """Return the source with its sequence, and the table's columns."""

        def columns(names: Sequence[str], argument: str) -> tuple[str, ...]:
            return resolved(names, source.columns, argument, case_sensitive=case_sensitive)

        keys = columns(self.keys, "keys")
        rows, named = with_sequence(
            source, self.sequence_by, self.delete_when, case_sensitive=case_sensitive
        )
        left_out = {*keys, *columns(self.except_columns, "except_columns")}
        if not self.keeps_sequence_column:
            left_out.update(named)
        wanted = source.columns if self.columns is None else columns(self.columns, "columns")
        names = [name for name in wanted if name not in left_out]
        times = {self.valid_from, self.valid_to, self.is_current or self.valid_from, ROLE, ORIGINAL}
        if taken := sorted(times & {*names, *keys}):
            raise refused(
                f"The source has a column {taken[0]!r}, which the history itself fills. Leave it "
                "out, or name the history's columns otherwise.",
                column=taken[0],
            )
        tracked = columns(self.tracked or (), "tracked columns")
        untracked = frozenset(columns(self.untracked, "columns that are not tracked"))
        evolves = target is None or self.settings.evolve_schema
        data = [_field(target, rows, name) for name in names if evolves or _has(target, name)]
        return rows, TimelineShape(
            keys=keys,
            data=tuple(data),
            sequence=_kind(target, self.valid_from, rows.schema[SEQUENCE].dataType),
            tracked=frozenset(names if self.tracked is None else tracked) - untracked,
            valid_from=self.valid_from,
            valid_to=self.valid_to,
            is_current=self.is_current,
            null_keeps=self.null_keeps,
            remembers=self.remembers,
        )


def _has(target: RecipeTable | None, name: str) -> bool:
    return target is not None and target.has(name)


def _field(target: RecipeTable | None, rows: DataFrame, name: str) -> T.StructField:
    return T.StructField(name, _kind(target, name, rows.schema[name].dataType))


def _kind(target: RecipeTable | None, name: str, otherwise: T.DataType) -> T.DataType:
    known = None if target is None else target.type_of(name)
    return otherwise if known is None else known


def _existing(target: RecipeTable, events: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Return the rows of the table with a key of the events. Runs one job over the events.

    The bounds of the keys say which files are read.
    """
    rows, conditions = target.table.rows(), []
    bounded = [key for key in keys if has_bounds(target.schema[key].dataType)]
    asked = [F.count(F.lit(1)).alias("rows")]
    for n, key in enumerate(bounded):
        kind = target.schema[key].dataType
        value = to_driver(F.col(quote(key)).cast(kind), kind)
        asked += [F.min(value).alias(f"min{n}"), F.max(value).alias(f"max{n}")]
        asked.append(F.count(quote(key)).alias(f"count{n}"))
    [found] = events.agg(*asked).collect()
    for n, key in enumerate(bounded):
        kind, column = target.schema[key].dataType, F.col(quote(key))
        low, high = literal(found[f"min{n}"], kind), literal(found[f"max{n}"], kind)
        within = column.between(low, high)
        has_null = found[f"count{n}"] < found["rows"]
        conditions.append(within | column.isNull() if has_null else within)
    names = [_KEY.format(n) for n in range(len(keys))]
    wanted = events.select(
        *(F.col(quote(key)).alias(name) for key, name in zip(keys, names, strict=True))
    ).distinct()
    if found["rows"] <= _KEYS_BROADCAST_MAX:
        wanted = F.broadcast(wanted)
    equal = [
        F.col(quote(key)).eqNullSafe(F.col(name)) for key, name in zip(keys, names, strict=True)
    ]
    return rows.where(all_of(conditions)).join(wanted, all_of(equal), "left_semi")


class HistoryOptions(RecipeOptions, total=False):
    """Options of `scd2`."""

    tracked_columns: Sequence[str] | str
    """The columns whose change makes a new version; others change in the version in force."""
    untracked_columns: Sequence[str] | str
    """Alternative to the above: all columns except these make a new version."""
    except_columns: Sequence[str] | str
    """Columns of the source that the table does not get."""
    delete_when: str | Column
    """Where this condition on a source row is true, the row ends the version in force."""
    valid_from: str
    valid_to: str
    is_current: str
    """Names of the history's columns; these are the defaults."""
    remember_repeats: bool
    """Whether a row that repeats a known version is recorded (the default), so that a late row
    before it ends at the right time. Set it to False for snapshots that repeat themselves daily.
    """


def scd2(
    table: TableOrPath,
    source: DataFrame,
    keys: Sequence[str] | str,
    effective_at: str | Column | Sequence[str],
    **options: Unpack[HistoryOptions],
) -> ChangeResult:
    """Keep every version of a key, with its start, its end, and a flag for the current one.

    ``effective_at`` is the time from which a row is valid: a column of the source, several, or an
    expression. A version is valid from ``valid_from``, included, to ``valid_to``, excluded.
    ``valid_to`` is NULL in the version in force. A source may have many rows of a key, in any
    order: the result is that of all rows in order. Late rows split or shorten existing versions,
    and a repeated row changes nothing. Values are compared null-safely.

    The column ``__ROLE`` is NULL for versions. Other rows record events that left no version: the
    repeat of a version in force, or a delete of a missing key. They end at the time they begin,
    so that no query for a point in time, or on ``is_current``, returns them. Where
    some columns are not tracked, ``__ORIGINAL`` keeps their values from the row's own event.

    Source rows are joined with the existing versions of their keys; files that the bounds of
    the keys rule out are not read. The source is read once and kept on the executors meanwhile.
    Options: `HistoryOptions`.

    Raises:
        InvalidRequestError: ``effective_at`` is NULL somewhere
            (DELTA_SOURCE_SEQUENCE_IS_NULL), two different rows of a key share one
            (DELTA_SOURCE_SEQUENCE_AMBIGUOUS), or an argument is wrong. Nothing is changed.
        TableNotFoundError: there is no table, and ``create`` is not set.
        ConflictError: another writer changed data that this call read.

    Examples:
        >>> scd2("/data/customers", updates, "id", "updated_at", create=True)  # doctest: +SKIP
        ChangeResult(version=1, num_inserted_rows=12, ...)
    """
    return run_recipe(_recipe("scd2", keys, effective_at, options), table, source_of(source))


def plan_scd2(
    table: TableOrPath,
    source: DataFrame,
    keys: Sequence[str] | str,
    effective_at: str | Column | Sequence[str],
    **options: Unpack[HistoryOptions],
) -> MergePlan:
    """Return the MERGE of `scd2`; reads the source, and changes nothing."""
    return plan_recipe(_recipe("plan_scd2", keys, effective_at, options), table, source_of(source))


def _recipe(
    function: str,
    keys: Sequence[str] | str,
    effective_at: str | Column | Sequence[str],
    options: HistoryOptions,
) -> HistoryRecipe:
    require_options(function, options, HistoryOptions)
    tracked, untracked = options.get("tracked_columns"), options.get("untracked_columns")
    both_given(tracked_columns=tracked, untracked_columns=untracked)
    valid_from = options.get("valid_from", "valid_from")
    valid_to = options.get("valid_to", "valid_to")
    is_current = options.get("is_current", "is_current")
    if len({valid_from, valid_to, is_current}) < 3:  # noqa: PLR2004
        raise refused("valid_from, valid_to and is_current must be three columns.")
    return HistoryRecipe(
        settings=TableSettings.of(options),
        keys=keys_of(keys),
        sequence_by=sequence_of(effective_at, "effective_at"),
        delete_when=condition_of(options.get("delete_when"), "delete_when"),
        except_columns=names_of(options.get("except_columns"), "except_columns"),
        tracked=None if tracked is None else names_of(tracked, "tracked_columns"),
        untracked=names_of(untracked, "untracked_columns"),
        remembers=bool(options.get("remember_repeats", True)),
        valid_from=valid_from,
        valid_to=valid_to,
        is_current=is_current,
    )


def sequence_of(
    given: str | Column | Sequence[str], argument: str
) -> str | Column | tuple[str, ...]:
    """Return the sort key of events: a column or expression, or names of columns.

    Raises:
        InvalidRequestError: it is none of these.
    """
    if isinstance(given, str | Column):
        return given
    names = names_of(given, argument)
    if not names:
        raise refused(f"{argument} is empty. Name the columns that order the rows of a key.")
    return names
