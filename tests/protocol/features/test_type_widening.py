"""Which types widen into which, and how it is recorded (M-53)."""

from __future__ import annotations

import pytest

from puredelta.protocol.features.type_widening import (
    AutomaticWidening,
    can_widen,
    with_type_changes,
)
from puredelta.protocol.schema.types import (
    BYTE,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    SHORT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    StructField,
    StructType,
)

SAME_FAMILY = [
    (BYTE, SHORT),
    (SHORT, LONG),
    (INTEGER, LONG),
    (FLOAT, DOUBLE),
    (DATE, TIMESTAMP_NTZ),
    (DecimalType(10, 2), DecimalType(12, 4)),
    (DecimalType(10, 2), DecimalType(12, 2)),
]
ACROSS_FAMILIES = [
    (SHORT, DOUBLE),
    (INTEGER, DOUBLE),
    (BYTE, DecimalType(10, 0)),
    (INTEGER, DecimalType(12, 2)),
    (LONG, DecimalType(20, 0)),
]
NEVER = [
    (LONG, DOUBLE),
    (LONG, INTEGER),
    (INTEGER, FLOAT),
    (BYTE, DecimalType(5, 0)),
    (LONG, DecimalType(19, 0)),
    (DATE, TIMESTAMP),
    (DecimalType(10, 2), DecimalType(11, 4)),
    (INTEGER, STRING),
    (INTEGER, INTEGER),
]


def struct(**types: DataType) -> StructType:
    return StructType(tuple(StructField(name, t) for name, t in types.items()))


@pytest.mark.parametrize(("current", "wider"), SAME_FAMILY + ACROSS_FAMILIES)
def test_widening(current: DataType, wider: DataType) -> None:
    assert can_widen(current, wider)
    assert not can_widen(wider, current)
    assert AutomaticWidening.ALWAYS.allows(current, wider)
    in_family = (current, wider) in SAME_FAMILY
    assert AutomaticWidening.SAME_FAMILY.allows(current, wider) is in_family
    assert not AutomaticWidening.NEVER.allows(current, wider)


@pytest.mark.parametrize(("current", "wider"), NEVER)
def test_no_widening(current: DataType, wider: DataType) -> None:
    assert not can_widen(current, wider)


def test_changes_are_recorded_where_the_protocol_wants_them() -> None:
    before = struct(
        a=SHORT,
        s=struct(x=BYTE),
        m=MapType(INTEGER, ArrayType(FLOAT)),
        l=ArrayType(struct(y=DATE)),
    )
    after = struct(
        a=INTEGER,
        s=struct(x=LONG, z=INTEGER),
        m=MapType(LONG, ArrayType(DOUBLE)),
        l=ArrayType(struct(y=TIMESTAMP_NTZ)),
        new=LONG,
    )
    a, s, m, array, new = with_type_changes(before, after).fields
    assert a.metadata == {"delta.typeChanges": [{"toType": "integer", "fromType": "short"}]}
    assert s.metadata == {}
    assert isinstance(s.type, StructType)
    assert [f.metadata for f in s.type.fields] == [
        {"delta.typeChanges": [{"toType": "long", "fromType": "byte"}]},
        {},
    ]
    assert m.metadata["delta.typeChanges"] == [
        {"toType": "long", "fromType": "integer", "fieldPath": "key"},
        {"toType": "double", "fromType": "float", "fieldPath": "value.element"},
    ]
    assert array.metadata == {}
    assert isinstance(array.type, ArrayType)
    assert isinstance(array.type.element, StructType)
    assert array.type.element.fields[0].metadata == {
        "delta.typeChanges": [{"toType": "timestamp_ntz", "fromType": "date"}]
    }
    assert new.metadata == {}


def test_earlier_changes_stay() -> None:
    earlier = {"delta.typeChanges": [{"toType": "short", "fromType": "byte"}], "comment": "c"}
    before = StructType((StructField("a", SHORT, metadata=earlier),))
    after = StructType((StructField("a", LONG, metadata=earlier),))
    [a] = with_type_changes(before, after).fields
    assert a.metadata == {
        "delta.typeChanges": [
            {"toType": "short", "fromType": "byte"},
            {"toType": "long", "fromType": "short"},
        ],
        "comment": "c",
    }
    assert with_type_changes(before, before) == before
