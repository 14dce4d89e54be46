"""Rows as plain JSON and back; README.md shows the encoding of every type."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from datetime import date, datetime, timezone
from decimal import Decimal
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import types as T

Json = Any
_NO_NUMBERS = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
"""What JSON has no number for."""


def encode(value: Any, kind: T.DataType) -> Json:
    """The JSON of a value that Spark collected."""
    if value is None:
        return None
    match kind:
        case T.StructType():
            return {f.name: encode(v, f.dataType) for f, v in zip(kind.fields, value, strict=True)}
        case T.ArrayType():
            return [encode(item, kind.elementType) for item in value]
        case T.MapType():
            pairs = [[encode(k, kind.keyType), encode(v, kind.valueType)] for k, v in value.items()]
            return sorted(pairs, key=json.dumps)
        case T.FloatType() | T.DoubleType():
            return value if math.isfinite(value) else _infinite_text(value)
        case T.BinaryType():
            return bytes(value).hex()
        case T.TimestampType():
            return value.isoformat() + "Z"
        case T.DateType() | T.TimestampNTZType():
            return value.isoformat()
        case T.DecimalType():
            return str(value)
    return value


def decode(value: Json, kind: T.DataType) -> Any:  # noqa: PLR0911 - one return a kind
    """The inverse of `encode`, as ``createDataFrame`` takes it."""
    if value is None:
        return None
    match kind:
        case T.StructType():
            return tuple(decode(value[f.name], f.dataType) for f in kind.fields)
        case T.ArrayType():
            return [decode(item, kind.elementType) for item in value]
        case T.MapType():
            return {decode(k, kind.keyType): decode(v, kind.valueType) for k, v in value}
        case T.FloatType() | T.DoubleType():
            return _NO_NUMBERS[value] if isinstance(value, str) else float(value)
        case T.BinaryType():
            return bytearray.fromhex(value)
        case T.TimestampType():
            return datetime.fromisoformat(value.removesuffix("Z")).replace(tzinfo=timezone.utc)
        case T.TimestampNTZType():
            return datetime.fromisoformat(value)
        case T.DateType():
            return date.fromisoformat(value)
        case T.DecimalType():
            return Decimal(value)
    return value


def _infinite_text(value: float) -> str:
    return next(text for text, number in _NO_NUMBERS.items() if str(number) == str(value))


def encode_rows(frame: DataFrame) -> list[Json]:
    """All rows of a frame, one list each, in an order of their own."""
    return ordered(list(encode(row, frame.schema).values()) for row in frame.collect())


def decode_rows(rows: Iterable[Json], schema: T.StructType) -> list[tuple[Any, ...]]:
    """Rows as ``createDataFrame`` takes them."""
    kinds = [field.dataType for field in schema.fields]
    return [tuple(decode(v, kind) for v, kind in zip(row, kinds, strict=True)) for row in rows]


def ordered(rows: Iterable[Json]) -> list[Json]:
    """Rows sorted by their text: -0.0 and 0.0 are two values, and nulls have a place."""
    return sorted(rows, key=json.dumps)


def schema_text(schema: T.StructType) -> str:
    """Names, types and NOT NULL of a schema's columns."""
    return ", ".join(
        f"{field.name} {field.dataType.simpleString()}{'' if field.nullable else ' NOT NULL'}"
        for field in schema.fields
    )
