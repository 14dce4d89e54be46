"""From positions to files: which are rewritten, which vanish, and the copy of the rest."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from pyspark.sql import SparkSession

from puredelta.commands.row_changes.plan import SearchPlan
from puredelta.commands.row_changes.positions import Positions
from puredelta.log.deletion_vectors import read_positions
from puredelta.log.row_counts import physical_rows
from puredelta.log.snapshot import Snapshot
from puredelta.protocol.actions import Add
from puredelta.protocol.table_config import TableConfig
from puredelta.spark.copy_rewrite import SparkCopier
from puredelta.spark.file_splitter import ArrowSplitter
from puredelta.spark.rewriting import Refused, RewriteOrder, Rewriter, Rewritten
from puredelta.spark.row_bitmap import RowBitmap
from puredelta.store.base import Store

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SplitPlan:
    """What happens to the touched files: those some clause fired in (M-82, W-3)."""

    orders: tuple[RewriteOrder, ...] = ()
    """Files of which rows stay and are copied."""
    hidden: tuple[RewriteOrder, ...] = ()
    """Files of which rows stay where they are, the others under a deletion vector (M-131)."""
    emptied: tuple[Add, ...] = ()
    """Files that lose every row: no task, no new file (M-83, M-133)."""

    @property
    def touched(self) -> tuple[Add, ...]:
        """Every file that leaves the table as it was."""
        return (*(order.add for order in (*self.orders, *self.hidden)), *self.emptied)


def hides_rows(config: TableConfig) -> bool:
    """Tell whether the table wants deletion vectors instead of copies (M-130)."""
    return config.supports("deletionVectors") and config.properties.enable_deletion_vectors


def plan_split(
    plan: SearchPlan, positions: Positions, *, root_uri: str, hides: bool = False
) -> SplitPlan:
    """Join the rows to drop with those already deleted, file by file.

    ``hides``: rows are hidden by deletion vectors, nothing is copied. Reads the vectors of
    touched files, nothing else.
    """
    touched = positions.touched()
    numbers = sorted(touched)
    files = plan.candidates.take(numbers)
    deleted = read_positions(files, root_uri)
    orders: list[RewriteOrder] = []
    emptied: list[Add] = []
    for at, (number, add) in enumerate(zip(numbers, files.adds(), strict=True)):
        dropped = touched[number]
        if at in deleted:
            dropped |= RowBitmap.of_rows(deleted[at])
        if _loses_every_row(add, dropped):
            emptied.append(add)
        else:
            orders.append(RewriteOrder(add=add, dropped=dropped))
    if hides:
        return SplitPlan(hidden=tuple(orders), emptied=tuple(emptied))
    return SplitPlan(orders=tuple(orders), emptied=tuple(emptied))


def _loses_every_row(add: Add, dropped: RowBitmap) -> bool:
    """Tell from the log alone; only a count that the positions themselves confirm is taken."""
    rows = physical_rows(add)
    return rows is not None and len(dropped) == rows and dropped.last == rows - 1


def rewrite_files(rewriters: tuple[Rewriter, ...], split: SplitPlan) -> Rewritten:
    """Copy what stays with the first rewriter that can. One Spark job, none if nothing stays."""
    if not split.orders:
        return Rewritten(adds=(), num_rows=0)
    for rewriter in rewriters:
        match rewriter.rewrite(split.orders):
            case Rewritten() as done:
                return done
            case Refused(reason=reason):
                logger.warning("%s cannot copy here: %s", type(rewriter).__name__, reason)
    raise RuntimeError("the last rewriter refuses nothing")


def rewriters_of(spark: SparkSession, store: Store, snapshot: Snapshot) -> tuple[Rewriter, ...]:
    """Return the ways to copy, the fastest first."""
    return (
        ArrowSplitter(spark=spark, store=store, config=snapshot.config),
        SparkCopier(spark=spark, store=store, snapshot=snapshot),
    )
