from __future__ import annotations

from dataclasses import replace

import pytest

from puredelta.protocol.schema.traversal import (
    all_fields,
    all_structs,
    fields_by_path,
    find_fields,
    map_fields,
    primitive_names,
    shape,
    struct_fields,
    types_by_path,
)
from puredelta.protocol.schema.types import (
    LONG,
    STRING,
    ArrayType,
    MapType,
    StructField,
    StructType,
)

INNER = StructType((StructField("x", LONG, nullable=False, metadata={"k": 1}),))
SCHEMA = StructType(
    (
        StructField("S", StructType((StructField("a", ArrayType(INNER, contains_null=False)),))),
        StructField("m", MapType(INNER, STRING, value_contains_null=False)),
        StructField("n", LONG),
    )
)


def test_fields_come_outer_ones_first() -> None:
    paths = ["S", "S.a", "S.a.element.x", "m", "m.key.x", "n"]
    assert [path for path, _ in fields_by_path(SCHEMA)] == paths
    assert [f.name for f in all_fields(SCHEMA)] == [path.split(".")[-1] for path in paths]


def test_structs_at_any_depth() -> None:
    assert list(all_structs(SCHEMA)) == [SCHEMA, SCHEMA.fields[0].type, INNER, INNER]


def test_types_come_outer_ones_first_with_their_paths() -> None:
    found = {".".join(path): kind for path, kind in types_by_path(SCHEMA)}
    assert list(found) == [
        *("", "S", "S.a", "S.a.element", "S.a.element.x"),
        *("m", "m.key", "m.key.x", "m.value", "n"),
    ]
    assert found["S.a.element"] == found["m.key"] == INNER
    assert dict(primitive_names(INNER)) == {("x",): "long"}
    assert [path for path, _ in struct_fields(SCHEMA)] == [("S",), ("S", "a"), ("m",), ("n",)]


@pytest.mark.parametrize(
    ("path", "found", "ignoring_case"),
    [
        (("S", "a"), ["S", "a"], ["S", "a"]),
        (("s", "A"), None, ["S", "a"]),
        (("S", "b"), None, None),
        (("S", "a", "x"), None, None),
        (("n", "x"), None, None),
        ((), [], []),
    ],
)
def test_paths_go_through_structs_only(
    path: tuple[str, ...], found: list[str] | None, ignoring_case: list[str] | None
) -> None:
    for ignores_case, expected in ((False, found), (True, ignoring_case)):
        fields = find_fields(SCHEMA, path, ignores_case=ignores_case)
        assert (None if fields is None else [f.name for f in fields]) == expected


def test_a_change_sees_every_field_outer_ones_first() -> None:
    seen: list[str] = []

    def numbered(field: StructField) -> StructField:
        seen.append(field.name)
        return replace(field, name=f"{field.name}{len(seen)}")

    changed = map_fields(SCHEMA, numbered)
    assert seen == [f.name for f in all_fields(SCHEMA)]
    assert [path for path, _ in fields_by_path(changed)] == [
        "S1",
        "S1.a2",
        "S1.a2.element.x3",
        "m4",
        "m4.key.x5",
        "n6",
    ]
    assert isinstance(changed.fields[1].type, MapType)
    assert not changed.fields[1].type.value_contains_null, "nullability stays"


def test_a_shape_has_neither_nullability_nor_metadata() -> None:
    plain = StructType((StructField("x", LONG),))
    assert shape(SCHEMA) == StructType(
        (
            StructField("S", StructType((StructField("a", ArrayType(plain)),))),
            StructField("m", MapType(plain, STRING)),
            StructField("n", LONG),
        )
    )
