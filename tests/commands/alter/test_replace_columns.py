"""REPLACE COLUMNS and SYNC IDENTITY on the log alone; tests/reference compares the commits."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import types as T

from puredelta.commands.alter.columns import replace_table_columns, sync_identity, synced_mark
from puredelta.commands.alter.properties import set_table_properties
from puredelta.errors import ErrorCode, InvalidRequestError
from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.features.generated_columns import Identity
from puredelta.protocol.schema.schema_json import simple_string
from puredelta.protocol.schema.types import (
    INTEGER,
    LONG,
    STRING,
    ArrayType,
    StructField,
    StructType,
)
from tests.commands.sessions import FakeSession
from tests.faults import MemoryStore
from tests.log.tables import add, create_table, feature_protocol

SPARK: Any = FakeSession()
SCHEMA = StructType(
    (
        StructField("a", INTEGER, nullable=False),
        StructField("b", STRING, True, {"comment": "old"}),
        StructField("s", ArrayType(StructType((StructField("x", INTEGER),)))),
    )
)


def table(**configuration: str) -> TableLog:
    protocol = feature_protocol("identityColumns", readers=("columnMapping", "typeWidening"))
    return create_table(MemoryStore(), add("f"), protocol=protocol, schema=SCHEMA, **configuration)


A = T.StructField("a", T.IntegerType())
B = T.StructField("b", T.StringType())
N = T.StructField("n", T.IntegerType(), True, {"comment": "new"})
WIDER = T.StructField("a", T.LongType())


def points(*names: str) -> T.StructField:
    """The column of points with these coordinates."""
    point = T.StructType([T.StructField(name, T.IntegerType()) for name in names])
    return T.StructField("s", T.ArrayType(point))


def required(field: T.StructField) -> T.StructField:
    return T.StructField(field.name, field.dataType, False)


def replaced(log: TableLog, *columns: T.StructField) -> StructType:
    replace_table_columns(SPARK, log, T.StructType(list(columns)))
    return log.snapshot().config.schema


def test_order_comments_and_what_is_new() -> None:
    log = table()
    capital = T.StructField("A", T.IntegerType())
    schema = replaced(log, B, points("x", "y"), N, capital)
    assert simple_string(schema) == "struct<b:string,s:array<struct<x:int,y:int>>,n:int,a:int>"
    assert [f.metadata.get("comment") for f in schema.fields] == ["old", None, "new", None]
    assert schema.fields[3].nullable
    said = T.StructField("B", T.StringType(), True, {"comment": "b"})
    schema = replaced(log, A, said, points("x", "y"), N)
    assert [f.metadata.get("comment") for f in schema.fields] == [None, "b", None, "new"]
    operations = [entry.commit_info.operation for entry in log.history(limit=2)]
    assert operations == ["REPLACE COLUMNS"] * 2


def test_new_columns_of_a_mapped_table_have_names_of_their_own() -> None:
    log = table()
    set_table_properties(SPARK, log, {"delta.columnMapping.mode": "name"})
    schema = replaced(log, A, B, points("x"), N)
    assert "delta.columnMapping.physicalName" in schema.fields[3].metadata


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        ([A, B], "dropping column"),
        ([A, B, points("y")], "dropping column"),
        ([WIDER, B, points("x")], "changing data type of a from int"),
        ([A, required(B), points("x")], "tightening nullability of b"),
        ([A, B, points("x"), required(N)], "adding non-nullable"),
    ],
)
def test_what_would_take_something_away(columns: list[T.StructField], reason: str) -> None:
    with pytest.raises(InvalidRequestError, match=reason) as refused:
        replaced(table(), *columns)
    assert refused.value.code is ErrorCode.UNSUPPORTED_ALTER_TABLE_REPLACE_COL_OP


def test_types_become_wider_where_that_is_enabled() -> None:
    log = table(delta__enableTypeWidening="true")
    schema = replaced(log, WIDER, B, points("x"))
    assert "delta.typeChanges" in schema.fields[0].metadata


def test_identity_columns_stay() -> None:
    identity = {"start": 1, "step": 1, "allowExplicitInsert": True}
    metadata = {f"delta.identity.{key}": value for key, value in identity.items()}
    schema = StructType((StructField("id", LONG, True, metadata), StructField("v", INTEGER)))
    log = create_table(MemoryStore(), protocol=feature_protocol("identityColumns"), schema=schema)
    with pytest.raises(InvalidRequestError) as refused:
        replaced(log, T.StructField("id", T.LongType()), T.StructField("v", T.IntegerType()))
    assert refused.value.code is ErrorCode.IDENTITY_COLUMNS_REPLACE_COLUMN_NOT_SUPPORTED
    with pytest.raises(InvalidRequestError) as refused:
        sync_identity(SPARK, log, ("v",))
    assert refused.value.code is ErrorCode.IDENTITY_COLUMNS_ALTER_NON_IDENTITY_COLUMN


@pytest.mark.parametrize(
    ("step", "mark", "last", "expected"),
    [
        (1, None, 100, 100),
        (5, None, 12, 15),
        (5, 30, 12, 30),
        (5, None, 9, None),
        (-5, None, 8, 5),
        (-5, 0, 8, 0),
        (-5, None, 11, None),
    ],
)
def test_marks_follow_the_values_there_are(
    step: int, mark: int | None, last: int, expected: int | None
) -> None:
    column = Identity(
        column="id", start=10, step=step, allows_explicit_insert=True, high_water_mark=mark
    )
    assert synced_mark(column, last) == expected
