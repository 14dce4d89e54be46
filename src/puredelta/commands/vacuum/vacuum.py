"""VACUUM: list, decide, delete; two commits say when it began and what came of it.

Nothing runs on Spark. Only files below the table root are ever deleted, links are not
followed, and what another writer may be writing now is younger than the retention time.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

from pyspark.sql import SparkSession

from puredelta.commands.command import Command, next_command, start_command
from puredelta.commands.finish import finish
from puredelta.commands.report.parts import ReportState
from puredelta.commands.running.stages import StageTimer
from puredelta.commands.running.statement import running_statement
from puredelta.commands.vacuum.explain import VacuumPlan, vacuum_report
from puredelta.commands.vacuum.retention import (
    Retention,
    resolve_retention,
)
from puredelta.commands.vacuum.scope import EVERYTHING, Removed, VacuumScope, remember_vacuum
from puredelta.log.commit.commit_request import CommitRequest
from puredelta.log.files.clock import Clock, wall_clock
from puredelta.log.maintenance.garbage import Garbage
from puredelta.log.maintenance.referenced_files import referenced_files
from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.actions.operations import Operation
from puredelta.protocol.actions.table_operations import vacuum_end, vacuum_start
from puredelta.protocol.features.feature_registry import Capability
from puredelta.quantities import in_milliseconds
from puredelta.spark.session.delta_conf import (
    VACUUM_IGNORE_WINDOW,
    VACUUM_LITE,
    VACUUM_LOGGING,
    VACUUM_RETENTION_CHECK,
)
from puredelta.store.base import Store

logger = logging.getLogger(__name__)

_DELETERS_MAX = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class VacuumOutcome:
    """What a VACUUM deleted, or would delete."""

    root_uri: str
    paths: tuple[str, ...]
    """Relative to the root: files, then empty directories."""
    num_deleted: int
    """0 for a dry run."""
    size_bytes: int

    def describe(self) -> str:
        """Return one line for the log."""
        return f"{self.num_deleted} files and directories deleted"

    @property
    def uris(self) -> tuple[str, ...]:
        """The paths as absolute, decoded URIs."""
        return tuple(f"{self.root_uri}/{path}" for path in self.paths)


def vacuum(
    spark: SparkSession,
    log: TableLog,
    *,
    retention_hours: float | None = None,
    dry_run: bool = False,
    scope: VacuumScope | None = None,
    clock: Clock = wall_clock,
) -> VacuumOutcome:
    """Delete files that are not needed by versions younger than the retention time.

    Without ``retention_hours`` the table's ``delta.deletedFileRetentionDuration`` decides, and
    like delta-spark also where they are fewer, but for 0.
    A dry run deletes and commits nothing. ``scope`` says where files are looked for; without it
    the session does (``vacuum.lite.enabled``).

    Raises:
        InvalidRequestError: the retention time is negative or too short.
        UnsupportedError: the table has a feature that this library cannot write.
        StorageError, PermissionError: a file could not be deleted; the rest may be gone, and
            the history says that the VACUUM failed.
    """
    with running_statement(spark, "VACUUM", log.root_uri, runs_jobs=False) as running:
        stage = StageTimer(statement=log.root_uri, around=running.around)
        planning = partial(plan_vacuum, retention_hours=retention_hours, scope=scope, clock=clock)
        plan = stage("1 list", planning, spark, log)
        if dry_run:
            return _outcome(log, plan.garbage, num_deleted=0)
        outcome = stage("2 delete", _delete_recorded, plan)
        if plan.scope.is_complete:
            remember_vacuum(log, before_ms=plan.before_ms)
        running.finish(
            lambda: vacuum_report(
                plan, ReportState.EXECUTED, seconds=stage.seconds, deleted=outcome.num_deleted
            )
        )
    return outcome


def plan_vacuum(
    spark: SparkSession,
    log: TableLog,
    *,
    retention_hours: float | None = None,
    scope: VacuumScope | None = None,
    clock: Clock = wall_clock,
) -> VacuumPlan:
    """List what ``scope`` says and choose what goes; deletes nothing.

    Raises:
        InvalidRequestError: the retention time is negative or too short.
        UnsupportedError: the table has a feature that this library cannot write.
    """
    command = start_command(spark, log, Capability.ADMINISTER, clock=clock)
    settings = command.session.settings
    retention = resolve_retention(
        retention_hours,
        default=command.snapshot.config.properties.deleted_file_retention,
        check_enabled=VACUUM_RETENTION_CHECK.flag(settings),
        ignore_shorter=VACUUM_IGNORE_WINDOW.flag(settings),
    )
    before_ms = clock() - in_milliseconds(retention.effective)
    if scope is None:
        scope = Removed() if VACUUM_LITE.flag(settings) else EVERYTHING
    garbage = scope.find(log, command.snapshot, before_ms=before_ms)
    return VacuumPlan(
        command=command, garbage=garbage, retention=retention, before_ms=before_ms, scope=scope
    )


def _delete_recorded(plan: VacuumPlan) -> VacuumOutcome:
    """Delete what is not needed, between the two commits that tell of it.

    What is needed is read again when the first is there: whoever restores files before has
    committed that, and whoever does so later sees that we have started.
    """
    command, garbage, before_ms = plan.command, plan.garbage, plan.before_ms
    _record(command, _started(plan.retention), _planned_metrics(garbage))
    try:
        newest = command.log.snapshot()
        garbage = garbage.without(referenced_files(newest, removed_since_ms=before_ms))
        num_deleted = _delete(command.log.store, garbage)
    except BaseException:
        _record(command, vacuum_end(completed=False), {})
        raise
    metrics = {
        "numDeletedFiles": num_deleted,
        "numVacuumedDirectories": garbage.num_directories_seen,
    }
    _record(command, vacuum_end(completed=True), metrics)
    logger.info(
        "Deleted %d files and directories in a total of %d directories of %s.",
        num_deleted,
        garbage.num_directories_seen,
        command.log.root_uri,
    )
    return _outcome(command.log, garbage, num_deleted=num_deleted)


def _outcome(log: TableLog, garbage: Garbage, *, num_deleted: int) -> VacuumOutcome:
    return VacuumOutcome(
        root_uri=log.root_uri,
        paths=garbage.paths,
        num_deleted=num_deleted,
        size_bytes=garbage.size_bytes,
    )


def _delete(store: Store, garbage: Garbage) -> int:
    """Delete files side by side, then the empty directories, and return how many are gone."""

    def delete_file(path: str) -> bool:
        store.delete(path)
        return True

    with ThreadPoolExecutor(_DELETERS_MAX, "puredelta-vacuum") as deleters:
        deleted = sum(deleters.map(delete_file, (file.path for file in garbage.files)))
    return deleted + sum(map(store.delete_directory, garbage.directories))


def _started(retention: Retention) -> Operation:
    return vacuum_start(
        retention_check=retention.check_enabled,
        default_retention=retention.default,
        retention=retention.specified,
    )


def _planned_metrics(garbage: Garbage) -> Mapping[str, int]:
    return {"numFilesToDelete": garbage.num_paths, "sizeOfDataToDelete": garbage.size_bytes}


def _record(command: Command, operation: Operation, metrics: Mapping[str, int]) -> None:
    """Commit that a VACUUM began or ended, where the session wants that; there are no actions."""
    if VACUUM_LOGGING.text(command.session.settings) == "false":
        return
    following = next_command(command, Capability.ADMINISTER)
    finish(following, CommitRequest(actions=(), operation=operation, metrics=metrics))
