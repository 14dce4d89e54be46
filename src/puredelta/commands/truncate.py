"""TRUNCATE TABLE: every row goes, the table stays. No data file is read."""

from __future__ import annotations

import time

from pyspark.sql import SparkSession

from puredelta.commands.engine import engine_info
from puredelta.commands.row_changes.counts import ms_since
from puredelta.commands.row_changes.settings import ExecutionSettings
from puredelta.log.commit.commit_checks import require_removable
from puredelta.log.commit.transaction import Transaction
from puredelta.log.files.clock import wall_clock
from puredelta.log.files.tombstones import remove_file
from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.actions.table_operations import TRUNCATE
from puredelta.protocol.features.feature_registry import Capability
from puredelta.spark.catalog.cached_frames import refresh_cached_frames


def truncate_table(spark: SparkSession, log: TableLog) -> int:
    """Remove all files of a table in one commit; return the version made. Runs no job.

    Readers of the change data feed take the rows of the removed files.

    Raises:
        TableNotFoundError: there is no table.
        InvalidRequestError: it is append-only (CANNOT_MODIFY_APPEND_ONLY).
        UnsupportedError: it has a feature that this library cannot write.
        ConflictError: somebody else changed the table meanwhile.
    """
    started = time.monotonic()
    snapshot = log.snapshot()
    require_removable(snapshot.config)
    snapshot.config.require(Capability.OVERWRITE)
    settings = ExecutionSettings.of(spark)
    transaction = Transaction(
        log, snapshot, engine_info=engine_info(spark), capability=Capability.OVERWRITE
    )
    files = snapshot.files
    transaction.read_files(None, files)
    now_ms = wall_clock()
    metrics = {"numRemovedFiles": len(files), "executionTimeMs": ms_since(started)}
    committed = transaction.commit(
        [remove_file(add, deleted_ms=now_ms) for add in files.adds()],
        TRUNCATE,
        metrics=metrics if settings.records_metrics else None,
        is_blind_append=False,
        user_metadata=settings.user_metadata,
    )
    refresh_cached_frames(spark, log)
    return committed.version
