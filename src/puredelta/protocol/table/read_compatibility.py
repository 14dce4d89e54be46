"""Whether rows stored under one schema of a table can be read under another schema of it.

A newer schema may only have further columns. Renamed, dropped or retyped columns would show older
rows under wrong names or not at all.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from typing_extensions import assert_never

from puredelta.protocol.actions.actions import Metadata
from puredelta.protocol.features.column_mapping import physical_name
from puredelta.protocol.features.properties import ColumnMappingMode, TableProperties
from puredelta.protocol.schema.schema_json import parse_schema
from puredelta.protocol.schema.types import (
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    PrimitiveType,
    StructField,
    StructType,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableShape:
    """The facts of a metadata action that matter for the columns of files."""

    schema: StructType
    partition_columns: tuple[str, ...]
    column_mapping: ColumnMappingMode

    @classmethod
    def of(cls, metadata: Metadata) -> TableShape:
        """Read a metadata action alone: in a log it may come without a protocol action."""
        return cls(
            schema=parse_schema(metadata.schema_string),
            partition_columns=metadata.partition_columns,
            column_mapping=TableProperties.of(metadata.configuration).column_mapping_mode,
        )


def can_read(stored: TableShape, wanted: TableShape, *, stored_is_older: bool) -> bool:
    """Return whether rows stored under one shape may be read under another, as in delta-spark.

    The newer shape may have further columns. Nothing else may differ: no name (not even its case)
    and no type, at any depth; with column mapping also no physical name and no partitioning.
    ``wanted`` must allow NULL wherever ``stored`` does.
    """
    older, newer = (stored, wanted) if stored_is_older else (wanted, stored)
    return keeps_mapping(older, newer) and _struct_fits(
        stored.schema, wanted.schema, stored_is_older=stored_is_older
    )


def adds_columns_only(stored: StructType, wanted: StructType) -> bool:
    """Return whether ``wanted`` has every column of ``stored`` unchanged, and perhaps others.

    Fields at any depth count. ``wanted`` must allow NULL wherever ``stored`` does.
    """
    return _struct_fits(stored, wanted, stored_is_older=True)


def keeps_mapping(older: TableShape, newer: TableShape) -> bool:
    """Return whether column mapping shows no renamed or dropped column; turning it on is fine."""
    if newer.column_mapping is ColumnMappingMode.NONE:
        return older.column_mapping is ColumnMappingMode.NONE
    if older.column_mapping not in {ColumnMappingMode.NONE, newer.column_mapping}:
        return False
    names = dict(_physical_fields(newer.schema, newer.column_mapping, ()))
    # Before the mapping was turned on, logical names were the physical ones.
    return older.partition_columns == newer.partition_columns and all(
        names.get(path) == name
        for path, name in _physical_fields(older.schema, older.column_mapping, ())
    )


def _physical_fields(
    data_type: DataType, mode: ColumnMappingMode, prefix: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield the physical path and the logical name of every field inside a type."""
    match data_type:
        case StructType(fields):
            for field in fields:
                path = (*prefix, physical_name(field, mode))
                yield path, field.name
                yield from _physical_fields(field.type, mode, path)
        case ArrayType(element):
            yield from _physical_fields(element, mode, (*prefix, "element"))
        case MapType(key, value):
            yield from _physical_fields(key, mode, (*prefix, "key"))
            yield from _physical_fields(value, mode, (*prefix, "value"))
        case PrimitiveType() | DecimalType():
            return
        case _:
            assert_never(data_type)


def _struct_fits(stored: StructType, wanted: StructType, *, stored_is_older: bool) -> bool:
    older, newer = (stored, wanted) if stored_is_older else (wanted, stored)
    if not {f.name.lower() for f in older.fields} <= {f.name.lower() for f in newer.fields}:
        return False
    pairs = ((field, wanted.find_ignoring_case(field.name)) for field in stored.fields)
    return all(
        match is None or _field_fits(field, match, stored_is_older=stored_is_older)
        for field, match in pairs
    )


def _field_fits(stored: StructField, wanted: StructField, *, stored_is_older: bool) -> bool:
    return (
        stored.name == wanted.name
        and (wanted.nullable or not stored.nullable)
        and _type_fits(stored.type, wanted.type, stored_is_older=stored_is_older)
    )


def _type_fits(stored: DataType, wanted: DataType, *, stored_is_older: bool) -> bool:
    match stored, wanted:
        case StructType(), StructType():
            return _struct_fits(stored, wanted, stored_is_older=stored_is_older)
        case ArrayType(), ArrayType():
            return (wanted.contains_null or not stored.contains_null) and _type_fits(
                stored.element, wanted.element, stored_is_older=stored_is_older
            )
        case MapType(), MapType():
            return (
                (wanted.value_contains_null or not stored.value_contains_null)
                and _type_fits(stored.key, wanted.key, stored_is_older=stored_is_older)
                and _type_fits(stored.value, wanted.value, stored_is_older=stored_is_older)
            )
        case _:
            return stored == wanted
