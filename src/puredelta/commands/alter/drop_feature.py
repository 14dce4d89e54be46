"""DROP FEATURE, with and without TRUNCATE HISTORY.

DROP FEATURE takes several commits. The first ones remove all uses of the feature: files with
deletion vectors, with narrower types, or with the names of column mapping are rewritten. For a
feature that readers must know, three empty commits follow, each with a checkpoint, so that no
reader needs an older version. The last commit removes the feature from the protocol and protects
the checkpoints.

TRUNCATE HISTORY needs no protected checkpoints. A first call stops the use of the feature; a later
call, after the older versions have expired
(``delta.dropFeatureTruncateHistory.retentionDuration``, 24 hours), removes them from the log and
the feature from the protocol.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace

import pyarrow.compute as pc
from pyspark.sql import SparkSession

from puredelta.commands.alter.change import commit_change, next_change, start_change
from puredelta.commands.alter.remove_features import (
    has_mapping,
    remove_column_mapping,
    remove_type_widening,
    widened_fields,
)
from puredelta.commands.command import Command, next_command
from puredelta.commands.finish import finish
from puredelta.commands.reorg import purge
from puredelta.errors import DeltaError, InvalidRequestError, Message, UnsupportedError
from puredelta.log.commit.commit_request import CommitRequest
from puredelta.log.commit.post_commit import CheckpointWish
from puredelta.log.commit.row_ids import ROW_TRACKING_DOMAIN
from puredelta.log.maintenance.log_cleanup import truncate_log
from puredelta.log.replay.segment import CheckpointFiles, list_log
from puredelta.log.replay.snapshot import Snapshot
from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.actions.actions import (
    Action,
    Add,
    DeletionVectorDescriptor,
    DomainMetadata,
    Metadata,
    Protocol,
    Remove,
)
from puredelta.protocol.actions.deletion_vector import vector_path
from puredelta.protocol.actions.log_paths import V2Checkpoint, parse_log_name
from puredelta.protocol.actions.operations import (
    EMPTY_COMMIT,
    Operation,
    drop_feature,
    set_properties,
    unset_properties,
)
from puredelta.protocol.features.feature_registry import FEATURES_BY_NAME, Capability
from puredelta.protocol.features.feature_usage import TYPE_CHANGES
from puredelta.protocol.features.properties import CheckpointPolicy, TableProperties
from puredelta.protocol.features.property_checks import is_delta_property
from puredelta.protocol.features.protocol_changes import dependents, with_features, without_feature
from puredelta.protocol.table.row_tracking import ROW_TRACKING
from puredelta.protocol.table.table_config import TableConfig
from puredelta.spark.session.delta_conf import REFUSED_BY_DROP_FEATURE

COLUMN_MAPPING = "columnMapping"
DELETION_VECTORS = "deletionVectors"
CHECKPOINT_PROTECTION = "checkpointProtection"
CHECKPOINT_PROTECTION_PROPERTY = "delta.requireCheckpointProtectionBeforeVersion"


V2_CHECKPOINT = "v2Checkpoint"


def _uses_widening(metadata: Metadata) -> bool:
    enabled = TableProperties.of(metadata.configuration).enable_type_widening
    return enabled or f'"{TYPE_CHANGES}"' in metadata.schema_string


def _uses_vectors(action: Action) -> bool:
    if isinstance(action, Add | Remove):
        return action.deletion_vector is not None
    return isinstance(action, Metadata) and (
        TableProperties.of(action.configuration).enable_deletion_vectors
    )


def _uses_v2_checkpoints(metadata: Metadata) -> bool:
    return TableProperties.of(metadata.configuration).checkpoint_policy is CheckpointPolicy.V2


def _never(_: Action) -> bool:
    """Return false: only a VACUUM acts on the feature, and it leaves no trace in the log."""
    return False


def _of_metadata(uses: Callable[[Metadata], bool]) -> Callable[[Action], bool]:
    return lambda action: isinstance(action, Metadata) and uses(action)


USES: Mapping[str, Callable[[Action], bool]] = {
    "columnMapping": _of_metadata(has_mapping),
    "deletionVectors": _uses_vectors,
    "typeWidening": _of_metadata(_uses_widening),
    "typeWidening-preview": _of_metadata(_uses_widening),
    V2_CHECKPOINT: _of_metadata(_uses_v2_checkpoints),
    "vacuumProtocolCheck": _never,
}
"""Whether an action of an older version uses a feature."""


def require_history_without(command: Command, name: str) -> None:
    """Remove expired versions, and require that no remaining older version used the feature.

    Raises:
        InvalidRequestError: one did (FEATURE_DROP_HISTORICAL_VERSIONS_EXIST).
    """
    log, properties = command.log, command.snapshot.config.properties
    truncate_log(log.store, properties, now_ms=command.clock())
    if _history_uses(log, command.snapshot.version, name):
        raise InvalidRequestError(
            Message.FEATURE_DROP_HISTORICAL_VERSIONS_EXIST, command=_periods(command), feature=name
        )


def partly_dropped(command: Command, name: str) -> InvalidRequestError:
    """Return the error that names the remaining step after the feature was taken out of use."""
    return InvalidRequestError(
        Message.FEATURE_DROP_WAIT_FOR_RETENTION_PERIOD, command=_periods(command), feature=name
    )


def _periods(command: Command) -> str:
    properties = command.snapshot.config.properties
    return (
        f"(delta.logRetentionDuration={properties.log_retention}, with TRUNCATE HISTORY "
        f"delta.dropFeatureTruncateHistory.retentionDuration={properties.truncated_log_retention})"
    )


def _history_uses(log: TableLog, version: int, name: str) -> bool:
    """Search the oldest readable version, and every commit since, for uses of the feature.

    Tombstones of that version do not count: a client without the feature does not need them.
    """
    listing, uses = list_log(log.store), USES[name]
    if name == V2_CHECKPOINT and any(map(_is_v2, listing.checkpoints.values())):
        return True
    earliest = listing.earliest_version
    oldest = version if earliest is None else earliest
    snapshot = log.snapshot(version=oldest)
    if uses(snapshot.metadata) or any(map(uses, snapshot.files.adds())):
        return True
    return any(
        uses(action)
        for commit in log.read_commits(oldest, through=version)
        for action in commit.actions
    )


def _is_v2(checkpoint: CheckpointFiles) -> bool:
    """Recognise a v2 checkpoint by its name; policy ``v2`` may also write classic names."""
    names = (posixpath.basename(file.path) for file in checkpoint.files)
    return any(isinstance(parse_log_name(name), V2Checkpoint) for name in names)


BARRIER_CHECKPOINTS = 3
"""A reader that fails on one checkpoint tries two older ones."""

_UNBACKFILL = "ROW TRACKING UNBACKFILL"
_VECTOR_TOMBSTONES = Operation(name="Deletion Vector Tombstones")


def drop_feature_support(
    spark: SparkSession, log: TableLog, name: str, *, truncate_history: bool = False
) -> int:
    """Drop a feature; return the version without it.

    Raises:
        InvalidRequestError: the table does not support it (FEATURE_DROP_FEATURE_NOT_PRESENT),
            another feature needs it, it can never be dropped
            (FEATURE_DROP_NONREMOVABLE_FEATURE), or the table still uses it in a way that only the
            user can resolve. With ``truncate_history``: older versions use it
            (FEATURE_DROP_WAIT_FOR_RETENTION_PERIOD right after its use has ended,
            FEATURE_DROP_HISTORICAL_VERSIONS_EXIST).
        ConflictError: another writer changed the table meanwhile; run it again.
    """
    log.require_unmanaged("DROP FEATURE")
    command = start_change(spark, log)
    REFUSED_BY_DROP_FEATURE.require_defaults(command.session.settings)
    require_droppable(command.snapshot, name, truncate_history=truncate_history)
    if name == CHECKPOINT_PROTECTION:
        return _drop_protection(command)
    removal = REMOVALS[name]
    clean_up = _CLEAN_UPS.get(name)
    if clean_up is None:
        removal.require(command.snapshot)
    changed = _switch_off(command, removal)
    if clean_up is not None:
        changed = bool(clean_up(command)) or changed
    if truncate_history:
        _put_barrier(next_change(command), name)
        if changed:
            raise partly_dropped(command, name)
        following = next_change(command)
        removal.require(following.snapshot)
        require_history_without(following, name)
        return _downgrade(following, name, replace(removal, protects_history=False), truncates=True)
    if removal.protects_history:
        for _ in range(BARRIER_CHECKPOINTS):
            _put_barrier(next_change(command), name)
    return _downgrade(next_change(command), name, removal)


def _switch_off(command: Command, removal: Removal) -> bool:
    """Set and unset properties in a commit; return whether that was needed."""
    snapshot = command.snapshot
    changed = settings_to_change(removal, snapshot)
    gone = keys_to_unset(removal, snapshot)
    if not changed and not gone:
        return False
    kept = {k: v for k, v in snapshot.metadata.configuration.items() if k not in gone}
    operation = (
        unset_properties([*gone, *changed], if_exists=True)
        if removal.unset
        else set_properties(changed)
    )
    metadata = replace(snapshot.metadata, configuration={**kept, **changed})
    config = TableConfig.of(snapshot.protocol, metadata)
    commit_change(command, config, operation=operation)
    return True


def _take_vectors(command: Command) -> bool:
    following = next_command(command, Capability.MERGE)
    had_vectors = num_with_vectors(following.snapshot) > 0
    purge(following)
    _keep_vector_files(next_change(command))
    return had_vectors


def _take_mapping(command: Command) -> bool:
    following = next_command(command, Capability.MERGE)
    mapped = has_mapping(following.snapshot.metadata)
    if mapped:
        remove_column_mapping(following, keeps_property=False)
    return mapped


def _take_all_row_ids(command: Command) -> None:
    while _take_row_ids(next_change(command)):
        pass


def _take_row_ids(command: Command) -> bool:
    """Commit files again without their row ids; return whether there were any."""
    snapshot = command.snapshot
    tracked = snapshot.files.select(pc.is_valid(snapshot.files.rows["base_row_id"]))
    if not len(tracked):
        return False
    adds = [_without_row_ids(add) for add in tracked.adds()]
    command.transaction.read_files(None, tracked)
    operation = Operation(name=_UNBACKFILL, parameters={"batchId": "0"})
    finish(command, CommitRequest(actions=adds, operation=operation, is_blind_append=False))
    return True


def _without_row_ids(add: Add) -> Add:
    return replace(add, data_change=False, base_row_id=None, default_row_commit_version=None)


_CLEAN_UPS: Mapping[str, Callable[[Command], object]] = {
    COLUMN_MAPPING: _take_mapping,
    DELETION_VECTORS: _take_vectors,
    ROW_TRACKING: _take_all_row_ids,
    "typeWidening": remove_type_widening,
    "typeWidening-preview": remove_type_widening,
}
"""Removal of a feature from a table, after it was switched off."""


def _keep_vector_files(command: Command) -> None:
    """Write tombstones of vectors' files, so that a VACUUM without deletion vectors keeps them."""
    snapshot = command.snapshot
    rows = snapshot.tombstones["deletion_vector"].drop_null().to_pylist()
    paths = {
        vector_path(DeletionVectorDescriptor(**row)) for row in rows if row["storage_type"] == "u"
    }
    removes = [
        Remove(path=path, deleted_ms=None, data_change=False)
        for path in sorted(path for path in paths if path is not None)
    ]
    if removes:
        finish(command, CommitRequest(actions=removes, operation=_VECTOR_TOMBSTONES))


