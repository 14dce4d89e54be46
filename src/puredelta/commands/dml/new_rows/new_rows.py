"""Stage 7: the new rows, and the change rows, that the write job stores.

Where new rows are rows of the source as they are, workers can copy them. Otherwise, or where
workers turn out to be unable to, Spark computes a frame. The frame is made when it is needed:
its analysis then runs beside the copy of touched files.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from pyspark.sql import DataFrame

from puredelta.commands.dml.decide.decide import Decision
from puredelta.commands.dml.new_rows.frame import frame_of_new_rows
from puredelta.commands.dml.new_rows.source_copy import copied_rows
from puredelta.commands.dml.prune.plan import SearchPlan
from puredelta.commands.dml.source.context import StatementContext
from puredelta.spark.offload.source_copy import SourceCopy


@dataclass(frozen=True, slots=True, kw_only=True)
class NewRows:
    """What is to be written beside the copies of touched files."""

    frame: Callable[[], DataFrame] | None = field(default=None, repr=False)
    """Makes the frame; ``None`` if nothing is to be written."""
    copy: SourceCopy | None = None
    """The same rows as rows of the source, if they are."""

    def describe(self) -> str:
        """Return one line for the log."""
        if self.frame is None:
            return "no new row"
        return "rows of the source" if self.copy is not None else "computed by Spark"


def new_rows(context: StatementContext, plan: SearchPlan, decision: Decision) -> NewRows:
    """Prepare the rows that were decided on; runs nothing."""
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
