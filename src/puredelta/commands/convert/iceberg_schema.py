"""Schema and partitions of an Iceberg table as those of a Delta table.

Iceberg gives every field an id, also in data files, so renamed, moved and dropped columns need
nothing more than column mapping by id. A widened type is covered by the type widening feature;
the types in the files come from their footers (C-70).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pyiceberg import types as I
from pyiceberg.schema import Schema

from puredelta.errors import Message, UnsupportedError
from puredelta.protocol.features.column_mapping import FIELD_ID, PHYSICAL_NAME
from puredelta.protocol.features.type_widening import with_type_changes
from puredelta.protocol.schema.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    StructField,
    StructType,
)
from puredelta.protocol.table.stats import LeafPath

_PRIMITIVES: Mapping[type[I.IcebergType], DataType] = {
    I.BooleanType: BOOLEAN,
    I.IntegerType: INTEGER,
    I.LongType: LONG,
    I.FloatType: FLOAT,
    I.DoubleType: DOUBLE,
    I.DateType: DATE,
    I.TimestampType: TIMESTAMP_NTZ,
    I.TimestamptzType: TIMESTAMP,
    I.StringType: STRING,
    I.BinaryType: BINARY,
    I.FixedType: BINARY,
}


def delta_schema(schema: Schema, narrowest: Mapping[int, DataType]) -> StructType:
    """Return the columns of a Delta table; ``narrowest`` has the types in files, by field id."""
    after = _struct(schema.fields, {}, ())
    return with_type_changes(_struct(schema.fields, narrowest, ()), after)


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaf:
    """A column without fields, not inside an array or map."""

    field_id: int
    path: LeafPath
    type: I.PrimitiveType


def leaves(schema: Schema) -> Iterator[Leaf]:
    """Yield the leaves that can have statistics, in schema order."""
    yield from _leaves(schema.fields, ())


def _leaves(fields: tuple[I.NestedField, ...], prefix: LeafPath) -> Iterator[Leaf]:
    for field in fields:
        path = (*prefix, field.name)
        match field.field_type:
            case I.StructType() as inner:
                yield from _leaves(inner.fields, path)
            case I.PrimitiveType() as kind:
                yield Leaf(field_id=field.field_id, path=path, type=kind)
            case _:
                continue


def _struct(
    fields: tuple[I.NestedField, ...], narrowest: Mapping[int, DataType], prefix: LeafPath
) -> StructType:
    return StructType(tuple(_field(field, narrowest, prefix) for field in fields))


def _field(
    field: I.NestedField, narrowest: Mapping[int, DataType], prefix: LeafPath
) -> StructField:
    path = (*prefix, field.name)
    if field.initial_default is not None:
        raise _unsupported(
            path, f"has the default {field.initial_default!r} for rows that were there before it"
        )
    metadata = {FIELD_ID: field.field_id, PHYSICAL_NAME: field.name}
    if field.doc:
        metadata["comment"] = field.doc
    return StructField(
        field.name,
        _type(field, narrowest, path),
        # A Delta table would have to check NOT NULL inside structs itself.
        nullable=bool(prefix) or field.optional,
        metadata=metadata,
    )


def _type(field: I.NestedField, narrowest: Mapping[int, DataType], path: LeafPath) -> DataType:
    match field.field_type:
        case I.StructType() as struct:
            return _struct(struct.fields, narrowest, path)
        case I.ListType() as array:
            return ArrayType(_type(array.element_field, narrowest, (*path, "element")))
        case I.MapType() as map_:
            return MapType(
                _type(map_.key_field, narrowest, (*path, "key")),
                _type(map_.value_field, narrowest, (*path, "value")),
            )
        case I.PrimitiveType() as kind:
            return narrowest.get(field.field_id) or primitive(kind, path)
        case other:
            raise _unsupported(path, f"has the type {other}")


def primitive(kind: I.PrimitiveType, path: LeafPath) -> DataType:
    """Return the Delta type for an Iceberg type.

    Raises:
        UnsupportedError: there is none.
    """
    if isinstance(kind, I.DecimalType):
        return DecimalType(kind.precision, kind.scale)
    found = _PRIMITIVES.get(type(kind))
    if found is None:
        raise _unsupported(path, f"has the type {kind}")
    return found


def _unsupported(path: LeafPath, reason: str) -> UnsupportedError:
    column = ".".join(path)
    return UnsupportedError(Message.UNSUPPORTED_DATA_TYPES_ICEBERG, reason=reason, column=column)
