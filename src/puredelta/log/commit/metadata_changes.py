"""Which changes of metadata and protocol by a winning commit our commit may adopt.

Rules 1 and 2 of conflict detection (X-21, X-22). A change may be adopted if the files that we
wrote before it are also right after it, without reading any file again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from puredelta.protocol.actions.actions import Metadata, Protocol
from puredelta.protocol.features.column_mapping import without_mapping
from puredelta.protocol.features.protocol_versions import supported_features
from puredelta.protocol.schema.schema_json import parse_schema
from puredelta.protocol.table.row_tracking import ROW_TRACKING

FEATURES_SAFE_TO_GAIN = frozenset(
    {
        "appendOnly",
        "changeDataFeed",
        "columnMapping",
        "deletionVectors",
        "domainMetadata",
        "icebergCompatV1",
        "icebergCompatV2",
        "icebergCompatV3",
        "inCommitTimestamp",
        "rowTracking",
        "timestampNtz",
        "typeWidening",
        "typeWidening-preview",
        "v2Checkpoint",
        "vacuumProtocolCheck",
    }
)
"""Features that a winning commit may add: they need nothing of rows that are already written, or
only what every attempt to commit does again (row ids, in-commit timestamps). Other features, and
unknown ones, may need more."""

_MAPPING_MODE = "delta.columnMapping.mode"
_ROW_TRACKING = "delta.enableRowTracking"

_SWITCHED_ON: Mapping[str, tuple[str, str]] = {
    # property: (the value that may be adopted, the feature that must be supported)
    _ROW_TRACKING: ("true", ROW_TRACKING),
    "delta.enableDeletionVectors": ("true", "deletionVectors"),
    "delta.enableInCommitTimestamps": ("true", "inCommitTimestamp"),
    "delta.checkpointPolicy": ("v2", "v2Checkpoint"),
    _MAPPING_MODE: ("name", "columnMapping"),
}
_COMPANIONS: Mapping[str, str] = {
    # property: the switch that must be on for its value to change
    "delta.rowTracking.materializedRowIdColumnName": _ROW_TRACKING,
    "delta.rowTracking.materializedRowCommitVersionColumnName": _ROW_TRACKING,
    "delta.inCommitTimestampEnablementVersion": "delta.enableInCommitTimestamps",
    "delta.inCommitTimestampEnablementTimestamp": "delta.enableInCommitTimestamps",
    "delta.columnMapping.maxColumnId": _MAPPING_MODE,
}
_CATALOG_IDS = frozenset({"io.unitycatalog.tableId", "ucTableId"})


def unsafe_protocol_change(ours: Protocol, winning: Protocol) -> str | None:
    """Return why a commit prepared under ``ours`` is wrong under ``winning``; None if it is not."""
    before, after = supported_features(ours), supported_features(winning)
    if lost := sorted(before - after):
        return f"it dropped the table feature(s) {', '.join(lost)}"
    if gained := sorted(after - before - FEATURES_SAFE_TO_GAIN):
        return f"it added the table feature(s) {', '.join(gained)}"
    return None


def unsafe_metadata_change(ours: Metadata, winning: Metadata, protocol: Protocol) -> str | None:
    """Return why a commit prepared under ``ours`` is wrong under ``winning``; None if it is not.

    ``protocol`` is the one after the winning commit. Only switching a feature on may be adopted:
    in the configuration and, for column mapping by name, in the metadata of fields. The list is
    that of delta-spark, with nested fields compared as well.
    """
    if replace(ours, configuration={}, schema_string="") != replace(
        winning, configuration={}, schema_string=""
    ):
        return "it changed the table's name, description, id, format or partition columns"
    features = supported_features(protocol)
    if unsafe := sorted(_unsafe_properties(ours.configuration, winning.configuration, features)):
        return f"it changed the table properties {', '.join(unsafe)}"
    if ours.schema_string != winning.schema_string and not _only_mapped(ours, winning):
        return "it changed the schema"
    return None


def _unsafe_properties(
    ours: Mapping[str, str], winning: Mapping[str, str], features: frozenset[str]
) -> frozenset[str]:
    changed = {key for key in ours.keys() | winning.keys() if ours.get(key) != winning.get(key)}
    return frozenset(
        key
        for key in changed
        if key not in _CATALOG_IDS and not _may_adopt(key, ours, winning, features)
    )


def _may_adopt(
    key: str, ours: Mapping[str, str], winning: Mapping[str, str], features: frozenset[str]
) -> bool:
    if key in _COMPANIONS:
        switch = _COMPANIONS[key]
        return key in winning and winning.get(switch) == _SWITCHED_ON[switch][0]
    value, feature = _SWITCHED_ON.get(key, (None, None))
    if key == _MAPPING_MODE and ours.get(key, "none") != "none":
        return False
    return value is not None and winning.get(key) == value and feature in features


def _only_mapped(ours: Metadata, winning: Metadata) -> bool:
    """Return whether the schemas differ only in column mapping that was switched on."""
    if ours.configuration.get(_MAPPING_MODE, "none") != "none":
        return False
    return without_mapping(parse_schema(ours.schema_string)) == without_mapping(
        parse_schema(winning.schema_string)
    )
