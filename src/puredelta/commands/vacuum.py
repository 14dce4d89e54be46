"""VACUUM: listing, decision and deletion between two commits, its plan and its report.

Nothing runs on Spark. Only files below the table root are deleted, links are not followed, and
the retention time protects files that another writer may still be writing.
"""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Protocol

from pyspark.sql import DataFrame, SparkSession

from puredelta.commands.command import Command, next_command, start_command
from puredelta.commands.finish import finish
from puredelta.commands.statement.parts import (
    FileAction,
    JobCount,
    ReportState,
    SettingValue,
    StageTime,
    first_decisions,
    setting_values,
)
from puredelta.commands.statement.prepared import PreparedFiles, running_statement
from puredelta.commands.statement.report import Report
from puredelta.commands.statement.stages import StageTimer
from puredelta.errors import DeltaError, InvalidRequestError, Message
from puredelta.iceberg.entry import export_log, is_exported
from puredelta.log.commit.commit_request import CommitRequest
from puredelta.log.files.clock import Clock, wall_clock
from puredelta.log.maintenance.garbage import (
    Garbage,
    find_garbage,
    referenced_files,
    visible_to_vacuum,
)
from puredelta.log.replay.segment import list_log
from puredelta.log.replay.snapshot import Snapshot
from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.actions.actions import Action, AddChangeFile, Remove
from puredelta.protocol.actions.deletion_vector import vector_path
from puredelta.protocol.actions.log_paths import LOG_DIRECTORY
from puredelta.protocol.actions.operations import Operation, vacuum_end, vacuum_start
from puredelta.protocol.actions.paths import encode_path, path_below_root
from puredelta.protocol.features.feature_registry import Capability
from puredelta.quantities import in_milliseconds, size_text
from puredelta.spark.session.delta_conf import (
    VACUUM_IGNORE_WINDOW,
    VACUUM_LITE,
    VACUUM_LOGGING,
    VACUUM_RETENTION_CHECK,
)
from puredelta.store.base import Store, StoredFile


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """The retention time of one VACUUM."""

    specified: timedelta | None
    """The caller's retention time; None where the table decides."""
    default: timedelta
    """``delta.deletedFileRetentionDuration``."""
    check_enabled: bool

    @property
    def effective(self) -> timedelta:
        """The minimum age of a deleted file."""
        return self.default if self.specified is None else self.specified


def resolve_retention(
    hours: float | None, *, default: timedelta, check_enabled: bool, ignore_shorter: bool
) -> Retention:
    """Decide on a retention time; hours are rounded to whole ones, as in delta-spark.

    ``ignore_shorter`` is delta-spark's rule: a time shorter than the table's own is ignored,
    except 0, which means all unneeded files. A longer one always counts.

    Raises:
        InvalidRequestError: it is negative (VACUUM_RETENTION_PERIOD_NEGATIVE), or shorter
            than the table's while the check is on (VACUUM_RETENTION_PERIOD_TOO_SHORT).
    """
    if hours is not None and hours < 0:
        raise InvalidRequestError(Message.VACUUM_RETENTION_PERIOD_NEGATIVE, hours=hours)
    specified = None if hours is None else timedelta(hours=math.floor(hours + 0.5))
    if ignore_shorter and specified is not None and timedelta() < specified < default:
        specified = None
    if check_enabled and specified is not None and specified < default:
        least = math.ceil(default / timedelta(hours=1))
        raise InvalidRequestError(
            Message.VACUUM_RETENTION_PERIOD_TOO_SHORT,
            vacuum_retention_check_key=VACUUM_RETENTION_CHECK.key,
            hours=hours,
            least_hours=least,
        )
    return Retention(specified=specified, default=default, check_enabled=check_enabled)


logger = logging.getLogger(__name__)

LAST_VACUUM = f"{LOG_DIRECTORY}/_last_vacuum_info"
"""delta-spark's note of the commit up to which removed files are deleted."""
_LAST_VERSION = "latestCommitVersionOutsideOfRetentionWindow"
_INVENTORY = {
    "path": "string",
    "length": "bigint",
    "isDir": "boolean",
    "modificationTime": "bigint",
}
_CHECKERS_MAX = 8


