"""Other rows in the place of a statement's target and source."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from puredelta.spark.resolve.frames import Frames, SourceColumn
from puredelta.spark.session.helper_columns import NO_SOURCE_COLUMN


@dataclass(frozen=True, slots=True, kw_only=True)
class StatementFrames:
    """Frames over which the Columns of a `ResolvedStatement` are evaluated; runs no job.

    Helper columns of the rows given pass through and are referred to by name; columns of
    target and source only through `target_column` and `source_column`. After a ``select``
    or an aggregation a frame is an ordinary DataFrame again.
    """

    frames: Frames
    source_columns: tuple[SourceColumn, ...]
    """What the statement refers to."""

    def staging(self, source_rows: DataFrame) -> DataFrame:
        """Return the referenced columns of the user's source under their staged names.

        A source of which nothing is read still has rows: it gets one constant column.
        """
        every = [c.staged for c in self.frames.source_columns]
        if not self.source_columns:
            return source_rows.select(F.lit(True).alias(NO_SOURCE_COLUMN))  # noqa: FBT003
        renamed, wanted = source_rows.toDF(*every), [c.staged for c in self.source_columns]
        return renamed if wanted == every else renamed.select(*wanted)

    def source(self, rows: DataFrame) -> DataFrame:
        """Give rows with (some of) the staged columns the identity of the source."""
        return self.frames.source(rows)

    def target(self, rows: DataFrame) -> DataFrame:
        """Give rows with (some of) the table's columns the identity of the target."""
        return self.frames.target(rows)

    def source_column(self, staged: str) -> Column:
        """Return a column of ``source(...)``."""
        return self.frames.source_column(staged)

    def target_column(self, name: str) -> Column:
        """Return a column of ``target(...)``, named as the schema spells it."""
        return self.frames.target_column(name)
