"""DROP FEATURE ... TRUNCATE HISTORY: the feature goes once no version that can be read used it.

Nothing protects older versions then. A first call takes the feature out of use; a later one, when
the versions before have expired (``delta.dropFeatureTruncateHistory.retentionDuration``, 24 hours),
removes them from the log, and the feature from the protocol.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Mapping

from puredelta.commands.alter.remove_mapping import has_mapping
from puredelta.commands.command import Command
from puredelta.errors import ErrorCode, InvalidRequestError
from puredelta.log.checkpoint.cleanup import truncate_log
from puredelta.log.replay.segment import CheckpointFiles, list_log
from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.actions.actions import Action, Add, Metadata, Remove
from puredelta.protocol.actions.log_paths import V2Checkpoint, parse_log_name
from puredelta.protocol.features.feature_usage import TYPE_CHANGES
from puredelta.protocol.features.properties import CheckpointPolicy, TableProperties

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
    """What the feature asks for is done by who vacuums, and leaves no trace."""
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
    """Remove versions that have expired, and require that no other one used the feature.

    Raises:
        InvalidRequestError: one did (FEATURE_DROP_HISTORICAL_VERSIONS_EXIST).
    """
    log, properties = command.log, command.snapshot.config.properties
    truncate_log(log.store, properties, now_ms=command.clock())
    if _history_uses(log, command.snapshot.version, name):
        raise InvalidRequestError(
            f"Cannot drop {name} because the Delta log contains historical versions that use the "
            f"feature. Please wait until the history retention period {_periods(command)} has "
            "passed since the feature was last active, and repeat this command; or drop it "
            "without TRUNCATE HISTORY.",
            code=ErrorCode.FEATURE_DROP_HISTORICAL_VERSIONS_EXIST,
            feature=name,
        )


def partly_dropped(command: Command, name: str) -> InvalidRequestError:
    """Return the error that says that the feature is out of use, and what is left to do."""
    return InvalidRequestError(
        f"Dropping {name} was partially successful. The feature is now no longer used in the "
        "current version of the table. However, the feature is still present in historical "
        "versions of the table. The table feature cannot be dropped from the table protocol until "
        "these historical versions have expired. To drop the table feature from the protocol, "
        "please wait for the historical versions to expire, and then repeat this command: "
        f"{_periods(command)}. Without TRUNCATE HISTORY it can be dropped now.",
        code=ErrorCode.FEATURE_DROP_WAIT_FOR_RETENTION_PERIOD,
        feature=name,
    )


def _periods(command: Command) -> str:
    properties = command.snapshot.config.properties
    return (
        f"(delta.logRetentionDuration={properties.log_retention}, with TRUNCATE HISTORY "
        f"delta.dropFeatureTruncateHistory.retentionDuration={properties.truncated_log_retention})"
    )


def _history_uses(log: TableLog, version: int, name: str) -> bool:
    """Look at the oldest version that can be read, and at every commit since.

    Its tombstones do not count: who does not know the feature does not need them.
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
    """Tell by its name; one with a classic name was written under the policy ``v2``."""
    names = (posixpath.basename(file.path) for file in checkpoint.files)
    return any(isinstance(parse_log_name(name), V2Checkpoint) for name in names)