def _put_barrier(command: Command, name: str) -> None:
    request = CommitRequest(actions=(), operation=EMPTY_COMMIT)
    version = finish(command, request, checkpoint=CheckpointWish.ALWAYS).version
    if version not in list_log(command.log.store, start=version).checkpoints:
        raise DeltaError(Message.FEATURE_DROP_CHECKPOINT_FAILED, feature=name)


def _downgrade(command: Command, name: str, removal: Removal, *, truncates: bool = False) -> int:
    """Repeat all checks on the version that the commit is based on, and commit."""
    snapshot = command.snapshot
    removal.require(snapshot)
    if settings_to_change(removal, snapshot) or keys_to_unset(removal, snapshot):
        raise InvalidRequestError(
            Message.FEATURE_DROP_CONFLICT_REVALIDATION_FAIL_DOWNGRADE, feature=name
        )
    protocol = snapshot.protocol
    forgotten = removal.forgotten
    configuration = {k: v for k, v in snapshot.metadata.configuration.items() if k not in forgotten}
    if removal.protects_history:
        protocol = with_features(protocol, [CHECKPOINT_PROTECTION])
        configuration[CHECKPOINT_PROTECTION_PROPERTY] = str(snapshot.version + 1)
    metadata = replace(snapshot.metadata, configuration=configuration)
    actions: list[Metadata | Protocol | DomainMetadata] = [
        metadata,
        without_feature(protocol, name),
    ]
    domain = snapshot.domain_metadata.get(ROW_TRACKING_DOMAIN)
    if name == ROW_TRACKING and domain is not None:
        actions.append(replace(domain, removed=True))
    command.transaction.read_files(None, snapshot.files)
    request = CommitRequest(
        actions=actions,
        operation=drop_feature(name, truncate_history=truncates),
        is_blind_append=False,
    )
    wish = CheckpointWish.ALWAYS if removal.protects_history else CheckpointWish.AT_INTERVAL
    return finish(command, request, checkpoint=wish).version


