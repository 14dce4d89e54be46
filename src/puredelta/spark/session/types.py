"""Schemas of the protocol as schemas of PySpark and Arrow, and back.

Both sides write the same JSON (protocol section "Schema Serialization Format"), so schemas are
converted by way of that text: collations, intervals and types younger than this library survive.
Geometries and geographies alone have other names there.

Spark hands rows to its Python workers, and takes rows from them, in the same types.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import pyarrow as pa
import pyspark
from pyspark.errors import PySparkException
from pyspark.sql import types as T
from typing_extensions import assert_never

from puredelta.errors import Message, UnsupportedError
from puredelta.log.files.value_order import stored_type
from puredelta.protocol.features.column_mapping import PARQUET_FIELD_ID, PARQUET_NESTED_IDS
from puredelta.protocol.schema.char_varchar import (
    Limited,
    LimitedArray,
    LimitedMap,
    LimitedStruct,
    Limits,
    limits_of,
)
from puredelta.protocol.schema.schema_json import encode_schema, parse_schema, simple_string
from puredelta.protocol.schema.spatial import SpatialName
from puredelta.protocol.schema.traversal import map_primitives, primitive_names
from puredelta.protocol.schema.types import (
    PRIMITIVE_KINDS,
    VOID,
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    PrimitiveType,
    StructField,
    StructType,
    is_spatial,
)
from puredelta.protocol.table.table_config import CHAR_VARCHAR
from puredelta.worker.file_columns import spatial_type

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


def _release(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".")[:2])


_SPATIAL_SINCE = max(kind.pyspark for kind in PRIMITIVE_KINDS if kind.feature == "geospatial")
HAVE_SPATIAL_TYPES = _release(pyspark.__version__) >= _SPATIAL_SINCE and _release(
    pa.__version__
) >= (20, 0)
"""Whether Spark stores the types in Parquet (4.1 has their names alone), and Arrow, which reads
the statistics of new files, opens such files."""


def to_spark(schema: StructType) -> T.StructType:
    """Return the schema as PySpark's type, nullability and field metadata included.

    Raises:
        UnsupportedError: this PySpark does not know one of the types.
    """
    if not HAVE_SPATIAL_TYPES:
        require_known_spatial_types(schema)
    try:
        text = encode_schema(_in_words_of_spark(schema))
        has_lists = text.count("[") > text.count(_FIELDS)
        return T.StructType.fromJson(
            json.loads(text, object_hook=_without_mixed_lists if has_lists else None)
        )
    except (PySparkException, AssertionError) as unknown:
        require_known_spatial_types(schema)
        raise UnsupportedError(
            Message.UNSUPPORTED_DATA_TYPES_PYSPARK,
            schema=str(schema)[:_SHOWN],
            unknown=str(unknown)[:_SHOWN],
        ) from unknown


_FIELDS = '"fields":['


def _without_mixed_lists(part: dict[str, Any]) -> dict[str, Any]:
    """Return a part of a schema without the lists that metadata of Spark cannot hold: lists with
    values of several kinds, with NULL, or with lists.
    """
    return {name: value for name, value in part.items() if not _is_mixed(value)}


def _is_mixed(value: object) -> bool:
    kinds = set(map(type, value)) if isinstance(value, list) else set()
    return len(kinds) > 1 or not kinds.isdisjoint((list, type(None)))


def to_spark_type(data_type: DataType) -> T.DataType:
    """Return one type as PySpark's."""
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
    """Return the schema as a user of the table sees it: with comments, without table machinery."""
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


# --- geometries and geographies -------------------------------------------------------------


def require_known_spatial_types(schema: StructType) -> None:
    """Check that this PySpark can read and write the columns of geometries and geographies.

    Raises:
        UnsupportedError: it, or Arrow, is older than the types, or it does not know the system of
            coordinates or the algorithm (GEOSPATIAL_NOT_SUPPORTED).
    """
    found = [(path, SpatialName.parse(name)) for path, name in primitive_names(schema)]
    spatial = [(".".join(path), kind) for path, kind in found if kind is not None]
    if not spatial:
        return
    if not HAVE_SPATIAL_TYPES:
        listed = ", ".join(f"{path}: {kind.name}" for path, kind in spatial)
        raise UnsupportedError(
            Message.GEOSPATIAL_NOT_SUPPORTED_VERSIONS,
            pyspark_version=pyspark.__version__,
            pa_version=pa.__version__,
            listed=listed,
        )
    unknown = [(path, kind) for path, kind in spatial if not _is_known(kind)]
    if unknown:
        listed = ", ".join(f"{path}: {kind.name}" for path, kind in unknown)
        raise UnsupportedError(
            Message.GEOSPATIAL_NOT_SUPPORTED_SYSTEMS,
            pyspark_version=pyspark.__version__,
            listed=listed,
        )


