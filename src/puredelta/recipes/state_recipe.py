"""A type 1 table as one MERGE: the newest event of a key is its row, deleted keys are remembered.

A row has the sequence of the event that it shows. A deleted key keeps a row without values, so
that an older event that arrives later finds out that it is too late.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from puredelta.commands.dml.spec.merge import (
    Assignment,
    Clause,
    Delete,
    Matched,
    MergeSpec,
    NotMatched,
    NotMatchedBySource,
    Update,
)
from puredelta.recipes.arguments import TableSettings, refused
from puredelta.recipes.partial_updates import (
    DELETED_AT,
    SET_AT,
    TRUNCATE,
    KnownState,
    is_deleted_text,
    merged_text,
    newest_values,
    truncated_row,
)
from puredelta.recipes.plan import MergePlan, equal_keys, insert_from_source
from puredelta.recipes.source_rows import IS_DELETE, SEQUENCE, latest_rows, with_sequence
from puredelta.recipes.target import RecipeTable, resolved
from puredelta.recipes.truncation import (
    TRUNCATED_AT,
    TruncatedEvents,
    after_stored_truncates,
    truncate_events,
)
from puredelta.recipes.values import equal_is_same
from puredelta.spark.session.identifiers import quote

ROW_SEQUENCE = "__SEQUENCE"
"""The sequence of the event that the row shows."""
DELETED = "__DELETED"
"""Whether the row stands for a key that is deleted."""
_STATE = (ROW_SEQUENCE, DELETED, DELETED_AT, SET_AT, TRUNCATED_AT)


@dataclass(frozen=True, slots=True, kw_only=True)
class StateRecipe:
    """The newest state of keys, as it was asked for."""

    settings: TableSettings
    keys: tuple[str, ...]
    sequence_by: str | Column | tuple[str, ...]
    delete_when: str | Column | None = None
    truncate_when: str | Column | None = None
    null_keeps: bool = False
    columns: tuple[str, ...] | None = None
    """None: all of the source but ``except_columns``."""
    except_columns: tuple[str, ...] = ()

    def new_columns(self, source: DataFrame) -> T.StructType:
        """Return keys, data and the columns of state."""
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
        """Return what a truncate does to rows that no event of the source is about.

        The row that remembers this very truncate, or a newer one, stays.
        """
        if not target.has(ROW_SEQUENCE):  # nobody knows how old its rows are
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
    """Return the keys where setting them, too, changes nothing.

    An update that sets every column makes its row of the source's row alone: nothing is joined.
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