def _drop_protection(command: Command) -> int:
    """Remove the protection of old checkpoints once the versions they protect have been removed."""
    snapshot, log = command.snapshot, command.log
    protected = snapshot.config.properties.require_checkpoint_protection_before_version
    oldest = min(list_log(log.store).commits, default=snapshot.version)
    if oldest < protected:
        raise InvalidRequestError(
            Message.FEATURE_DROP_CHECKPOINT_PROTECTION_WAIT,
            oldest_version=oldest,
            protected_before=protected,
        )
    _switch_off(command, Removal(unset=(CHECKPOINT_PROTECTION_PROPERTY,)))
    following = next_change(command)
    metadata = following.snapshot.metadata
    protocol = without_feature(following.snapshot.protocol, CHECKPOINT_PROTECTION)
    return commit_change(
        following,
        TableConfig.of(protocol, metadata),
        operation=drop_feature(CHECKPOINT_PROTECTION, truncate_history=True),
    )


def _nothing(_: Snapshot) -> None:
    """Require nothing of the table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Removal:
    """Steps that remove a feature from a table."""

    protects_history: bool = False
    """Whether readers know it, so that older versions need the barrier."""
    switched_off: tuple[tuple[str, str], ...] = ()
    """Properties set first, where the feature is on."""
    unset: tuple[str, ...] = ()
    """Properties unset first."""
    forgotten: tuple[str, ...] = ()
    """Properties removed in the same commit as the feature."""
    require: Callable[[Snapshot], None] = field(default=_nothing)
    """Precondition on the table; its error names the user's next step."""


