"""DROP FEATURE: a table supports a feature no more (``DeltaTable.dropFeatureSupport``).

In commits of its own each: what uses the feature goes; then, for a feature that readers know,
three empty commits with a checkpoint each are put behind the versions that used it; then the
feature leaves the protocol, and the checkpoints are protected from then on.
"""

from __future__ import annotations

from dataclasses import replace

import pyarrow.compute as pc
from pyspark.sql import SparkSession

from puredelta.commands.alter.change import TableChange, finish, start
from puredelta.commands.alter.removable import (
    CHECKPOINT_PROTECTION,
    CHECKPOINT_PROTECTION_PROPERTY,
    NEEDS_REWRITE,
    REMOVALS,
    Removal,
    keys_to_unset,
    settings_to_change,
)
from puredelta.errors import DeltaError, ErrorCode, InvalidRequestError, UnsupportedError
from puredelta.log.commit.row_ids import ROW_TRACKING, ROW_TRACKING_DOMAIN
from puredelta.log.commit.transaction import CheckpointWish
from puredelta.log.files.clock import wall_clock
from puredelta.log.replay.segment import list_log
from puredelta.log.replay.snapshot import Snapshot
from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.actions.actions import (
    Add,
    DeletionVectorDescriptor,
    DomainMetadata,
    Metadata,
    Protocol,
    Remove,
)
from puredelta.protocol.actions.deletion_vector import vector_path
from puredelta.protocol.actions.operations import Operation
from puredelta.protocol.actions.table_operations import (
    EMPTY_COMMIT,
    drop_feature,
    set_properties,
    unset_properties,
)
from puredelta.protocol.features.feature_registry import FEATURES_BY_NAME
from puredelta.protocol.features.property_checks import is_delta_property
from puredelta.protocol.features.protocol_changes import dependents, without_feature
from puredelta.protocol.features.protocol_versions import with_features
from puredelta.protocol.table.table_config import TableConfig

BARRIER_CHECKPOINTS = 3
"""A reader that cannot read one checkpoint tries two older ones before it gives up."""

_UNBACKFILL = "ROW TRACKING UNBACKFILL"
_VECTOR_TOMBSTONES = Operation(name="Deletion Vector Tombstones")


def drop_feature_support(
    spark: SparkSession, log: TableLog, name: str, *, truncate_history: bool = False
) -> int:
    """Drop a feature; return the version that does without it.

    Raises:
        InvalidRequestError: the table does not support it (FEATURE_DROP_FEATURE_NOT_PRESENT),
            another feature needs it, nobody can drop it
            (FEATURE_DROP_NONREMOVABLE_FEATURE), or something in the table uses it and only
            the user can say what becomes of that.
        UnsupportedError: files would have to be rewritten, or history truncated, which is
            not implemented.
        ConflictError: somebody else changed the table meanwhile; run it again.
    """
    snapshot, _ = start(spark, log)
    require_droppable(snapshot, name, truncate_history=truncate_history)
    if name == CHECKPOINT_PROTECTION:
        return _drop_protection(spark, log)
    removal = REMOVALS[name]
    removal.require(snapshot)
    _switch_off(spark, log, removal)
    if name == ROW_TRACKING:
        while _take_row_ids(spark, log):
            pass
    if name == "deletionVectors":
        _keep_vector_files(spark, log)
    if removal.protects_history:
        for _ in range(BARRIER_CHECKPOINTS):
            _put_barrier(spark, log, name)
    return _downgrade(spark, log, name, removal)


