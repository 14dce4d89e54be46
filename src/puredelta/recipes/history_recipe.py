"""A type 2 table as one MERGE: events of a source become versions of keys."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from puredelta.commands.dml.spec.merge import Delete, Matched, MergeSpec, NotMatched
from puredelta.recipes.arguments import TableSettings, refused
from puredelta.recipes.plan import MergePlan, equal_keys, insert_from_source, set_to_source
from puredelta.recipes.source_rows import IS_DELETE, SEQUENCE, with_sequence
from puredelta.recipes.target import RecipeTable, resolved
from puredelta.recipes.timeline import (
    OPERATION,
    ORIGINAL,
    REMOVE,
    ROLE,
    TimelineShape,
    timeline_changes,
)
from puredelta.recipes.values import all_of, has_bounds, literal, to_driver
from puredelta.spark.session.identifiers import quote

_KEYS_BROADCAST_MAX = 200_000
"""Keys up to which every task gets all of them, so that the table need not be shuffled."""
_KEY = "__recipe_key_{}"


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryRecipe:
    """A history of keys, as it was asked for."""

    settings: TableSettings
    keys: tuple[str, ...]
    sequence_by: str | Column | tuple[str, ...]
    delete_when: str | Column | None = None
    columns: tuple[str, ...] | None = None
    """None: all of the source but ``except_columns``."""
    except_columns: tuple[str, ...] = ()
    tracked: tuple[str, ...] | None = None
    untracked: tuple[str, ...] = ()
    keeps_sequence_column: bool = False
    """Whether columns that are the sequence are data, too."""
    null_keeps: bool = False
    remembers: bool = True
    valid_from: str = "valid_from"
    valid_to: str = "valid_to"
    is_current: str | None = "is_current"

    def new_columns(self, source: DataFrame) -> T.StructType:
        """Return keys, data, times and the columns of state."""
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
