"""What stages 4 to 10 work with: one statement on one snapshot, and its source."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession

from puredelta.commands.command import Command
from puredelta.commands.dml.resolve.statement import ResolvedStatement
from puredelta.commands.dml.source.staged_source import StagedSource
from puredelta.commands.dml.spec.settings import ExecutionSettings
from puredelta.commands.dml.spec.statistics import StatisticsPrefetch
from puredelta.log.files.file_table import FileTable
from puredelta.log.replay.snapshot import Snapshot
from puredelta.protocol.table.row_tracking import RowTrackingColumns, tracked_columns
from puredelta.spark.scan.row_tracking_scan import tracked_scan
from puredelta.spark.scan.scan import scan
from puredelta.store.base import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class StatementContext:
    """One statement on one snapshot: nothing here changes while the statement runs."""

    command: Command
    settings: ExecutionSettings
    statement: ResolvedStatement
    source: StagedSource
    statistics: StatisticsPrefetch
    """Of the snapshot's files, being parsed."""

    def describe(self) -> str:
        """Return one line for the log."""
        return self.source.describe()

    @property
    def spark(self) -> SparkSession:
        """The session that runs the statement."""
        return self.command.spark

    @property
    def snapshot(self) -> Snapshot:
        """The version that the statement reads."""
        return self.command.snapshot

    @property
    def store(self) -> Store:
        """Where the table's files lie."""
        return self.command.log.store

    @property
    def tracked(self) -> RowTrackingColumns | None:
        """Where rows keep their ids, if the table tracks rows (M-110)."""
        return tracked_columns(self.snapshot.config)

    def target_rows(
        self, files: FileTable, columns: Collection[str], *, with_row_ids: bool = False
    ) -> DataFrame:
        """Scan ``columns`` of ``files`` with positions (`FILE_ORDINAL`, `ROW_INDEX`).

        ``with_row_ids`` adds `ROW_ID`, for a table that tracks rows. The result is no frame of
        the statement yet: helper columns may be added before `target_frame`.
        """
        wanted = [name for name in self.snapshot.config.schema.names if name in columns]
        if with_row_ids and self.tracked is not None:
            return tracked_scan(self.spark, self.snapshot, files, self.tracked, columns=wanted)
        return scan(self.spark, self.snapshot, files, columns=wanted, with_position=True)

    def target_frame(self, files: FileTable, columns: Collection[str]) -> DataFrame:
        """Return the same rows under the user's names and aliases."""
        return self.statement.frames.target(self.target_rows(files, columns))

    def source_frame(self, columns: Collection[str]) -> DataFrame:
        """Return source rows with positions (`SOURCE_FILE`, `SOURCE_ROW`), under the user's
        names.
        """
        return self.statement.frames.source(self.source.rows(self.spark, columns))
