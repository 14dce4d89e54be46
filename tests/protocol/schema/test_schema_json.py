"""Schemas as JSON (protocol "Schema Serialization Format")."""

from __future__ import annotations

import json

import pytest
from hypothesis import given

from puredelta.errors import CorruptTableError, ErrorCode, UnsupportedError
from puredelta.protocol.schema.schema_json import (
    encode_schema,
    parse_schema,
    parse_type,
    simple_string,
)
from puredelta.protocol.schema.types import (
    LONG,
    STRING,
    TIMESTAMP,
    VOID,
    ArrayType,
    DecimalType,
    MapType,
    PrimitiveType,
    StructField,
    StructType,
)
from tests.protocol.strategies import SCHEMAS

NESTED = (
    '{"type":"struct","fields":['
    '{"name":"id","type":"long","nullable":false,"metadata":{"comment":"é","delta.identity.step":1}},'
    '{"name":"a","type":{"type":"array","elementType":{"type":"map","keyType":"string",'
    '"valueType":{"type":"struct","fields":[{"name":"x","type":"decimal(10,2)","nullable":true,'
    '"metadata":{}}]},"valueContainsNull":false},"containsNull":true},"nullable":true,'
    '"metadata":{}}]}'
)


@given(SCHEMAS)
def test_a_schema_survives_its_json(schema: StructType) -> None:
    assert parse_schema(encode_schema(schema)) == schema


def test_text_of_spark_is_written_back_as_it_was() -> None:
    schema = parse_schema(NESTED)
    assert encode_schema(schema) == NESTED
    assert schema == StructType(
        (
            StructField("id", LONG, False, {"comment": "é", "delta.identity.step": 1}),
            StructField(
                "a",
                ArrayType(
                    MapType(STRING, StructType((StructField("x", DecimalType(10, 2)),)), False)
                ),
            ),
        )
    )


def test_types_are_named_as_spark_names_them() -> None:
    schema = parse_schema(NESTED)
    assert simple_string(schema) == "struct<id:bigint,a:array<map<string,struct<x:decimal(10,2)>>>>"


@pytest.mark.parametrize(
    ("value", "parsed"),
    [
        ("null", VOID),
        ("timestamp_ltz", TIMESTAMP),
        ("decimal", DecimalType(10, 0)),
        ("decimal( 3 , 1 )", DecimalType(3, 1)),
        ("variant", PrimitiveType("variant")),
        ("geometry(OGC:CRS84)", PrimitiveType("geometry(OGC:CRS84)")),
    ],
)
def test_other_spellings_and_unknown_names(value: str, parsed: PrimitiveType) -> None:
    assert parse_type(value) == parsed


def test_a_table_without_schema_has_no_columns() -> None:
    assert parse_schema("") == StructType(())


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{", "not JSON"),
        ('"long"', "is a struct"),
        ("[]", "no data type"),
        ('{"type":"tensor"}', "no data type"),
        ('{"type":"struct"}', "'fields' is missing"),
        ('{"type":"struct","fields":["a"]}', "field is an object"),
        ('{"type":"struct","fields":[{"name":"a","type":"long"}]}', "'nullable' is missing"),
        ('{"type":"struct","fields":[{"name":1,"type":"long","nullable":true}]}', "has a name"),
        ('{"type":"struct","fields":[{"name":"a","type":"long","nullable":1}]}', "true or false"),
        (
            '{"type":"struct","fields":[{"name":"a","type":"decimal(39,0)","nullable":true}]}',
            "at most 38 digits",
        ),
        (
            '{"type":"struct","fields":[{"name":"a","type":"decimal(3,4)","nullable":true}]}',
            "at most 38 digits",
        ),
    ],
)
def test_a_broken_schema_is_named(text: str, problem: str) -> None:
    with pytest.raises(CorruptTableError, match=problem) as caught:
        parse_schema(text)
    assert caught.value.code is ErrorCode.LOG_CORRUPTED


def test_a_user_defined_type_is_refused_by_name() -> None:
    field = {
        "name": "v",
        "type": {"type": "udt", "class": "org.apache.spark.ml.linalg.VectorUDT", "sqlType": "long"},
        "nullable": True,
        "metadata": {},
    }
    with pytest.raises(UnsupportedError, match="VectorUDT"):
        parse_schema(json.dumps({"type": "struct", "fields": [field]}))