class VacuumScope(Protocol):
    """The places that VACUUM searches for files."""

    @property
    def is_complete(self) -> bool:
        """Whether it covers every file that commits have removed."""
        ...

    def find(self, log: TableLog, snapshot: Snapshot, *, before_ms: int) -> Garbage:
        """Return the files to delete: unneeded, and older than a time."""
        ...


@dataclass(frozen=True, slots=True)
class Everything:
    """The whole directory, listed after the snapshot was taken: files of later commits are younger
    than the retention time.
    """

    is_complete: bool = True

    def find(self, log: TableLog, snapshot: Snapshot, *, before_ms: int) -> Garbage:
        """Return files that the log does not need, orphans included, and empty directories."""
        is_wanted = visible_to_vacuum(snapshot.config.physical_partition_columns)
        return find_garbage(
            log.store.inventory("", is_wanted=is_wanted),
            referenced=referenced_files(snapshot, removed_since_ms=before_ms),
            modified_before_ms=before_ms,
        )


EVERYTHING = Everything()


@dataclass(frozen=True, slots=True)
class Removed:
    """``LITE``: no listing, so files that no commit ever named stay."""

    is_complete: bool = True

    def find(self, log: TableLog, snapshot: Snapshot, *, before_ms: int) -> Garbage:
        """Return files that commits since the last VACUUM removed."""
        first = _last_vacuumed(log.store) + 1
        _require_commits(log, first)
        found: dict[str, StoredFile] = {}
        for commit in log.read_commits(first - 1, through=snapshot.version):
            for action in commit.actions:
                for file in _gone(action, commit.modified_ms, log.root_uri):
                    if file.modified_ms < before_ms:
                        found.setdefault(file.path, file)
        with ThreadPoolExecutor(_CHECKERS_MAX, "puredelta-vacuum") as checkers:
            is_there = dict(zip(found, checkers.map(log.store.exists, found), strict=True))
        files = tuple(file for path, file in sorted(found.items()) if is_there[path])
        garbage = Garbage(
            files=files,
            directories=(),
            num_directories_seen=len({file.directory for file in files}),
        )
        return garbage.without(referenced_files(snapshot, removed_since_ms=before_ms))


@dataclass(frozen=True, slots=True)
class Inventory:
    """``USING INVENTORY``: the rows of a query are the listing.

    Paths are relative to the table or below it; others, hidden ones and directories are skipped.
    The times of the rows are trusted.
    """

    rows: DataFrame
    is_complete: bool = False

    def find(self, log: TableLog, snapshot: Snapshot, *, before_ms: int) -> Garbage:
        """Return files of the rows that the log does not need. Runs the query, row by row."""
        _require_inventory(self.rows)
        is_wanted = visible_to_vacuum(snapshot.config.physical_partition_columns)
        files = (
            file
            for file in _listed(self.rows, log.root_uri)
            if all(is_wanted(path) for path in _with_parents(file.path))
        )
        return find_garbage(
            files,
            referenced=referenced_files(snapshot, removed_since_ms=before_ms),
            modified_before_ms=before_ms,
        )


def remember_vacuum(log: TableLog, *, before_ms: int) -> None:
    """Record the newest commit before a time: files removed up to it have been deleted.

    A failure to write it is a warning: the next LITE reads more commits.
    """
    try:
        version = -1
        for number, file in sorted(list_log(log.store).commits.items()):
            if file.modified_ms >= before_ms:
                break
            version = number
        if version > _last_vacuumed(log.store):
            log.store.put(LAST_VACUUM, json.dumps({_LAST_VERSION: version}).encode())
    except OSError as failure:
        logger.warning("%s: %s is not up to date: %s", log.root_uri, LAST_VACUUM, failure)


