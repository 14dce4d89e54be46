"""What Arrow may decide in Spark's place, and what it may not."""

from __future__ import annotations

import datetime as dt
import math
import operator
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from puredelta.protocol.schema.predicates import (
    And,
    Compare,
    CompareOp,
    Const,
    IsNull,
    Not,
    OneOf,
    Opaque,
    Or,
    Predicate,
    Ref,
    Side,
    StartsWith,
)
from puredelta.protocol.schema.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    DataType,
    DecimalType,
)
from puredelta.spark.offload.arrow_predicate import Translation
from puredelta.worker.expressions import ALWAYS, NEVER, Call, Constant
from puredelta.worker.lookup.conditions import Pairs
from tests.worker.expressions import expression
from tests.worker.lookup.columns import HeldColumns

ID, KEY = Ref(Side.TARGET, ("id",), LONG), Ref(Side.SOURCE, ("s0",), INTEGER)
NAME = Ref(Side.TARGET, ("name",), STRING)
FLAG = Ref(Side.SOURCE, ("s1",), BOOLEAN)
UNKNOWN = Constant(None, pa.bool_())
ONE = Compare(CompareOp.LESS, ID, Const(1))


def column(kind: DataType | None) -> Ref:
    return Ref(Side.TARGET, ("c",), kind)


def equal(left: Ref, right: Any) -> Predicate:
    return Compare(CompareOp.EQUAL, left, right)


@pytest.mark.parametrize(
    ("predicate", "expected"),
    [
        (And(()), ALWAYS),
        (Or(()), NEVER),
        (equal(ID, KEY), expression(("equal", ("target", 0), ("source", 0)))),
        (FLAG, expression(("source", 0))),
        (Not(FLAG), expression(("invert", ("source", 0)))),
        (IsNull(NAME), expression(("is_null", ("target", 0)))),
        (equal(ID, Const(None)), UNKNOWN),
        (
            Compare(CompareOp.NULL_SAFE_EQUAL, ID, Const(None)),
            expression(("is_null", ("target", 0))),
        ),
        (
            OneOf(ID, (1, None)),
            Call(
                "or_kleene",
                (expression(("equal", ("target", 0), ("value", 1, pa.int64()))), UNKNOWN),
            ),
        ),
        (
            And((ONE, Or((FLAG, ONE)))),
            expression(
                (
                    "and_kleene",
                    ("less", ("target", 0), ("value", 1, pa.int64())),
                    (
                        "or_kleene",
                        ("source", 0),
                        ("less", ("target", 0), ("value", 1, pa.int64())),
                    ),
                )
            ),
        ),
    ],
)
def test_what_arrow_decides(predicate: Predicate, expected: Any) -> None:
    assert Translation().expression(predicate) == expected


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (LONG, 5),
        (STRING, "x"),
        (BOOLEAN, True),
        (DOUBLE, 0.1),
        (FLOAT, 0.5),
        (DATE, dt.date(2020, 1, 1)),
        (TIMESTAMP, dt.datetime(2020, 1, 1, tzinfo=dt.timezone.utc)),
        (TIMESTAMP_NTZ, dt.datetime(2020, 1, 1)),  # noqa: DTZ001
        (DecimalType(7, 2), Decimal("1.5")),
    ],
)
def test_literals_are_of_the_type_of_their_column(kind: DataType, value: Any) -> None:
    found = Translation().expression(equal(column(kind), Const(value)))
    assert isinstance(found, Call)
    compared = found.arguments[0] if kind in {DOUBLE, FLOAT} else found
    assert isinstance(compared, Call)
    literal = compared.arguments[1]
    assert isinstance(literal, Constant)
    assert pa.scalar(literal.value, literal.kind).as_py() == value


