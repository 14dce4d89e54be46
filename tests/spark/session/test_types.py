"""Schemas between the protocol and PySpark, and the names that are ours."""

from __future__ import annotations

import pytest
from pyspark.sql import types as T

from puredelta.errors import ErrorCode, InvalidRequestError, UnsupportedError
from puredelta.protocol.schema.types import (
    DATE,
    LONG,
    STRING,
    TIMESTAMP_NTZ,
    VARIANT,
    VOID,
    ArrayType,
    DecimalType,
    MapType,
    PrimitiveType,
    StructField,
    StructType,
)
from puredelta.spark.session.names import require_no_helper_names
from puredelta.spark.session.types import (
    as_nullable,
    from_spark,
    from_spark_type,
    holds_struct,
    struct_as_nullable,
    to_spark,
    to_spark_type,
    without_table_metadata,
)

SCHEMA = StructType(
    (
        StructField("id", LONG, nullable=False, metadata={"comment": "the key"}),
        StructField("a b", STRING, metadata={"__CHAR_VARCHAR_TYPE_STRING": "char(3)"}),
        StructField("d", DecimalType(38, 10)),
        StructField("n", StructType((StructField("x", DATE, nullable=False),))),
        StructField("l", ArrayType(TIMESTAMP_NTZ, contains_null=False)),
        StructField("m", MapType(STRING, VOID, value_contains_null=False)),
        StructField("v", VARIANT),
    )
)


def test_round_trip_keeps_everything() -> None:
    assert from_spark(to_spark(SCHEMA)) == SCHEMA
    assert to_spark(SCHEMA).fields[0].metadata == {"comment": "the key"}
    assert from_spark_type(to_spark_type(DecimalType(5, 2))) == DecimalType(5, 2)


def test_collations_survive() -> None:
    soft = T.StructType([T.StructField("c", T.StringType("UTF8_LCASE"))])
    there = from_spark(soft)
    assert there.fields[0].metadata == {"__COLLATIONS": {"c": "spark.UTF8_LCASE"}}
    assert to_spark(there) == soft


def test_type_pyspark_does_not_know() -> None:
    with pytest.raises(UnsupportedError, match="hypercube") as raised:
        to_spark_type(PrimitiveType("hypercube"))
    assert raised.value.code is ErrorCode.UNSUPPORTED_DATA_TYPES


def test_everything_can_be_made_nullable() -> None:
    nullable = struct_as_nullable(to_spark(SCHEMA))
    assert "false" not in nullable.json()
    assert nullable.fields[0].metadata == {"comment": "the key"}
    assert as_nullable(T.LongType()) == T.LongType()
    pairs = T.MapType(T.StructType([T.StructField("k", T.LongType(), False)]), T.LongType(), False)
    assert "false" not in as_nullable(pairs).json()


def test_what_holds_a_struct() -> None:
    kinds = {f.name: holds_struct(f.dataType) for f in to_spark(SCHEMA).fields}
    assert [name for name, holds in kinds.items() if holds] == ["n"]
    assert holds_struct(T.ArrayType(T.MapType(T.StringType(), T.StructType())))


def test_table_metadata_stays_with_the_table() -> None:
    metadata = {
        "comment": "c",
        "delta.columnMapping.id": 1,
        "delta.columnMapping.physicalName": "x",
        "delta.generationExpression": "1",
        "CURRENT_DEFAULT": "1",
    }
    inner = T.StructType([T.StructField("x", T.LongType(), True, metadata)])
    outer = T.StructType(
        [
            T.StructField("s", inner, True, metadata),
            T.StructField("l", T.ArrayType(inner)),
            T.StructField("m", T.MapType(T.StringType(), inner)),
        ]
    )
    shown = without_table_metadata(outer)
    assert shown.simpleString() == outer.simpleString()
    assert "delta." not in shown.json()
    assert "DEFAULT" not in shown.json()
    assert shown.json().count('"comment"') == 4


def test_helper_names_are_reserved() -> None:
    require_no_helper_names(["id", "_puredelta", "x__puredelta_file"])
    with pytest.raises(InvalidRequestError, match="__PUREDELTA_x"):
        require_no_helper_names(["id", "__PUREDELTA_x"])
