"""Log maintenance after a commit: a checkpoint if one is due, and removal of expired files.

The commit is final whatever happens here: an exception would tell the caller to remove files
that the table has. No ``.crc`` is written (decision 0027).
"""

from __future__ import annotations

import logging
from enum import Enum

from puredelta.log.commit.commit_request import DEFAULT_ENVIRONMENT, Committed, Environment, Phase
from puredelta.log.maintenance.checkpoint_write import write_checkpoint
from puredelta.log.maintenance.log_cleanup import clean_up_log
from puredelta.log.replay.load import first_snapshot
from puredelta.log.replay.snapshot import Snapshot
from puredelta.log.replay.table_log import TableLog

logger = logging.getLogger(__name__)


class CheckpointWish(Enum):
    """When to write a checkpoint after the commit."""

    AT_INTERVAL = "at interval"
    """At every multiple of ``delta.checkpointInterval`` but 0 (X-32)."""
    ALWAYS = "always"
    """Also now: CONVERT lists many files in version 0 (C-58)."""


def write_due_checkpoint(
    log: TableLog,
    committed: Committed,
    *,
    wish: CheckpointWish = CheckpointWish.AT_INTERVAL,
    environment: Environment = DEFAULT_ENVIRONMENT,
) -> None:
    """Write a checkpoint of a commit if it is due; then remove log files beyond the retention."""
    if _is_written(log, committed, wish, environment):
        _clean_up(log, committed, environment)
    environment.on_phase(Phase.FINISHED)


def _is_written(
    log: TableLog, committed: Committed, wish: CheckpointWish, environment: Environment
) -> bool:
    version, managed = committed.version, log.managed
    if managed is not None and managed.published < version:
        return False  # a checkpoint is of published versions only
    try:
        interval = committed.config.properties.checkpoint_interval
        due = version != 0 and version % interval == 0
        if not due and wish is not CheckpointWish.ALWAYS:
            return False
        write_checkpoint(
            log.store,
            _snapshot_of(log, committed),
            now_ms=environment.clock(),
            new_id=environment.new_id,
            more=() if committed.new_files is None else committed.new_files.tables(),
        )
    except Exception as error:
        logger.warning(
            "Version %d of %s is committed, but no checkpoint was written for it: %s",
            version,
            log.root_uri,
            error,
            exc_info=True,
        )
        return False
    return True


def _snapshot_of(log: TableLog, committed: Committed) -> Snapshot:
    """Return the committed version; the first one, which may list many files, is not read."""
    if committed.version == 0:
        return first_snapshot(
            log.store,
            committed.config,
            committed.actions,
            timestamp_ms=committed.timestamp_ms,
        )
    return log.snapshot(version=committed.version)


def _clean_up(log: TableLog, committed: Committed, environment: Environment) -> None:
    """Remove expired log files; what cannot be removed now is found again next time.

    The log of a catalog-managed table is cleaned by its catalog.
    """
    if log.managed is not None:
        return
    try:
        clean_up_log(log.store, committed.config.properties, now_ms=environment.clock())
    except Exception as error:
        logger.warning(
            "Expired log files of %s could not all be removed: %s",
            log.root_uri,
            error,
            exc_info=True,
        )