@pytest.mark.parametrize(
    "predicate",
    [
        Opaque(frozenset({ID})),
        And((ONE, Opaque(frozenset()))),
        StartsWith(NAME, "a"),
        equal(column(FLOAT), Const(0.1)),  # the nearest float, or the nearest double
        equal(column(DOUBLE), Const(1)),
        equal(column(BINARY), Const(b"x")),
        equal(column(None), Const("x")),  # a collation
        IsNull(column(BINARY)),
        equal(Ref(Side.TARGET, ("s", "f"), LONG), Const(1)),
        equal(Ref(Side.TARGET, ("padded",), STRING), Const("x")),
        equal(column(LONG), Const(1.0)),
        equal(column(LONG), Const(True)),
        equal(column(LONG), Const(1 << 70)),
        equal(column(DATE), Const(dt.datetime(2020, 1, 1))),  # noqa: DTZ001
        equal(column(TIMESTAMP), Const(dt.datetime(2020, 1, 1))),  # noqa: DTZ001
        equal(column(TIMESTAMP_NTZ), Const(dt.datetime(2020, 1, 1, tzinfo=dt.timezone.utc))),
        equal(column(DecimalType(7, 2)), Const(Decimal("1.555"))),
        equal(column(DecimalType(7, 2)), Ref(Side.SOURCE, ("s0",), DecimalType(9, 2))),
        equal(ID, NAME),
        Compare(CompareOp.LESS, FLAG, Const(True)),
        ID,
        OneOf(ID, tuple(range(1000))),
    ],
)
def test_what_is_left_to_spark(predicate: Predicate) -> None:
    assert Translation(inexact={"padded"}).expression(predicate) is None


def test_deep_conditions_are_left_to_spark() -> None:
    deep: Predicate = FLAG
    for _ in range(100):
        deep = Not(deep)
    assert Translation().expression(deep) is None


def test_columns_are_numbered_through_all_conditions() -> None:
    translation = Translation()
    translation.expression(equal(ID, KEY))
    assert translation.expression(And((IsNull(NAME), IsNull(ID)))) == expression(
        ("and_kleene", ("is_null", ("target", 1)), ("is_null", ("target", 0)))
    )
    assert translation.target == {"id": pa.int64(), "name": pa.string()}
    assert translation.source == {"s0": pa.int64()}


FLOATS = [None, math.nan, -math.inf, -1.5, -0.0, 0.0, 0.1, 1e300, math.inf]


def spark_order(value: float) -> tuple[int, float]:
    """NaN is the greatest; -0.0 is 0.0 (Spark's "NaN semantics")."""
    return (1, 0.0) if math.isnan(value) else (0, value + 0.0)


@pytest.mark.parametrize(
    ("op", "holds"),
    [
        (CompareOp.EQUAL, operator.eq),
        (CompareOp.LESS, operator.lt),
        (CompareOp.LESS_OR_EQUAL, operator.le),
        (CompareOp.GREATER, operator.gt),
        (CompareOp.GREATER_OR_EQUAL, operator.ge),
    ],
)
def test_floats_compare_as_in_spark(op: CompareOp, holds: Callable[[Any, Any], bool]) -> None:
    pairs = [(one, two) for one in FLOATS for two in FLOATS]
    expected = [
        one is not None and two is not None and holds(spark_order(one), spark_order(two))
        for one, two in pairs
    ]
    assert truths(Compare(op, column(DOUBLE), SOURCE_DOUBLE), pairs) == expected
    safe = [
        holds(spark_order(one), spark_order(two)) if None not in (one, two) else one is two
        for one, two in pairs
    ]
    if op is CompareOp.EQUAL:
        null_safe = Compare(CompareOp.NULL_SAFE_EQUAL, column(DOUBLE), SOURCE_DOUBLE)
        assert truths(null_safe, pairs) == safe
        assert truths(Not(null_safe), pairs) == [not same for same in safe]


def test_a_constant_is_less_than_nan() -> None:
    pairs = [(math.nan, None), (None, None), (2.0, None), (0.5, None)]
    above = Compare(CompareOp.GREATER, column(DOUBLE), Const(1.0))
    assert truths(above, pairs) == [True, False, True, False]
    assert truths(Not(above), pairs) == [False, False, False, True]


SOURCE_DOUBLE = Ref(Side.SOURCE, ("s0",), DOUBLE)


def truths(predicate: Predicate, pairs: list[tuple[float | None, float | None]]) -> list[bool]:
    """Return for which pairs of a target's and a source's value a predicate is true."""
    condition = Translation().expression(predicate)
    assert condition is not None
    sides = [pa.array([pair[side] for pair in pairs], pa.float64()) for side in (0, 1)]
    rows = np.arange(len(pairs))
    both = Pairs(
        target=HeldColumns(sides[:1]), target_rows=rows, source=sides[1:], source_rows=rows
    )
    return both.is_true(condition).tolist()
