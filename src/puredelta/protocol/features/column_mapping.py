"""Column mapping: which names and ids the columns of a schema have inside files.

In modes ``name`` and ``id`` every field, nested ones too, carries a physical name and an
id in its metadata (section "Column Mapping"). Data files, statistics and partition values
speak in physical names (M-109); in mode ``none`` both names are the same.
"""

from __future__ import annotations

import dataclasses
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from typing_extensions import assert_never

from puredelta.errors import CorruptTableError, ErrorCode
from puredelta.protocol.features.properties import ColumnMappingMode
from puredelta.protocol.schema.types import (
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    PrimitiveType,
    StructField,
    StructType,
)

PHYSICAL_NAME = "delta.columnMapping.physicalName"
_KEYS = "delta.columnMapping."
FIELD_ID = "delta.columnMapping.id"
PARQUET_FIELD_ID = "parquet.field.id"
"""The key under which Spark's Parquet reader and writer look for a field id."""


def physical_name(field: StructField, mode: ColumnMappingMode) -> str:
    """Return the name of a field inside files.

    Raises:
        CorruptTableError: the mapping is on and the field has no physical name.
    """
    if mode is ColumnMappingMode.NONE:
        return field.name
    name = field.metadata.get(PHYSICAL_NAME)
    if not isinstance(name, str) or not name:
        raise _incomplete(field, PHYSICAL_NAME)
    return name


def field_id(field: StructField) -> int:
    """Return the id of a field.

    Raises:
        CorruptTableError: it has none.
    """
    number = field.metadata.get(FIELD_ID)
    if not isinstance(number, int) or isinstance(number, bool):
        raise _incomplete(field, FIELD_ID)
    return number


def physical_path(
    schema: StructType, path: Sequence[str], mode: ColumnMappingMode
) -> tuple[str, ...]:
    """Translate a path of struct fields to physical names.

    Raises:
        KeyError: no such field; the caller resolved names against another schema.
    """
    names: list[str] = []
    level: DataType = schema
    for name in path:
        field = level.find(name) if isinstance(level, StructType) else None
        if field is None:
            raise KeyError(".".join(path))
        names.append(physical_name(field, mode))
        level = field.type
    return tuple(names)


def physical_schema(
    schema: StructType, mode: ColumnMappingMode, *, field_ids: bool = False
) -> StructType:
    """Return the schema as files spell it, all the way down.

    Nullability is kept and metadata dropped, but for the Parquet field ids that
    ``field_ids`` asks for (both mapped modes write them; only mode ``id`` reads by them). A
    field without an id stays without: files hold columns, such as that of the change data
    feed, which are no columns of the table and are found by name in every mode.
    """
    return StructType(
        tuple(
            StructField(
                physical_name(f, mode),
                _physical_type(f.type, mode, field_ids=field_ids),
                f.nullable,
                {PARQUET_FIELD_ID: field_id(f)}
                if field_ids and mode is not ColumnMappingMode.NONE and _has_id(f)
                else {},
            )
            for f in schema.fields
        )
    )


def _physical_type(data_type: DataType, mode: ColumnMappingMode, *, field_ids: bool) -> DataType:
    return _map_structs(
        data_type, lambda struct: physical_schema(struct, mode, field_ids=field_ids)
    )


def assign_columns(
    schema: StructType,
    *,
    max_column_id: int,
    new_name: Callable[[], str] = lambda: f"col-{uuid.uuid4()}",
) -> tuple[StructType, int]:
    """Give every field that lacks them an id and a physical name (M-109).

    Fields that have both keep them. Returns the schema and the highest id in use, which
    goes into ``delta.columnMapping.maxColumnId``.
    """
    highest = max((max_column_id, *(field_id(f) for f in all_fields(schema) if _has_id(f))))

    def assign(struct: StructType) -> StructType:
        nonlocal highest
        fields = []
        for field in struct.fields:
            metadata = dict(field.metadata)
            if FIELD_ID not in metadata:
                highest += 1
                metadata[FIELD_ID] = highest
            if PHYSICAL_NAME not in metadata:
                metadata[PHYSICAL_NAME] = new_name()
            nested = _map_structs(field.type, assign)
            fields.append(dataclasses.replace(field, type=nested, metadata=metadata))
        return StructType(tuple(fields))

    return assign(schema), highest


