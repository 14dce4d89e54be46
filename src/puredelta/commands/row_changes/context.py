"""What every stage of a statement works with, and the frames its expressions are read over."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession

from puredelta.commands.row_changes.source import StagedSource
from puredelta.commands.row_changes.statement import ResolvedStatement
from puredelta.log.files.file_table import FileTable
from puredelta.log.replay.snapshot import Snapshot
from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.table.row_tracking import RowTrackingColumns, tracked_columns
from puredelta.spark.scan.row_tracking_scan import tracked_scan
from puredelta.spark.scan.scan import scan


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeContext:
    """One statement on one snapshot: nothing here changes while it runs."""

    spark: SparkSession
    log: TableLog
    snapshot: Snapshot
    statement: ResolvedStatement
    source: StagedSource

    @property
    def tracked(self) -> RowTrackingColumns | None:
        """Where rows keep their ids, if the table tracks rows (M-110)."""
        return tracked_columns(self.snapshot.config)

    def target_rows(
        self, files: FileTable, columns: Collection[str], *, with_row_ids: bool = False
    ) -> DataFrame:
        """Scan ``columns`` of ``files`` with positions (`FILE_ORDINAL`, `ROW_INDEX`).

        ``with_row_ids`` adds `ROW_ID`, for a table that tracks rows. Not a frame of the
        statement yet: helper columns may be added before `target_frame`.
        """
        wanted = [name for name in self.snapshot.config.schema.names if name in columns]
        if with_row_ids and self.tracked is not None:
            return tracked_scan(self.spark, self.snapshot, files, self.tracked, columns=wanted)
        return scan(self.spark, self.snapshot, files, columns=wanted, with_position=True)

    def target_frame(self, files: FileTable, columns: Collection[str]) -> DataFrame:
        """Return the same under the user's names and aliases."""
        return self.statement.frames.target(self.target_rows(files, columns))

    def source_frame(self, columns: Collection[str]) -> DataFrame:
        """Return staged columns with positions (`SOURCE_FILE`, `SOURCE_ROW`), as the user
        knows them.
        """
        return self.statement.frames.source(self.source.rows(self.spark, columns))
