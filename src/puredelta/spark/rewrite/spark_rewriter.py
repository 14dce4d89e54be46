"""Rewrites files without some of their rows by letting Spark read and write them.

The other implementation of `puredelta.spark.rewrite.contract.Rewriter`: slower, but it needs no
Python workers, reaches whatever storage the JVM reaches and rewrites any type Spark knows.
Copied rows are not checked against constraints: they were in the table before (W-17).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from puredelta.log.files.file_table import FileTable
from puredelta.log.replay.snapshot import Snapshot
from puredelta.protocol.table.row_tracking import tracked_columns
from puredelta.spark.rewrite.contract import RewriteOrder, Rewritten
from puredelta.spark.scan.bitmaps import mark_rows
from puredelta.spark.scan.row_tracking_scan import hidden_row_columns, tracked_scan
from puredelta.spark.scan.scan import scan
from puredelta.spark.session.helper_columns import FILE_ORDINAL, MARK, ROW_INDEX
from puredelta.spark.session.types import quoted
from puredelta.spark.write.writer import JobOptions, write_rows
from puredelta.spark.write.written_files import WriteResult, discard
from puredelta.store.base import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkRewriter:
    """Rewrites files of one snapshot for one command."""

    spark: SparkSession
    store: Store
    snapshot: Snapshot
    _written: list[WriteResult] = field(default_factory=list, init=False)

    def rewrite(self, orders: Sequence[RewriteOrder]) -> Rewritten:
        """Rewrite all files in one Spark job; rows keep their partition, not their file."""
        files = FileTable.of(order.add for order in orders)
        config = self.snapshot.config
        tracked = tracked_columns(config)
        if tracked is None:
            rows = scan(self.spark, self.snapshot, files, with_position=True)
        else:
            names = config.schema.names
            rows = tracked_scan(self.spark, self.snapshot, files, tracked, columns=names)
        hidden = hidden_row_columns(tracked)
        dropped = {number: order.dropped for number, order in enumerate(orders)}
        marked = mark_rows(rows, {MARK: dropped}, file=FILE_ORDINAL, row=ROW_INDEX)
        kept = marked.where(~F.col(MARK)).select(
            *(F.col(quoted(name)) for name in config.schema.names), *hidden
        )
        result = write_rows(
            kept,
            store=self.store,
            config=config,
            options=JobOptions(
                enforce_constraints=False,
                rebalance=bool(config.partition_columns),
                hidden=hidden,
            ),
        )
        self._written.append(result)
        return Rewritten(adds=result.adds, num_rows=result.num_rows)

    def discard(self) -> None:
        """Delete every file written so far."""
        for result in self._written:
            discard(result, self.store)
