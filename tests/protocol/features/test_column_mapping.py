"""Physical names and field ids (protocol "Column Mapping", M-109)."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given

from puredelta.errors import CorruptTableError
from puredelta.protocol.features.column_mapping import (
    FIELD_ID,
    PARQUET_FIELD_ID,
    PHYSICAL_NAME,
    assign_columns,
    field_id,
    physical_name,
    physical_path,
    physical_schema,
    require_complete_mapping,
)
from puredelta.protocol.features.properties import ColumnMappingMode
from puredelta.protocol.schema.traversal import all_fields
from puredelta.protocol.schema.types import (
    INTEGER,
    LONG,
    STRING,
    ArrayType,
    MapType,
    StructField,
    StructType,
)
from tests.protocol.strategies import SCHEMAS

NONE, NAME, ID = ColumnMappingMode.NONE, ColumnMappingMode.NAME, ColumnMappingMode.ID


def mapped(name: str, number: int, data_type: object, physical: str) -> StructField:
    return StructField(
        name, data_type, True, {FIELD_ID: number, PHYSICAL_NAME: physical, "comment": "c"}
    )


SCHEMA = StructType(
    (
        mapped("id", 1, LONG, "c1"),
        mapped("n", 2, StructType((mapped("x", 3, INTEGER, "c3"),)), "c2"),
        mapped("a", 4, ArrayType(StructType((mapped("q", 5, INTEGER, "c5"),)), False), "c4"),
        mapped("m", 6, MapType(STRING, StructType((mapped("v", 7, INTEGER, "c7"),))), "c6"),
    )
)


def test_physical_names_reach_all_the_way_down() -> None:
    physical = physical_schema(SCHEMA, NAME, field_ids=True)
    assert [f.name for f in all_fields(physical)] == ["c1", "c2", "c3", "c4", "c5", "c6", "c7"]
    assert [f.metadata for f in all_fields(physical)] == [
        {PARQUET_FIELD_ID: number} for number in range(1, 8)
    ]
    assert physical.fields[2].type == ArrayType(
        StructType((StructField("c5", INTEGER, True, {PARQUET_FIELD_ID: 5}),)), False
    )


def test_without_ids_only_names_are_kept() -> None:
    assert all(f.metadata == {} for f in all_fields(physical_schema(SCHEMA, ID)))


def test_in_mode_none_the_names_are_the_logical_ones() -> None:
    physical = physical_schema(SCHEMA, NONE, field_ids=True)
    assert physical.names == SCHEMA.names
    assert all(f.metadata == {} for f in all_fields(physical))
    assert physical_name(SCHEMA.fields[0], NONE) == "id"


def test_paths_are_translated_step_by_step() -> None:
    assert physical_path(SCHEMA, ("n", "x"), NAME) == ("c2", "c3")
    assert physical_path(SCHEMA, ("n", "x"), NONE) == ("n", "x")
    for missing in (("x",), ("id", "x"), ("a", "q")):
        with pytest.raises(KeyError):
            physical_path(SCHEMA, missing, NAME)


@given(SCHEMAS)
def test_every_new_field_gets_an_id_and_a_name_of_its_own(schema: StructType) -> None:
    numbers = itertools.count()
    assigned, highest = assign_columns(
        schema, max_column_id=10, new_name=lambda: f"col-{next(numbers)}"
    )
    fields = list(all_fields(assigned))
    assert [f.name for f in fields] == [f.name for f in all_fields(schema)]
    assert sorted(map(field_id, fields)) == list(range(11, 11 + len(fields)))
    assert highest == 10 + len(fields)
    require_complete_mapping(assigned, NAME)
    assert assign_columns(assigned, max_column_id=highest) == (assigned, highest)


def test_old_fields_keep_what_they_have_and_new_ones_start_above() -> None:
    evolved = StructType((*SCHEMA.fields, StructField("late", LONG)))
    assigned, highest = assign_columns(evolved, max_column_id=3, new_name=lambda: "col-x")
    assert assigned.fields[:-1] == SCHEMA.fields
    assert assigned.fields[-1].metadata == {FIELD_ID: 8, PHYSICAL_NAME: "col-x"}
    assert highest == 8


def test_a_name_is_made_up_when_none_is_given() -> None:
    schema, _ = assign_columns(StructType((StructField("a", LONG),)), max_column_id=0)
    assert physical_name(schema.fields[0], NAME).startswith("col-")


@pytest.mark.parametrize(
    ("schema", "problem"),
    [
        (StructType((StructField("a", LONG),)), "column 'a' has no 'delta.columnMapping.id'"),
        (
            StructType((StructField("a", LONG, True, {FIELD_ID: 1}),)),
            "column 'a' has no 'delta.columnMapping.physicalName'",
        ),
        (
            StructType((mapped("a", 1, LONG, "x"), mapped("b", 1, LONG, "y"))),
            "column id 1 to several columns",
        ),
        (
            StructType(
                (
                    mapped(
                        "s",
                        1,
                        ArrayType(
                            StructType((mapped("a", 2, LONG, "x"), mapped("b", 3, LONG, "x")))
                        ),
                        "x",
                    ),
                )
            ),
            r"physical name x to several columns of \(a, b\)",
        ),
    ],
)
def test_an_incomplete_mapping_is_corrupt(schema: StructType, problem: str) -> None:
    with pytest.raises(CorruptTableError, match=problem):
        require_complete_mapping(schema, ID)
    require_complete_mapping(schema, NONE)


def test_collations_go_by_the_names_of_files() -> None:
    """Their paths begin with the name of the field that holds them."""
    field = StructField(
        "a",
        ArrayType(STRING),
        metadata={
            "delta.columnMapping.physicalName": "col-1",
            "delta.columnMapping.id": 1,
            "comment": "c",
            "__COLLATIONS": {"a.element": "icu.UNICODE_CI"},
        },
    )
    (mapped,) = physical_schema(StructType((field,)), ColumnMappingMode.NAME).fields
    assert (mapped.name, mapped.metadata) == (
        "col-1",
        {"__COLLATIONS": {"col-1.element": "icu.UNICODE_CI"}},
    )
    (same,) = physical_schema(StructType((field,)), ColumnMappingMode.NONE).fields
    assert same.metadata == {"__COLLATIONS": {"a.element": "icu.UNICODE_CI"}}