def map_existing_columns(schema: StructType) -> tuple[StructType, int]:
    """Give every field its own name as physical name: so the files there are stay readable.

    Returns the schema and the highest id, as `assign_columns`.
    """

    def named(struct: StructType) -> StructType:
        return StructType(
            tuple(
                dataclasses.replace(
                    f,
                    type=_map_structs(f.type, named),
                    metadata={**f.metadata, PHYSICAL_NAME: f.name},
                )
                for f in struct.fields
            )
        )

    return assign_columns(named(schema), max_column_id=0)


def without_mapping(schema: StructType) -> StructType:
    """Return the schema without ids and physical names, all the way down."""
    return StructType(
        tuple(
            dataclasses.replace(
                f,
                type=_map_structs(f.type, without_mapping),
                metadata={k: v for k, v in f.metadata.items() if not k.startswith(_KEYS)},
            )
            for f in schema.fields
        )
    )


def _has_id(field: StructField) -> bool:
    return FIELD_ID in field.metadata


def require_complete_mapping(schema: StructType, mode: ColumnMappingMode) -> None:
    """Check that a mapped schema names every field, and no two of them alike.

    Raises:
        CorruptTableError: an id or physical name is missing or used twice.
    """
    if mode is ColumnMappingMode.NONE:
        return
    _require_distinct(schema, "column id", [str(field_id(f)) for f in all_fields(schema)])
    _require_distinct_names(schema, mode)


def _require_distinct_names(struct: StructType, mode: ColumnMappingMode) -> None:
    """Physical names must differ within one struct; cousins may share one."""
    _require_distinct(struct, "physical name", [physical_name(f, mode) for f in struct.fields])
    for field in struct.fields:
        for nested in _direct_structs(field.type):
            _require_distinct_names(nested, mode)


def _require_distinct(struct: StructType, what: str, values: list[str]) -> None:
    twice = sorted(value for value, count in Counter(values).items() if count > 1)
    if twice:
        raise CorruptTableError(
            f"Column mapping gives the {what} {', '.join(twice)} to several columns of "
            f"({', '.join(struct.names)}).",
            code=ErrorCode.LOG_CORRUPTED,
        )


def all_fields(data_type: DataType) -> Iterator[StructField]:
    """Yield every field of every struct inside a type, outer ones first."""
    for struct in _direct_structs(data_type):
        for field in struct.fields:
            yield field
            yield from all_fields(field.type)


def _direct_structs(data_type: DataType) -> Iterator[StructType]:
    """Yield the structs that are reached without passing through another struct's field."""
    match data_type:
        case StructType():
            yield data_type
        case ArrayType(element):
            yield from _direct_structs(element)
        case MapType(key, value):
            yield from _direct_structs(key)
            yield from _direct_structs(value)
        case PrimitiveType() | DecimalType():
            return
        case _:
            assert_never(data_type)


def _map_structs(data_type: DataType, change: Callable[[StructType], StructType]) -> DataType:
    """Apply ``change`` to the structs of `_direct_structs`, where they stand."""
    match data_type:
        case StructType():
            return change(data_type)
        case ArrayType(element, contains_null):
            return ArrayType(_map_structs(element, change), contains_null)
        case MapType(key, value, value_contains_null):
            return MapType(
                _map_structs(key, change), _map_structs(value, change), value_contains_null
            )
        case PrimitiveType() | DecimalType():
            return data_type
        case _:
            assert_never(data_type)


def _incomplete(field: StructField, key: str) -> CorruptTableError:
    return CorruptTableError(
        f"Column mapping is on, but column {field.name!r} has no {key!r} in its metadata.",
        code=ErrorCode.LOG_CORRUPTED,
        column=field.name,
    )