def _require_no_constraints(snapshot: Snapshot) -> None:
    names = snapshot.config.check_constraints
    if names:
        raise InvalidRequestError(
            Message.CANNOT_DROP_CHECK_CONSTRAINT_FEATURE,
            names=", ".join(f"`{name}`" for name in names),
            constraints=tuple(names),
        )


def num_with_vectors(snapshot: Snapshot) -> int:
    """Return the number of files with a deletion vector."""
    vectors = snapshot.files.rows["deletion_vector"]
    return len(vectors) - int(vectors.null_count)


def _require_no_vectors(snapshot: Snapshot) -> None:
    if carrying := num_with_vectors(snapshot):
        raise _used_again(DELETION_VECTORS, f"gave {carrying} file(s) deletion vectors")


def _require_no_widened_columns(snapshot: Snapshot) -> None:
    if widened_fields(snapshot.config):
        raise _used_again("typeWidening", "changed the type of a column")


def _require_no_mapping(snapshot: Snapshot) -> None:
    if has_mapping(snapshot.metadata):
        raise _used_again(COLUMN_MAPPING, "switched column mapping on")


def _used_again(name: str, what: str) -> InvalidRequestError:
    return InvalidRequestError(
        Message.FEATURE_DROP_CONFLICT_REVALIDATION_FAIL_USED_AGAIN, what=what, feature=name
    )


def _require_no_domains(snapshot: Snapshot) -> None:
    if snapshot.domain_metadata:
        raise UnsupportedError(
            Message.OPERATION_NOT_ALLOWED_DOMAIN_METADATA,
            domain_metadata=", ".join(snapshot.domain_metadata),
            domains=tuple(snapshot.domain_metadata),
        )


