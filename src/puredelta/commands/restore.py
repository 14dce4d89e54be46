"""RESTORE: the newest version becomes an older version.

RESTORE only writes to the log: files that only the older version had are added again, files that
only the newest version has are removed. Nothing is copied, so the files must still exist.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession

from puredelta.commands.command import Command, start_command
from puredelta.commands.finish import finish
from puredelta.commands.read_table import resolve_timestamp
from puredelta.commands.statement.parts import (
    FileAction,
    FileTotals,
    JobCount,
    ReportState,
    RowTotals,
    StageTime,
    first_file_decisions,
)
from puredelta.commands.statement.prepared import PreparedFiles, running_statement
from puredelta.commands.statement.report import Report
from puredelta.commands.statement.stages import StageTimer
from puredelta.errors import ErrorCode, InvalidRequestError, Message, TableNotFoundError
from puredelta.log.commit.commit_request import CommitRequest
from puredelta.log.files.clock import Clock, wall_clock
from puredelta.log.files.file_table import FileTable, file_keys, remove_file
from puredelta.log.maintenance.running_vacuums import require_kept
from puredelta.log.replay.snapshot import Snapshot
from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.actions.actions import Action, Add, DomainMetadata, Metadata
from puredelta.protocol.actions.deletion_vector import vector_path
from puredelta.protocol.actions.operations import restore
from puredelta.protocol.actions.paths import absolute_uri
from puredelta.protocol.features.feature_registry import Capability
from puredelta.protocol.features.generated_columns import identities, with_high_water_marks
from puredelta.protocol.features.protocol_changes import with_features
from puredelta.protocol.features.protocol_versions import supported_features
from puredelta.protocol.schema.schema_json import encode_schema
from puredelta.protocol.schema.timestamps import parse_time_zone
from puredelta.protocol.table.clustering import CLUSTERING_DOMAIN
from puredelta.protocol.table.table_config import TableConfig
from puredelta.spark.session.delta_conf import REFUSED_BY_RESTORE

_SCHEMA = """
    table_size_after_restore BIGINT, num_of_files_after_restore BIGINT,
    num_removed_files BIGINT, num_restored_files BIGINT,
    removed_files_size BIGINT, restored_files_size BIGINT
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoreOutcome:
    """The result of a RESTORE."""

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
    """The files to add again and those to remove."""

    command: Command
    target: Snapshot
    restored: FileTable
    removed: FileTable
    outcome: RestoreOutcome
    time_ms: int | None

    def describe(self) -> str:
        """Return one line for the log."""
        return f"{len(self.restored)} files come back, {len(self.removed)} go"


def restore_report(
    plan: RestorePlan,
    state: ReportState,
    *,
    seconds: Mapping[str, float],
    version: int | None = None,
) -> Report:
    """Return the report of added and removed files, with their rows; ``version`` is the new one.

    A file with another deletion vector in the two versions is among both.
    """
    restored, removed = plan.restored, plan.removed
    return Report(
        statement="RESTORE",
        table=plan.command.log.root_uri,
        state=state,
        read_version=plan.command.snapshot.version,
        committed_version=version,
        rows=RowTotals(inserted=restored.num_records(), deleted=removed.num_records()),
        files=FileTotals(
            added=len(restored),
            added_bytes=restored.total_size_bytes,
            removed=len(removed),
            removed_bytes=removed.total_size_bytes,
        ),
        decisions=(
            *first_file_decisions(restored, FileAction.ADD, "only the old version has it"),
            *first_file_decisions(removed, FileAction.REMOVE, "only the newest version has it"),
        ),
        jobs_expected=(JobCount(stage="commit", jobs=0, reason="only the log is written"),),
        stages=tuple(
            StageTime(name=name, seconds=time, outcome="") for name, time in seconds.items()
        ),
        metrics=plan.outcome.metrics(),
        details=(
            ("restored version", str(plan.target.version)),
            ("rows", "those of files that come back are inserted, those of files that go deleted"),
        ),
    )


def nothing_to_restore(table: str, state: ReportState) -> Report:
    """Return the report of a RESTORE of the newest version."""
    return Report(
        statement="RESTORE",
        table=table,
        state=state,
        rows=RowTotals(inserted=0, deleted=0),
        files=FileTotals(added=0, added_bytes=0, removed=0, removed_bytes=0),
        notes=("The table is in that state already.",),
    )


IGNORE_MISSING_SETTING = "spark.sql.files.ignoreMissingFiles"

_LOOKERS_MAX = 8
_NAMED_MAX = 100


