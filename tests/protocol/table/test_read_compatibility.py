from __future__ import annotations

import pytest

from puredelta.protocol.actions.actions import Metadata
from puredelta.protocol.features.column_mapping import FIELD_ID, PHYSICAL_NAME
from puredelta.protocol.features.properties import ColumnMappingMode
from puredelta.protocol.schema.schema_json import encode_schema
from puredelta.protocol.schema.types import (
    INTEGER,
    LONG,
    STRING,
    ArrayType,
    DataType,
    MapType,
    StructField,
    StructType,
)
from puredelta.protocol.table.schema_changes import TableShape, can_read

NONE, NAME, ID = ColumnMappingMode.NONE, ColumnMappingMode.NAME, ColumnMappingMode.ID


def struct(**columns: DataType) -> StructType:
    return StructType(tuple(StructField(n, t) for n, t in columns.items()))


def required(**columns: DataType) -> StructType:
    return StructType(tuple(StructField(n, t, nullable=False) for n, t in columns.items()))


def mapped(**columns: str) -> StructType:
    """Logical name to physical name; all of them LONG."""
    return StructType(
        tuple(
            StructField(name, LONG, metadata={PHYSICAL_NAME: physical, FIELD_ID: n})
            for n, (name, physical) in enumerate(columns.items(), start=1)
        )
    )


def shape(
    schema: StructType, mode: ColumnMappingMode = NONE, partitions: tuple[str, ...] = ()
) -> TableShape:
    return TableShape(schema=schema, partition_columns=partitions, column_mapping=mode)


BASE = struct(id=LONG, s=struct(a=INTEGER))


@pytest.mark.parametrize(
    ("newer", "compatible"),
    [
        (BASE, True),
        (struct(id=LONG, s=struct(a=INTEGER), n=STRING), True),
        (struct(n=STRING, s=struct(b=LONG, a=INTEGER), id=LONG), True),
        (struct(id=LONG), False),
        (struct(id=LONG, s=struct(b=INTEGER)), False),
        (struct(id=INTEGER, s=struct(a=INTEGER)), False),
        (struct(id=LONG, s=struct(a=LONG)), False),
        (struct(ID=LONG, s=struct(a=INTEGER)), False),
    ],
)
def test_only_added_columns_may_differ(newer: StructType, compatible: bool) -> None:
    assert can_read(shape(BASE), shape(newer), stored_is_older=True) is compatible
    # The same question from the other side: rows of the newer state under the older schema.
    assert can_read(shape(newer), shape(BASE), stored_is_older=False) is compatible


def test_a_dropped_column_is_no_added_one() -> None:
    wide = struct(id=LONG, s=struct(a=INTEGER), n=STRING)
    assert not can_read(shape(wide), shape(BASE), stored_is_older=True)
    assert not can_read(shape(BASE), shape(wide), stored_is_older=False)


@pytest.mark.parametrize(
    ("loose", "tight"),
    [
        (struct(id=LONG), required(id=LONG)),
        (struct(a=ArrayType(LONG)), struct(a=ArrayType(LONG, contains_null=False))),
        (
            struct(m=MapType(LONG, LONG)),
            struct(m=MapType(LONG, LONG, value_contains_null=False)),
        ),
    ],
)
@pytest.mark.parametrize("stored_is_older", [True, False])
def test_null_must_not_meet_a_schema_without_it(
    loose: StructType, tight: StructType, stored_is_older: bool
) -> None:
    assert can_read(shape(tight), shape(loose), stored_is_older=stored_is_older)
    assert not can_read(shape(loose), shape(tight), stored_is_older=stored_is_older)


def test_types_inside_of_collections() -> None:
    def nested(inner: DataType) -> TableShape:
        return shape(struct(a=ArrayType(MapType(inner, inner))))

    assert can_read(nested(struct(x=LONG)), nested(struct(x=LONG, y=LONG)), stored_is_older=True)
    assert not can_read(nested(struct(x=LONG)), nested(struct(x=STRING)), stored_is_older=True)
    assert not can_read(shape(struct(a=LONG)), nested(LONG), stored_is_older=True)


@pytest.mark.parametrize(
    ("older", "newer", "compatible"),
    [
        (shape(mapped(a="x"), NAME), shape(mapped(a="x", b="y"), NAME), True),
        (shape(mapped(a="x"), NAME), shape(mapped(b="x"), NAME), False),  # renamed
        (shape(mapped(a="x"), NAME), shape(mapped(a="y"), NAME), False),  # dropped, added again
        (shape(mapped(a="x", b="y"), NAME), shape(mapped(a="x"), NAME), False),
        (shape(mapped(a="x"), NAME), shape(mapped(a="x"), NAME, ("a",)), False),
        (shape(struct(a=LONG)), shape(mapped(a="a"), NAME), True),  # turned on
        (shape(struct(a=LONG)), shape(mapped(b="a"), NAME), False),
        (shape(mapped(a="a"), NAME), shape(struct(a=LONG)), False),  # turned off
        (shape(mapped(a="x"), NAME), shape(mapped(a="x"), ID), False),
        (shape(struct(a=LONG)), shape(struct(a=LONG), NONE, ("a",)), True),
    ],
)
def test_column_mapping(older: TableShape, newer: TableShape, compatible: bool) -> None:
    assert can_read(older, newer, stored_is_older=True) is compatible


def test_names_inside_of_a_mapped_struct() -> None:
    def inside(name: str) -> TableShape:
        inner = mapped(**{name: "i"})
        field = StructField("s", ArrayType(inner), metadata={PHYSICAL_NAME: "o", FIELD_ID: 9})
        return shape(StructType((field,)), NAME)

    assert can_read(inside("a"), inside("a"), stored_is_older=True)
    assert not can_read(inside("a"), inside("b"), stored_is_older=True)


def test_the_shape_in_a_metadata_action() -> None:
    metadata = Metadata(
        id="1",
        schema_string=encode_schema(mapped(a="x")),
        partition_columns=("a",),
        configuration={"delta.columnMapping.mode": "name"},
    )
    assert TableShape.of(metadata) == shape(mapped(a="x"), NAME, ("a",))
