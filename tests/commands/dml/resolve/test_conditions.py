"""A condition taken apart by the sides its conjuncts use."""

from __future__ import annotations

from puredelta.commands.dml.resolve.conditions import split_condition
from puredelta.commands.dml.resolve.resolved_statement import EquiPair
from puredelta.protocol.schema.predicates import (
    FALSE,
    TRUE,
    And,
    Compare,
    CompareOp,
    Const,
    IsNull,
    Not,
    Opaque,
    Or,
    Ref,
    Side,
)
from puredelta.protocol.schema.types import LONG

ID = Ref(Side.TARGET, ("id",), LONG)
N = Ref(Side.TARGET, ("n",), LONG)
KEY = Ref(Side.SOURCE, ("__puredelta_s0",), LONG)


def eq(left: Ref, right: Ref, op: CompareOp = CompareOp.EQUAL) -> Compare:
    return Compare(op, left, right)


def test_every_conjunct_has_its_place() -> None:
    only_target, only_source = Compare(CompareOp.GREATER, N, Const(1)), Not(IsNull(KEY))
    mixed = Or((eq(ID, KEY), IsNull(N)))
    function = Opaque(frozenset({N, KEY}))
    parts = split_condition(
        And((eq(KEY, ID), And((only_target, only_source)), mixed, function, FALSE))
    )
    assert parts.pairs == (EquiPair(target=ID, source=KEY),)
    assert parts.target_only == (only_target, FALSE)
    assert parts.source_only == (only_source,)
    assert parts.other == (mixed, function)


def test_null_safe_pairs_are_told_apart() -> None:
    parts = split_condition(eq(ID, KEY, CompareOp.NULL_SAFE_EQUAL))
    assert parts.pairs == (EquiPair(target=ID, source=KEY, null_safe=True),)


def test_two_columns_of_one_side_are_no_pair() -> None:
    assert split_condition(eq(ID, N)).target_only == (eq(ID, N),)
    assert split_condition(eq(ID, KEY, CompareOp.LESS)).other == (eq(ID, KEY, CompareOp.LESS),)


def test_nothing_to_split() -> None:
    assert split_condition(TRUE).target_only == ()
