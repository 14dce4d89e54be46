"""The small grammar of conditions that is read without an analyzer."""

from __future__ import annotations

import datetime as dt
import decimal

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
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    LONG,
    STRING,
    StructField,
    StructType,
)
from puredelta.spark.resolve.predicate_from_sql import (
    NamedSide,
    Names,
    is_surely_boolean,
    parse_predicate,
)

T, S = Side.TARGET, Side.SOURCE
STRUCT = StructType((StructField("A", LONG),))


def named(side: Side, name: str, kind: object, key: str | None = None) -> tuple:
    struct = kind if isinstance(kind, StructType) else None
    return name, Ref(side, (key or name,), kind), struct


NAMES = Names(
    sides=(
        NamedSide(
            side=T,
            qualifier=("c", "d", "t"),
            columns=[
                named(T, "id", LONG),
                named(T, "v", STRING),
                named(T, "st", STRUCT),
                named(T, "s", STRUCT),
                named(T, "d", DATE),
                named(T, "f", DOUBLE),
                named(T, "ok", BOOLEAN),
                named(T, "collated", None),
            ],
        ),
        NamedSide(
            side=S,
            qualifier=("s",),
            columns=[named(S, "id", INTEGER, "k0"), named(S, "w", STRING, "k1")],
        ),
    ),
    case_sensitive=False,
)
ID, KEY = Ref(T, ("id",), LONG), Ref(S, ("k0",), INTEGER)
V, W, OK = Ref(T, ("v",), STRING), Ref(S, ("k1",), STRING), Ref(T, ("ok",), BOOLEAN)
FIELD, DAY = Ref(T, ("st", "A"), LONG), Ref(T, ("d",), DATE)


def eq(left: Predicate, right: Predicate) -> Compare:
    return Compare(CompareOp.EQUAL, left, right)


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("t.id = s.id", eq(ID, KEY)),
        ("(T.ID) == `s`.`id`", eq(ID, KEY)),
        ("t.id <=> s.id", Compare(CompareOp.NULL_SAFE_EQUAL, ID, KEY)),
        ("t.id = s.id and v = w AND ok", And((eq(ID, KEY), eq(V, W), OK))),
        ("5 < t.id", Compare(CompareOp.GREATER, ID, Const(5))),
        ("t.id != -5", Not(eq(ID, Const(-5)))),
        ("v = 'a' or w <> 'b'", Or((eq(V, Const("a")), Not(eq(W, Const("b")))))),
        ("st.a >= 1", Compare(CompareOp.GREATER_OR_EQUAL, FIELD, Const(1))),
        ("not v in ('a', NULL)", Not(OneOf(V, ("a", None)))),
        ("v not in ('a')", Not(OneOf(V, ("a",)))),
        ("w is not null", Not(IsNull(W))),
        ("ok = true", eq(OK, Const(True))),
        (
            "t.id between 1 and 3 and w is null",
            And(
                (
                    Compare(CompareOp.GREATER_OR_EQUAL, ID, Const(1)),
                    Compare(CompareOp.LESS_OR_EQUAL, ID, Const(3)),
                    IsNull(W),
                )
            ),
        ),
        ("d = date'2024-01-01'", eq(DAY, Const(dt.date(2024, 1, 1)))),
        ("'2024-02-29' > d", Compare(CompareOp.LESS, DAY, Const(dt.date(2024, 2, 29)))),
        ("d in ('2024-01-01')", OneOf(DAY, (dt.date(2024, 1, 1),))),
        # comments
        ("t.id = s.id -- it's\n AND v = w -- it's", And((eq(ID, KEY), eq(V, W)))),
        ("t.id /* a /* ' */ b */ = s.id", eq(ID, KEY)),
        ("v = '-- a'", eq(V, Const("-- a"))),
        # understood, but not comparable as it stands
        ("d = '2024-1-1'", Opaque(frozenset({DAY}))),
        ("d = '2023-02-29'", Opaque(frozenset({DAY}))),
        ("v = date'2024-01-01'", Opaque(frozenset({V}))),
        ("f > 1", Compare(CompareOp.GREATER, Ref(T, ("f",), DOUBLE), Const(1))),
        ("t.id = 1.5", Compare(CompareOp.EQUAL, ID, Const(decimal.Decimal("1.5")))),
        ("t.id = 1L", Compare(CompareOp.EQUAL, ID, Const(1))),
        ("t.id = -1e3", Compare(CompareOp.EQUAL, ID, Const(-1000.0))),
        ("f = 0.1F", Compare(CompareOp.EQUAL, Ref(T, ("f",), DOUBLE), Const(0.10000000149011612))),
        (
            "f = .5BD",
            Compare(CompareOp.EQUAL, Ref(T, ("f",), DOUBLE), Const(decimal.Decimal("0.5"))),
        ),
        ("v like 'a%'", StartsWith(V, "a")),
        ("v NOT LIKE 'a'", Not(Compare(CompareOp.EQUAL, V, Const("a")))),
        ("v like 'a_%'", Opaque(frozenset({V}))),
        ("v like '%a'", Opaque(frozenset({V}))),
        ("t.id like '1%'", Opaque(frozenset({ID}))),
        ("collated = 'x'", Opaque(frozenset({Ref(T, ("collated",), None)}))),
        ("t.id + 1 = s.id", Opaque(frozenset({ID, KEY}))),
        ("lower(v) = coalesce(w, 'x')", Opaque(frozenset({V, W}))),
    ],
)
def test_understood(text: str, tree: Predicate) -> None:
    assert parse_predicate(text, NAMES) == tree


