"""How a call of MERGE, UPDATE or DELETE begins."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from pyspark.sql import SparkSession

from puredelta.commands.command import Command, start_command
from puredelta.commands.compaction.auto import AUTO_COMPACTION
from puredelta.commands.settings import CommitSettings
from puredelta.log.commit.environment import Phase, ignore_phase
from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.features.feature_registry import Capability


def start_statement(
    spark: SparkSession, log: TableLog, *, on_phase: Callable[[Phase], None] = ignore_phase
) -> Command:
    """Start a call on the newest version of a table; small files are compacted after it.

    Raises:
        InvalidRequestError: the session names an application without a version, or the reverse.
        UnsupportedError: the table uses a feature that is not implemented.
    """
    command = start_command(spark, log, Capability.MERGE, on_phase=on_phase)
    settings = CommitSettings.parse_idempotent(command.session.settings)
    return replace(command, settings=settings, hooks=(AUTO_COMPACTION,))
