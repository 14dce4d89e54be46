"""The Arrow types in which Spark's Parquet files hold the values of a table's types."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
from typing_extensions import assert_never

from puredelta.protocol.schema.types import (
    BINARY,
    BOOLEAN,
    BYTE,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    SHORT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    PrimitiveType,
    StructType,
)

_STORED: Mapping[PrimitiveType, pa.DataType] = {
    BYTE: pa.int8(),
    SHORT: pa.int16(),
    INTEGER: pa.int32(),
    LONG: pa.int64(),
    FLOAT: pa.float32(),
    DOUBLE: pa.float64(),
    STRING: pa.string(),
    BINARY: pa.binary(),
    BOOLEAN: pa.bool_(),
    DATE: pa.date32(),
    TIMESTAMP: pa.timestamp("us", "UTC"),
    TIMESTAMP_NTZ: pa.timestamp("us"),
}


def stored_type(data_type: DataType) -> pa.DataType | None:
    """Return the one Arrow type in which a file of Spark holds values of a type.

    ``None`` for nested types, and for those that only Spark knows.

    >>> stored_type(SHORT), stored_type(DecimalType(7, 2)), stored_type(PrimitiveType("variant"))
    (DataType(int16), Decimal128Type(decimal128(7, 2)), None)
    """
    match data_type:
        case DecimalType(precision=precision, scale=scale):
            return pa.decimal128(precision, scale)
        case PrimitiveType():
            return _STORED.get(data_type)
        case ArrayType() | MapType() | StructType():
            return None
        case _:
            assert_never(data_type)
