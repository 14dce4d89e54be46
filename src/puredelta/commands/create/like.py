"""CREATE TABLE ... LIKE: the definition of a table, for another one without its rows."""

from __future__ import annotations

from collections.abc import Mapping

from puredelta.commands.create.definition import TableDefinition
from puredelta.log.replay.snapshot import Snapshot
from puredelta.protocol.actions.actions import Protocol
from puredelta.protocol.features.column_mapping import without_mapping
from puredelta.protocol.features.filled_columns import without_high_water_marks
from puredelta.protocol.features.properties import FEATURE_PREFIX
from puredelta.protocol.features.protocol_versions import supported_features
from puredelta.protocol.table.clustering import CLUSTERING, clustering_columns

_OF_THE_SOURCE_ALONE = frozenset(
    {
        "delta.columnMapping.maxColumnId",
        "delta.rowTracking.materializedRowIdColumnName",
        "delta.rowTracking.materializedRowCommitVersionColumnName",
        "delta.inCommitTimestampEnablementTimestamp",
        "delta.inCommitTimestampEnablementVersion",
        "delta.requireCheckpointProtectionBeforeVersion",
    }
)
_TABLE_FEATURES_WRITER = 7


def definition_like(source: Snapshot, properties: Mapping[str, str]) -> TableDefinition:
    """Return a definition that makes a table as the source is; ``properties`` are set over its.

    Columns, partitioning, clustering, properties, comment and protocol are the source's;
    column ids and what identity columns have counted are not.
    """
    config = source.config
    own = {
        key: value
        for key, value in source.metadata.configuration.items()
        if key not in _OF_THE_SOURCE_ALONE
    }
    clustered = clustering_columns(config, source.domain_metadata)
    return TableDefinition(
        columns=without_high_water_marks(without_mapping(config.schema)),
        partition_columns=config.partition_columns,
        clustering_columns=clustered if config.supports(CLUSTERING) else None,
        properties={**_protocol_wishes(source.protocol), **own, **properties},
        description=source.metadata.description,
    )


def _protocol_wishes(protocol: Protocol) -> dict[str, str]:
    """Return the properties that ask for a protocol, but for the feature that a clause asks for."""
    if protocol.min_writer_version < _TABLE_FEATURES_WRITER:
        return {
            "delta.minReaderVersion": str(protocol.min_reader_version),
            "delta.minWriterVersion": str(protocol.min_writer_version),
        }
    wanted = supported_features(protocol) - {CLUSTERING}
    return {FEATURE_PREFIX + name: "supported" for name in sorted(wanted)}
