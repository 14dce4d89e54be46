"""Rules for schemas that are about to be committed (X-07, C-36)."""

from __future__ import annotations

import pytest

from puredelta.errors import ErrorCode, InvalidRequestError
from puredelta.protocol.features.properties import ColumnMappingMode
from puredelta.protocol.schema.types import (
    LONG,
    STRING,
    ArrayType,
    MapType,
    StructField,
    StructType,
)
from puredelta.protocol.table.schema_checks import (
    INVALID_CHARACTERS,
    require_valid_schema,
    resolve_partition_columns,
)

NONE, NAME = ColumnMappingMode.NONE, ColumnMappingMode.NAME


def struct(*names: str, data_type: object = LONG) -> StructType:
    return StructType(tuple(StructField(name, data_type) for name in names))


NESTED = StructType(
    (
        *struct("id", "P").fields,
        StructField("s", struct("x", "y")),
        StructField("l", ArrayType(LONG)),
    )
)


def test_a_good_schema_passes_and_partition_columns_take_its_spelling() -> None:
    assert require_valid_schema(NESTED, ["p"], column_mapping=NONE) == ("P",)
    assert require_valid_schema(StructType(()), [], column_mapping=NONE) == ()


@pytest.mark.parametrize(
    ("schema", "named"),
    [
        (struct("a", "b", "A"), "a"),
        (StructType((StructField("s", struct("x", "X")),)), r"s\.x"),
        (StructType((StructField("l", ArrayType(struct("x", "X"))),)), r"l\.element\.x"),
        (StructType((StructField("m", MapType(STRING, struct("v", "V"))),)), r"m\.value\.v"),
    ],
)
def test_names_that_differ_in_case_only_are_refused(schema: StructType, named: str) -> None:
    with pytest.raises(InvalidRequestError, match=f"duplicate column.*: {named}") as caught:
        require_valid_schema(schema, [], column_mapping=NAME)
    assert caught.value.code is ErrorCode.DUPLICATE_COLUMNS_FOUND


@pytest.mark.parametrize("character", INVALID_CHARACTERS)
def test_characters_parquet_cannot_take_need_column_mapping(character: str) -> None:
    schema = StructType((StructField("s", struct("ok", f"a{character}b")),))
    assert require_valid_schema(schema, [], column_mapping=NAME) == ()
    with pytest.raises(InvalidRequestError, match="enable column mapping") as caught:
        require_valid_schema(schema, [], column_mapping=NONE)
    assert caught.value.code is ErrorCode.INVALID_CHARACTERS_IN_COLUMN_NAMES
    assert caught.value.details["columns"] == (f"a{character}b",)


@pytest.mark.parametrize(
    ("names", "code", "problem"),
    [
        (["nope"], ErrorCode.PARTITION_COLUMN_NOT_FOUND, "'nope' not found in schema: id, P, s, l"),
        (["s.x"], ErrorCode.PARTITION_COLUMN_NOT_FOUND, "'s.x' not found"),
        (["p", "P"], ErrorCode.DUPLICATE_COLUMNS_FOUND, "partition columns: p, P"),
        (["s"], ErrorCode.INVALID_PARTITION_COLUMN_TYPE, "column s of type struct<x:bigint"),
        (["l"], ErrorCode.INVALID_PARTITION_COLUMN_TYPE, "column l of type array<bigint>"),
    ],
)
def test_partition_columns_must_be_atomic_columns(
    names: list[str], code: ErrorCode, problem: str
) -> None:
    with pytest.raises(InvalidRequestError, match=problem) as caught:
        resolve_partition_columns(NESTED, names)
    assert caught.value.code is code


def test_one_column_must_be_left_for_the_files() -> None:
    with pytest.raises(InvalidRequestError, match="at least one more") as caught:
        resolve_partition_columns(struct("a", "b"), ["a", "b"])
    assert caught.value.code is ErrorCode.ALL_COLUMNS_PARTITIONED
