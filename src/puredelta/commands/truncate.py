"""TRUNCATE TABLE: removal of all rows, without reading a data file."""

from __future__ import annotations

from pyspark.sql import SparkSession

from puredelta.commands.command import start_command
from puredelta.commands.finish import finish
from puredelta.log.commit.commit_checks import require_removable
from puredelta.log.commit.commit_request import CommitRequest
from puredelta.log.files.file_table import remove_file
from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.actions.operations import TRUNCATE
from puredelta.protocol.features.feature_registry import Capability


def truncate_table(spark: SparkSession, log: TableLog) -> int:
    """Remove all files of a table in one commit; return the version made. Runs no job.

    Readers of the change data feed take the rows of the removed files.
    """
    command = start_command(spark, log, Capability.OVERWRITE)
    files = command.snapshot.files
    require_removable(command.snapshot.config)
    command.transaction.read_files(None, files)
    request = CommitRequest(
        actions=[*map(remove_file, files.adds())],
        operation=TRUNCATE,
        metrics={"numRemovedFiles": len(files), "executionTimeMs": command.elapsed_ms()},
        is_blind_append=False,
    )
    return finish(command, request).version