def _last_vacuumed(store: Store) -> int:
    """Return the commit up to which removed files are deleted, -1 if none is known."""
    if not store.exists(LAST_VACUUM):
        return -1
    try:
        known = json.loads(store.read(LAST_VACUUM))
    except ValueError:
        return -1
    version = known.get(_LAST_VERSION) if isinstance(known, Mapping) else None
    return version if isinstance(version, int) else -1


def _require_commits(log: TableLog, first: int) -> None:
    earliest = min(list_log(log.store).commits, default=first)
    if earliest > first:
        raise InvalidRequestError(Message.CANNOT_VACUUM_LITE, first=first, version=earliest)


def _gone(action: Action, committed_ms: int, root_uri: str) -> Iterator[StoredFile]:
    """Yield the files that become unneeded with a commit, each with the time since then."""
    paths: list[tuple[str | None, int]] = []
    at_ms = committed_ms
    if isinstance(action, Remove):
        at_ms = action.deleted_ms or 0
        paths.append((action.path, action.size_bytes or 0))
        if action.deletion_vector is not None:
            paths.append((vector_path(action.deletion_vector), 0))
    elif isinstance(action, AddChangeFile):
        paths.append((action.path, action.size_bytes))
    for encoded, size_bytes in paths:
        path = None if encoded is None else path_below_root(root_uri, encoded)
        if path is not None:
            yield StoredFile(path=path, size_bytes=size_bytes, modified_ms=at_ms)


def _require_inventory(rows: DataFrame) -> None:
    types = {field.name: field.dataType.simpleString() for field in rows.schema.fields}
    if any(types.get(name) != kind for name, kind in _INVENTORY.items()):
        expected = ", ".join(f"{name} {kind.upper()}" for name, kind in _INVENTORY.items())
        raise InvalidRequestError(
            Message.INVALID_INVENTORY_SCHEMA, expected=expected, schema=rows.schema.simpleString()
        )


def _listed(rows: DataFrame, root_uri: str) -> Iterator[StoredFile]:
    root = root_uri.rstrip("/")
    plain = root.removeprefix("file:")
    some = rows.where("NOT isDir").select("path", "length", "modificationTime")
    for path, size_bytes, modified_ms in some.toLocalIterator():
        if path is None or size_bytes is None or modified_ms is None:
            continue
        below = path.removeprefix("file://").removeprefix("file:") if plain != root else path
        if below.startswith(f"{plain}/"):
            below = below[len(plain) + 1 :]
        # Encoded as in the log and checked again, so that no path leaves the table.
        inside = path_below_root(root_uri, encode_path(below))
        if inside is not None and inside == below:
            yield StoredFile(path=inside, size_bytes=size_bytes, modified_ms=modified_ms)


def _with_parents(path: str) -> list[str]:
    parts = path.split("/")
    return ["/".join(parts[:n]) for n in range(1, len(parts) + 1)]