def restore_table(
    spark: SparkSession,
    log: TableLog,
    *,
    version: int | None = None,
    timestamp: str | None = None,
    clock: Clock = wall_clock,
) -> RestoreOutcome | None:
    """Restore a version, or the one that was current at a time; None if it is the newest already.

    The protocol keeps every feature it has gained, identity columns keep their counters, and
    assigned row ids are not assigned again.
    """
    with running_statement(spark, "RESTORE", log.root_uri, runs_jobs=False) as running:
        stage = StageTimer(statement=log.root_uri, around=running.around)
        planning = partial(plan_restore, version=version, timestamp=timestamp, clock=clock)
        plan = stage("1 compare", planning, spark, log)
        if plan is None:
            return None
        committed = stage("2 commit", _commit, plan, version=version)
        running.finish(
            lambda: restore_report(
                plan, ReportState.EXECUTED, seconds=stage.seconds, version=committed
            )
        )
    return plan.outcome


def plan_restore(
    spark: SparkSession,
    log: TableLog,
    *,
    version: int | None = None,
    timestamp: str | None = None,
    clock: Clock = wall_clock,
) -> RestorePlan | None:
    """Compare two versions, and check that the files exist; changes nothing, runs no job.

    Raises the errors of `restore_table` that occur before it commits.
    """
    if (version is None) == (timestamp is None):
        raise ValueError("RESTORE takes a version or a timestamp, one of both")
    command = start_command(spark, log, Capability.ADMINISTER, clock=clock)
    REFUSED_BY_RESTORE.require_defaults(command.session.settings)
    latest = command.snapshot
    time_ms = None if timestamp is None else resolve_timestamp(spark, timestamp)
    target = _find_target(log, latest, version=version, time_ms=time_ms)
    if target.version == latest.version:
        return None
    restored, removed = differing_files(target.files, latest.files)
    require_kept(log.store, latest, restored, now_ms=command.clock())
    if not ignores_missing(command.session.settings):
        require_present(restored, target, purpose="restoring")
    outcome = RestoreOutcome(
        table_size_bytes=target.files.total_size_bytes,
        num_files=len(target.files),
        num_removed_files=len(removed),
        num_restored_files=len(restored),
        removed_size_bytes=removed.total_size_bytes,
        restored_size_bytes=restored.total_size_bytes,
    )
    return RestorePlan(
        command=command,
        target=target,
        restored=restored,
        removed=removed,
        outcome=outcome,
        time_ms=time_ms,
    )


def _commit(plan: RestorePlan, *, version: int | None) -> int:
    command, latest = plan.command, plan.command.snapshot
    command.transaction.read_files(None, latest.files)
    zone = command.session.time_zone
    shown_time = None if plan.time_ms is None else _timestamp_text(plan.time_ms, zone)
    request = CommitRequest(
        actions=_actions(plan.target, latest, plan.restored, plan.removed),
        operation=restore(version=version, timestamp=shown_time),
        metrics=plan.outcome.metrics(),
        always_records_metrics=True,
        is_blind_append=False,
    )
    return finish(command, request).version


def _actions(
    target: Snapshot, latest: Snapshot, restored: FileTable, removed: FileTable
) -> tuple[Action, ...]:
    config = restored_config(target, latest)
    return (
        config.metadata,
        config.protocol,
        *(replace(add, data_change=True) for add in restored.adds()),
        *map(remove_file, removed.adds()),
        *_domains(target.domain_metadata, latest.domain_metadata),
    )


def differing_files(target: FileTable, latest: FileTable) -> tuple[FileTable, FileTable]:
    """Return the files that only ``target`` has, and those that only ``latest`` has.

    A file with another deletion vector is another file.
    """
    target_keys, latest_keys = file_keys(target.rows), file_keys(latest.rows)
    return (
        target.select(_absent(target_keys, latest_keys)),
        latest.select(_absent(latest_keys, target_keys)),
    )


def restored_config(target: Snapshot, latest: Snapshot) -> TableConfig:
    """Return the configuration of the restored table."""
    protocol = with_features(target.protocol, supported_features(latest.protocol))
    return TableConfig.of(protocol, _with_high_water_marks(target, latest))


def _with_high_water_marks(target: Snapshot, latest: Snapshot) -> Metadata:
    """Keep the higher of both versions' high water marks of identity columns (M-103)."""
    current = identities(latest.config.schema)
    marks: dict[str, int] = {}
    for name, identity in identities(target.config.schema).items():
        known = current[name].high_water_mark if name in current else None
        if known is not None:
            before = identity.high_water_mark
            marks[name] = known if before is None else identity.further(before, known)
    if not marks:
        return target.metadata
    schema = with_high_water_marks(target.config.schema, marks)
    return replace(target.metadata, schema_string=encode_schema(schema))


