"""What a RESTORE will do, and what it says that it did."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession

from puredelta.commands.command import Command
from puredelta.log.files.file_table import FileTable
from puredelta.log.replay.snapshot import Snapshot

_SCHEMA = """
    table_size_after_restore BIGINT, num_of_files_after_restore BIGINT,
    num_removed_files BIGINT, num_restored_files BIGINT,
    removed_files_size BIGINT, restored_files_size BIGINT
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoreOutcome:
    """What a RESTORE did."""

    table_size_bytes: int
    num_files: int
    num_removed_files: int
    num_restored_files: int
    removed_size_bytes: int
    restored_size_bytes: int

    def metrics(self) -> dict[str, int]:
        """Return the counts under the names of the history."""
        return {
            "tableSizeAfterRestore": self.table_size_bytes,
            "numOfFilesAfterRestore": self.num_files,
            "numRemovedFiles": self.num_removed_files,
            "numRestoredFiles": self.num_restored_files,
            "removedFilesSize": self.removed_size_bytes,
            "restoredFilesSize": self.restored_size_bytes,
        }

    def row(self, spark: SparkSession) -> DataFrame:
        """Return the counts as delta-spark's one row."""
        return spark.createDataFrame([tuple(self.metrics().values())], _SCHEMA)


@dataclass(frozen=True, slots=True, kw_only=True)
class RestorePlan:
    """Which files come back and which go."""

    command: Command
    target: Snapshot
    restored: FileTable
    removed: FileTable
    outcome: RestoreOutcome
    time_ms: int | None

    def describe(self) -> str:
        """Return one line for the log."""
        return f"{len(self.restored)} files come back, {len(self.removed)} go"
