"""Table properties as typed values: the ``delta.*`` keys of ``metaData.configuration``.

Each property is parsed when it is used, so that a bad value of an unused property does not make a
table unreadable. `TableProperties.validate` parses all of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import Enum
from typing import ClassVar, Generic, TypeVar, overload

from puredelta.errors import InvalidRequestError, Message
from puredelta.protocol.schema.sql_lexer import TokenCursor

T = TypeVar("T")

CONSTRAINT_PREFIX = "delta.constraints."
FEATURE_PREFIX = "delta.feature."
ALL_COLUMNS_INDEXED = -1


class ColumnMappingMode(Enum):
    """The mapping of schema columns to data in files (section "Column Mapping")."""

    NONE = "none"
    NAME = "name"
    ID = "id"


class CheckpointPolicy(Enum):
    """The kind of checkpoints that a writer makes (``delta.checkpointPolicy``)."""

    CLASSIC = "classic"
    V2 = "v2"


class _Property(Generic[T]):
    """A property as an attribute: its key, the parser of its text, and its default."""

    def __init__(self, key: str, parse: Callable[[str], T], default: T) -> None:
        self.key = key
        self._parse = parse
        self._default = default

    @overload
    def __get__(self, owner: None, kind: type) -> _Property[T]: ...

    @overload
    def __get__(self, owner: TableProperties, kind: type) -> T: ...

    def __get__(self, owner: TableProperties | None, kind: type) -> _Property[T] | T:
        if owner is None:
            return self
        text = owner.configuration.get(self.key)
        if text is None:
            return self._default
        try:
            return self._parse(text)
        except ValueError as error:
            raise InvalidRequestError(
                Message.INVALID_TABLE_PROPERTY_VALUE, error=error, property=self.key, value=text
            ) from error


# --- values ---------------------------------------------------------------------------------


def _flag(text: str) -> bool:
    match text.strip().lower():
        case "true":
            return True
        case "false":
            return False
        case _:
            raise ValueError("needs to be true or false")


_INT_MAX = (1 << 31) - 1
_LONG_MAX = (1 << 63) - 1


def _at_least(least: int, most: int = _INT_MAX) -> Callable[[str], int]:
    def parse(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            value = least - 1
        if value < least:
            raise ValueError(f"needs to be a whole number of at least {least}")
        if value > most:
            raise ValueError(f"needs to be a whole number of at most {most}")
        return value

    return parse


_RATE_MIN = 1e-9
"""A Bloom filter with a lower rate of false positives takes up to 128 MB for a few values."""


def _rate(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not _RATE_MIN <= value < 1:
        raise ValueError("needs to be a number of at least 0.000000001 and below 1")
    return value


_UNITS: Mapping[str, timedelta] = {
    "week": timedelta(weeks=1),
    "day": timedelta(days=1),
    "hour": timedelta(hours=1),
    "minute": timedelta(minutes=1),
    "second": timedelta(seconds=1),
    "millisecond": timedelta(milliseconds=1),
    "microsecond": timedelta(microseconds=1),
}
_INTERVAL = re.compile(r"(?:interval\s+)?((?:[+-]?\s*\d+\s+[a-z]+\s*)+)")
_INTERVAL_PART = re.compile(r"([+-]?)\s*(\d+)\s+([a-z]+)")


def parse_interval(text: str) -> timedelta:
    """Read a calendar interval such as ``interval 30 days`` or ``2 weeks 12 hours``.

    Months and years have no fixed length and are refused, as are negative intervals.

    >>> parse_interval("interval 1 week").days
    7
    """
    match = _INTERVAL.fullmatch(text.strip().lower())
    total = timedelta()
    for sign, count, unit in _INTERVAL_PART.findall(match[1]) if match else ():
        length = _UNITS.get(unit.removesuffix("s"))
        if length is None:
            match = None
            break
        total += int(sign + count) * length
    if match is None or total < timedelta():
        raise ValueError(
            "needs to be an interval such as 'interval 2 weeks', without months or years"
        )
    return total


def parse_columns(text: str) -> tuple[tuple[str, ...], ...]:
    """Read a comma-separated list of columns, nested ones dotted, odd names in backticks.

    >>> parse_columns("id, st.x, `a.b`")
    (('id',), ('st', 'x'), ('a.b',))
    """
    cursor = TokenCursor(text)
    if cursor.peek() is None:
        return ()
    columns = [cursor.accept_name()]
    while cursor.accept(","):
        columns.append(cursor.accept_name())
    if not (cursor.is_done and all(map(all, columns)) and all(columns)):
        raise ValueError("needs to be a comma-separated list of column names")
    return tuple(columns)


def _isolation_level(text: str) -> str:
    if text.lower() != "serializable":
        raise ValueError("needs to be Serializable")
    return text


def _checkpoint_policy(text: str) -> CheckpointPolicy:
    try:
        return CheckpointPolicy(text)
    except ValueError:
        raise ValueError("needs to be one of classic, v2") from None


def _formats(text: str) -> tuple[str, ...]:
    names = tuple(text.split(",")) if text else ()
    if len(set(names)) < len(names) or not {*names} <= {"iceberg", "hudi"}:
        raise ValueError("needs to be a comma-separated list of formats from {hudi,iceberg}")
    return names


def _mapping_mode(text: str) -> ColumnMappingMode:
    try:
        return ColumnMappingMode(text.lower())
    except ValueError:
        raise ValueError("needs to be one of none, name, id") from None


_whole = _at_least(0)
_positive = _at_least(1)
_long = _at_least(0, _LONG_MAX)


def _switch(key: str) -> _Property[bool]:
    """Return a property that is off unless it is switched on."""
    return _Property(key, _flag, default=False)


# --- the properties -------------------------------------------------------------------------


@dataclass(frozen=True)
class TableProperties:
    """The properties of one table; defaults are those of delta-spark 4.4.0.

    >>> TableProperties.of({"delta.checkpointInterval": "100"}).checkpoint_interval
    100

    Raises:
        InvalidRequestError: raised when a property is used and its text is no value of it
            (DELTA_VIOLATE_TABLE_PROPERTY_VALIDATION_FAILED).
    """

    configuration: Mapping[str, str]

    append_only: ClassVar = _switch("delta.appendOnly")
    auto_compact: ClassVar = _Property[str | None]("delta.autoOptimize.autoCompact", str, None)
    bloom_filter_columns: ClassVar = _Property[tuple[tuple[str, ...], ...]](
        "puredelta.bloomFilter.columns", parse_columns, ()
    )
    bloom_filter_rate: ClassVar = _Property("puredelta.bloomFilter.fpp", _rate, default=0.00001)
    checkpoint_interval: ClassVar = _Property("delta.checkpointInterval", _positive, default=10)
    checkpoint_policy: ClassVar = _Property(
        "delta.checkpointPolicy", _checkpoint_policy, default=CheckpointPolicy.CLASSIC
    )
    column_mapping_max_id: ClassVar = _Property("delta.columnMapping.maxColumnId", _long, 0)
    column_mapping_mode: ClassVar = _Property(
        "delta.columnMapping.mode", _mapping_mode, ColumnMappingMode.NONE
    )
    compression_codec: ClassVar = _Property[str | None](
        "delta.parquet.compression.codec", str.lower, None
    )
    data_skipping_indexed_cols: ClassVar = _Property(
        "delta.dataSkippingNumIndexedCols", _at_least(ALL_COLUMNS_INDEXED), default=32
    )
    data_skipping_stats_columns: ClassVar = _Property[tuple[tuple[str, ...], ...] | None](
        "delta.dataSkippingStatsColumns", parse_columns, None
    )
    data_skipping_string_prefix_length: ClassVar = _Property(
        "delta.dataSkippingStringPrefixLength", _whole, default=32
    )
    deleted_file_retention: ClassVar = _Property(
        "delta.deletedFileRetentionDuration", parse_interval, default=timedelta(weeks=1)
    )
    enable_change_data_feed: ClassVar = _switch("delta.enableChangeDataFeed")
    enable_deletion_vectors: ClassVar = _switch("delta.enableDeletionVectors")
    enable_expired_log_cleanup: ClassVar = _Property(
        "delta.enableExpiredLogCleanup", _flag, default=True
    )
    enable_iceberg_compat_v1: ClassVar = _switch("delta.enableIcebergCompatV1")
    enable_iceberg_compat_v2: ClassVar = _switch("delta.enableIcebergCompatV2")
    enable_iceberg_compat_v3: ClassVar = _switch("delta.enableIcebergCompatV3")
    enable_materialized_partition_columns: ClassVar = _switch(
        "delta.enableMaterializePartitionColumnsFeature"
    )
    enable_row_tracking: ClassVar = _switch("delta.enableRowTracking")
    enable_type_widening: ClassVar = _switch("delta.enableTypeWidening")
    enable_variant_shredding: ClassVar = _switch("delta.enableVariantShredding")
    iceberg_export: ClassVar = _switch("puredelta.iceberg.export")
    in_commit_timestamp_enablement_timestamp_ms: ClassVar = _Property[int | None](
        "delta.inCommitTimestampEnablementTimestamp", _long, None
    )
    in_commit_timestamp_enablement_version: ClassVar = _Property[int | None](
        "delta.inCommitTimestampEnablementVersion", _long, None
    )
    in_commit_timestamps: ClassVar = _switch("delta.enableInCommitTimestamps")
    isolation_level: ClassVar = _Property(
        "delta.isolationLevel", _isolation_level, default="Serializable"
    )
    log_retention: ClassVar = _Property(
        "delta.logRetentionDuration", parse_interval, default=timedelta(days=30)
    )
    optimize_write: ClassVar = _switch("delta.autoOptimize.optimizeWrite")
    random_prefix_length: ClassVar = _Property("delta.randomPrefixLength", _positive, default=2)
    randomize_file_prefixes: ClassVar = _switch("delta.randomizeFilePrefixes")
    require_checkpoint_protection_before_version: ClassVar = _Property(
        "delta.requireCheckpointProtectionBeforeVersion", _long, default=0
    )
    row_tracking_suspended: ClassVar = _switch("delta.rowTrackingSuspended")
    set_transaction_retention: ClassVar = _Property[timedelta | None](
        "delta.setTransactionRetentionDuration", parse_interval, None
    )
    symlink_manifests: ClassVar = _switch("delta.compatibility.symlinkFormatManifest.enabled")
    truncated_log_retention: ClassVar = _Property(
        "delta.dropFeatureTruncateHistory.retentionDuration",
        parse_interval,
        default=timedelta(hours=24),
    )
    universal_formats: ClassVar = _Property[tuple[str, ...]](
        "delta.universalFormat.enabledFormats", _formats, ()
    )
    write_partition_columns_to_parquet: ClassVar = _Property(
        "delta.writePartitionColumnsToParquet", _flag, default=True
    )
    write_stats_as_json: ClassVar = _Property(
        "delta.checkpoint.writeStatsAsJson", _flag, default=True
    )
    write_stats_as_struct: ClassVar = _Property(
        "delta.checkpoint.writeStatsAsStruct", _flag, default=True
    )

    @classmethod
    def of(cls, configuration: Mapping[str, str]) -> TableProperties:
        """Wrap the configuration of a table's metadata."""
        return cls(dict(configuration))

    @property
    def check_constraints(self) -> Mapping[str, str]:
        """SQL expressions of the CHECK constraints by name (section "CHECK Constraints")."""
        return {
            key.removeprefix(CONSTRAINT_PREFIX): text
            for key, text in self.configuration.items()
            if key.startswith(CONSTRAINT_PREFIX)
        }

    @property
    def requested_features(self) -> frozenset[str]:
        """Names of the features that ``delta.feature.<name> = supported`` requests."""
        return frozenset(
            key.removeprefix(FEATURE_PREFIX)
            for key, text in self.configuration.items()
            if key.startswith(FEATURE_PREFIX) and text.lower() in {"supported", "enabled"}
        )

    @property
    def iceberg_compat_versions(self) -> tuple[int, ...]:
        """The enabled versions of IcebergCompat; a table may have one."""
        enabled = (
            self.enable_iceberg_compat_v1,
            self.enable_iceberg_compat_v2,
            self.enable_iceberg_compat_v3,
        )
        return tuple(number for number, is_on in enumerate(enabled, 1) if is_on)

    def validate(self) -> None:
        """Parse every property; writers do so before they store new properties.

        Raises:
            InvalidRequestError: the text of a property is no value of it, or two of them exclude
                each other.
        """
        for name, key in PROPERTY_KEYS.items():
            value, text = getattr(self, name), self.configuration.get(key, "")
            # Other engines refuse a table whose flag or number has a space or an underscore.
            if isinstance(value, int) and (text != text.strip() or "_" in text):
                raise InvalidRequestError(
                    Message.INVALID_TABLE_PROPERTY_VALUE,
                    error="needs to be written without spaces and underscores",
                    property=key,
                    value=text,
                )
        if self.symlink_manifests and self.enable_deletion_vectors:
            raise InvalidRequestError(Message.INVALID_TABLE_PROPERTY_VECTORS_AND_MANIFESTS)


PROPERTY_KEYS: Mapping[str, str] = {
    name: value.key for name, value in vars(TableProperties).items() if isinstance(value, _Property)
}
"""The key of each attribute of `TableProperties`."""