def require_droppable(snapshot: Snapshot, name: str, *, truncate_history: bool) -> None:
    """Check that a feature is there, may go, and nothing else needs it.

    Raises:
        InvalidRequestError, UnsupportedError: see `drop_feature_support`.
    """
    if not snapshot.config.supports(name):
        raise _not_there(name)
    if name in NEEDS_REWRITE:
        raise UnsupportedError(
            f"Cannot drop {name}: {NEEDS_REWRITE[name]}, which is not implemented.",
            code=ErrorCode.FEATURE_DROP_NONREMOVABLE_FEATURE,
            feature=name,
        )
    if name not in REMOVALS and name != CHECKPOINT_PROTECTION:
        raise InvalidRequestError(
            f"Cannot drop {name} because dropping this feature is not supported.",
            code=ErrorCode.FEATURE_DROP_NONREMOVABLE_FEATURE,
            feature=name,
        )
    _require_truncation(name, truncate_history=truncate_history)
    if needed_by := dependents(snapshot.protocol, name):
        raise InvalidRequestError(
            f"Cannot drop table feature `{name}` because some other features "
            f"({', '.join(needed_by)}) in this table depends on `{name}`. Consider dropping them "
            "first before dropping this feature.",
            code=ErrorCode.FEATURE_DROP_DEPENDENT_FEATURE,
            feature=name,
            dependents=needed_by,
        )


def _not_there(name: str) -> InvalidRequestError:
    if name in FEATURES_BY_NAME:
        return InvalidRequestError(
            f"Cannot drop {name} from this table because it is not currently present in the "
            "table's protocol.",
            code=ErrorCode.FEATURE_DROP_FEATURE_NOT_PRESENT,
            feature=name,
        )
    if is_delta_property(name):
        return InvalidRequestError(
            f"Cannot drop `{name}` from this table because this is a delta table property and not "
            "a table feature.",
            code=ErrorCode.FEATURE_DROP_FEATURE_IS_DELTA_PROPERTY,
            property=name,
        )
    return InvalidRequestError(
        f"Cannot drop {name} because it is no feature that puredelta knows.",
        code=ErrorCode.FEATURE_DROP_UNSUPPORTED_CLIENT_FEATURE,
        feature=name,
    )


def _require_truncation(name: str, *, truncate_history: bool) -> None:
    if name == CHECKPOINT_PROTECTION:
        if not truncate_history:
            raise InvalidRequestError(
                "Could not drop the Checkpoint Protection feature. This feature can only be "
                "dropped by truncating history (truncateHistory=True).",
                code=ErrorCode.FEATURE_DROP_CHECKPOINT_PROTECTION_NEEDS_TRUNCATION,
            )
        return
    if not truncate_history:
        return
    if not REMOVALS[name].protects_history:
        raise InvalidRequestError(
            f"The particular feature does not require history truncation: {name}.",
            code=ErrorCode.FEATURE_DROP_HISTORY_TRUNCATION_NOT_ALLOWED,
            feature=name,
        )
    raise UnsupportedError(
        f"Dropping {name} by truncating history is not implemented. Drop it without: the versions "
        "before are put behind protected checkpoints instead.",
        code=ErrorCode.OPERATION_NOT_ALLOWED,
        feature=name,
    )


# --- the commits ----------------------------------------------------------------------------


def _switch_off(spark: SparkSession, log: TableLog, removal: Removal) -> None:
    snapshot, transaction = start(spark, log)
    changed = settings_to_change(removal, snapshot)
    gone = keys_to_unset(removal, snapshot)
    if not changed and not gone:
        return
    kept = {k: v for k, v in snapshot.metadata.configuration.items() if k not in gone}
    operation = (
        unset_properties([*gone, *changed], if_exists=True)
        if removal.unset
        else set_properties(changed)
    )
    metadata = replace(snapshot.metadata, configuration={**kept, **changed})
    config = TableConfig.of(snapshot.protocol, metadata)
    finish(transaction, snapshot, TableChange(config=config, operation=operation))


def _take_row_ids(spark: SparkSession, log: TableLog) -> bool:
    """Commit files again without their row ids; tell whether there were any."""
    snapshot, transaction = start(spark, log)
    tracked = snapshot.files.select(pc.is_valid(snapshot.files.rows["base_row_id"]))
    if not len(tracked):
        return False
    adds = [_without_row_ids(add) for add in tracked.adds()]
    transaction.read_files(None, tracked)
    operation = Operation(name=_UNBACKFILL, parameters={"batchId": "0"})
    transaction.commit(adds, operation, metrics={}, is_blind_append=False)
    return True


