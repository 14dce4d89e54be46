"""Changes of a table's configuration by a write: pure decisions before any job.

The inputs are the schema of the rows, partition columns or none, and options that limit the
change. The result is the configuration of the new version, or the reason why the rows
do not fit (X-07, section "Schema enforcement" of delta-spark's writer).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

from puredelta.commands.dependent_rules import require_same_types
from puredelta.errors import InvalidRequestError, Message, UnsupportedError
from puredelta.protocol.features.column_mapping import MAX_COLUMN_ID, assign_columns
from puredelta.protocol.features.properties import ColumnMappingMode
from puredelta.protocol.features.property_checks import require_statistics_columns
from puredelta.protocol.features.protocol_changes import required_protocol
from puredelta.protocol.schema.schema_json import encode_schema, simple_string
from puredelta.protocol.schema.spatial import SpatialName
from puredelta.protocol.schema.traversal import primitive_names, shape
from puredelta.protocol.schema.types import (
    ArrayType,
    DataType,
    MapType,
    StructType,
    kind_of,
)
from puredelta.protocol.table.iceberg_compat import require_iceberg_rules, with_nested_ids
from puredelta.protocol.table.schema_checks import require_valid_schema
from puredelta.protocol.table.schema_merge import merge_schemas
from puredelta.protocol.table.table_config import TableConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaChange:
    """Limits on the changes that a write may make to its table."""

    merge: bool = False
    """Add columns of the frame that the table lacks (``mergeSchema``)."""
    overwrite: bool = False
    """Take the frame's schema and partitioning instead (``overwriteSchema``, overwrites only)."""

    @property
    def is_wanted(self) -> bool:
        """Whether the table may get other columns."""
        return self.merge or self.overwrite


def config_for_rows(
    config: TableConfig,
    rows: StructType,
    partition_columns: Sequence[str],
    *,
    change: SchemaChange,
    case_sensitive: bool,
) -> TableConfig:
    """Return the configuration under which ``rows`` can be written, ``config`` if unchanged.

    Without `SchemaChange.overwrite` every column of the rows must be in the table with the
    same type; byte, short and int may be narrower than the table's. Columns the rows lack
    become NULL. There are no other casts, as in delta-spark.

    Raises:
        InvalidRequestError: the rows do not fit (METADATA_MISMATCH, FAILED_TO_MERGE_FIELDS),
            a rule of the table reads a column whose type differs (M-55), or the new schema
            cannot be a table's.
    """
    wanted = resolve_columns(partition_columns, rows, case_sensitive=case_sensitive)
    if change.overwrite:
        return _replaced(config, rows, wanted)
    _require_same_partitioning(config, wanted)
    require_same_types(config, rows)
    merged = merge_schemas(config.schema, rows)
    if shape(merged) == shape(config.schema):
        return config
    if not change.merge:
        raise _mismatch(config, rows)
    return with_schema(config, merged, config.partition_columns)


def resolve_columns(
    columns: Sequence[str], schema: StructType, *, case_sensitive: bool
) -> tuple[str, ...]:
    """Return the columns as the schema spells them; an unknown one stays as it is."""
    found = (
        schema.find(name) if case_sensitive else schema.find_ignoring_case(name) for name in columns
    )
    return tuple(
        name if field is None else field.name for name, field in zip(columns, found, strict=True)
    )


def require_storable_types(schema: StructType) -> None:
    """Check that the protocol has a name for every type of the rows.

    Raises:
        InvalidRequestError: an interval, for example (UNSUPPORTED_DATA_TYPES).
        UnsupportedError: geometries of many reference systems (GEOSPATIAL_NOT_SUPPORTED).
    """
    found = [(f"{'.'.join(path)}: {name}", name) for path, name in primitive_names(schema)]
    wrong = [column for column, name in found if not _is_storable(name)]
    if wrong:
        raise InvalidRequestError(
            Message.UNSUPPORTED_DATA_TYPES_COLUMNS, wrong=", ".join(wrong), columns=tuple(wrong)
        )
    mixed = [column for column, name in found if _is_mixed(name)]
    if mixed:
        raise UnsupportedError(
            Message.GEOSPATIAL_NOT_SUPPORTED_MIXED, mixed=", ".join(mixed), columns=tuple(mixed)
        )


def _is_storable(name: str) -> bool:
    kind = kind_of(name)
    return kind is not None and kind.is_storable


