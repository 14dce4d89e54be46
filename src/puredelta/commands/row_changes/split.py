"""From positions to files: which are rewritten, which vanish, and the copy of the rest."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from pyspark.sql import SparkSession
from typing_extensions import assert_never

from puredelta.commands.row_changes.plan import SearchPlan
from puredelta.commands.row_changes.positions import RowPositions
from puredelta.log.files.row_counts import physical_rows
from puredelta.log.replay.snapshot import Snapshot
from puredelta.log.vectors.read import read_positions
from puredelta.protocol.actions.actions import Add
from puredelta.protocol.table.table_config import TableConfig
from puredelta.spark.rewrite.arrow_rewriter import ArrowRewriter
from puredelta.spark.rewrite.contract import RewriteOrder, Rewriter, Rewritten
from puredelta.spark.rewrite.spark_rewriter import SparkRewriter
from puredelta.spark.session.fallback import NotApplicable
from puredelta.spark.session.row_bitmap import RowBitmap
from puredelta.store.base import Store

logger = logging.getLogger(__name__)

_DEAD_BYTES_MIN = 8 * 1024 * 1024
"""What every later reader must pass over before a copy, one task more, is worth its while."""
_DEAD_PER_LIVE_ROW_MIN = 2
"""A copy then writes half of what it spares the next reader, and less."""


class RewriteStrategy(Enum):
    """How the rows are kept that no clause took out of a touched file."""

    COPY_ON_WRITE = "copied to new files"
    DELETION_VECTORS = "left where they are, the others under a deletion vector"
    PER_FILE = "file by file, whichever costs less"


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


def uses_deletion_vectors(config: TableConfig) -> bool:
    """Tell whether the table wants deletion vectors instead of copies (M-130)."""
    return config.supports("deletionVectors") and config.properties.enable_deletion_vectors


def plan_split(
    plan: SearchPlan,
    positions: RowPositions,
    *,
    root_uri: str,
    keeping: RewriteStrategy = RewriteStrategy.COPY_ON_WRITE,
) -> SplitPlan:
    """Join the rows to drop with those already deleted, file by file.

    Reads the vectors of touched files, nothing else.
    """
    touched = positions.touched()
    numbers = sorted(touched)
    files = plan.candidates.take(numbers)
    deleted = read_positions(files, root_uri)
    orders: list[RewriteOrder] = []
    hidden: list[RewriteOrder] = []
    emptied: list[Add] = []
    for at, (number, add) in enumerate(zip(numbers, files.adds(), strict=True)):
        dropped = touched[number]
        if at in deleted:
            dropped |= RowBitmap.of_rows(deleted[at])
        if _loses_every_row(add, dropped):
            emptied.append(add)
        elif _is_copied(add, dropped, keeping):
            orders.append(RewriteOrder(add=add, dropped=dropped))
        else:
            hidden.append(RewriteOrder(add=add, dropped=dropped))
    return SplitPlan(orders=tuple(orders), hidden=tuple(hidden), emptied=tuple(emptied))


def _is_copied(add: Add, dropped: RowBitmap, keeping: RewriteStrategy) -> bool:
    match keeping:
        case RewriteStrategy.COPY_ON_WRITE:
            return True
        case RewriteStrategy.DELETION_VECTORS:
            return False
        case RewriteStrategy.PER_FILE:
            rows = physical_rows(add)
            if not rows:
                return False
            dead, live = len(dropped), rows - len(dropped)
            return (
                dead >= _DEAD_PER_LIVE_ROW_MIN * live
                and add.size_bytes * dead // rows >= _DEAD_BYTES_MIN
            )
        case _:
            assert_never(keeping)


def _loses_every_row(add: Add, dropped: RowBitmap) -> bool:
    """Tell from the log alone; only a count that the positions themselves confirm is taken."""
    rows = physical_rows(add)
    return rows is not None and len(dropped) == rows and dropped.last == rows - 1


def rewrite_files(rewriters: Sequence[Rewriter], split: SplitPlan) -> Rewritten:
    """Copy what stays with the first rewriter that can. Runs one Spark job."""
    for rewriter in rewriters:
        match rewriter.rewrite(split.orders):
            case Rewritten() as done:
                return done
            case NotApplicable() as refused:
                log_refusal(rewriter, refused)
    raise RuntimeError("the last rewriter refuses nothing")


def log_refusal(rewriter: Rewriter, refused: NotApplicable) -> None:
    """Say that another way to copy is taken, and why."""
    logger.warning("%s cannot copy here: %s", type(rewriter).__name__, refused.reason)


def rewriters_of(
    spark: SparkSession, store: Store, snapshot: Snapshot
) -> tuple[ArrowRewriter, SparkRewriter]:
    """Return the ways to copy, the fastest first."""
    return (
        ArrowRewriter(spark=spark, store=store, config=snapshot.config),
        SparkRewriter(spark=spark, store=store, snapshot=snapshot),
    )
