"""The files one statement writes: changed rows and copies, at the same time."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial

from pyspark.sql import DataFrame

from puredelta.commands.row_changes.changes import ChangePlan, changed_rows
from puredelta.commands.row_changes.context import ChangeContext
from puredelta.commands.row_changes.plan import SearchPlan
from puredelta.commands.row_changes.positions import Positions
from puredelta.commands.row_changes.split import SplitPlan, rewrite_files, rewriters_of
from puredelta.errors import DeltaError
from puredelta.protocol.actions import Add
from puredelta.spark.rewriting import Rewriter, Rewritten
from puredelta.spark.together import run_together
from puredelta.spark.writer import WriteResult, discard, write_rows

logger = logging.getLogger(__name__)


class StatementFiles:
    """What has been written so far, until it is committed or discarded."""

    def __init__(self, context: ChangeContext, *, rebalance: bool) -> None:
        self._context = context
        self._rebalance = rebalance
        self._rewriters: tuple[Rewriter, ...] = rewriters_of(
            context.spark, context.log.store, context.snapshot
        )
        self.written = WriteResult(directory="", adds=(), num_rows=0)
        self.copied = Rewritten(adds=(), num_rows=0)

    @property
    def adds(self) -> tuple[Add, ...]:
        """The new data files."""
        return (*self.written.adds, *self.copied.adds)

    def write(
        self, plan: SearchPlan, positions: Positions, changes: ChangePlan, split: SplitPlan
    ) -> None:
        """Write changed rows and copy the others. Two Spark jobs or more."""
        rows = changed_rows(self._context, plan, positions, changes)
        if rows is None:
            self._copy(split)
        elif not split.orders:
            self._write(rows, changes)
        else:
            run_together(
                self._context.spark,
                partial(self._copy, split),
                partial(self._write, rows, changes),
            )

    def _copy(self, split: SplitPlan) -> None:
        self.copied = rewrite_files(self._rewriters, split)

    def _write(self, rows: DataFrame, changes: ChangePlan) -> None:
        config = self._context.statement.config
        scattered = bool(changes.from_target)  # a task per touched file would write a file each
        self.written = write_rows(
            rows,
            store=self._context.log.store,
            config=config,
            rebalance=scattered or (bool(config.partition_columns) and self._rebalance),
        )

    def discard(self) -> None:
        """Remove everything written."""
        store = self._context.log.store
        if self.written.adds:
            remove_quietly(partial(discard, self.written, store))
        for rewriter in self._rewriters:
            remove_quietly(rewriter.discard)


def remove_quietly(remove: Callable[[], None]) -> None:
    """Clean up; what cannot be removed is left for VACUUM and must hide no error."""
    try:
        remove()
    except (OSError, DeltaError) as failure:
        logger.warning("Files of a statement could not be removed: %s", failure)