def _is_mixed(name: str) -> bool:
    spatial = SpatialName.parse(name)
    return spatial is not None and spatial.is_mixed


def with_canonical_names(rows: StructType, table: StructType) -> StructType:
    """Return the rows' schema with every name as the table spells it.

    Names that the table lacks stay. Spark matches names as the session says, but a table's
    names are unique whatever their case, so a different spelling always means the same column.
    """
    known = ((f, table.find_ignoring_case(f.name)) for f in rows.fields)
    return StructType(
        tuple(
            f
            if other is None
            else dataclasses.replace(f, name=other.name, type=_canonical_type(f.type, other.type))
            for f, other in known
        )
    )


def _canonical_type(rows: DataType, table: DataType) -> DataType:
    match rows, table:
        case StructType(), StructType():
            return with_canonical_names(rows, table)
        case ArrayType(element, nulls), ArrayType(table_element):
            return ArrayType(_canonical_type(element, table_element), nulls)
        case MapType(key, value, nulls), MapType(table_key, table_value):
            return MapType(
                _canonical_type(key, table_key), _canonical_type(value, table_value), nulls
            )
        case _:
            return rows


def _replaced(
    config: TableConfig, schema: StructType, partition_columns: tuple[str, ...]
) -> TableConfig:
    unchanged = shape(schema) == shape(config.schema)
    if unchanged and partition_columns == config.partition_columns:
        return config
    return with_schema(config, schema, partition_columns)


def with_schema(
    config: TableConfig, schema: StructType, partition_columns: tuple[str, ...]
) -> TableConfig:
    """Change metadata, and the protocol where the new columns need more features."""
    mapped = config.column_mapping is not ColumnMappingMode.NONE
    require_valid_schema(schema, partition_columns, column_mapping=config.column_mapping)
    configuration = dict(config.metadata.configuration)
    if mapped:
        schema, highest = assign_columns(
            schema, max_column_id=config.properties.column_mapping_max_id
        )
        configuration[MAX_COLUMN_ID] = str(highest)
        schema, configuration = with_nested_ids(schema, configuration)
    metadata = dataclasses.replace(
        config.metadata,
        schema_string=encode_schema(schema),
        partition_columns=partition_columns,
        configuration=configuration,
    )
    require_statistics_columns(config.properties, schema, partition_columns)
    protocol = required_protocol(config.protocol, schema, config.properties)
    changed = TableConfig.of(protocol, metadata)
    require_iceberg_rules(config, changed)
    return changed


def _require_same_partitioning(config: TableConfig, wanted: tuple[str, ...]) -> None:
    """Refuse partition columns of a write that are not the table's, in their order."""
    if not wanted or [w.lower() for w in wanted] == [c.lower() for c in config.partition_columns]:
        return
    raise InvalidRequestError(
        Message.SCHEMA_MISMATCH_PARTITIONING,
        wanted=_quoted(wanted),
        partition_columns=_quoted(config.partition_columns),
        given=wanted,
        table=config.partition_columns,
    )


def _quoted(columns: Sequence[str]) -> str:
    return "[" + ", ".join(f"`{c}`" for c in columns) + "]"


def _mismatch(config: TableConfig, rows: StructType) -> InvalidRequestError:
    extra = _extra_paths(rows, config.schema, ())
    return InvalidRequestError(
        Message.SCHEMA_MISMATCH_COLUMNS,
        id=config.metadata.id,
        extra=", ".join(extra),
        schema=simple_string(config.schema),
        rows=simple_string(rows),
        columns=tuple(extra),
    )


def _extra_paths(rows: DataType, table: DataType, path: tuple[str, ...]) -> list[str]:
    """Return the paths of the rows' fields that the table lacks."""
    match rows, table:
        case StructType(fields), StructType():
            found = []
            for field in fields:
                known = table.find_ignoring_case(field.name)
                here = (*path, field.name)
                found += (
                    [".".join(here)]
                    if known is None
                    else _extra_paths(field.type, known.type, here)
                )
            return found
        case ArrayType(element), ArrayType(known_element):
            return _extra_paths(element, known_element, (*path, "element"))
        case MapType(key, value), MapType(known_key, known_value):
            return [
                *_extra_paths(key, known_key, (*path, "key")),
                *_extra_paths(value, known_value, (*path, "value")),
            ]
        case _:
            return [] if rows == table else [".".join(path)]
