"""The Arrow types in which Spark's Parquet files hold the values of a table's types.

Spark hands rows to its Python workers, and takes rows from them, in the same types.
"""

from __future__ import annotations

import pyarrow as pa
from typing_extensions import assert_never

from puredelta.errors import ErrorCode, UnsupportedError
from puredelta.log.files.stored_types import stored_type
from puredelta.protocol.features.column_mapping import PARQUET_FIELD_ID
from puredelta.protocol.schema.schema_json import simple_string
from puredelta.protocol.schema.spatial import SpatialName
from puredelta.protocol.schema.types import (
    VOID,
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    PrimitiveType,
    StructField,
    StructType,
)
from puredelta.worker.scan.spatial import spatial_type

_COLLATED = "string collate "


def arrow_schema(schema: StructType) -> pa.Schema:
    """Return the Arrow schema of rows, in which everything may be NULL, with the ids of fields.

    Raises:
        UnsupportedError: Arrow has none of the types (UNSUPPORTED_DATA_TYPES).
    """
    return pa.schema([_arrow_field(field) for field in schema.fields])


def _arrow_field(field: StructField) -> pa.Field:
    number = field.metadata.get(PARQUET_FIELD_ID)
    metadata = None if number is None else {"PARQUET:field_id": str(number)}
    return pa.field(field.name, _arrow_type(field.type), metadata=metadata)


def _arrow_type(data_type: DataType) -> pa.DataType:
    match data_type:
        case StructType(fields):
            return pa.struct([_arrow_field(field) for field in fields])
        case ArrayType(element):
            return pa.list_(pa.field("element", _arrow_type(element)))
        case MapType(key, value):
            return pa.map_(_arrow_type(key), pa.field("value", _arrow_type(value)))
        case PrimitiveType(name) if name.startswith(_COLLATED):
            return pa.string()
        case _ if data_type == VOID:
            return pa.null()
        case PrimitiveType(name) if (spatial := SpatialName.parse(name)) is not None:
            return _spatial_type(spatial)
        case DecimalType() | PrimitiveType():
            if (found := stored_type(data_type)) is not None:
                return found
            raise _not_in_arrow(simple_string(data_type), ErrorCode.UNSUPPORTED_DATA_TYPES)
        case _:
            assert_never(data_type)


def _spatial_type(spatial: SpatialName) -> pa.DataType:
    if spatial.srid is None or spatial.algorithm not in (None, "spherical"):
        raise _not_in_arrow(spatial.name, ErrorCode.GEOSPATIAL_NOT_SUPPORTED)
    return spatial_type(spatial.base, spatial.srid, spatial.spark_crs)


def _not_in_arrow(name: str, code: ErrorCode) -> UnsupportedError:
    return UnsupportedError(
        f"Arrow cannot hold values of type {name}, and Spark itself has no way to the storage of "
        "this table.",
        code=code,
    )
