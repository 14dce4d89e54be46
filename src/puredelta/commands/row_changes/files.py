"""The files one statement writes: changed rows and copies, at the same time."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from puredelta.commands.row_changes.changed_rows import changed_rows
from puredelta.commands.row_changes.changes import ChangePlan
from puredelta.commands.row_changes.context import ChangeContext
from puredelta.commands.row_changes.counts import FileCounts, count_files
from puredelta.commands.row_changes.gathered import gathered_rows
from puredelta.commands.row_changes.plan import SearchPlan, reads_little
from puredelta.commands.row_changes.positions import RowPositions
from puredelta.commands.row_changes.split import (
    SplitPlan,
    log_refusal,
    rewrite_files,
    rewriters_of,
)
from puredelta.errors import DeltaError
from puredelta.log.vectors.write import (
    DeletionVectorUpdate,
    WrittenVectors,
    discard_vectors,
    write_vectors,
)
from puredelta.protocol.actions.actions import Add, Remove
from puredelta.protocol.table.stats import without_statistics
from puredelta.spark.offload.source_copy import COPY_CODECS, plan_copy
from puredelta.spark.offload.write_job import WritePlan, write_alone, write_both
from puredelta.spark.rewrite.contract import RewriteOrder, Rewriter, Rewriting, Rewritten
from puredelta.spark.session.concurrent_jobs import run_concurrently
from puredelta.spark.session.fallback import NotApplicable
from puredelta.spark.session.helper_columns import ROW_ID
from puredelta.spark.session.session import is_connect
from puredelta.spark.write.writer import write_rows
from puredelta.spark.write.written_files import WriteResult, discard

logger = logging.getLogger(__name__)


class StatementFiles:
    """What has been written so far, until it is committed or discarded."""

    def __init__(
        self,
        context: ChangeContext,
        *,
        rebalance: bool,
        collects_statistics: bool = True,
        codec: str | None = None,
    ) -> None:
        """``codec``: of files that Spark does not write, ``None`` if it shall write all."""
        self._context = context
        self._codec = codec
        self._rebalance = rebalance
        self._collects_statistics = collects_statistics
        self._splitter, self._copier = rewriters_of(
            context.spark, context.log.store, context.snapshot
        )
        self._rewriters: tuple[Rewriter, ...] = (self._splitter, self._copier)
        self.written = WriteResult.nothing()
        self.copied = Rewritten(adds=(), num_rows=0)
        self.vectors = WrittenVectors()

    @property
    def adds(self) -> tuple[Add, ...]:
        """The new data files."""
        return (*self.written.adds, *self.copied.adds)

    def write(
        self, plan: SearchPlan, positions: RowPositions, changes: ChangePlan, split: SplitPlan
    ) -> None:
        """Write changed rows, and keep the others: copied, or left where they are where deletion
        vectors hide what changed. Runs one Spark job where workers do both, else two at a time.
        """
        if changes.is_empty:
            self._keep(split)
            return
        gathering = self._gathering(positions, changes)
        if gathering is not None and split.orders:
            copied, written = write_both(
                self._context.spark.sparkContext, self._splitter.plan(split.orders), gathering
            )
            if self._has_copied(copied):
                split = replace(split, orders=())
            if self._has_gathered(written):
                self._keep(split)
                return
            gathering = None
        # The copy runs while Spark analyses and plans what makes the new rows.
        write = partial(self._write, plan, positions, changes, split, gathering)
        if not split.orders and not split.hidden:
            write()
        else:
            run_concurrently(self._context.spark, partial(self._keep, split), write)

    def _keep(self, split: SplitPlan) -> None:
        if split.orders:
            self.copied = rewrite_files(self._rewriters, split)
        self.vectors = write_vectors(
            map(_hidden_rows, split.hidden),
            store=self._context.log.store,
            config=self._context.statement.config,
        )

    def _write(
        self,
        plan: SearchPlan,
        positions: RowPositions,
        changes: ChangePlan,
        split: SplitPlan,
        gathering: WritePlan[WriteResult | NotApplicable] | None,
    ) -> None:
        if gathering is not None and self._has_gathered(
            write_alone(self._context.spark.sparkContext, gathering)
        ):
            return
        rows = changed_rows(self._context, plan, positions, changes)
        config = self._context.statement.config
        # A task per touched file would write a file each.
        scattered = bool(changes.from_target) or changes.recorded
        gathers = scattered or (bool(config.partition_columns) and self._rebalance)
        alone = gathers and self._reads_little(split if scattered else None)
        self.written = write_rows(
            rows.coalesce(1) if alone else rows,
            store=self._context.log.store,
            config=config if self._collects_statistics else without_statistics(config),
            rebalance=gathers and not alone,
            with_changes=changes.recorded,
            hidden=self._hidden_columns(changes),
        )

    def _gathering(
        self, positions: RowPositions, changes: ChangePlan
    ) -> WritePlan[WriteResult | NotApplicable] | None:
        """Plan to write new rows that are rows of the source; ``None``: Spark makes them."""
        context, config = self._context, self._context.statement.config
        if self._codec is None or is_connect(context.spark):
            return None
        codec = COPY_CODECS.get(config.properties.compression_codec or self._codec)
        if codec is None:
            return None
        selection = gathered_rows(context, positions, changes)
        if selection is None:
            return None
        if selection.num_partition_columns and not self._reads_little(None):
            return None  # several tasks would write a file each for every partition
        return plan_copy(
            selection,
            store=context.log.store,
            config=config if self._collects_statistics else without_statistics(config),
            codec=codec,
            parallelism=context.spark.sparkContext.defaultParallelism,
        )

    def _has_copied(self, copied: Rewriting) -> bool:
        if isinstance(copied, NotApplicable):
            log_refusal(self._splitter, copied)
            self._rewriters = (self._copier,)
            return False
        self.copied = copied
        return True

    def _has_gathered(self, written: WriteResult | NotApplicable) -> bool:
        if isinstance(written, NotApplicable):
            logger.info("Spark writes the new rows: %s", written.reason)
            return False
        self.written = written
        return True

    def _reads_little(self, split: SplitPlan | None) -> bool:
        """Tell whether one task makes the new rows of the source, and of touched files, soon."""
        staged = self._context.source.staged
        sizes = [] if split is None else [add.size_bytes for add in split.touched]
        sizes += [] if staged is None else [file.size_bytes for file in staged.files]
        return reads_little(sizes)

    def _hidden_columns(self, changes: ChangePlan) -> Mapping[str, str]:
        """Return what new files hold beside the table's columns: ids of updated rows (M-110).

        When the rows changed last, the log says of the whole file.
        """
        tracked = self._context.tracked
        return {} if tracked is None or not changes.keeps_row_ids else {ROW_ID: tracked.row_id}

    def counts(self, removes: Sequence[Remove]) -> FileCounts:
        """Count the files of the commit that has these removes."""
        return count_files(
            removes=removes,
            added=self.adds,
            kept=self.vectors.adds,
            changes=self.written.changes,
        )

    def discard(self) -> None:
        """Remove everything written."""
        store = self._context.log.store
        remove_quietly(partial(discard, self.written, store))
        remove_quietly(partial(discard_vectors, self.vectors, store))
        for rewriter in (self._splitter, self._copier):
            remove_quietly(rewriter.discard)


def _hidden_rows(order: RewriteOrder) -> DeletionVectorUpdate:
    return DeletionVectorUpdate(file=order.add, rows=order.dropped.rows().astype(np.uint64))


def remove_quietly(remove: Callable[[], None]) -> None:
    """Clean up; what cannot be removed is left for VACUUM and must hide no error."""
    try:
        remove()
    except (OSError, DeltaError) as failure:
        logger.warning("Files of a statement could not be removed: %s", failure)