def _without_row_ids(add: Add) -> Add:
    return replace(add, data_change=False, base_row_id=None, default_row_commit_version=None)


def _keep_vector_files(spark: SparkSession, log: TableLog) -> None:
    """Leave tombstones of vectors' files, so that a VACUUM that knows no vectors spares them."""
    snapshot, transaction = start(spark, log)
    rows = snapshot.tombstones["deletion_vector"].drop_null().to_pylist()
    paths = {
        vector_path(DeletionVectorDescriptor(**row)) for row in rows if row["storage_type"] == "u"
    }
    now_ms = wall_clock()
    removes = [
        Remove(path=path, deleted_ms=now_ms, data_change=False)
        for path in sorted(path for path in paths if path is not None)
    ]
    if removes:
        transaction.commit(removes, _VECTOR_TOMBSTONES, metrics={})


def _put_barrier(spark: SparkSession, log: TableLog, name: str) -> None:
    _, transaction = start(spark, log)
    committed = transaction.commit([], EMPTY_COMMIT, metrics={}, checkpoint=CheckpointWish.ALWAYS)
    if committed.version not in list_log(log.store, start=committed.version).checkpoints:
        raise DeltaError(
            f"Dropping {name} failed due to a failure in checkpoint creation. Please try again "
            "later.",
            code=ErrorCode.FEATURE_DROP_CHECKPOINT_FAILED,
            feature=name,
        )


def _downgrade(spark: SparkSession, log: TableLog, name: str, removal: Removal) -> int:
    """Check everything once more, against the version the commit is based on, and commit."""
    snapshot, transaction = start(spark, log)
    removal.require(snapshot)
    if settings_to_change(removal, snapshot) or keys_to_unset(removal, snapshot):
        raise InvalidRequestError(
            f"Cannot drop {name} because a concurrent transaction enabled it again. Please try "
            "the operation again.",
            code=ErrorCode.FEATURE_DROP_CONFLICT_REVALIDATION_FAIL,
            feature=name,
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
    transaction.read_files(None, snapshot.files)
    committed = transaction.commit(
        actions,
        drop_feature(name, truncate_history=False),
        metrics={},
        is_blind_append=False,
        checkpoint=CheckpointWish.ALWAYS
        if removal.protects_history
        else CheckpointWish.AT_INTERVAL,
    )
    return committed.version


def _drop_protection(spark: SparkSession, log: TableLog) -> int:
    """Drop the protection of old checkpoints once the versions they protect are gone."""
    snapshot, _ = start(spark, log)
    protected = snapshot.config.properties.require_checkpoint_protection_before_version
    oldest = min(list_log(log.store).commits, default=snapshot.version)
    if oldest < protected:
        raise InvalidRequestError(
            "The operation did not succeed because there are still traces of dropped features in "
            f"the table history: it begins with version {oldest}, and versions before {protected} "
            "used them. CheckpointProtection cannot be dropped until these historical versions "
            "have expired (delta.logRetentionDuration).",
            code=ErrorCode.FEATURE_DROP_CHECKPOINT_PROTECTION_WAIT,
            oldest_version=oldest,
            protected_before=protected,
        )
    _switch_off(spark, log, Removal(unset=(CHECKPOINT_PROTECTION_PROPERTY,)))
    snapshot, transaction = start(spark, log)
    change = TableChange(
        config=TableConfig.of(
            without_feature(snapshot.protocol, CHECKPOINT_PROTECTION), snapshot.metadata
        ),
        operation=drop_feature(CHECKPOINT_PROTECTION, truncate_history=True),
    )
    return finish(transaction, snapshot, change)
