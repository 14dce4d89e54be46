"""JSON of a log, and schemas as JSON (section "Schema Serialization Format").

Metadata of fields is kept as it is, because features that are unknown here may use it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from typing_extensions import assert_never

from puredelta.errors import CorruptTableError, Message, UnsupportedError
from puredelta.protocol.schema.spatial import SpatialName
from puredelta.protocol.schema.types import (
    PRIMITIVE_KINDS,
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    PrimitiveType,
    StructField,
    StructType,
)

NESTING_MAX = 100
"""Arrays and objects inside each other. What walks the values calls itself for every level."""


def parse_json(text: str | bytes) -> Any:
    """Return the value of a JSON text.

    Raises:
        ValueError: it is no JSON, or is nested more deeply than `NESTING_MAX`.
    """
    content = text.decode("utf-8") if isinstance(text, bytes) else text
    try:
        value = json.loads(content)
    except RecursionError as error:
        raise _too_deep() from error
    if content.count("{") + content.count("[") > NESTING_MAX:
        _require_shallow(value)
    return value


def _require_shallow(value: Any) -> None:
    level = [value]
    for _ in range(NESTING_MAX + 1):
        level = [child for parent in level for child in _children(parent)]
        if not level:
            return
    raise _too_deep()


def _children(value: Any) -> Any:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def _too_deep() -> ValueError:
    return ValueError(f"it is nested more than {NESTING_MAX} levels deep")


DECIMAL_PRECISION_MAX = 38

_DECIMAL = re.compile(r"decimal\(\s*(\d+)\s*,\s*(\d+)\s*\)")
# Other names that Spark reads. "decimal" alone is Spark's default decimal.
_ALIASES: Mapping[str, DataType] = {
    "null": PrimitiveType("void"),
    "timestamp_ltz": PrimitiveType("timestamp"),
    "decimal": DecimalType(10, 0),
}
_SIMPLE_NAMES = {kind.name: kind.spark for kind in PRIMITIVE_KINDS if kind.spark}


def parse_schema(text: str) -> StructType:
    """Read the ``schemaString`` of a table; an empty text is a table without columns.

    Raises:
        CorruptTableError: not the JSON of a struct (DELTA_LOG_CORRUPTED).
        UnsupportedError: a user-defined type (DELTA_UNSUPPORTED_DATA_TYPES).
    """
    if not text:
        return StructType(())
    try:
        value = parse_json(text)
    except ValueError as error:
        raise _broken(f"it is not JSON ({error})", text) from error
    schema = parse_type(value)
    if not isinstance(schema, StructType):
        raise _broken("a table's schema is a struct", value)
    return schema


def encode_schema(schema: StructType) -> str:
    """Write a schema as compact JSON text, keys in Spark's order.

    >>> encode_schema(StructType((StructField("id", PrimitiveType("long")),)))
    '{"type":"struct","fields":[{"name":"id","type":"long","nullable":true,"metadata":{}}]}'
    """
    return json.dumps(encode_type(schema), separators=(",", ":"), ensure_ascii=False)


def parse_type(value: Any) -> DataType:
    """Read one data type from its JSON value."""
    if isinstance(value, str):
        return _parse_name(value)
    kind = value.get("type") if isinstance(value, dict) else None
    try:
        match kind:
            case "struct":
                return StructType(tuple(map(_parse_field, _list(value["fields"]))))
            case "array":
                return ArrayType(parse_type(value["elementType"]), _flag(value["containsNull"]))
            case "map":
                return MapType(
                    parse_type(value["keyType"]),
                    parse_type(value["valueType"]),
                    _flag(value["valueContainsNull"]),
                )
            case "udt":
                raise _user_defined(value)
            case _:
                raise _broken("this is no data type", value)
    except KeyError as error:
        raise _broken(f"key {error} is missing", value) from error


def encode_type(data_type: DataType) -> Any:
    """Return one data type as its JSON value."""
    match data_type:
        case PrimitiveType(name):
            return name
        case DecimalType(precision, scale):
            return f"decimal({precision},{scale})"
        case ArrayType(element, contains_null):
            return {
                "type": "array",
                "elementType": encode_type(element),
                "containsNull": contains_null,
            }
        case MapType(key, value, value_contains_null):
            return {
                "type": "map",
                "keyType": encode_type(key),
                "valueType": encode_type(value),
                "valueContainsNull": value_contains_null,
            }
        case StructType(fields):
            return {"type": "struct", "fields": [_encode_field(f) for f in fields]}
        case _:
            assert_never(data_type)


def simple_string(data_type: DataType) -> str:
    """Write a type as Spark's ``catalogString`` does.

    >>> simple_string(ArrayType(DecimalType(10, 2)))
    'array<decimal(10,2)>'
    """
    match data_type:
        case PrimitiveType(name):
            spatial = SpatialName.parse(name)
            return _SIMPLE_NAMES.get(name, name) if spatial is None else spatial.catalog_name
        case DecimalType(precision, scale):
            return f"decimal({precision},{scale})"
        case ArrayType(element):
            return f"array<{simple_string(element)}>"
        case MapType(key, value):
            return f"map<{simple_string(key)},{simple_string(value)}>"
        case StructType(fields):
            return f"struct<{','.join(f'{f.name}:{simple_string(f.type)}' for f in fields)}>"
        case _:
            assert_never(data_type)


def _parse_name(name: str) -> DataType:
    if match := _DECIMAL.fullmatch(name):
        precision, scale = int(match[1]), int(match[2])
        if not 0 < precision <= DECIMAL_PRECISION_MAX or scale > precision:
            raise _broken(f"a decimal has at most {DECIMAL_PRECISION_MAX} digits", name)
        return DecimalType(precision, scale)
    spatial = SpatialName.parse(name)
    if spatial is not None:
        return PrimitiveType(spatial.name)
    return _ALIASES.get(name) or PrimitiveType(name)


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise _broken("the fields of a struct are an array", value)
    return value


def _parse_field(value: Any) -> StructField:
    if not isinstance(value, dict):
        raise _broken("a field is an object", value)
    name, metadata = value["name"], value.get("metadata") or {}
    if not isinstance(name, str) or not isinstance(metadata, dict):
        raise _broken("a field has a name and an object of metadata", value)
    return StructField(name, parse_type(value["type"]), _flag(value["nullable"]), metadata)


def _encode_field(field: StructField) -> dict[str, Any]:
    return {
        "name": field.name,
        "type": encode_type(field.type),
        "nullable": field.nullable,
        "metadata": dict(field.metadata),
    }


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise _broken("expected true or false", value)
    return value


def _broken(problem: str, value: object) -> CorruptTableError:
    shown = value if isinstance(value, str) else json.dumps(value)
    return CorruptTableError(Message.LOG_CORRUPTED_SCHEMA, problem=problem, shown=shown[:200])


def _user_defined(value: Mapping[str, Any]) -> UnsupportedError:
    name = value.get("pyClass") or value.get("class")
    return UnsupportedError(Message.UNSUPPORTED_DATA_TYPES_USER_DEFINED, type=name)
