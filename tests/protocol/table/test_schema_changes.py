"""What a reader has to know about the change from one schema to another."""

from __future__ import annotations

from dataclasses import replace

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
from puredelta.protocol.table.schema_changes import FieldDifference, SchemaChanges, find_changes


def field(name: str, kind: DataType = LONG, physical: str = "") -> StructField:
    return StructField(name, kind, metadata={"delta.columnMapping.physicalName": physical or name})


def changes(before: StructField, after: StructField) -> SchemaChanges:
    return find_changes(StructType((before,)), StructType((after,)))


def test_columns_that_are_added_are_no_change() -> None:
    after = StructType((field("b"), field("a")))
    assert find_changes(StructType((field("a"),)), after) == SchemaChanges()


def test_a_column_that_was_dropped_and_added_again_is_another_one() -> None:
    found = changes(field("a", physical="p1"), field("a", STRING, physical="p2"))
    assert found == SchemaChanges(dropped=(FieldDifference(before="'a'"),))


def test_names_inside_of_columns() -> None:
    inner = StructType((field("x"), field("y z")))
    nested = field("s", ArrayType(MapType(STRING, inner)))
    renamed = StructType((field("w", physical="x"),))
    found = changes(nested, field("s", ArrayType(MapType(STRING, renamed))))
    assert found.renamed == (
        FieldDifference(before="'s.element.value.x'", after="'s.element.value.w'"),
    )
    assert found.dropped == (FieldDifference(before="'s.element.value.`y z`'"),)
    whole = find_changes(StructType((nested, field("a"))), StructType((field("a"),)))
    assert whole.dropped == (FieldDifference(before="'s'"),)


def test_types() -> None:
    wider = changes(field("a", ArrayType(INTEGER)), field("a", ArrayType(LONG)))
    assert wider.is_readable
    assert wider.widened == (FieldDifference(before="'a.element': INT", after="BIGINT"),)
    for before, after in ((LONG, INTEGER), (LONG, STRING), (LONG, ArrayType(LONG))):
        assert not changes(field("a", before), field("a", after)).is_readable


def test_columns_that_stop_taking_null() -> None:
    strict = replace(field("a"), nullable=False)
    assert not changes(field("a"), strict).is_readable
    assert changes(strict, field("a")).is_readable
    loose, tight = ArrayType(LONG), ArrayType(LONG, contains_null=False)
    assert not changes(field("a", loose), field("a", tight)).is_readable


def test_without_mapping_the_name_is_the_column() -> None:
    before, after = (StructType((StructField(name, LONG),)) for name in ("a", "b"))
    assert find_changes(before, after).dropped == (FieldDifference(before="'a'"),)