def _is_known(kind: SpatialName) -> bool:
    if kind.is_mixed:
        return False
    field = {"name": "value", "type": kind.spark_name, "nullable": True, "metadata": {}}
    try:
        T.StructField.fromJson(field)
    except (PySparkException, AssertionError, ValueError):
        return False
    return True


def _in_words_of_spark(schema: StructType) -> StructType:
    """Return the schema with geometries and geographies as Spark names them."""
    return map_primitives(schema, _spatial_in_words_of_spark)


def _spatial_in_words_of_spark(kind: PrimitiveType) -> PrimitiveType:
    spatial = SpatialName.parse(kind.name)
    return kind if spatial is None else PrimitiveType(spatial.spark_name)


_COLLATED = "string collate "


def arrow_schema(schema: StructType) -> pa.Schema:
    """Return the Arrow schema of rows, in which everything may be NULL, with the ids of fields.

    Raises:
        UnsupportedError: names a column of a type that Spark alone reads.
    """
    try:
        return pa.schema([_arrow_field(field) for field in schema.fields])
    except _NotInArrowError as error:
        name, is_geo = simple_string(error.kind), is_spatial(error.kind)
        raise UnsupportedError(
            Message.GEOSPATIAL_NOT_SUPPORTED_ARROW
            if is_geo
            else Message.UNSUPPORTED_DATA_TYPES_ARROW,
            column=error.path,
            type=name,
        ) from None


def _arrow_field(field: StructField) -> pa.Field:
    number = field.metadata.get(PARQUET_FIELD_ID)
    nested = field.metadata.get(PARQUET_NESTED_IDS, {})
    try:
        kind = _arrow_type(field.type, field.name, nested)
        return pa.field(field.name, kind, metadata=_id_metadata(number))
    except _NotInArrowError as error:
        raise _NotInArrowError(f"{field.name}.{error.path}".rstrip("."), error.kind) from None


class _NotInArrowError(Exception):
    """A type that Arrow does not hold, and the path of its column."""

    def __init__(self, path: str, kind: PrimitiveType | DecimalType) -> None:
        super().__init__(path, kind)
        self.path, self.kind = path, kind


def _id_metadata(number: int | None) -> dict[str, str] | None:
    return None if number is None else {"PARQUET:field_id": str(number)}


def _arrow_type(
    data_type: DataType, path: str = "", ids: Mapping[str, int] = MappingProxyType({})
) -> pa.DataType:
    """Return the type; ``ids`` are those of elements, keys and values by their paths in files."""

    def part(name: str, kind: DataType, *, nullable: bool = True) -> pa.Field:
        inner = f"{path}.{name}"
        metadata = _id_metadata(ids.get(inner))
        return pa.field(name, _arrow_type(kind, inner, ids), nullable, metadata)

    match data_type:
        case StructType(fields):
            return pa.struct([_arrow_field(field) for field in fields])
        case ArrayType(element):
            return pa.list_(part("element", element))
        case MapType(key, value):
            return pa.map_(part("key", key, nullable=False), part("value", value))
        case PrimitiveType(name) if name.startswith(_COLLATED):
            return pa.string()
        case _ if data_type == VOID:
            return pa.null()
        case PrimitiveType(name) if (spatial := SpatialName.parse(name)) is not None:
            if spatial.srid is None or spatial.algorithm not in (None, "spherical"):
                raise _NotInArrowError("", data_type)
            return spatial_type(spatial.base, spatial.srid, spatial.spark_crs)
        case DecimalType() | PrimitiveType():
            if (found := stored_type(data_type)) is not None:
                return found
            raise _NotInArrowError("", data_type)
        case _:
            assert_never(data_type)


def with_length(field: T.StructField) -> T.StructField:
    """Return a column with the type that the catalog keeps, which readers see as a string."""
    limits = limits_of(field.metadata.get(CHAR_VARCHAR))
    if limits is None:
        return field
    rest = {key: value for key, value in field.metadata.items() if key != CHAR_VARCHAR}
    return T.StructField(field.name, _limited(field.dataType, limits), field.nullable, rest)


def _limited(kind: T.DataType, limits: Limits) -> T.DataType:
    """Return a type with ``char(n)`` and ``varchar(n)`` in the place of strings."""
    match limits, kind:
        case Limited(length, is_padded), _:
            return T.CharType(length) if is_padded else T.VarcharType(length)
        case LimitedArray(element), T.ArrayType():
            return T.ArrayType(_limited(kind.elementType, element), kind.containsNull)
        case LimitedMap(key, value), T.MapType():
            key_type, value_type = _limited(kind.keyType, key), _limited(kind.valueType, value)
            return T.MapType(key_type, value_type, kind.valueContainsNull)
        case LimitedStruct(fields), T.StructType():
            known = dict(fields)  # without fields that were added later
            limited = [
                T.StructField(
                    f.name, _limited(f.dataType, known.get(f.name)), f.nullable, f.metadata
                )
                for f in kind.fields
            ]
            return T.StructType(limited)
        case _:
            return kind
