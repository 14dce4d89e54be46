"""The rules of IcebergCompat, versions 1 and 2, which let readers of Iceberg read data files.

A table keeps the rules while ``delta.enableIcebergCompatV<n>`` is true (sections "Iceberg
Compatibility V1" and "V2"). What files hold is decided by `TableConfig.file_schema` and
`TableConfig.columns_with_ids`; the rest is checked here for every commit. Error classes are those
of delta-spark.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping

from puredelta.errors import Message, UnsupportedError
from puredelta.protocol.actions.actions import Action, Add
from puredelta.protocol.features.column_mapping import MAX_COLUMN_ID, assign_nested_ids
from puredelta.protocol.features.feature_usage import TYPE_CHANGES
from puredelta.protocol.features.properties import ColumnMappingMode, TableProperties
from puredelta.protocol.features.type_widening import iceberg_widens
from puredelta.protocol.schema.schema_json import simple_string
from puredelta.protocol.schema.spatial import SpatialName
from puredelta.protocol.schema.traversal import fields_by_path, types_by_path
from puredelta.protocol.schema.types import (
    COLLATIONS,
    VOID,
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    PrimitiveType,
    StructType,
)
from puredelta.protocol.table.table_config import TableConfig

MAPPING_MODE = "delta.columnMapping.mode"
ENABLED_FORMATS = "delta.universalFormat.enabledFormats"
ICEBERG = "iceberg"
_ATOMIC = "delta.universalFormat.iceberg.atomicConversion.supported"
"""A mark that delta-spark gives to such tables when it makes them."""
VERSION_MAX = 2
"""The newest version that is part of the protocol."""

_TAG = "ICEBERG_COMPAT_VERSION"
"""The tag that delta-spark gives to a file that keeps the rules of a version."""
_FIRST_WITH_IDS = 2
_V2_TYPES = frozenset(
    (
        *("byte", "short", "integer", "long", "float", "double", "string", "binary"),
        *("boolean", "timestamp", "timestamp_ntz", "date"),
    )
)


def compat_key(version: int) -> str:
    """Return the property that switches a version on.

    >>> compat_key(2)
    'delta.enableIcebergCompatV2'
    """
    return f"delta.enableIcebergCompatV{version}"


def compat_tags(config: TableConfig) -> dict[str, str | None] | None:
    """Return the tags of new files of a table, which are those of delta-spark."""
    return None if config.iceberg_compat is None else {_TAG: str(config.iceberg_compat)}


def is_tagged(add: Add, version: int | None) -> bool:
    """Return whether the writer of a file says that it keeps the rules of a version."""
    return version is not None and (add.tags or {}).get(_TAG) == str(version)


def other_tags(add: Add) -> dict[str, str | None]:
    """Return the tags of a file that say nothing of these rules: its copy may not keep them."""
    return {name: text for name, text in (add.tags or {}).items() if name != _TAG}


def with_required_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """Return the properties of a new table with those that IcebergCompat asks for.

    >>> with_required_properties({"delta.enableIcebergCompatV1": "true"})[MAPPING_MODE]
    'name'
    """
    if not TableProperties.of(properties).iceberg_compat_versions:
        return dict(properties)
    return {MAPPING_MODE: ColumnMappingMode.NAME.value, _ATOMIC: "true", **properties}


def with_nested_ids(
    schema: StructType, configuration: Mapping[str, str]
) -> tuple[StructType, dict[str, str]]:
    """Give ids to elements, keys and values where the properties ask for them.

    Returns the schema, and the properties with the highest id.
    """
    properties = TableProperties.of(configuration)
    versions = properties.iceberg_compat_versions
    is_mapped = properties.column_mapping_mode is not ColumnMappingMode.NONE
    if not is_mapped or max(versions, default=0) < _FIRST_WITH_IDS:
        return schema, dict(configuration)
    known = properties.column_mapping_max_id
    schema, highest = assign_nested_ids(schema, max_column_id=known)
    return schema, {**configuration, MAX_COLUMN_ID: str(highest)}


def require_iceberg_rules(before: TableConfig | None, after: TableConfig) -> None:
    """Require that a table keeps the rules after a change; ``before`` is None for a new table.

    Raises:
        UnsupportedError: it would not (DELTA_ICEBERG_COMPAT_VIOLATION), or it asks for Iceberg
            metadata without the rules (DELTA_UNIVERSAL_FORMAT_VIOLATION).
    """
    versions = after.properties.iceberg_compat_versions
    if not versions:
        _require_compat_for_export(after)
        return
    version = versions[0]
    if len(versions) > 1:
        raise UnsupportedError(Message.ICEBERG_COMPAT_VERSION_MUTUAL_EXCLUSIVE, version=version)
    if after.column_mapping is ColumnMappingMode.NONE:
        raise UnsupportedError(
            Message.ICEBERG_COMPAT_WRONG_REQUIRED_TABLE_PROPERTY,
            version=version,
            key=MAPPING_MODE,
            actualValue="NoMapping",
            requiredValue=ColumnMappingMode.NAME.value,
        )
    if after.supports("deletionVectors") and after.properties.enable_deletion_vectors:
        raise UnsupportedError(
            Message.ICEBERG_COMPAT_DELETION_VECTORS_SHOULD_BE_DISABLED, version=version
        )
    _require_partitioning(version, before, after)
    _require_types(version, after.schema)
    _require_widenings(version, after.schema)


def require_iceberg_files(actions: Iterable[Action], after: TableConfig) -> None:
    """Require a row count, and no deletion vector, of each file that a commit adds.

    Raises:
        UnsupportedError: a file has none, or has a vector (DELTA_ICEBERG_COMPAT_VIOLATION).
    """
    version = after.iceberg_compat
    if version is None:
        return
    for action in actions:
        if not isinstance(action, Add):
            continue
        if action.deletion_vector is not None:
            raise UnsupportedError(
                Message.ICEBERG_COMPAT_DELETION_VECTORS_NOT_PURGED,
                version=version,
                path=action.path,
            )
        if json.loads(action.stats or "{}").get("numRecords") is None:
            raise UnsupportedError(
                Message.ICEBERG_COMPAT_FILES_NOT_ICEBERG_COMPAT, version=version, path=action.path
            )


def _require_compat_for_export(after: TableConfig) -> None:
    if ICEBERG in after.properties.universal_formats:
        raise UnsupportedError(
            Message.UNIVERSAL_FORMAT_VIOLATION_ICEBERG_COMPAT_REQUIRED, format=ICEBERG
        )


def _require_partitioning(version: int, before: TableConfig | None, after: TableConfig) -> None:
    if before is None or not before.partition_columns:
        return
    if before.partition_columns != after.partition_columns:
        raise UnsupportedError(
            Message.ICEBERG_COMPAT_REPLACE_TABLE_CHANGE_PARTITION_NAMES,
            version=version,
            prevPartitionSpec=f"({','.join(before.partition_columns)})",
            newPartitionSpec=f"({','.join(after.partition_columns)})",
        )


def _require_types(version: int, schema: StructType) -> None:
    unknown = next(_unknown_types(version, schema), None)
    if unknown is None:
        return
    raise UnsupportedError(
        Message.ICEBERG_COMPAT_UNSUPPORTED_DATA_TYPE,
        version=version,
        dataType=unknown,
        schema=simple_string(schema),
    )


def _unknown_types(version: int, schema: StructType) -> Iterator[str]:
    for _, kind in types_by_path(schema):
        if not _is_known(version, kind):
            yield _type_name(kind)
    if version >= _FIRST_WITH_IDS:
        for _, field in fields_by_path(schema):
            if field.metadata.get(COLLATIONS):
                yield "string with a collation"


def _is_known(version: int, kind: DataType) -> bool:
    if version < _FIRST_WITH_IDS:
        is_spatial = isinstance(kind, PrimitiveType) and SpatialName.parse(kind.name) is not None
        return not (is_spatial or kind == VOID or isinstance(kind, ArrayType | MapType))
    return not isinstance(kind, PrimitiveType) or kind.name in _V2_TYPES


def _type_name(kind: DataType) -> str:
    match kind:
        case ArrayType():
            return "array"
        case MapType():
            return "map"
        case PrimitiveType() | DecimalType():
            return simple_string(kind)
        case _:
            return "struct"


def _require_widenings(version: int, schema: StructType) -> None:
    for path, field in fields_by_path(schema):
        for change in field.metadata.get(TYPE_CHANGES, ()):
            before, after = str(change.get("fromType")), str(change.get("toType"))
            if not iceberg_widens(before, after):
                raise UnsupportedError(
                    Message.ICEBERG_COMPAT_UNSUPPORTED_TYPE_WIDENING,
                    version=version,
                    fieldPath=path,
                    prevType=before.upper(),
                    newType=after.upper(),
                )


def upgraded_properties(config: TableConfig, version: int) -> dict[str, str]:
    """Return the properties that REORG ... UPGRADE UNIFORM sets, in the order of delta-spark."""
    found = {compat_key(version): "true", MAPPING_MODE: ColumnMappingMode.NAME.value}
    if config.column_mapping is not ColumnMappingMode.NONE:
        found[MAPPING_MODE] = config.column_mapping.value
    found |= {
        compat_key(other): "false"
        for other in config.properties.iceberg_compat_versions
        if other != version
    }
    if _ATOMIC not in config.metadata.configuration:
        found[_ATOMIC] = "true"
    return {**found, "delta.enableDeletionVectors": "false"}


def without_orphaned_format(
    before: TableConfig, configuration: Mapping[str, str]
) -> dict[str, str]:
    """Return properties without Iceberg metadata, if they end IcebergCompat of a table.

    delta-spark ends both together.
    """
    properties = TableProperties.of(configuration)
    ends = before.iceberg_compat is not None and not properties.iceberg_compat_versions
    if not ends or ICEBERG not in properties.universal_formats:
        return dict(configuration)
    kept = ",".join(name for name in properties.universal_formats if name != ICEBERG)
    rest = {key: value for key, value in configuration.items() if key != ENABLED_FORMATS}
    return {**rest, ENABLED_FORMATS: kept} if kept else rest
