"""One row for each primitive type, and what is made of the rows."""

from __future__ import annotations

import pytest

from puredelta.commands.schema_change import require_storable_types
from puredelta.errors import ErrorCode, InvalidRequestError
from puredelta.log.files.value_order import order_type, stored_type
from puredelta.protocol.features.feature_registry import FEATURES_BY_NAME
from puredelta.protocol.schema.schema_json import simple_string
from puredelta.protocol.schema.types import (
    PRIMITIVE_KINDS,
    PRIMITIVE_NAMES,
    ArrayType,
    PrimitiveKind,
    PrimitiveType,
    StructField,
    StructType,
    kind_of,
)

INTERVALS = (
    *("interval year", "interval month", "interval year to month", "interval day"),
    *("interval hour", "interval minute", "interval second", "interval day to hour"),
    *("interval day to second", "interval hour to minute", "interval minute to second"),
)


def test_each_row_has_its_own_name() -> None:
    names = [kind.name for kind in PRIMITIVE_KINDS]
    assert len(names) == len(set(names))
    assert [kind_of(name) for name in names] == list(PRIMITIVE_KINDS)


def test_the_features_of_the_rows_exist() -> None:
    known = set(FEATURES_BY_NAME)
    assert {kind.feature for kind in PRIMITIVE_KINDS} - {None} <= known


@pytest.mark.parametrize("kind", PRIMITIVE_KINDS, ids=lambda kind: kind.name)
def test_types_of_arrow_and_spark(kind: PrimitiveKind) -> None:
    one = PrimitiveType(kind.name)
    assert str(stored_type(one)) == str(kind.arrow)
    assert str(order_type(one)) == str(kind.order)
    if not kind.members:
        assert simple_string(one) == (kind.spark or kind.name)


def test_names_that_need_no_feature_row() -> None:
    text = "byte short integer long float double string date timestamp timestamp_ntz binary"
    assert {*text.split(), "boolean", "void"} == PRIMITIVE_NAMES


@pytest.mark.parametrize("name", INTERVALS)
def test_new_columns_are_no_intervals(name: str) -> None:
    kind = kind_of(name)
    assert kind is not None
    assert (kind.is_storable, kind.arrow, kind.order) == (False, None, None)
    schema = StructType((StructField("v", ArrayType(PrimitiveType(name))),))
    with pytest.raises(InvalidRequestError, match=f"v.element: {name}") as refused:
        require_storable_types(schema)
    assert refused.value.code is ErrorCode.UNSUPPORTED_DATA_TYPES


@pytest.mark.parametrize("name", ["stringy", "intervals", "geometryx", "udt"])
def test_other_names_are_unknown(name: str) -> None:
    assert kind_of(name) is None
