"""Partial updates and truncates as events of a type 1 table.

A column shows the newest value that is not NULL and not older than the last delete. The row
stores the time of each of its columns, so the result does not depend on the order of events.

The row of a truncate's own key keeps the sequence of the truncate. Statistics tell which files
have such a row, so the search for truncates reads very little.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql import types as T

from puredelta.recipes.arguments import (
    all_of,
    any_of,
    holds_null,
    is_true,
    literal,
    same,
    to_driver,
)
from puredelta.recipes.source_rows import (
    BAD,
    IS_DELETE,
    SEQUENCE,
    refuse_bad_sequences,
)
from puredelta.recipes.target import RecipeTable
from puredelta.spark.session.names import quote

SET_AT = "__SET_AT"
"""A struct: for each column the sequence of the event that set it."""
DELETED_AT = "__DELETED_AT"
"""The sequence of the newest delete of the key."""
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


TRUNCATED_AT = "__TRUNCATED_AT"
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
