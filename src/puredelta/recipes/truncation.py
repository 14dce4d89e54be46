"""Truncates among the events of a type 1 table: everything before them is gone, late events too.

The row of a truncate's own key keeps the sequence of the truncate. Statistics say which files
have such a row, so that looking for them reads next to nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql import types as T

from puredelta.recipes.source_rows import IS_DELETE, SEQUENCE
from puredelta.recipes.target import RecipeTable
from puredelta.recipes.values import is_true, literal, to_driver
from puredelta.spark.session.identifiers import quote

TRUNCATED_AT = "__TRUNCATED_AT"
_LIMIT = "__recipe_limit"


@dataclass(frozen=True, slots=True, kw_only=True)
class TruncatedEvents:
    """Events that no truncate covers."""

    events: DataFrame
    """With `TRUNCATED_AT`: the sequence of the newest truncate of the row's key, if it has one."""
    newest: Column | None
    """The sequence of the newest truncate among the events, None if there is none."""


def truncate_events(
    events: DataFrame,
    is_truncate: str | Column,
    keys: Sequence[str],
    target: RecipeTable,
    sequence: T.DataType,
) -> TruncatedEvents:
    """Drop what a truncate covers, one of these events or an older one of the table.

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
    """Drop events that a truncate of the table covers; the MERGE depends on there being no other.

    The truncates are read as part of the source, from the very version that is merged into.
    """
    known = target.table.rows().where(F.col(TRUNCATED_AT).isNotNull())
    limit = known.agg(F.max(TRUNCATED_AT).alias(_LIMIT))
    after = F.col(_LIMIT).isNull() | F.col(SEQUENCE).isNull() | (F.col(SEQUENCE) > F.col(_LIMIT))
    return events.crossJoin(F.broadcast(limit)).where(after).drop(_LIMIT)