_HOUR = timedelta(hours=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class VacuumPlan:
    """The files to delete, from a listing of the storage."""

    command: Command
    garbage: Garbage
    retention: Retention
    before_ms: int
    """The time limit, in milliseconds since 1970: only older files are deleted."""
    scope: VacuumScope

    def describe(self) -> str:
        """Return one line for the log."""
        return f"{self.garbage.num_paths} files and directories are not needed"


def vacuum_report(
    plan: VacuumPlan,
    state: ReportState,
    *,
    seconds: Mapping[str, float],
    deleted: int | None = None,
) -> Report:
    """Return the report of files and directories to delete; ``deleted`` counts deleted ones."""
    garbage, command = plan.garbage, plan.command
    files = [(file.path, file.size_bytes) for file in garbage.files]
    decisions = first_decisions(
        files, FileAction.DELETE, "no version within the retention needs it"
    )
    details = [
        ("files to delete", f"{len(garbage.files):,}, {size_text(garbage.size_bytes)}"),
        ("empty directories to delete", f"{len(garbage.directories):,}"),
        ("directories looked into", f"{garbage.num_directories_seen:,}"),
    ]
    if deleted is not None:
        details.append(("deleted", f"{deleted:,}"))
    return Report(
        statement="VACUUM",
        table=command.log.root_uri,
        state=state,
        read_version=command.snapshot.version,
        decisions=decisions,
        decisions_left_out=len(files) - len(decisions),
        jobs_expected=(JobCount(stage="list and delete", jobs=0, reason="the driver does both"),),
        stages=tuple(
            StageTime(name=name, seconds=time, outcome="") for name, time in seconds.items()
        ),
        settings=(
            _retention_setting(plan.retention),
            *setting_values(
                (VACUUM_RETENTION_CHECK, VACUUM_IGNORE_WINDOW, VACUUM_LOGGING),
                command.session.settings,
            ),
        ),
        metrics={
            "numFilesToDelete": garbage.num_paths,
            "sizeOfDataToDelete": garbage.size_bytes,
            **({} if deleted is None else {"numDeletedFiles": deleted}),
        },
        details=tuple(details),
    )


def _retention_setting(retention: Retention) -> SettingValue:
    return SettingValue(
        key="delta.deletedFileRetentionDuration",
        value=f"{retention.effective / _HOUR:g} hours",
        origin="table" if retention.specified is None else "statement",
        effect="how old a file has to be that no version needs",
    )


_DELETERS_MAX = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class VacuumOutcome:
    """The files that a VACUUM deleted, or would delete."""

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

    Without ``retention_hours`` the table's ``delta.deletedFileRetentionDuration`` decides. As in
    delta-spark, it also replaces fewer hours, except 0. A dry run deletes and commits nothing.
    ``scope`` is where files are searched; without it the session decides
    (``vacuum.lite.enabled``).
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
    """List the files of ``scope`` and choose those to delete; deletes nothing."""
    log.require_unmanaged("VACUUM")
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
    """Delete unneeded files, between the commits that record start and end.

    After the start commit, the needed files are read again. A RESTORE that committed earlier is
    included; a later one sees the start commit.
    """
    command, garbage, before_ms = plan.command, plan.garbage, plan.before_ms
    _record(command, _started(plan.retention), _planned_metrics(garbage))
    try:
        newest = command.log.snapshot()
        garbage = garbage.without(referenced_files(newest, removed_since_ms=before_ms))
        _expire_exports(command.log, before_ms=before_ms)
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


def _expire_exports(log: TableLog, *, before_ms: int) -> None:
    """Drop snapshots of Iceberg whose data files are deleted next; the newest version is exported.

    A failure is logged: readers of Iceberg may miss files then.
    """
    if not is_exported(log):
        return
    try:
        export_log(log, expire_before_ms=before_ms)
    except (DeltaError, OSError) as failure:
        logger.warning(
            "Iceberg metadata of %s may name files that VACUUM deletes: %s. Run puredelta iceberg "
            "export, or remove the folder _iceberg.",
            log.root_uri,
            failure,
        )


def _outcome(log: TableLog, garbage: Garbage, *, num_deleted: int) -> VacuumOutcome:
    return VacuumOutcome(
        root_uri=log.root_uri,
        paths=garbage.paths,
        num_deleted=num_deleted,
        size_bytes=garbage.size_bytes,
    )


def _delete(store: Store, garbage: Garbage) -> int:
    """Delete files in parallel, then the empty directories; return the number of deleted files."""

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
    """Commit the start or end of a VACUUM, without actions, if the session wants it."""
    if VACUUM_LOGGING.text(command.session.settings) == "false":
        return
    following = next_command(command, Capability.ADMINISTER)
    finish(following, CommitRequest(actions=(), operation=operation, metrics=metrics))


def prepare_vacuum(
    spark: SparkSession,
    log: TableLog,
    *,
    retention_hours: float | None = None,
    scope: VacuumScope | None = None,
) -> PreparedFiles[VacuumOutcome]:
    """Prepare a VACUUM; its explanation lists the storage."""

    def report(state: ReportState) -> Report:
        plan = plan_vacuum(spark, log, retention_hours=retention_hours, scope=scope)
        return vacuum_report(plan, state, seconds={})

    run = partial(vacuum, spark, log, retention_hours=retention_hours, scope=scope)
    return PreparedFiles(report=report, run=run)
