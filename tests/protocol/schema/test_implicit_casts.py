"""The casts that keep a table's type in a schema evolution (M-52, M-54)."""

from __future__ import annotations

import pytest

from puredelta.commands.dml.resolve.evolve import is_implicit_cast
from puredelta.protocol.schema.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VOID,
    ArrayType,
    DataType,
    DecimalType,
    StructType,
)

DECIMAL = DecimalType(10, 2)


@pytest.mark.parametrize(
    ("given", "to"),
    [
        (LONG, INTEGER),
        (DOUBLE, INTEGER),
        (DECIMAL, INTEGER),
        (INTEGER, DECIMAL),
        (STRING, INTEGER),
        (STRING, DECIMAL),
        (STRING, DATE),
        (STRING, BINARY),
        (BINARY, STRING),
        (BOOLEAN, STRING),
        (DATE, TIMESTAMP),
        (TIMESTAMP, DATE),
        (TIMESTAMP_NTZ, TIMESTAMP),
        (VOID, BOOLEAN),
        (VOID, StructType(())),
        (BOOLEAN, BOOLEAN),
    ],
)
def test_done_unasked(given: DataType, to: DataType) -> None:
    assert is_implicit_cast(given, to)


@pytest.mark.parametrize(
    ("given", "to"),
    [
        (STRING, BOOLEAN),
        (INTEGER, BOOLEAN),
        (BOOLEAN, INTEGER),
        (BINARY, INTEGER),
        (INTEGER, TIMESTAMP),
        (DATE, LONG),
        (StructType(()), STRING),
        (ArrayType(LONG), STRING),
    ],
)
def test_never_done_unasked(given: DataType, to: DataType) -> None:
    assert not is_implicit_cast(given, to)
