"""Protocol and metadata of a table, validated together.

Neither action has a meaning without the other: a mapping mode counts only if the protocol supports
it, and a feature has obligations only while the metadata uses it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from puredelta.errors import CorruptTableError, Message
from puredelta.protocol.actions.actions import Metadata, Protocol
from puredelta.protocol.features import protocol_versions
from puredelta.protocol.features.column_mapping import (
    NESTED_IDS,
    physical_name,
    physical_path,
    physical_schema,
    require_complete_mapping,
)
from puredelta.protocol.features.feature_registry import Capability
from puredelta.protocol.features.feature_usage import INVARIANTS
from puredelta.protocol.features.generated_columns import (
    Identity,
    column_defaults,
    generation_expressions,
    identities,
)
from puredelta.protocol.features.properties import ColumnMappingMode, TableProperties
from puredelta.protocol.schema.char_varchar import has_padded, parse_limits
from puredelta.protocol.schema.schema_json import parse_json, parse_schema
from puredelta.protocol.schema.traversal import all_fields, struct_fields
from puredelta.protocol.schema.types import (
    BYTE,
    DATE,
    INTEGER,
    LONG,
    SHORT,
    STRING,
    StructField,
    StructType,
)

CHAR_VARCHAR = "__CHAR_VARCHAR_TYPE_STRING"
"""Field metadata that makes a string column ``char(n)`` or ``varchar(n)`` (M-106)."""

_FILTERED_TYPES = frozenset({BYTE, SHORT, INTEGER, LONG, STRING, DATE})
"""Types of keys, whose Bloom filters lookups read."""


@dataclass(frozen=True, kw_only=True)
class TableConfig:
    """The configuration of a table at one version. Build it with `of`."""

    protocol: Protocol
    metadata: Metadata
    schema: StructType
    """Logical names, partition columns included, in the table's order."""
    partition_columns: tuple[str, ...]
    """Logical names, in the spelling of the schema."""
    properties: TableProperties
    column_mapping: ColumnMappingMode
    """The effective mode: ``NONE`` unless the protocol supports the feature."""

    @classmethod
    def of(cls, protocol: Protocol, metadata: Metadata) -> TableConfig:
        """Parse and check both actions; this library can read a table with the result."""
        properties = TableProperties.of(metadata.configuration)
        schema = parse_schema(metadata.schema_string)
        protocol_versions.require_capability(Capability.READ, protocol, properties, schema)
        mapped = protocol_versions.supports(protocol, "columnMapping")
        mode = properties.column_mapping_mode if mapped else ColumnMappingMode.NONE
        require_complete_mapping(schema, mode)
        _require_partition_columns(schema, metadata.partition_columns)
        return cls(
            protocol=protocol,
            metadata=metadata,
            schema=schema,
            partition_columns=metadata.partition_columns,
            properties=properties,
            column_mapping=mode,
        )

    # --- features -------------------------------------------------------------------------

    @cached_property
    def supported_features(self) -> frozenset[str]:
        """The names of all features the protocol supports."""
        return protocol_versions.supported_features(self.protocol)

    @cached_property
    def active_features(self) -> Mapping[str, tuple[str, ...]]:
        """The supported features in use, each with the properties and columns that use it."""
        return protocol_versions.active_features(self.protocol, self.properties, self.schema)

    def supports(self, feature: str) -> bool:
        """Return whether the protocol supports a feature."""
        return feature in self.supported_features

    def is_active(self, feature: str) -> bool:
        """Return whether a feature is supported and in use."""
        return feature in self.active_features

    def require(self, capability: Capability) -> None:
        """Require that the features of this table allow a command.

        Call it before anything is written. The message names the feature, property or column.
        """
        protocol_versions.require_capability(
            capability, self.protocol, self.properties, self.schema
        )

    # --- schema ---------------------------------------------------------------------------

    @cached_property
    def data_schema(self) -> StructType:
        """The columns without the partition columns, logical names."""
        partitioned = frozenset(self.partition_columns)
        return StructType(tuple(f for f in self.schema.fields if f.name not in partitioned))

    @cached_property
    def partition_schema(self) -> StructType:
        """The partition columns in partitioning order, logical names."""
        by_name = {f.name: f for f in self.schema.fields}
        return StructType(tuple(by_name[name] for name in self.partition_columns))

    @cached_property
    def physical_partition_columns(self) -> tuple[str, ...]:
        """The keys of ``partitionValues``, in partitioning order (X-82)."""
        return tuple(physical_name(f, self.column_mapping) for f in self.partition_schema.fields)

    @cached_property
    def iceberg_compat(self) -> int | None:
        """The version of IcebergCompat whose rules this table keeps."""
        return next(iter(self.properties.iceberg_compat_versions), None)

    @cached_property
    def materialized_partition_columns(self) -> tuple[str, ...]:
        """The partition columns that new data files hold, too, by physical name: all or none."""
        materialized = self.iceberg_compat is not None or self.supports(
            "materializePartitionColumns"
        )
        return self.physical_partition_columns if materialized else ()

    @cached_property
    def file_schema(self) -> StructType:
        """The columns of new data files, logical names; partition columns come last."""
        if not self.materialized_partition_columns:
            return self.data_schema
        return StructType((*self.data_schema.fields, *self.partition_schema.fields))

    @cached_property
    def columns_with_ids(self) -> tuple[str, ...]:
        """The columns in which each element, key and value of files has an id, too, by physical
        name: all or none.
        """
        if self.iceberg_compat in (None, 1):
            return ()
        return tuple(physical_name(field, self.column_mapping) for field in self.schema.fields)

    @cached_property
    def filtered_columns(self) -> Mapping[str, float]:
        """The columns that get a Bloom filter in new files, by physical name, and the rate of false
        positives. A column that the table lacks, or of another type, gets none.
        """
        wanted = {
            path[0].lower() for path in self.properties.bloom_filter_columns if len(path) == 1
        }
        return {
            physical_name(field, self.column_mapping): self.properties.bloom_filter_rate
            for field in self.data_schema.fields
            if field.name.lower() in wanted and field.type in _FILTERED_TYPES
        }

    @property
    def needs_arrow_writer(self) -> bool:
        """Whether only Arrow writes such files: Spark's writer leaves partition columns out, and
        gives no ids to elements.
        """
        has_nested = any(NESTED_IDS in field.metadata for field in all_fields(self.schema))
        return bool(self.materialized_partition_columns or (self.columns_with_ids and has_nested))

    def physical_file_schema(self, *, field_ids: bool = False) -> StructType:
        """Return the schema of a new data file."""
        return physical_schema(self.file_schema, self.column_mapping, field_ids=field_ids)

    def physical_data_schema(self, *, field_ids: bool = False) -> StructType:
        """Return the schema of a data file that leaves the partition columns out."""
        return physical_schema(self.data_schema, self.column_mapping, field_ids=field_ids)

    def physical_name(self, column: str) -> str:
        """Return the physical name of a top-level column."""
        return self.physical_path((column,))[0]

    def physical_path(self, path: Sequence[str]) -> tuple[str, ...]:
        """Translate a path of struct fields to physical names."""
        return physical_path(self.schema, path, self.column_mapping)

    # --- columns the table can supply -----------------------------------------------------

    @cached_property
    def column_defaults(self) -> Mapping[str, str]:
        """Default expressions by column (M-100); the feature need not be listed."""
        return column_defaults(self.schema)

    @cached_property
    def generated_columns(self) -> Mapping[str, str]:
        """Generation expressions by column; none unless the protocol supports them (M-101)."""
        supported = self.supports("generatedColumns")
        return generation_expressions(self.schema) if supported else {}

    @cached_property
    def identity_columns(self) -> Mapping[str, Identity]:
        """Identity columns by name; none unless the protocol supports them (M-102)."""
        return identities(self.schema) if self.supports("identityColumns") else {}

    # --- rules for rows -------------------------------------------------------------------

    @cached_property
    def not_null_columns(self) -> tuple[tuple[str, ...], ...]:
        """Paths of the fields that must not be null, through structs only (M-105)."""
        return tuple(path for path, field in struct_fields(self.schema) if not field.nullable)

    @cached_property
    def check_constraints(self) -> Mapping[str, str]:
        """SQL expressions by constraint name; FALSE and NULL violate them (M-104)."""
        return self.properties.check_constraints

    @cached_property
    def invariants(self) -> Mapping[tuple[str, ...], str]:
        """SQL expressions of column invariants by path (section "Column Invariants")."""
        return {
            path: _parse_invariant(field)
            for path, field in struct_fields(self.schema)
            if INVARIANTS in field.metadata
        }

    @cached_property
    def char_varchar_columns(self) -> Mapping[tuple[str, ...], str]:
        """``char(n)`` and ``varchar(n)`` by path, for the length check (M-106)."""
        return {
            path: str(field.metadata[CHAR_VARCHAR])
            for path, field in struct_fields(self.schema)
            if CHAR_VARCHAR in field.metadata
        }

    @cached_property
    def padded_columns(self) -> frozenset[str]:
        """Columns with a ``char(n)``: their text in files may be shorter than for readers."""
        found = self.char_varchar_columns.items()
        return frozenset(path[0] for path, text in found if has_padded(parse_limits(text)))


def _parse_invariant(field: StructField) -> str:
    """Read ``{"expression":{"expression":"x > 3"}}``, as the column's metadata holds it."""
    text = field.metadata[INVARIANTS]
    try:
        expression = parse_json(text)["expression"]["expression"]
    except (ValueError, KeyError, TypeError) as error:
        raise CorruptTableError(
            Message.LOG_CORRUPTED_INVARIANT, text=text, column=field.name
        ) from error
    return str(expression)


def _require_partition_columns(schema: StructType, columns: Sequence[str]) -> None:
    missing = [name for name in columns if schema.find(name) is None]
    if missing or len(set(columns)) < len(columns):
        problem = f"{', '.join(missing)} missing" if missing else "one is listed twice"
        raise CorruptTableError(
            Message.LOG_CORRUPTED_PARTITION_COLUMNS,
            columns=", ".join(columns),
            names=", ".join(schema.names),
            problem=problem,
            partition_columns=tuple(columns),
        )
