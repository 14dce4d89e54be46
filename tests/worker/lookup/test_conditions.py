"""What is true of pairs of rows, and which columns have to be read to know it."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pytest

from puredelta.worker.expressions import call
from puredelta.worker.lookup.conditions import NO_CLAUSE, Pairs
from tests.worker.expressions import expression
from tests.worker.lookup.columns import HeldColumns

Short: TypeAlias = tuple[Any, ...]
"""What `expression` reads."""
COLUMNS = 3
VALUES = [None, True, False]


def random_call(dice: random.Random, depth: int) -> Short:
    kinds = ["target", "source", "value"]
    if depth:
        kinds += ["and_kleene", "or_kleene", "invert", "equal"] * 2
    match dice.choice(kinds):
        case "target" | "source" as side:
            return side, dice.randrange(COLUMNS)
        case "value":
            return "value", dice.choice(VALUES), pa.bool_()
        case "invert":
            return "invert", random_call(dice, depth - 1)
        case "equal":  # of columns: Arrow's functions want an array
            return "equal", ("target", dice.randrange(COLUMNS)), ("source", 0)
        case name:
            return name, random_call(dice, depth - 1), random_call(dice, depth - 1)


def meaning(call: Short, target: Sequence[Any], source: Sequence[Any]) -> bool | None:
    """Return what SQL says: three truth values."""
    name, *rest = call
    if name in ("target", "source"):
        found: bool | None = (target if name == "target" else source)[rest[0]]
        return found
    if name == "value":
        return rest[0]  # type: ignore[no-any-return]
    parts = [meaning(part, target, source) for part in rest]
    if name == "invert":
        return None if parts[0] is None else not parts[0]
    if name == "equal":
        return None if None in parts else parts[0] == parts[1]
    decides = name == "or_kleene"
    if decides in parts:
        return decides
    return None if None in parts else not decides


@pytest.mark.parametrize("seed", range(60))
def test_three_truth_values_are_those_of_sql(seed: int) -> None:
    dice = random.Random(seed)
    sides = [[[dice.choice(VALUES) for _ in range(40)] for _ in range(COLUMNS)] for _ in range(2)]
    rows, source_rows = np.arange(40), np.array([dice.randrange(40) for _ in range(40)])
    target = HeldColumns(
        [pa.array(column, pa.bool_()) for column in sides[0]],
        costs=[dice.randrange(3) for _ in range(COLUMNS)],
    )
    pairs = Pairs(
        target=target,
        target_rows=rows,
        source=[pa.array(column, pa.bool_()) for column in sides[1]],
        source_rows=source_rows,
    )
    calls = [random_call(dice, 4) for _ in range(4)]
    truths = [
        [
            meaning(short, [c[r] for c in sides[0]], [c[q] for c in sides[1]])
            for r, q in zip(rows, source_rows, strict=True)
        ]
        for short in calls
    ]
    for short, wanted in zip(calls, truths, strict=True):
        assert pairs.is_true(expression(short)).tolist() == [truth is True for truth in wanted]
    first = [
        next((n for n, truth in enumerate(of_pair) if truth is True), NO_CLAUSE)
        for of_pair in zip(*truths, strict=True)
    ]
    assert pairs.first_true(list(map(expression, calls))).tolist() == first


def differs(place: int) -> Short:
    return "invert", ("equal", ("target", place), ("source", place))


def test_the_cheapest_column_is_asked_first_and_the_others_only_of_undecided_rows() -> None:
    target = HeldColumns(
        [pa.array([1, 1, 1, 1]), pa.array([5, 6, 6, 6]), pa.array([7, 7, 8, 7])], costs=[90, 1, 5]
    )
    source = [pa.array([1, 1, 1, 2]), pa.array([9, 6, 6, 6]), pa.array([7, 7, 7, 7])]
    rows = np.arange(4)
    pairs = Pairs(target=target, target_rows=rows, source=source, source_rows=rows)
    same: Short = ("and_kleene", ("and_kleene", *map(_same, (0, 1))), _same(2))
    assert pairs.is_true(expression(("invert", same))).tolist() == [True, False, True, True]
    assert target.asked == [(1, [0, 1, 2, 3]), (2, [1, 2, 3]), (0, [1, 3])]
    target.asked.clear()
    every_row_is_decided: Short = ("or_kleene", ("invert", _same(0)), ("is_valid", ("target", 1)))
    assert pairs.is_true(expression(every_row_is_decided)).all()
    assert [place for place, _ in target.asked] == [1]


def test_nothing_is_read_for_no_pairs() -> None:
    none = np.arange(0)
    target = HeldColumns([pa.array([1])])
    pairs = Pairs(target=target, target_rows=none, source=[pa.array([1])], source_rows=none)
    assert pairs.is_true(expression(("and_kleene", differs(0), differs(0)))).tolist() == []
    assert pairs.first_true([expression(differs(0))]).tolist() == []
    assert target.asked == []


def test_clauses_after_the_one_that_fires_are_not_asked() -> None:
    target = HeldColumns([pa.array([1, 2]), pa.array([1, 2])])
    source = [pa.array([9, 9]), pa.array([9, 9])]
    rows = np.arange(2)
    pairs = Pairs(target=target, target_rows=rows, source=source, source_rows=rows)
    assert pairs.first_true(list(map(expression, (differs(0), differs(1))))).tolist() == [0, 0]
    assert [place for place, _ in target.asked] == [0]


def _same(place: int) -> Short:
    return "equal", ("target", place), ("source", place)


def test_pairs_are_brought_together_a_few_at_a_time() -> None:
    target = HeldColumns([pa.array(["a", "b", None, "d", "e"])])
    pairs = Pairs(
        target=target,
        target_rows=np.arange(5),
        source=[pa.array(["a", "x", "c", "d", "y"])],
        source_rows=np.arange(5),
        at_a_time=2,
    )
    differs = expression(("not_equal", ("target", 0), ("source", 0)))
    assert pairs.is_true(differs).tolist() == [False, True, False, False, True]
    assert [rows for _, rows in target.asked] == [[0, 1], [2, 3], [4]]
    assert pairs.first_true([call("invert", differs), differs]).tolist() == [0, 1, NO_CLAUSE, 0, 1]
