"""Schemas of the protocol as schemas of PySpark, and back.

Both sides write the same JSON (protocol section "Schema Serialization Format"), so schemas are
converted by way of that text: collations, intervals and types younger than this library survive.
"""

from __future__ import annotations

import json

from pyspark.errors import PySparkException
from pyspark.sql import types as T

from puredelta.errors import ErrorCode, UnsupportedError
from puredelta.protocol.schema.schema_json import encode_schema, parse_schema
from puredelta.protocol.schema.spatial import SpatialName
from puredelta.protocol.schema.traversal import map_primitives
from puredelta.protocol.schema.types import DataType, PrimitiveType, StructField, StructType
from puredelta.spark.session.spatial_types import HAVE_SPATIAL_TYPES, require_known_spatial_types

_TABLE_METADATA = (
    "delta.columnMapping.",
    "delta.identity.",
    "delta.generationExpression",
    "delta.invariants",
    "delta.typeChanges",
    "CURRENT_DEFAULT",
    "EXISTS_DEFAULT",
)
"""Keys that steer the table's own columns. On the column of a frame they mean nothing, and they
would steer any table that the frame is written to."""

_SHOWN = 2000
"""Characters of a schema in a message."""


def to_spark(schema: StructType) -> T.StructType:
    """Return the schema as PySpark's type, nullability and field metadata included.

    Raises:
        UnsupportedError: this PySpark does not know one of the types.
    """
    if not HAVE_SPATIAL_TYPES:
        require_known_spatial_types(schema)
    try:
        return T.StructType.fromJson(json.loads(encode_schema(_in_words_of_spark(schema))))
    except (PySparkException, AssertionError) as unknown:
        require_known_spatial_types(schema)
        raise UnsupportedError(
            f"This version of PySpark cannot represent the schema {str(schema)[:_SHOWN]}: "
            f"{str(unknown)[:_SHOWN]}",
            code=ErrorCode.UNSUPPORTED_DATA_TYPES,
        ) from unknown


def _in_words_of_spark(schema: StructType) -> StructType:
    """Return the schema with geometries and geographies as Spark names them."""
    return map_primitives(schema, _spatial_in_words_of_spark)


def _spatial_in_words_of_spark(kind: PrimitiveType) -> PrimitiveType:
    spatial = SpatialName.parse(kind.name)
    return kind if spatial is None else PrimitiveType(spatial.spark_name)


def to_spark_type(data_type: DataType) -> T.DataType:
    """Return one type as PySpark's.

    Raises:
        UnsupportedError: this PySpark does not know the type.
    """
    return to_spark(StructType((StructField("value", data_type),))).fields[0].dataType


def from_spark(schema: T.StructType) -> StructType:
    """Return PySpark's schema as the protocol's, nullability and field metadata included."""
    return parse_schema(schema.json())


def from_spark_type(data_type: T.DataType) -> DataType:
    """Return one PySpark type as the protocol's."""
    return from_spark(T.StructType([T.StructField("value", data_type)])).fields[0].type


def quoted(name: str) -> str:
    """Return a column name as Spark's parser takes it; it may have any characters.

    >>> quoted("a.b`c")
    '`a.b``c`'
    """
    return "`" + name.replace("`", "``") + "`"


def quoted_text(text: str) -> str:
    r"""Return text as a literal of Spark's SQL, as its parser reads one by default.

    >>> print(quoted_text("it's"))
    'it\'s'
    """
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def as_nullable(data_type: T.DataType) -> T.DataType:
    """Return the type with everything in it nullable.

    A scan must not claim more: a column that an older file lacks reads as NULL, and
    Spark returns wrong rows where a schema promises otherwise.
    """
    match data_type:
        case T.StructType():
            return struct_as_nullable(data_type)
        case T.ArrayType():
            return T.ArrayType(as_nullable(data_type.elementType), containsNull=True)
        case T.MapType():
            return T.MapType(
                as_nullable(data_type.keyType),
                as_nullable(data_type.valueType),
                valueContainsNull=True,
            )
        case _:
            return data_type


def holds_struct(data_type: T.DataType) -> bool:
    """Return whether the type is a struct or has one inside."""
    match data_type:
        case T.StructType():
            return True
        case T.ArrayType():
            return holds_struct(data_type.elementType)
        case T.MapType():
            return holds_struct(data_type.keyType) or holds_struct(data_type.valueType)
        case _:
            return False


def struct_as_nullable(schema: T.StructType) -> T.StructType:
    """Return the schema with everything in it nullable; field metadata stays."""
    return T.StructType(
        [T.StructField(f.name, as_nullable(f.dataType), True, f.metadata) for f in schema.fields]  # noqa: FBT003
    )


def without_table_metadata(schema: T.StructType) -> T.StructType:
    """Return the schema as a user of the table sees it: comments stay, table machinery goes."""
    return T.StructType(
        [
            T.StructField(
                f.name,
                _without_table_metadata(f.dataType),
                f.nullable,
                {k: v for k, v in f.metadata.items() if not k.startswith(_TABLE_METADATA)},
            )
            for f in schema.fields
        ]
    )


def _without_table_metadata(data_type: T.DataType) -> T.DataType:
    match data_type:
        case T.StructType():
            return without_table_metadata(data_type)
        case T.ArrayType():
            return T.ArrayType(
                _without_table_metadata(data_type.elementType), data_type.containsNull
            )
        case T.MapType():
            return T.MapType(
                _without_table_metadata(data_type.keyType),
                _without_table_metadata(data_type.valueType),
                data_type.valueContainsNull,
            )
        case _:
            return data_type
