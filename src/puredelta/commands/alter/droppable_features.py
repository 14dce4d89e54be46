"""Features that DROP FEATURE can drop, and the conditions of each.

A feature that readers must know can be unused now and still be needed by older versions of the
table. So a barrier of checkpoints is written after those versions, which no clean-up may remove
(the feature ``checkpointProtection``). A feature that only writers must know needs no barrier.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from puredelta.commands.alter.remove_features import has_mapping, widened_fields
from puredelta.errors import InvalidRequestError, Message, UnsupportedError
from puredelta.log.replay.snapshot import Snapshot
from puredelta.protocol.features.feature_registry import FEATURES_BY_NAME
from puredelta.protocol.features.property_checks import is_delta_property
from puredelta.protocol.features.protocol_changes import dependents
from puredelta.protocol.table.row_tracking import ROW_TRACKING

COLUMN_MAPPING = "columnMapping"
DELETION_VECTORS = "deletionVectors"
CHECKPOINT_PROTECTION = "checkpointProtection"
CHECKPOINT_PROTECTION_PROPERTY = "delta.requireCheckpointProtectionBeforeVersion"


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
