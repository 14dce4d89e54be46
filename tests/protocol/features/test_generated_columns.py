"""M-102, M-103: identity columns as numbers, before Spark gives them to rows."""

from __future__ import annotations

import pytest

from puredelta.errors import CorruptTableError, DeltaError, ErrorCode
from puredelta.protocol.features.generated_columns import (
    Identity,
    column_defaults,
    generation_expressions,
    identities,
    with_high_water_marks,
    without_high_water_marks,
)
from puredelta.protocol.schema.types import LONG, StructField, StructType

KEYS = {
    "delta.identity.start": 10,
    "delta.identity.step": 5,
    "delta.identity.allowExplicitInsert": False,
}


def identity(*, start: int = 10, step: int = 5, mark: int | None = None) -> Identity:
    return Identity(
        column="id", start=start, step=step, allows_explicit_insert=False, high_water_mark=mark
    )


@pytest.mark.parametrize(
    ("column", "first", "third"),
    [
        (identity(), 10, 20),
        (identity(mark=30), 35, 45),
        (identity(start=-1, step=-2), -1, -5),
        (identity(start=-1, step=-2, mark=-9), -11, -15),
    ],
)
def test_values_start_beyond_the_mark(column: Identity, first: int, third: int) -> None:
    assert (column.next_value, column.last_of(1), column.last_of(3)) == (first, first, third)


def test_directions() -> None:
    up, down = identity(mark=30), identity(start=-1, step=-2, mark=-9)
    assert (up.further(1, 2), up.nearer(1, 2)) == (2, 1)
    assert (down.further(1, 2), down.nearer(1, 2)) == (1, 2)
    assert [up.is_beyond(v) for v in (25, 30, 35)] == [False, False, True]
    assert [down.is_beyond(v) for v in (-7, -9, -11)] == [False, False, True]
    assert identity().is_beyond(-100)


@pytest.mark.parametrize(
    ("column", "fits", "does_not"),
    [
        (identity(start=2**63 - 2, step=1), 2, 3),
        (identity(start=-(2**63) + 1, step=-1), 2, 3),
        (identity(start=0, step=2**62), 2, 3),
    ],
)
def test_the_range_of_a_long_ends(column: Identity, fits: int, does_not: int) -> None:
    assert column.last_of(fits)
    with pytest.raises(DeltaError, match="BIGINT") as caught:
        column.last_of(does_not)
    assert caught.value.code is ErrorCode.ARITHMETIC_OVERFLOW


def test_metadata_of_columns() -> None:
    schema = StructType(
        (
            StructField("id", LONG, metadata=KEYS),
            StructField("d", LONG, metadata={"CURRENT_DEFAULT": "1 + 1"}),
            StructField("g", LONG, metadata={"delta.generationExpression": "d * 2"}),
        )
    )
    assert identities(schema) == {"id": identity()}
    assert column_defaults(schema) == {"d": "1 + 1"}
    assert generation_expressions(schema) == {"g": "d * 2"}
    marked = with_high_water_marks(schema, {"id": 25})
    assert identities(marked) == {"id": identity(mark=25)}
    assert without_high_water_marks(marked) == schema


@pytest.mark.parametrize("key", KEYS)
def test_half_an_identity_column_is_none(key: str) -> None:
    broken = {k: v for k, v in KEYS.items() if k != key}
    with pytest.raises(CorruptTableError, match="IDENTITY metadata for column id"):
        identities(StructType((StructField("id", LONG, metadata=broken),)))
