"""REVERT: one commit in the middle of the history is undone, later commits stay.

Only the log is written: files that the commit added are removed, files that it removed are added
again. So no later commit may have touched these files; otherwise the error names the commit.
Columns and properties stay as they are now.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from puredelta.commands.command import Command, start_command
from puredelta.commands.finish import finish, remove_quietly
from puredelta.commands.restore import differing_files, require_present
from puredelta.errors import ConcurrentWriteException, InvalidRequestError, Message
from puredelta.log.commit.commit_checks import require_removable
from puredelta.log.commit.commit_request import CommitRequest
from puredelta.log.files.clock import random_id
from puredelta.log.files.file_table import FileTable, remove_file
from puredelta.log.maintenance.running_vacuums import require_kept
from puredelta.log.replay.commit_files import Commit
from puredelta.log.replay.snapshot import Snapshot
from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.actions.actions import (
    Action,
    Add,
    AddChangeFile,
    FileActionKey,
    Metadata,
    Remove,
)
from puredelta.protocol.actions.log_paths import CHANGE_DATA_DIRECTORY
from puredelta.protocol.actions.operations import revert as revert_operation
from puredelta.protocol.actions.paths import absolute_uri, canonical_path
from puredelta.protocol.features.feature_registry import Capability
from puredelta.protocol.schema.traversal import shape, struct_fields
from puredelta.protocol.schema.types import StructField, StructType
from puredelta.protocol.table.table_config import TableConfig
from puredelta.spark.session.storage import open_log
from puredelta.store.base import Store

_OPPOSITES = {
    "insert": "delete",
    "delete": "insert",
    "update_preimage": "update_postimage",
    "update_postimage": "update_preimage",
}
_CHANGE_TYPE = "_change_type"
_CHANGE_BYTES_MAX = 256 << 20
"""Larger change files are not reversed: the feed then has all rows of the files that change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RevertOutcome:
    """The result of a REVERT."""

    reverted_version: int
    version: int | None
    """The new version; None for a plan."""
    num_restored_files: int
    num_removed_files: int
    num_restored_rows: int | None
    """None where a file does not say."""
    num_removed_rows: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _RevertPlan:
    command: Command
    commit: Commit
    restored: FileTable
    removed: FileTable

    def outcome(self, version: int | None) -> RevertOutcome:
        return RevertOutcome(
            reverted_version=self.commit.version,
            version=version,
            num_restored_files=len(self.restored),
            num_removed_files=len(self.removed),
            num_restored_rows=self.restored.num_records(),
            num_removed_rows=self.removed.num_records(),
        )

    @property
    def changes_data(self) -> bool:
        """Whether the commit changed rows: OPTIMIZE does not."""
        actions = (a for a in self.commit.actions if isinstance(a, Add | Remove))
        return any(action.data_change for action in actions)


def revert(spark: SparkSession, table: str, version: int) -> RevertOutcome:
    """Undo one commit of the table at a path, and keep all later commits.

    One commit removes the files that the version added and adds those that it removed. Columns and
    properties stay. The change data feed has the opposite changes.

    Raises:
        ConcurrentWriteException: a later commit has touched the files; the message names it.
        InvalidRequestError: there is no such commit, it changed no file, its files are gone, or the
            rows that would come back do not fit the columns and constraints of the table now.
        TableNotFoundError: there is no table, or the version is not left in the log.

    Examples:
        >>> revert(spark, "/data/events", 7).num_removed_files  # doctest: +SKIP
        3
    """
    return revert_commit(spark, open_log(spark, table), version)


def revert_commit(spark: SparkSession, log: TableLog, version: int) -> RevertOutcome:
    """Undo one commit of an open table, see `revert`."""
    plan = _plan(spark, log, version)
    command = plan.command
    if len(plan.removed):
        require_removable(command.snapshot.config)
    else:
        command.transaction.read_files(None, command.snapshot.files)
    changes = _reversed_changes(plan, log.store)
    actions: list[Action] = [
        *(replace(add, data_change=plan.changes_data) for add in plan.restored.adds()),
        *(remove_file(add, data_change=plan.changes_data) for add in plan.removed.adds()),
        *changes,
    ]
    request = CommitRequest(
        actions=actions,
        operation=revert_operation(version=version),
        metrics={
            "numRestoredFiles": len(plan.restored),
            "numRemovedFiles": len(plan.removed),
            "restoredFilesSize": plan.restored.total_size_bytes,
            "removedFilesSize": plan.removed.total_size_bytes,
        },
        always_records_metrics=True,
        is_blind_append=False,
    )
    remove = partial(_remove_changes, log.store, changes)
    return plan.outcome(finish(command, request, discard=partial(remove_quietly, remove)).version)


def plan_revert(spark: SparkSession, log: TableLog, version: int) -> RevertOutcome:
    """Return what `revert_commit` would do; nothing is written."""
    return _plan(spark, log, version).outcome(None)


def _plan(spark: SparkSession, log: TableLog, version: int) -> _RevertPlan:
    command = start_command(spark, log, Capability.ADMINISTER)
    latest = command.snapshot
    if not 1 <= version <= latest.version:
        raise InvalidRequestError(
            Message.CANNOT_RESTORE_TABLE_VERSION_REVERT_RANGE,
            version=version,
            latest=latest.version,
        )
    before, after = log.snapshot(version=version - 1), log.snapshot(version=version)
    removed, restored = differing_files(after.files, before.files)
    if not len(removed) and not len(restored):
        raise _nothing(version)
    (commit,) = log.commits_after(version - 1, through=version)
    later = partial(log.read_commits, version, through=latest.version)
    _require_untouched(commit, later, removed, restored, latest)
    if len(restored):
        _require_fitting(before.config, latest, version, later)
        require_kept(log.store, latest, restored, now_ms=command.clock())
        require_present(restored, before, purpose="reverting")
    return _RevertPlan(command=command, commit=commit, restored=restored, removed=removed)


