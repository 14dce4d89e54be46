"""Table properties as a user sets them: which keys exist, how they are spelled, their values.

An existing table may have any property. These checks are for commands that store new ones.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import timedelta

from puredelta.errors import InvalidRequestError, Message, UnsupportedError
from puredelta.protocol.features.feature_registry import FEATURES_BY_NAME
from puredelta.protocol.features.properties import (
    CONSTRAINT_PREFIX,
    FEATURE_PREFIX,
    PROPERTY_KEYS,
    TableProperties,
)
from puredelta.protocol.schema.schema_json import simple_string
from puredelta.protocol.schema.traversal import find_fields, struct_fields
from puredelta.protocol.schema.types import (
    COLLATIONS,
    PRIMITIVE_KINDS,
    DecimalType,
    PrimitiveType,
    StructField,
    StructType,
)

_ARBITRARY_PROPERTIES_KEY = "spark.databricks.delta.allowArbitraryProperties.enabled"

PROTOCOL_VERSION_KEYS = ("delta.minReaderVersion", "delta.minWriterVersion")
IGNORE_PROTOCOL_DEFAULTS = "delta.ignoreProtocolDefaults"

_DELTA_PREFIX = "delta."
_NOT_FOR_USERS = frozenset({"delta.columnMapping.maxColumnId", "clusteringColumns"})
_NOT_IMPLEMENTED: Mapping[str, str] = {
    "delta.coordinatedCommits.commitCoordinator-preview": "commits through a coordinator",
    "delta.redirectReaderWriter-preview": "redirection to another table",
    "delta.redirectWriterOnly-preview": "redirection to another table",
    "delta.universalFormat.enabledFormats": "metadata of Hudi",
}
_UNTYPED_KEYS = (
    # Properties of delta-spark that have no effect in this library.
    *PROTOCOL_VERSION_KEYS,
    IGNORE_PROTOCOL_DEFAULTS,
    "delta.autoOptimize",
    "delta.castIcebergTimeType",
    "delta.checkpointRetentionDuration",
    "delta.coordinatedCommits.commitCoordinator-preview",
    "delta.coordinatedCommits.commitCoordinatorConf-preview",
    "delta.coordinatedCommits.tableConf-preview",
    "delta.enableChangeDataCapture",
    "delta.enableFullRetentionRollback",
    "delta.ignoreIcebergBucketPartition",
    "delta.parquet.format.version",
    "delta.redirectReaderWriter-preview",
    "delta.redirectWriterOnly-preview",
    "delta.sampleRetentionDuration",
    "delta.universalFormat.iceberg.atomicConversion.supported",
)
_OWN_KEYS = ("delta.parquet.compression.codec",)

_KNOWN = {key.lower(): key for key in (*PROPERTY_KEYS.values(), *_UNTYPED_KEYS, *_OWN_KEYS)}

_OFF = ("", "false", "iceberg")

_SKIPPED_BY = {PrimitiveType(kind.name) for kind in PRIMITIVE_KINDS if kind.has_statistics}


def canonical_key(key: str) -> str:
    """Return a property's key as the table stores it; the keys of Delta ignore case.

    >>> canonical_key("delta.appendonly")
    'delta.appendOnly'
    """
    lowered = key.lower()
    if lowered.startswith(FEATURE_PREFIX):
        return lowered
    return _KNOWN.get(lowered, key)


def is_delta_property(key: str) -> bool:
    """Return whether a key, in any case, is a property of Delta."""
    return key.lower() in _KNOWN


def checked_properties(given: Mapping[str, str], *, allow_arbitrary: bool) -> dict[str, str]:
    """Return properties under their canonical keys, after checking their values.

    ``allow_arbitrary`` allows unknown keys that begin with ``delta.`` (a setting of the session).

    Raises:
        InvalidRequestError: a ``delta.`` key is unknown (UNKNOWN_CONFIGURATION) or not for
            users to set (CANNOT_MODIFY_TABLE_PROPERTY), a value is wrong
            (INVALID_TABLE_PROPERTY), or a feature is unknown or neither supported nor
            enabled (UNSUPPORTED_FEATURES_IN_CONFIG, UNSUPPORTED_FEATURE_STATUS).
        UnsupportedError: a property switches on something that is not implemented.
    """
    found: dict[str, str] = {}
    for key, value in given.items():
        name = canonical_key(key)
        if name in _NOT_FOR_USERS:
            raise InvalidRequestError(Message.CANNOT_MODIFY_TABLE_PROPERTY, property=name)
        if name in _NOT_IMPLEMENTED and value.strip().lower() not in _OFF:
            raise UnsupportedError(
                Message.OPERATION_NOT_ALLOWED_PROPERTY,
                not_implemented=_NOT_IMPLEMENTED[name],
                property=name,
            )
        if not allow_arbitrary and _is_unknown(name):
            raise InvalidRequestError(
                Message.UNKNOWN_CONFIGURATION,
                arbitrary_properties_key=_ARBITRARY_PROPERTIES_KEY,
                property=key,
            )
        found[name] = value
    _require_features(found)
    TableProperties.of(found).validate()
    return found


def require_sound_properties(
    properties: TableProperties, schema: StructType, partition_columns: Sequence[str] = ()
) -> None:
    """Check properties against each other and against the columns.

    Raises:
        InvalidRequestError: the log would be kept shorter than removed files
            (INVALID_TABLE_PROPERTY), rows are tracked and not tracked
            (ROW_TRACKING_ILLEGAL_PROPERTY_COMBINATION), or as `require_statistics_columns`.
    """
    _require_retention(properties)
    if properties.enable_row_tracking and properties.row_tracking_suspended:
        raise InvalidRequestError(Message.ROW_TRACKING_ILLEGAL_PROPERTY_COMBINATION_BOTH)
    require_statistics_columns(properties, schema, partition_columns)


def _is_unknown(name: str) -> bool:
    if not name.lower().startswith(_DELTA_PREFIX):
        return False
    return name not in _KNOWN.values() and not name.lower().startswith(
        (CONSTRAINT_PREFIX, FEATURE_PREFIX)
    )


def _require_features(properties: Mapping[str, str]) -> None:
    known = {name.lower() for name in FEATURES_BY_NAME}
    features = {
        key.removeprefix(FEATURE_PREFIX): status
        for key, status in properties.items()
        if key.startswith(FEATURE_PREFIX)
    }
    unknown = sorted(FEATURE_PREFIX + name for name in features if name not in known)
    if unknown:
        raise InvalidRequestError(
            Message.UNSUPPORTED_FEATURES_IN_CONFIG,
            unknown=", ".join(unknown),
            properties=tuple(unknown),
        )
    for name, status in features.items():
        if status.lower() not in {"supported", "enabled"}:
            raise InvalidRequestError(
                Message.UNSUPPORTED_FEATURE_STATUS, feature=name, status=status
            )


def _require_retention(properties: TableProperties) -> None:
    log, files = properties.log_retention, properties.deleted_file_retention
    if log < files:
        raise InvalidRequestError(
            Message.INVALID_TABLE_PROPERTY_RETENTION,
            log=_days(log),
            files=_days(files),
            property="delta.logRetentionDuration",
        )


def _days(duration: timedelta) -> str:
    hours = duration / timedelta(hours=1)
    return f"{hours / 24:g} days" if hours % 24 == 0 else f"{hours:g} hours"


_Path = tuple[str, ...]


def require_statistics_columns(
    properties: TableProperties, schema: StructType, partition_columns: Sequence[str]
) -> None:
    """Require that ``delta.dataSkippingStatsColumns`` names columns that can have statistics.

    A struct stands for its fields; a field of another type has counts of NULLs alone.

    Raises:
        InvalidRequestError: a column does not exist (COLUMN_NOT_FOUND_IN_SCHEMA), has a type
            without statistics (COLUMN_DATA_SKIPPING_NOT_SUPPORTED_TYPE), partitions the table
            (COLUMN_DATA_SKIPPING_NOT_SUPPORTED_PARTITIONED_COLUMN), or is named twice
            (DUPLICATE_DATA_SKIPPING_COLUMNS).
    """
    partitioned = {name.lower() for name in partition_columns}
    named: list[_Path] = []
    for path in properties.data_skipping_stats_columns or ():
        column = ".".join(path)
        if len(path) == 1 and column.lower() in partitioned:
            raise InvalidRequestError(
                Message.COLUMN_DATA_SKIPPING_NOT_SUPPORTED_PARTITIONED_COLUMN, column=column
            )
        field = _find_field(schema, path)
        leaf = field.type
        if isinstance(leaf, StructType):
            inner = [p for p, f in struct_fields(leaf) if not isinstance(f.type, StructType)]
            named += [(*path, *rest) for rest in inner]
            continue
        named.append(path)
        if len(path) == 1 and not _is_skipped_by(field):
            raise InvalidRequestError(
                Message.COLUMN_DATA_SKIPPING_NOT_SUPPORTED_TYPE,
                column=column,
                type=simple_string(leaf),
            )
    _require_once(named)


def _require_once(named: Sequence[_Path]) -> None:
    counts = Counter(named)
    if twice := [".".join(path) for path, count in counts.items() if count > 1]:
        raise InvalidRequestError(
            Message.DUPLICATE_DATA_SKIPPING_COLUMNS, twice=", ".join(twice), columns=tuple(twice)
        )


def _is_skipped_by(field: StructField) -> bool:
    """Return whether delta-spark keeps statistics of the column to skip files by (X-61).

    A collation orders text in another way than bounds do.
    """
    is_collated = COLLATIONS in field.metadata
    return not is_collated and (isinstance(field.type, DecimalType) or field.type in _SKIPPED_BY)


def _find_field(schema: StructType, path: _Path) -> StructField:
    fields = find_fields(schema, path, ignores_case=True)
    if fields is None:
        raise InvalidRequestError(
            Message.COLUMN_NOT_FOUND_IN_SCHEMA_STATISTICS,
            schema=simple_string(schema),
            column=".".join(path),
        )
    return fields[-1]
