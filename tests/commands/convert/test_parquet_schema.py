from __future__ import annotations

import dataclasses

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from puredelta.commands.convert.conversion_plan import ParquetTypes
from puredelta.commands.convert.schema import UnknownShapeError, schema_of_message
from puredelta.protocol.schema.schema_json import simple_string
from tests.commands.convert import footers as f
from tests.commands.convert.footers import Node, group

DEFAULTS = ParquetTypes()


def message(content: bytes) -> str:
    return str(pq.read_metadata(pa.BufferReader(content)).schema)


def leaf(name: str, physical: int, *args, **kwargs) -> Node:
    return Node(name, physical, *args, **kwargs)


ELEMENT = leaf("element", f.INT32)
KEY = leaf("key", f.BINARY, f.REQUIRED, f.STRING)

# Every leaf Spark knows, by the type Spark gives it under default settings.
LEAVES = [
    (leaf("c", f.BOOLEAN), "boolean"),
    (leaf("c", f.FLOAT), "float"),
    (leaf("c", f.DOUBLE), "double"),
    (leaf("c", f.INT32), "int"),
    (leaf("c", f.INT32, logical=f.integer(8, signed=True)), "tinyint"),
    (leaf("c", f.INT32, logical=f.integer(16, signed=True)), "smallint"),
    (leaf("c", f.INT32, logical=f.integer(32, signed=True)), "int"),
    (leaf("c", f.INT32, logical=f.integer(8, signed=False)), "smallint"),
    (leaf("c", f.INT32, logical=f.integer(16, signed=False)), "int"),
    (leaf("c", f.INT32, logical=f.integer(32, signed=False)), "bigint"),
    (leaf("c", f.INT32, converted=15), "tinyint"),
    (leaf("c", f.INT32, converted=13), "bigint"),
    (leaf("c", f.INT32, logical=f.DATE), "date"),
    (leaf("c", f.INT32, converted=6), "date"),
    (
        leaf("c", f.INT32, logical=f.decimal(9, 2), converted=5, precision=9, scale=2),
        "decimal(9,2)",
    ),
    (leaf("c", f.INT32, converted=5, precision=5, scale=0), "decimal(5,0)"),
    (leaf("c", f.INT64), "bigint"),
    (leaf("c", f.INT64, logical=f.integer(64, signed=True)), "bigint"),
    (leaf("c", f.INT64, logical=f.integer(64, signed=False)), "decimal(20,0)"),
    (leaf("c", f.INT64, converted=5, precision=18, scale=3), "decimal(18,3)"),
    (leaf("c", f.INT64, logical=f.timestamp(1, utc=True)), "timestamp"),
    (leaf("c", f.INT64, logical=f.timestamp(2, utc=True)), "timestamp"),
    (leaf("c", f.INT64, logical=f.timestamp(1, utc=False)), "timestamp_ntz"),
    (leaf("c", f.INT64, logical=f.timestamp(2, utc=False)), "timestamp_ntz"),
    (leaf("c", f.INT64, converted=9), "timestamp"),
    (leaf("c", f.INT64, converted=10), "timestamp"),
    (leaf("c", f.INT96), "timestamp"),
    (leaf("c", f.BINARY), "binary"),
    (leaf("c", f.BINARY, logical=f.STRING), "string"),
    (leaf("c", f.BINARY, converted=0), "string"),
    (leaf("c", f.BINARY, logical=f.ENUM), "string"),
    (leaf("c", f.BINARY, logical=f.JSON), "string"),
    (leaf("c", f.BINARY, logical=f.BSON), "binary"),
    (leaf("c", f.BINARY, converted=5, precision=38, scale=10), "decimal(38,10)"),
    (leaf("c", f.FIXED, length=5), "binary"),
    (leaf("c", f.FIXED, length=5, converted=5, precision=11, scale=4), "decimal(11,4)"),
    (leaf("c", f.FIXED, length=16, converted=5, precision=38, scale=0), "decimal(38,0)"),
]


def repeated(name: str, *children: Node) -> Node:
    return group(name, *children, repetition=f.REPEATED)


