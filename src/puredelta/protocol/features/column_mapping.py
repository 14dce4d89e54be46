"""Column mapping: the names and ids of a schema's columns inside files.

In the modes ``name`` and ``id`` every field, nested ones too, has a physical name and an id in its
metadata (section "Column Mapping"). Data files, statistics and partition values use physical
names (M-109). In mode ``none`` physical and logical names are the same.
"""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from puredelta.errors import CorruptTableError, Message
from puredelta.protocol.features.properties import ColumnMappingMode
from puredelta.protocol.schema.traversal import all_fields, all_structs, find_fields, map_fields
from puredelta.protocol.schema.types import (
    COLLATIONS,
    ArrayType,
    DataType,
    MapType,
    StructField,
    StructType,
)

PHYSICAL_NAME = "delta.columnMapping.physicalName"
_KEYS = "delta.columnMapping."
FIELD_ID = "delta.columnMapping.id"
MAX_COLUMN_ID = "delta.columnMapping.maxColumnId"
NESTED_IDS = "delta.columnMapping.nested.ids"
"""Ids of elements, keys and values inside a field, by their dotted paths in files."""
PARQUET_FIELD_ID = "parquet.field.id"
"""The key under which Spark's Parquet reader and writer look for a field id."""
PARQUET_NESTED_IDS = "parquet.field.nested.ids"
"""The key of `NESTED_IDS` in a schema of files."""


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
        KeyError: there is no such field: the path was resolved in another schema.
    """
    fields = find_fields(schema, path)
    if fields is None:
        raise KeyError(".".join(path))
    return tuple(physical_name(field, mode) for field in fields)


def physical_schema(
    schema: StructType, mode: ColumnMappingMode, *, field_ids: bool = False
) -> StructType:
    """Return the schema with the names that files use, at every level.

    Nullability and collations are kept, other metadata is dropped. With ``field_ids`` fields have
    Parquet field ids: both mapped modes write them, but only mode ``id`` reads by them. A field
    without an id gets none: files also have columns that are not in the table, such as that of the
    change data feed, and these are found by name in every mode.
    """
    with_ids = field_ids and mode is not ColumnMappingMode.NONE

    def in_files(field: StructField) -> StructField:
        name = physical_name(field, mode)
        metadata: dict[str, Any] = {}
        if with_ids and _has_id(field):
            metadata[PARQUET_FIELD_ID] = field_id(field)
            if nested := field.metadata.get(NESTED_IDS):
                metadata[PARQUET_NESTED_IDS] = nested
        metadata |= _collations(field, name)
        return StructField(name, field.type, field.nullable, metadata)

    return map_fields(schema, in_files)


def _collations(field: StructField, name: str) -> dict[str, Any]:
    """Return the collations of a field under another name: their paths begin with it."""
    known = field.metadata.get(COLLATIONS)
    if not isinstance(known, Mapping):
        return {}
    return {COLLATIONS: {name + path[len(field.name) :]: value for path, value in known.items()}}


def assign_columns(
    schema: StructType,
    *,
    max_column_id: int,
    new_name: Callable[[], str] = lambda: f"col-{uuid.uuid4()}",
) -> tuple[StructType, int]:
    """Give an id and a physical name to every field that lacks them (M-109).

    Returns the schema and the highest id in use, which becomes
    ``delta.columnMapping.maxColumnId``.
    """
    highest = max((max_column_id, *(n for field in all_fields(schema) for n in _ids(field))))

    def assign(field: StructField) -> StructField:
        nonlocal highest
        metadata = dict(field.metadata)
        if FIELD_ID not in metadata:
            highest += 1
            metadata[FIELD_ID] = highest
        if PHYSICAL_NAME not in metadata:
            metadata[PHYSICAL_NAME] = new_name()
        return replace(field, metadata=metadata)

    return map_fields(schema, assign), highest


def assign_nested_ids(schema: StructType, *, max_column_id: int) -> tuple[StructType, int]:
    """Give an id to each element, key and value of the arrays and maps that lack one.

    Files have these ids in tables of IcebergCompat from version 2 on. The columns have ids and
    physical names already. Returns the schema and the highest id, as `assign_columns`.
    """
    highest = max((max_column_id, *(n for field in all_fields(schema) for n in _ids(field))))

    def assign(field: StructField) -> StructField:
        nonlocal highest
        known = dict(field.metadata.get(NESTED_IDS, {}))
        for path in nested_paths(str(field.metadata[PHYSICAL_NAME]), field.type):
            if path not in known:
                highest += 1
                known[path] = highest
        return replace(field, metadata={**field.metadata, NESTED_IDS: known}) if known else field

    return map_fields(schema, assign), highest


def nested_paths(name: str, data_type: DataType) -> Iterator[str]:
    """Yield the paths of elements, keys and values below a field, up to the fields inside them.

    >>> from puredelta.protocol.schema.types import PrimitiveType
    >>> list(nested_paths("m", MapType(PrimitiveType("long"), ArrayType(PrimitiveType("date")))))
    ['m.key', 'm.value', 'm.value.element']
    """
    match data_type:
        case ArrayType(element):
            parts = [(f"{name}.element", element)]
        case MapType(key, value):
            parts = [(f"{name}.key", key), (f"{name}.value", value)]
        case _:
            return
    for path, kind in parts:
        yield path
        yield from nested_paths(path, kind)


def _ids(field: StructField) -> Iterator[int]:
    if _has_id(field):
        yield field_id(field)
    yield from field.metadata.get(NESTED_IDS, {}).values()


def map_existing_columns(schema: StructType) -> tuple[StructType, int]:
    """Make the name of every field its physical name, so that existing files stay readable.

    Returns the schema and the highest id, as `assign_columns`.
    """
    named = map_fields(schema, lambda f: replace(f, metadata={**f.metadata, PHYSICAL_NAME: f.name}))
    return assign_columns(named, max_column_id=0)


def without_mapping(schema: StructType) -> StructType:
    """Return the schema without ids and physical names, at every level."""

    def unmapped(field: StructField) -> StructField:
        kept = {k: v for k, v in field.metadata.items() if not k.startswith(_KEYS)}
        return replace(field, metadata=kept)

    return map_fields(schema, unmapped)


def _has_id(field: StructField) -> bool:
    return FIELD_ID in field.metadata


def require_complete_mapping(schema: StructType, mode: ColumnMappingMode) -> None:
    """Require an id and a physical name for every field of a mapped schema, all different."""
    if mode is ColumnMappingMode.NONE:
        return
    _require_distinct(schema, "column id", [str(field_id(f)) for f in all_fields(schema)])
    for struct in all_structs(schema):
        # Physical names must differ within one struct; fields of different structs may share one.
        _require_distinct(struct, "physical name", [physical_name(f, mode) for f in struct.fields])


def _require_distinct(struct: StructType, what: str, values: list[str]) -> None:
    twice = sorted(value for value, count in Counter(values).items() if count > 1)
    if twice:
        raise CorruptTableError(
            Message.LOG_CORRUPTED_DUPLICATE_NAMES,
            what=what,
            twice=", ".join(twice),
            names=", ".join(struct.names),
        )


def _incomplete(field: StructField, key: str) -> CorruptTableError:
    return CorruptTableError(Message.LOG_CORRUPTED_COLUMN_MAPPING, key=key, column=field.name)