def test_a_qualifier_wins_over_a_column_of_its_name() -> None:
    assert parse_predicate("s.id = 1", NAMES) == eq(KEY, Const(1))
    column = Ref(T, ("s", "A"), LONG)
    assert parse_predicate("s.a = 1", NAMES) == eq(column, Const(1))


@pytest.mark.parametrize(
    "text",
    [
        "id = 1",  # ambiguous
        "nope = 1",
        "t.id = s.id /*+ x */",
        r"v = r'a'",
        "v = 'it''s'",
        "v = 'a' 'b'",
        "v = 'a\\'b'",
        'v = "w"',
        "t.id = 1.5.2",
        "t.id = 1X",
        "t.id = 1e",
        "d = date'2024-1-1'",
        "case when ok then true else false end",
        "cast(t.id as int) = s.id",
        "exists(select 1)",
        "t.id in (select 1)",
        "sum(t.id) over () = 1",
        "v like 'a%' escape '/'",
        "transform(x, y -> y) = 1",
        "t.id = s.id)",
        "(t.id = s.id",
        "t.id =",
        "",
        "t.st[0] = 1",
        ":p = t.id",
        "(" * 5000 + "ok" + ")" * 5000,
    ],
)
def test_anything_else_is_not_understood_at_all(text: str) -> None:
    assert parse_predicate(text, NAMES) is None


@pytest.mark.parametrize(
    ("text", "is_sure"),
    [
        ("t.id = t.id AND NOT (t.v <=> v OR ok)", True),
        ("t.id IS NULL AND d >= d", True),
        ("t.id BETWEEN t.id AND t.id", True),
        ("t.id = d", False),  # Spark decides what it casts
        ("t.id = 20240131 AND t.id < 300S", True),
        ("v LIKE 'a%'", True),
        ("TRUE", True),
        ("t.id = 3 OR -3Y < t.id OR t.id IN (1, 2)", True),
        ("t.id = 1.5", False),
        ("t.id IN (1, NULL)", False),
        ("t.id = '3'", False),
        ("d < DATE'2024-01-01' AND d = '2024-01-01'", True),
        ("d = 'soon'", False),
        ("v = 'a'", True),
        ("v = 3", False),
        ("ok = TRUE", False),
        ("collated = 'a'", False),
        ("st.a = 3", False),
        ("collated = collated", False),
        ("collated IS NULL", False),
        ("st.a = st.a", False),  # a field may have a collation
        ("st = st", False),
        ("t.id", False),
        ("t.id = abs(t.id)", False),
    ],
)
def test_conditions_that_need_no_analyzer(text: str, is_sure: bool) -> None:
    tree = parse_predicate(text, NAMES)
    assert tree is not None
    assert is_surely_boolean(tree) is is_sure