X = leaf("x", f.INT32)
VALUE = leaf("value", f.INT32)
INNER_LIST = group("element", repeated("list", ELEMENT), logical=f.LIST)
PAIRS = repeated("element", X, leaf("y", f.INT32))

GROUPS = [
    (leaf("c", f.INT32, f.REPEATED), "array<int>"),
    (group("c", X, leaf("y", f.INT64, f.REQUIRED)), "struct<x:int,y:bigint>"),
    (repeated("c", X), "array<struct<x:int>>"),
    (group("c", repeated("list", ELEMENT), logical=f.LIST), "array<int>"),
    (group("c", repeated("bag", leaf("array", f.INT32)), converted=3), "array<int>"),
    (group("c", leaf("array", f.INT32, f.REPEATED), logical=f.LIST), "array<int>"),
    (group("c", PAIRS, converted=3), "array<struct<x:int,y:int>>"),
    (group("c", repeated("array", X), converted=3), "array<struct<x:int>>"),
    (group("c", repeated("c_tuple", X), converted=3), "array<struct<x:int>>"),
    (group("c", repeated("other_tuple", X), converted=3), "array<int>"),
    (group("c", repeated("key_value", KEY, VALUE), logical=f.MAP), "map<string,int>"),
    (group("c", repeated("map", KEY, VALUE), converted=1), "map<string,int>"),
    (group("c", repeated("map", KEY, VALUE), converted=2), "map<string,int>"),
    (group("c", repeated("list", INNER_LIST), logical=f.LIST), "array<array<int>>"),
]

LOCAL_MICROS = f.timestamp(2, utc=False)
LOCAL_NANOS = f.timestamp(3, utc=False)

# Spark refuses these under default settings.
ILLEGAL = [
    leaf("c", f.INT64, logical=f.timestamp(3, utc=True)),
    leaf("c", f.FIXED, length=16, logical=f.UUID),
    leaf("c", f.FIXED, length=2, logical=f.FLOAT16),
]


@pytest.mark.parametrize(("node", "expected"), LEAVES + GROUPS, ids=str)
def test_type_of_a_column(node: Node, expected: str) -> None:
    """C-33."""
    schema = schema_of_message(message(f.empty_file(node)), DEFAULTS)
    assert simple_string(schema) == f"struct<c:{expected}>"


@pytest.mark.parametrize("node", ILLEGAL, ids=str)
def test_what_spark_does_not_read_is_left_to_spark(node: Node) -> None:
    with pytest.raises(UnknownShapeError):
        schema_of_message(message(f.empty_file(node)), DEFAULTS)


@pytest.mark.parametrize(
    ("settings", "node", "expected"),
    [
        ({"binary_as_string": True}, leaf("c", f.BINARY), "string"),
        (
            {"infer_timestamp_ntz": False},
            leaf("c", f.INT64, logical=f.timestamp(2, utc=False)),
            "timestamp",
        ),
        ({"nanos_as_long": True}, leaf("c", f.INT64, logical=f.timestamp(3, utc=False)), "bigint"),
    ],
)
def test_settings_decide(settings: dict[str, bool], node: Node, expected: str) -> None:
    """C-33: spark.sql.parquet.binaryAsString, inferTimestampNTZ, legacy.nanosAsLong."""
    chosen = dataclasses.replace(DEFAULTS, **settings)
    schema = schema_of_message(message(f.empty_file(node)), chosen)
    assert simple_string(schema) == f"struct<c:{expected}>"


def test_int96_without_the_setting_is_left_to_spark() -> None:
    with pytest.raises(UnknownShapeError):
        schema_of_message(
            message(f.empty_file(leaf("c", f.INT96))), ParquetTypes(int96_as_timestamp=False)
        )


@pytest.mark.parametrize("name", ["a b", "a;b", "a (String)", "a\nb", "a{b"])
def test_names_that_blur_the_printed_schema_are_left_to_spark(name: str) -> None:
    with pytest.raises(UnknownShapeError):
        schema_of_message(message(f.empty_file(leaf(name, f.INT32))), DEFAULTS)