def _require_untouched(
    commit: Commit,
    later: Callable[[], Iterable[Commit]],
    removed: FileTable,
    restored: FileTable,
    latest: Snapshot,
) -> None:
    """Require that files the commit added are there, and files that it removed are not.

    Raises:
        ConcurrentWriteException: a later commit has touched one of them.
    """
    keys = {FileActionKey.of(add) for add in removed.adds()}
    paths = {key.path for key in keys} | {canonical_path(a.path) for a in restored.adds()}
    active = {FileActionKey.of(a) for a in latest.files.adds() if canonical_path(a.path) in paths}
    if active == keys:
        return
    for each in later():
        for action in each.actions:
            if isinstance(action, Add | Remove) and canonical_path(action.path) in paths:
                info = each.commit_info
                raise ConcurrentWriteException(
                    Message.CONCURRENT_WRITE_REVERT,
                    version=commit.version,
                    operation=(info and info.operation) or "commit",
                    later=each.version,
                    path=action.path,
                )
    raise _nothing(commit.version)


def _nothing(version: int) -> InvalidRequestError:
    return InvalidRequestError(Message.CANNOT_RESTORE_TABLE_VERSION_REVERT_NOTHING, version=version)


def _require_fitting(
    before: TableConfig, latest: Snapshot, version: int, later: Callable[[], Iterable[Commit]]
) -> None:
    """Require that rows which come back have the columns and keep the rules of the table now.

    Raises:
        InvalidRequestError: a later commit has changed a type, the partitioning or a constraint.
    """
    now = latest.config
    problem = _misfit(before, now)
    if problem is None:
        return
    changed = [c.version for c in later() if any(isinstance(a, Metadata) for a in c.actions)]
    raise InvalidRequestError(
        Message.CANNOT_RESTORE_TABLE_VERSION_REVERT_DEFINITION,
        version=version,
        problem=problem,
        later=", ".join(map(str, changed)) or str(latest.version),
    )


def _misfit(before: TableConfig, now: TableConfig) -> str | None:
    if before.physical_partition_columns != now.physical_partition_columns:
        return "its partition columns are others"
    if before.column_mapping is not now.column_mapping:
        return "its column mapping is another"
    known = {before.physical_path(path): one for path, one in struct_fields(before.schema)}
    for path, one in struct_fields(now.schema):
        old = known.get(now.physical_path(path))
        name = ".".join(path)
        if old is None and not one.nullable:
            return f"the column {name} is new and NOT NULL"
        if old is not None and old.nullable and not one.nullable:
            return f"the column {name} is NOT NULL since"
        if old is not None and not _is_struct(old, one) and shape(old.type) != shape(one.type):
            return f"the column {name} has another type"
    constraints = before.properties.check_constraints
    for name, text in now.properties.check_constraints.items():
        if constraints.get(name) != text:
            return f"the constraint {name} is new"
    return None


def _is_struct(old: StructField, new: StructField) -> bool:
    """Return whether both are structs, whose fields are compared one by one."""
    return isinstance(old.type, StructType) and isinstance(new.type, StructType)


# --- the change data feed -------------------------------------------------------------------


def _reversed_changes(plan: _RevertPlan, store: Store) -> tuple[AddChangeFile, ...]:
    """Write the change files of the commit with the opposite kinds of change.

    Without them readers of the feed take the rows of the files that are added and removed.
    """
    files = [action for action in plan.commit.actions if isinstance(action, AddChangeFile)]
    is_on = plan.command.snapshot.config.properties.enable_change_data_feed
    if not is_on or not files or sum(file.size_bytes for file in files) > _CHANGE_BYTES_MAX:
        return ()
    written: list[AddChangeFile] = []
    try:
        for file in files:
            directory, _, name = absolute_uri(store.root_uri, file.path).rpartition("/")
            with store.at(directory).open(name) as content:
                data = _reversed(pq.ParquetFile(content))
            path = f"{CHANGE_DATA_DIRECTORY}/cdc-{random_id()}.snappy.parquet"
            store.put_if_absent(path, data)
            written.append(replace(file, path=path, size_bytes=len(data)))
    except FileNotFoundError:  # VACUUM has deleted it
        _remove_changes(store, written)
        return ()
    return tuple(written)


def _reversed(file: pq.ParquetFile) -> bytes:
    content = io.BytesIO()
    schema = file.schema_arrow
    place = schema.get_field_index(_CHANGE_TYPE)
    names = pa.array(list(_OPPOSITES), pa.string())
    opposites = pa.array(list(_OPPOSITES.values()), pa.string())
    with pq.ParquetWriter(content, schema) as writer:
        for batch in file.iter_batches():
            kinds = pc.cast(batch.column(place), pa.string())
            turned = opposites.take(pc.index_in(kinds, value_set=names))
            columns = [*batch.columns]
            columns[place] = turned.cast(schema.field(place).type)
            writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=schema))
    return content.getvalue()


def _remove_changes(store: Store, files: Sequence[AddChangeFile]) -> None:
    for file in files:
        store.delete(file.path)
