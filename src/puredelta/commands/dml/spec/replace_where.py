"""What the user asked ``replaceWhere`` to do: delete the rows of a condition, insert new ones."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import functions as F

from puredelta.commands.dml.spec.merge import (
    Assignment,
    Delete,
    Insert,
    MergeSpec,
    NotMatched,
    NotMatchedBySource,
    Star,
)
from puredelta.protocol.actions.operations import Operation
from puredelta.spark.session.types import quoted

TARGET, SOURCE = "__puredelta_old", "__puredelta_new"
"""The aliases of the table and of the new rows in the MERGE that `ReplaceSpec` stands for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplaceSpec:
    """New rows, which are the source, take the place of the old rows of a condition."""

    where: str
    columns: tuple[str, ...]
    """The names of the new rows' columns."""
    evolves: bool
    """Whether columns that only the new rows have are added to the table."""
    operation: Operation
    """What the history calls the write."""

    def as_merge(self) -> MergeSpec:
        """Return the MERGE that matches nothing: new rows are inserted, old ones deleted."""
        values = tuple(
            Assignment(quoted(name), f"{SOURCE}.{quoted(name)}") for name in self.columns
        )
        return MergeSpec(
            on=F.lit(False),  # noqa: FBT003 - that is the value
            clauses=(
                NotMatched(Insert(Star.STAR if self.evolves else values), None),
                NotMatchedBySource(Delete(), self.where),
            ),
            evolve_schema=self.evolves,
        )
