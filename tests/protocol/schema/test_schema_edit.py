"""Editing a schema at a path."""

from __future__ import annotations

import dataclasses

import pytest

from puredelta.errors import ErrorCode, InvalidRequestError
from puredelta.protocol.schema.schema_edit import (
    After,
    ColumnPosition,
    End,
    add_field,
    change_field,
    drop_field,
    find_field,
    move_field,
)
from puredelta.protocol.schema.schema_json import simple_string
from puredelta.protocol.schema.types import (
    INTEGER,
    LONG,
    STRING,
    ArrayType,
    MapType,
    StructField,
    StructType,
)

POINT = StructType((StructField("x", INTEGER), StructField("y", INTEGER)))
TABLE = StructType(
    (
        StructField("id", LONG),
        StructField("at", POINT),
        StructField("path", ArrayType(POINT)),
        StructField("tags", MapType(STRING, POINT)),
    )
)
NEW = StructField("z", STRING)


@pytest.mark.parametrize(
    ("parent", "place", "expected"),
    [
        ((), End.LAST, ("id", "at", "path", "tags", "z")),
        ((), End.FIRST, ("z", "id", "at", "path", "tags")),
        ((), After("AT"), ("id", "at", "z", "path", "tags")),
        (("AT",), After("x"), ("x", "z", "y")),
        (("path", "element"), End.FIRST, ("z", "x", "y")),
        (("tags", "value"), End.LAST, ("x", "y", "z")),
    ],
)
def test_a_field_is_added_where_it_is_wanted(
    parent: tuple[str, ...], place: ColumnPosition, expected: tuple[str, ...]
) -> None:
    changed = add_field(TABLE, parent, NEW, place)
    inside = find_field(changed, (*parent, "z"))[0][:-1]
    level = changed if not inside else find_field(changed, inside)[1].type
    assert isinstance(level, StructType)
    assert level.names == expected


def test_paths_are_answered_as_the_schema_spells_them() -> None:
    path, field = find_field(TABLE, ("PATH", "Element", "X"))
    assert path == ("path", "element", "x")
    assert field.type == INTEGER


@pytest.mark.parametrize(
    ("parent", "place", "code"),
    [
        (("nope",), End.LAST, ErrorCode.UNRESOLVED_COLUMN),
        (("id",), End.LAST, ErrorCode.INVALID_FIELD_NAME),
        (("path",), End.LAST, ErrorCode.INVALID_FIELD_NAME),
        ((), After("nope"), ErrorCode.FIELD_NOT_FOUND),
    ],
)
def test_there_must_be_a_struct_to_add_to(
    parent: tuple[str, ...], place: ColumnPosition, code: ErrorCode
) -> None:
    with pytest.raises(InvalidRequestError) as error:
        add_field(TABLE, parent, NEW, place)
    assert error.value.code is code


def test_names_of_one_struct_differ_in_more_than_case() -> None:
    with pytest.raises(InvalidRequestError) as error:
        add_field(TABLE, (), StructField("ID", STRING))
    assert error.value.code is ErrorCode.FIELD_ALREADY_EXISTS
    with pytest.raises(InvalidRequestError) as error:
        change_field(TABLE, ("at", "x"), lambda f: dataclasses.replace(f, name="Y"))
    assert error.value.code is ErrorCode.FIELD_ALREADY_EXISTS
    respelled = change_field(TABLE, ("id",), lambda f: dataclasses.replace(f, name="ID"))
    assert respelled.names[0] == "ID"


def test_fields_are_dropped_at_any_depth() -> None:
    changed = drop_field(TABLE, ("path", "element", "y"))
    assert simple_string(find_field(changed, ("path",))[1].type) == "array<struct<x:int>>"
    with pytest.raises(InvalidRequestError) as error:
        drop_field(changed, ("path", "element", "x"))
    assert error.value.code is ErrorCode.DROP_COLUMN_ON_SINGLE_FIELD_SCHEMA
    with pytest.raises(InvalidRequestError) as error:
        drop_field(TABLE, ("tags", "value"))
    assert error.value.code is ErrorCode.UNSUPPORTED_DROP_NESTED_COLUMN


def test_elements_and_values_change_their_type_alone() -> None:
    flat = StructType((StructField("m", MapType(STRING, INTEGER, value_contains_null=False)),))
    changed = change_field(flat, ("m", "value"), lambda f: dataclasses.replace(f, type=LONG))
    assert changed.fields[0].type == MapType(STRING, LONG, value_contains_null=False)


def test_fields_move_within_their_struct() -> None:
    assert move_field(TABLE, ("tags",), After("id")).names == ("id", "tags", "at", "path")
    assert move_field(TABLE, ("id",), After("id")) == TABLE
    moved = move_field(TABLE, ("at", "y"), End.FIRST)
    assert simple_string(moved.fields[1].type) == "struct<y:int,x:int>"
