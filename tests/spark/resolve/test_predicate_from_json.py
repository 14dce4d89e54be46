"""Catalyst's JSON as predicates; the nodes are cut down from what Spark 4.3 writes."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import types as T

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
    Ref,
    Side,
    StartsWith,
)
from puredelta.protocol.schema.types import INTEGER, LONG, STRING, PrimitiveType
from puredelta.spark.resolve.predicate_from_json import SideColumn, attribute_ids, predicate_of

STRUCT = T.StructType(
    [T.StructField("A", T.IntegerType()), T.StructField("b", T.StringType("UTF8_LCASE"))]
)
NUMBERS = [T.StructField("x", T.DoubleType()), T.StructField("y", T.LongType())]
ATTRIBUTES = {
    1: SideColumn(Side.TARGET, "id", T.LongType()),
    2: SideColumn(Side.SOURCE, "__puredelta_s0", T.LongType()),
    3: SideColumn(Side.TARGET, "p", T.StringType()),
    4: SideColumn(Side.TARGET, "st", STRUCT),
    5: SideColumn(Side.TARGET, "c", T.StringType("UTF8_LCASE")),
    6: SideColumn(Side.TARGET, "n", T.IntegerType()),
    7: SideColumn(Side.TARGET, "f", T.DoubleType()),
    8: SideColumn(Side.TARGET, "deep", T.StructType([T.StructField("st", STRUCT), *NUMBERS])),
}
ID = Ref(Side.TARGET, ("id",), LONG)
KEY = Ref(Side.SOURCE, ("__puredelta_s0",), LONG)
P = Ref(Side.TARGET, ("p",), STRING)
N = Ref(Side.TARGET, ("n",), INTEGER)


def node(kind: str, children: int = 0, **fields: Any) -> dict[str, Any]:
    return {"class": f"org.apache.spark.{kind}", "num-children": children, **fields}


def attribute(expr_id: int, read: T.DataType | None = None) -> dict[str, Any]:
    """``read`` is the type of what a plan reads of the column."""
    known = ATTRIBUTES.get(expr_id, ATTRIBUTES[1]).type
    data_type = (known if read is None else read).jsonValue()
    return node("AttributeReference", exprId={"id": expr_id}, dataType=data_type)


def literal(value: str | None, data_type: str) -> dict[str, Any]:
    return node("Literal", value=value, dataType=data_type)


def tree(*nodes: dict[str, Any], zone: str = "UTC") -> Any:
    return predicate_of(nodes, ATTRIBUTES, time_zone=zone)


def test_comparison_puts_the_literal_on_the_right() -> None:
    made = tree(node("LessThan", 2), literal("7", "long"), attribute(1))
    assert made == Compare(CompareOp.GREATER, ID, Const(7))


def test_equality_of_two_columns_keeps_its_sides() -> None:
    assert tree(node("EqualTo", 2), attribute(2), attribute(1)) == Compare(CompareOp.EQUAL, KEY, ID)


def test_logic_is_flattened() -> None:
    isnull = [node("IsNull", 1), attribute(3)]
    made = tree(
        node("And", 2),
        *[node("And", 2), *isnull, node("Not", 1), *isnull],
        *[node("Or", 2), *isnull, node("Or", 2), *isnull, *isnull],
    )
    assert made == And((IsNull(P), Not(IsNull(P)), Or((IsNull(P), IsNull(P), IsNull(P)))))


def test_a_condition_may_nest_deeper_than_pythons_stack() -> None:
    deep = 5000
    nodes = [node("Or", 2)] * deep + [node("IsNull", 1), attribute(3)] * (deep + 1)
    made = tree(*nodes)
    assert isinstance(made, Or)
    assert len(made.parts) == deep + 1


def test_struct_fields_are_named_by_the_schema() -> None:
    nodes = [node("GetStructField", 1, ordinal=0, name="a"), attribute(4)]
    made = tree(node("GreaterThan", 2), *nodes, literal("1", "integer"))
    assert made == Compare(CompareOp.GREATER, Ref(Side.TARGET, ("st", "A"), INTEGER), Const(1))


@pytest.mark.parametrize(
    ("read", "ordinals", "path"),
    [
        (T.StructType([NUMBERS[1]]), [0], ("deep", "y")),
        (T.StructType(NUMBERS), [1], ("deep", "y")),
        (
            T.StructType([T.StructField("st", T.StructType([STRUCT[0]]))]),
            [0, 0],
            ("deep", "st", "A"),
        ),
        (None, [2], ("deep", "y")),
    ],
    ids=["one", "two", "nested", "all"],
)
def test_fields_are_numbered_among_those_that_are_read(
    read: T.StructType | None, ordinals: list[int], path: tuple[str, ...]
) -> None:
    steps = [node("GetStructField", 1, ordinal=n) for n in reversed(ordinals)]
    made = tree(node("LessThan", 2), *steps, attribute(8, read), literal("500", "long"))
    assert isinstance(made, Compare)
    assert isinstance(made.left, Ref)
    assert made.left.path == path


def test_a_struct_that_is_read_under_unknown_names_is_opaque() -> None:
    unknown = T.StructType([T.StructField("z", T.LongType())])
    field = [node("GetStructField", 1, ordinal=0), attribute(8, unknown)]
    assert isinstance(tree(node("LessThan", 2), *field, literal("5", "long")), Opaque)


def test_what_a_scan_makes_of_floating_point_numbers_is_looked_through() -> None:
    plain = tree(node("LessThan", 2), attribute(7), literal("1", "long"))
    kept = [node("NaNvl", 2), attribute(7), attribute(7)]
    assert tree(node("LessThan", 2), *kept, literal("1", "long")) == plain
    other = [node("NaNvl", 2), attribute(7), literal("0", "long")]
    assert isinstance(tree(node("LessThan", 2), *other, literal("1", "long")), Opaque)


def test_what_a_scan_makes_of_such_numbers_in_structs_is_looked_through() -> None:
    x = [node("GetStructField", 1, ordinal=1), attribute(8)]
    is_null, small = [node("IsNull", 1), attribute(8)], [node("LessThan", 2), *x]
    one = literal("1", "long")
    condition, deep = tree(*small, one), IsNull(ATTRIBUTES[8].ref())
    answered = [
        tree(node("If", 3), *is_null, literal(value, "boolean"), *small, one)
        for value in ("false", "true")
    ]
    assert answered == [And((Not(deep), condition)), Or((deep, condition))]
    inside = [node("If", 3), *is_null, literal(None, "double"), *x]
    assert tree(node("LessThan", 2), *inside, one) == condition
    elsewhere = [node("If", 3), *is_null, literal(None, "double"), attribute(7)]
    assert isinstance(tree(node("LessThan", 2), *elsewhere, one), Opaque)


@pytest.mark.parametrize(
    "field",
    [attribute(5), [node("GetStructField", 1, ordinal=1), attribute(4)]],
    ids=["column", "field"],
)
def test_collated_strings_are_never_compared(field: Any) -> None:
    nodes = field if isinstance(field, list) else [field]
    for kind in ("EqualTo", "LessThan", "StartsWith"):
        made = tree(node(kind, 2), *nodes, literal("x", "string"))
        assert isinstance(made, Opaque), kind
    assert isinstance(tree(node("In", 2), *nodes, literal("x", "string")), Opaque)


def test_in_and_starts_with() -> None:
    made = tree(node("In", 3), attribute(1), literal("1", "long"), literal(None, "long"))
    assert made == OneOf(ID, (1, None))
    assert tree(node("StartsWith", 2), attribute(3), literal("a", "string")) == StartsWith(P, "a")
    assert tree(node("In", 2), attribute(1), attribute(2)) == Opaque(frozenset({ID, KEY}))


def test_only_casts_that_widen_an_integer_are_looked_through() -> None:
    wide = [node("Cast", 1, dataType="long"), attribute(6)]
    assert tree(node("EqualTo", 2), *wide, attribute(2)) == Compare(CompareOp.EQUAL, N, KEY)
    narrow = [node("Cast", 1, dataType="integer"), attribute(1)]
    assert tree(node("EqualTo", 2), *narrow, attribute(6)) == Opaque(frozenset({ID, N}))
    text = [node("Cast", 1, dataType="long"), attribute(3)]
    assert tree(node("EqualTo", 2), *text, attribute(1)) == Opaque(frozenset({P, ID}))


@pytest.mark.parametrize(
    ("text", "data_type", "value"),
    [
        ("5", "byte", 5),
        ("true", "boolean", True),
        ("a'b", "string", "a'b"),
        ("1.5", "double", 1.5),
        ("1.50", "decimal(3,2)", Decimal("1.50")),
        ("2024-02-29", "date", dt.date(2024, 2, 29)),
        ("1000001", "timestamp_ntz", dt.datetime.fromisoformat("1970-01-01 00:00:01.000001")),
        (
            "2024-01-01 12:00:00.5",
            "timestamp",
            dt.datetime(2024, 1, 1, 11, 0, 0, 500000, dt.timezone.utc),
        ),
        (None, "integer", None),
    ],
)
def test_literals(text: str | None, data_type: str, value: object) -> None:
    assert tree(literal(text, data_type), zone="Europe/Berlin") == Const(value)


@pytest.mark.parametrize(
    ("text", "data_type"),
    [
        ("2024-10-27 02:30:00", "timestamp"),  # twice in Berlin
        ("+10000-01-01", "date"),
        ("[B@1f", "binary"),
        ("x", "interval day"),
    ],
)
def test_literals_without_a_certain_value(text: str, data_type: str) -> None:
    assert tree(literal(text, data_type), zone="Europe/Berlin") == Opaque(frozenset())


def test_a_zone_this_machine_does_not_know_costs_pruning_only() -> None:
    assert tree(literal("2024-01-01 00:00:00", "timestamp"), zone="+01:00") == Opaque(frozenset())


def test_what_is_not_known_keeps_its_references_those_in_subqueries_too() -> None:
    plan = [node("plans.Filter", 1, condition=[attribute(3)]), node("plans.Range")]
    made = tree(node("InSubquery", 2), attribute(1), node("ListQuery", 0, plan=plan))
    assert made == Opaque(frozenset({ID, P}))
    assert attribute_ids([node("ListQuery", 0, plan=plan)]) == {3}


def test_attributes_of_other_relations_are_opaque() -> None:
    assert tree(node("IsNull", 1), attribute(99)) == Opaque(frozenset())


def test_types_are_the_protocols() -> None:
    assert isinstance(ID.type, PrimitiveType)
