"""DROP FEATURE ... TRUNCATE HISTORY: the feature goes once no version that can be read used it.

Nothing protects older versions then. A first call takes the feature out of use; a later one, when
the versions before have expired (``delta.dropFeatureTruncateHistory.retentionDuration``, 24 hours),
removes them from the log, and the feature from the protocol.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from puredelta.commands.command import Command
from puredelta.errors import ErrorCode, InvalidRequestError
from puredelta.log.checkpoint.cleanup import truncate_log
from puredelta.log.replay.segment import list_log
from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.actions.actions import Metadata
from puredelta.protocol.features.column_mapping import FIELD_ID, PHYSICAL_NAME
from puredelta.protocol.features.feature_usage import TYPE_CHANGES
from puredelta.protocol.features.properties import ColumnMappingMode, TableProperties


def _uses_mapping(metadata: Metadata) -> bool:
    mode = TableProperties.of(metadata.configuration).column_mapping_mode
    keys = (PHYSICAL_NAME, FIELD_ID)
    return mode is not ColumnMappingMode.NONE or any(
        f'"{k}"' in metadata.schema_string for k in keys
    )


def _uses_widening(metadata: Metadata) -> bool:
    enabled = TableProperties.of(metadata.configuration).enable_type_widening
    return enabled or f'"{TYPE_CHANGES}"' in metadata.schema_string


USES: Mapping[str, Callable[[Metadata], bool]] = {
    "columnMapping": _uses_mapping,
    "typeWidening": _uses_widening,
    "typeWidening-preview": _uses_widening,
}
"""Features whose traces in older versions can be told, all of them by the metadata."""


def require_history_without(command: Command, name: str) -> None:
    """Remove versions that have expired, and require that no other one used the feature.

    Raises:
        InvalidRequestError: one did (FEATURE_DROP_HISTORICAL_VERSIONS_EXIST).
    """
    log, properties = command.log, command.snapshot.config.properties
    truncate_log(log.store, properties, now_ms=command.clock())
    if _history_uses(log, command.snapshot.version, USES[name]):
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


def _history_uses(log: TableLog, version: int, uses: Callable[[Metadata], bool]) -> bool:
    """Look at the oldest version that can be read, and at every commit since."""
    listing = list_log(log.store)
    oldest = 0 if 0 in listing.commits else min(listing.checkpoints, default=version)
    if uses(log.snapshot(version=oldest).metadata):
        return True
    return any(
        isinstance(action, Metadata) and uses(action)
        for commit in log.read_commits(oldest, through=version)
        for action in commit.actions
    )
