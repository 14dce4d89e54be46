"""Columns and fields of type VOID: they are in the schema of a table and in none of its files.

Their only value is NULL, and Parquet has no type for it. A struct is stored without such fields;
an array or map of them, and a struct of nothing else, cannot be stored (M-113).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from puredelta.errors import InvalidRequestError, Message
from puredelta.protocol.schema.traversal import all_fields, fields_by_path
from puredelta.protocol.schema.types import (
    VOID,
    ArrayType,
    DataType,
    MapType,
    StructField,
    StructType,
)

_COMPLEX = {ArrayType: "ArrayType", MapType: "MapType"}


def stored_type(data_type: DataType) -> DataType:
    """Return the type of values in files: structs without fields of type VOID."""
    if not isinstance(data_type, StructType):
        return data_type
    return StructType(tuple(stored_fields(data_type)))


def stored_fields(struct: StructType) -> Iterator[StructField]:
    """Yield the fields of a struct that files hold, with the types that they have there."""
    for field in struct.fields:
        if field.type != VOID:
            kind = stored_type(field.type)
            yield field if kind is field.type else dataclasses.replace(field, type=kind)


def void_paths(field: StructField) -> Iterator[tuple[str, ...]]:
    """Yield the paths below a column, without its name, of the fields that files leave out."""
    if isinstance(field.type, StructType):
        for inner in field.type.fields:
            if inner.type == VOID:
                yield (inner.name,)
            yield from ((inner.name, *path) for path in void_paths(inner))


def require_stored_fields(schema: StructType) -> None:
    """Check that files can hold all columns but those of type VOID.

    Raises:
        InvalidRequestError: VOID is inside of an array or map
            (COMPLEX_TYPE_COLUMN_CONTAINS_NULL_TYPE), or a struct has no other fields
            (STRUCT_ALL_VOID_FIELDS).
    """
    for path, field in fields_by_path(schema):
        kind = field.type
        if isinstance(kind, ArrayType | MapType) and _holds_void(kind):
            raise InvalidRequestError(
                Message.COMPLEX_TYPE_COLUMN_CONTAINS_NULL_TYPE,
                complex=_COMPLEX[type(kind)],
                column=path,
            )
    for path, field in fields_by_path(schema):
        kind = field.type
        if isinstance(kind, StructType) and kind.fields and not any(stored_fields(kind)):
            raise InvalidRequestError(Message.STRUCT_ALL_VOID_FIELDS, column=path)


def _holds_void(kind: ArrayType | MapType) -> bool:
    parts = (kind.element,) if isinstance(kind, ArrayType) else (kind.key, kind.value)
    return (
        VOID in parts
        or any(field.type == VOID for field in all_fields(kind))
        or any(_holds_void(part) for part in parts if isinstance(part, ArrayType | MapType))
    )
