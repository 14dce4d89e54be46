"""Schema evolution (M-49, M-52, C-30, C-38)."""

from __future__ import annotations

import pytest
from hypothesis import given

from puredelta.errors import ErrorCode, InvalidRequestError
from puredelta.protocol.schema.traversal import as_nullable
from puredelta.protocol.schema.types import (
    BYTE,
    DOUBLE,
    INTEGER,
    LONG,
    SHORT,
    STRING,
    VOID,
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    StructField,
    StructType,
)
from puredelta.protocol.table.schema_merge import merge_schemas
from tests.protocol.strategies import SCHEMAS


def struct(**types: DataType) -> StructType:
    return StructType(tuple(StructField(name, t) for name, t in types.items()))


@given(SCHEMAS)
def test_merging_a_schema_with_itself_changes_nothing(schema: StructType) -> None:
    assert merge_schemas(schema, schema) == schema
    assert merge_schemas(schema, StructType(())) == schema
    assert merge_schemas(StructType(()), schema) == as_nullable(schema)


@given(SCHEMAS, SCHEMAS)
def test_merging_never_drops_or_moves_a_column(one: StructType, other: StructType) -> None:
    try:
        merged = merge_schemas(one, other)
    except InvalidRequestError:
        return
    assert merged.names[: len(one.fields)] == one.names
    assert {n.lower() for n in merged.names} == {n.lower() for n in (*one.names, *other.names)}


def test_existing_spelling_place_metadata_and_nullability_stay() -> None:
    current = StructType((StructField("Id", INTEGER, False, {"comment": "c"}),))
    update = StructType((StructField("new", LONG, False), StructField("ID", BYTE, True)))
    assert merge_schemas(current, update) == StructType(
        (StructField("Id", INTEGER, False, {"comment": "c"}), StructField("new", LONG, True))
    )


def test_nested_fields_are_merged_in_structs_arrays_and_maps() -> None:
    current = struct(
        s=struct(a=BYTE),
        l=ArrayType(struct(a=STRING), False),
        m=MapType(struct(k=LONG), struct(v=SHORT), False),
    )
    update = struct(
        m=MapType(struct(k2=LONG), struct(v=INTEGER, w=LONG)),
        l=ArrayType(struct(b=ArrayType(LONG, False))),
        s=struct(b=LONG, A=SHORT),
    )
    assert merge_schemas(current, update) == struct(
        s=struct(a=SHORT, b=LONG),
        l=ArrayType(struct(a=STRING, b=ArrayType(LONG)), False),
        m=MapType(struct(k=LONG, k2=LONG), struct(v=INTEGER, w=LONG), False),
    )


@pytest.mark.parametrize(
    ("current", "update", "merged"),
    [
        (BYTE, SHORT, SHORT),
        (SHORT, BYTE, SHORT),
        (INTEGER, BYTE, INTEGER),
        (BYTE, INTEGER, INTEGER),
        (VOID, STRING, STRING),
        (STRING, VOID, STRING),
        (VOID, struct(a=LONG), struct(a=LONG)),
        (struct(a=LONG), VOID, struct(a=LONG)),
        (DecimalType(10, 2), DecimalType(10, 2), DecimalType(10, 2)),
    ],
)
def test_types_that_merge(current: DataType, update: DataType, merged: DataType) -> None:
    assert merge_schemas(struct(a=current), struct(a=update)) == struct(a=merged)


@pytest.mark.parametrize(
    ("current", "update", "cause", "problem"),
    [
        (INTEGER, LONG, ErrorCode.MERGE_INCOMPATIBLE_DATATYPE, "data types int and bigint"),
        (STRING, DOUBLE, ErrorCode.MERGE_INCOMPATIBLE_DATATYPE, "string and double"),
        (
            LONG,
            struct(a=LONG),
            ErrorCode.MERGE_INCOMPATIBLE_DATATYPE,
            "bigint and struct<a:bigint>",
        ),
        (
            DecimalType(10, 2),
            DecimalType(12, 3),
            ErrorCode.MERGE_INCOMPATIBLE_DECIMAL_TYPE,
            "precision 10 and 12 & scale 2 and 3",
        ),
        (
            DecimalType(10, 2),
            DecimalType(10, 3),
            ErrorCode.MERGE_INCOMPATIBLE_DECIMAL_TYPE,
            "incompatible scale 2 and 3",
        ),
    ],
)
def test_types_that_do_not_merge(
    current: DataType, update: DataType, cause: ErrorCode, problem: str
) -> None:
    """M-54."""
    with pytest.raises(InvalidRequestError, match=f"fields 'a' and 'A': .*{problem}") as caught:
        merge_schemas(struct(a=current), struct(A=update))
    assert caught.value.code is ErrorCode.FAILED_TO_MERGE_FIELDS
    assert isinstance(caught.value.__cause__, InvalidRequestError)
    assert caught.value.__cause__.code is cause


def test_a_caller_that_casts_keeps_the_table_s_type() -> None:
    """M-52."""
    merged = merge_schemas(
        struct(a=INTEGER, s=struct(b=STRING)),
        struct(a=LONG, s=struct(b=LONG)),
        keeps_type=lambda _current, update: update == LONG,
    )
    assert merged == struct(a=INTEGER, s=struct(b=STRING))


def test_new_rows_may_not_hold_a_name_twice() -> None:
    with pytest.raises(InvalidRequestError, match=r"duplicate column.*: a") as caught:
        merge_schemas(struct(x=LONG), struct(a=LONG, A=LONG))
    assert caught.value.code is ErrorCode.DUPLICATE_COLUMNS_FOUND


def test_a_caller_that_widens_takes_the_wider_type_first() -> None:
    """M-53."""
    merged = merge_schemas(
        struct(a=INTEGER, l=ArrayType(struct(b=SHORT))),
        struct(a=LONG, l=ArrayType(struct(b=INTEGER))),
        keeps_type=lambda _current, _update: True,
        widens_type=lambda current, update: (current, update) == (SHORT, INTEGER),
    )
    assert merged == struct(a=INTEGER, l=ArrayType(struct(b=INTEGER)))