_TYPE_WIDENING = Removal(
    protects_history=True,
    unset=("delta.enableTypeWidening",),
    require=_require_no_widened_columns,
)

REMOVALS = {
    COLUMN_MAPPING: Removal(protects_history=True, require=_require_no_mapping),
    "checkConstraints": Removal(require=_require_no_constraints),
    DELETION_VECTORS: Removal(
        protects_history=True,
        unset=("delta.enableDeletionVectors",),
        require=_require_no_vectors,
    ),
    "domainMetadata": Removal(require=_require_no_domains),
    "inCommitTimestamp": Removal(
        switched_off=(("delta.enableInCommitTimestamps", "false"),),
        unset=(
            "delta.inCommitTimestampEnablementTimestamp",
            "delta.inCommitTimestampEnablementVersion",
        ),
    ),
    "materializePartitionColumns": Removal(
        forgotten=("delta.enableMaterializePartitionColumnsFeature",)
    ),
    ROW_TRACKING: Removal(
        switched_off=(
            ("delta.enableRowTracking", "false"),
            ("delta.rowTrackingSuspended", "true"),
        ),
        forgotten=(
            "delta.enableRowTracking",
            "delta.rowTrackingSuspended",
            "delta.rowTracking.materializedRowIdColumnName",
            "delta.rowTracking.materializedRowCommitVersionColumnName",
        ),
    ),
    "typeWidening": _TYPE_WIDENING,
    "typeWidening-preview": _TYPE_WIDENING,
    "v2Checkpoint": Removal(
        protects_history=True, switched_off=(("delta.checkpointPolicy", "classic"),)
    ),
    "vacuumProtocolCheck": Removal(protects_history=True),
}


def require_droppable(snapshot: Snapshot, name: str, *, truncate_history: bool) -> None:
    """Check that a feature exists, can be dropped, and is not needed by another."""
    if not snapshot.config.supports(name):
        raise _not_there(name)
    if name not in REMOVALS and name != CHECKPOINT_PROTECTION:
        raise InvalidRequestError(Message.FEATURE_DROP_NONREMOVABLE_FEATURE, feature=name)
    _require_truncation(name, truncate_history=truncate_history)
    if needed_by := dependents(snapshot.protocol, name):
        raise InvalidRequestError(
            Message.FEATURE_DROP_DEPENDENT_FEATURE,
            needed_by=", ".join(needed_by),
            feature=name,
            dependents=needed_by,
        )


def _not_there(name: str) -> InvalidRequestError:
    if name in FEATURES_BY_NAME:
        return InvalidRequestError(Message.FEATURE_DROP_FEATURE_NOT_PRESENT, feature=name)
    if is_delta_property(name):
        return InvalidRequestError(Message.FEATURE_DROP_FEATURE_IS_DELTA_PROPERTY, property=name)
    return InvalidRequestError(Message.FEATURE_DROP_UNSUPPORTED_CLIENT_FEATURE, feature=name)


def _require_truncation(name: str, *, truncate_history: bool) -> None:
    if name == CHECKPOINT_PROTECTION:
        if not truncate_history:
            raise InvalidRequestError(Message.FEATURE_DROP_CHECKPOINT_PROTECTION_NEEDS_TRUNCATION)
        return
    if truncate_history and not REMOVALS[name].protects_history:
        raise InvalidRequestError(Message.FEATURE_DROP_HISTORY_TRUNCATION_NOT_ALLOWED, feature=name)


def settings_to_change(removal: Removal, snapshot: Snapshot) -> dict[str, str]:
    """Return the properties to set first, without those that have their value already."""
    configuration = snapshot.metadata.configuration
    return {
        key: value
        for key, value in removal.switched_off
        if configuration.get(key, _DEFAULTS.get(key)) != value
    }


def keys_to_unset(removal: Removal, snapshot: Snapshot) -> tuple[str, ...]:
    """Return the properties to unset first."""
    return tuple(_present(removal.unset, snapshot))


def _present(keys: tuple[str, ...], snapshot: Snapshot) -> Iterator[str]:
    return (key for key in keys if key in snapshot.metadata.configuration)


_DEFAULTS = {
    "delta.enableInCommitTimestamps": "false",
    "delta.enableRowTracking": "false",
    "delta.checkpointPolicy": "classic",
}
"""Values of these settings where they are not set."""