def _absent(keys: pa.ChunkedArray, others: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.invert(pc.is_in(keys, value_set=others.combine_chunks()))


def _domains(
    target: Mapping[str, DomainMetadata], latest: Mapping[str, DomainMetadata]
) -> Sequence[DomainMetadata]:
    """Return the clustering of the older version; other domains belong to their owners."""
    if CLUSTERING_DOMAIN in target:
        return (target[CLUSTERING_DOMAIN],)
    if CLUSTERING_DOMAIN in latest:
        return (replace(latest[CLUSTERING_DOMAIN], configuration="", removed=True),)
    return ()


# --- the version ----------------------------------------------------------------------------


def _find_target(
    log: TableLog, latest: Snapshot, *, version: int | None, time_ms: int | None
) -> Snapshot:
    try:
        if time_ms is not None:
            return log.snapshot(timestamp_ms=time_ms)
        return log.snapshot(version=version)
    except TableNotFoundError as error:
        first = error.details.get("earliest", 0)
        raise InvalidRequestError(
            Message.CANNOT_RESTORE_TABLE_VERSION,
            first=first,
            version=version,
            latest=latest.version,
        ) from error
    except InvalidRequestError as error:
        code = _TIME_CODES.get(error.code)
        if code is None:
            raise
        raise InvalidRequestError(
            f"Cannot restore table: {error.message}", code=code, **error.details
        ) from error


_TIME_CODES = {
    ErrorCode.TIMESTAMP_EARLIER_THAN_COMMIT_RETENTION: ErrorCode.CANNOT_RESTORE_TIMESTAMP_EARLIER,
    ErrorCode.TIMESTAMP_GREATER_THAN_COMMIT: ErrorCode.CANNOT_RESTORE_TIMESTAMP_GREATER,
}


def _timestamp_text(time_ms: int, time_zone: str) -> str:
    """Return a time in the format of ``java.sql.Timestamp``, in the session's zone."""
    moment = dt.datetime.fromtimestamp(time_ms / 1000, tz=parse_time_zone(time_zone))
    fraction = f"{time_ms % 1000:03d}".rstrip("0") or "0"
    return f"{moment:%Y-%m-%d %H:%M:%S}.{fraction}"


# --- existence of files ---------------------------------------------------------------------


def ignores_missing(settings: Mapping[str, str]) -> bool:
    """Return whether the session tolerates missing files."""
    return settings.get(IGNORE_MISSING_SETTING, "false").lower() == "true"


def require_present(files: FileTable, target: Snapshot, *, purpose: str) -> None:
    """Refuse a version with missing files.

    Raises:
        InvalidRequestError: a file is missing (FILE_NOT_FOUND).
    """
    missing = list(_missing(list(files.adds()), target))
    if missing:
        raise InvalidRequestError(
            Message.FILE_NOT_FOUND_RESTORE,
            named_max=_NAMED_MAX,
            missing=", ".join(missing[:_NAMED_MAX]),
            purpose=purpose,
            ignore_missing_setting=IGNORE_MISSING_SETTING,
            version=target.version,
            files=tuple(missing[:_NAMED_MAX]),
        )


def paths_of(add: Add) -> Iterator[str]:
    """Yield the data file and, if it is in a file, the deletion vector, as the log spells them.

    VACUUM deletes a replaced vector even while its data file is in use.
    """
    yield add.path
    if add.deletion_vector is not None and (path := vector_path(add.deletion_vector)) is not None:
        yield path


def _missing(adds: Sequence[Add], target: Snapshot) -> Iterator[str]:
    paths = list(dict.fromkeys(path for add in adds for path in paths_of(add)))

    def is_there(path: str) -> bool:
        directory, _, name = absolute_uri(target.root_uri, path).rpartition("/")
        return target.open_at(directory).exists(name)

    with ThreadPoolExecutor(_LOOKERS_MAX, "puredelta-restore") as lookers:
        for path, found in zip(paths, lookers.map(is_there, paths), strict=True):
            if not found:
                yield path


def prepare_restore(
    spark: SparkSession, log: TableLog, *, version: int | None = None, timestamp: str | None = None
) -> PreparedFiles[RestoreOutcome | None]:
    """Prepare a RESTORE; its explanation reads the log and checks that the files exist.

    An execution returns None where the table is in that state already.
    """

    def report(state: ReportState) -> Report:
        plan = plan_restore(spark, log, version=version, timestamp=timestamp)
        if plan is None:
            return nothing_to_restore(log.root_uri, state)
        return restore_report(plan, state, seconds={})

    run = partial(restore_table, spark, log, version=version, timestamp=timestamp)
    return PreparedFiles(report=report, run=run)
