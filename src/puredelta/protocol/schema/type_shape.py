"""Data types without what schema enforcement ignores."""

from __future__ import annotations

import dataclasses

from puredelta.protocol.schema.types import ArrayType, DataType, MapType, StructType


def shape(data_type: DataType) -> DataType:
    """Return the type without what enforcement ignores: nullability and metadata."""
    match data_type:
        case StructType(fields):
            return StructType(
                tuple(
                    dataclasses.replace(f, type=shape(f.type), nullable=True, metadata={})
                    for f in fields
                )
            )
        case ArrayType(element):
            return ArrayType(shape(element))
        case MapType(key, value):
            return MapType(shape(key), shape(value))
        case _:
            return data_type
