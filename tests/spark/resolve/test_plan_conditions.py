"""Conditions read from the plans of a Connect client, which are made by hand here."""

from __future__ import annotations

import datetime as dt
import decimal
from typing import Any

import pytest

from puredelta.protocol.schema.predicates import (
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
    DATE,
    DOUBLE,
    INTEGER,
    LONG,
    STRING,
    TIMESTAMP,
    StructField,
    StructType,
)
from puredelta.spark.resolve.plan_conditions import Column, table_reads

proto: Any = pytest.importorskip("pyspark.sql.connect.proto", exc_type=ImportError)

EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc)
STRUCT = StructType((StructField("a", INTEGER),))
KINDS = {
    "id": LONG,
    "s": STRING,
    "d": DOUBLE,
    "day": DATE,
    "ts": TIMESTAMP,
    "st": STRUCT,
}
COLUMNS: list[Column] = [
    (name, Ref(Side.TARGET, (name,), kind), kind if isinstance(kind, StructType) else None)
    for name, kind in KINDS.items()
]


def ref(name: str, *more: str) -> Ref:
    kind: Any = STRUCT.find(more[0]).type if more else KINDS[name]  # type: ignore[union-attr]
    return Ref(Side.TARGET, (name, *more), kind)


def compared(op: CompareOp, name: str, value: object) -> Predicate:
    return Compare(op, ref(name), Const(value))


def equal(name: str, value: object) -> Predicate:
    return compared(CompareOp.EQUAL, name, value)


def columns(relation: Any) -> list[Column] | None:
    return COLUMNS if relation.WhichOneof("rel_type") == "read" else None


def table(plan_id: int = 1) -> Any:
    relation = proto.Relation()
    relation.common.plan_id = plan_id
    relation.read.data_source.format = "mark"
    return relation


def lit(**value: Any) -> Any:
    expression = proto.Expression()
    for kind, given in value.items():
        setattr(expression.literal, kind, given)
    return expression


def col(name: str, plan_id: int | None = None) -> Any:
    expression = proto.Expression()
    expression.unresolved_attribute.unparsed_identifier = name
    if plan_id is not None:
        expression.unresolved_attribute.plan_id = plan_id
    return expression


def call(name: str, *arguments: Any) -> Any:
    expression = proto.Expression()
    expression.unresolved_function.function_name = name
    expression.unresolved_function.arguments.extend(arguments)
    return expression


def text(sql: str) -> Any:
    expression = proto.Expression()
    expression.expression_string.expression = sql
    return expression


def alias(expression: Any, name: str) -> Any:
    made = proto.Expression()
    made.alias.expr.CopyFrom(expression)
    made.alias.name.append(name)
    return made


def star() -> Any:
    expression = proto.Expression()
    expression.unresolved_star.SetInParent()
    return expression


def where(rows: Any, condition: Any) -> Any:
    relation = proto.Relation()
    relation.common.plan_id = rows.common.plan_id + 100
    relation.filter.input.CopyFrom(rows)
    relation.filter.condition.CopyFrom(condition)
    return relation


def select(rows: Any, *expressions: Any) -> Any:
    relation = proto.Relation()
    relation.common.plan_id = rows.common.plan_id + 1000
    relation.project.input.CopyFrom(rows)
    relation.project.expressions.extend(expressions)
    return relation


def named(rows: Any, name: str) -> Any:
    relation = proto.Relation()
    relation.subquery_alias.input.CopyFrom(rows)
    relation.subquery_alias.alias = name
    return relation


def join(left: Any, right: Any, kind: str = "INNER") -> Any:
    relation = proto.Relation()
    relation.join.left.CopyFrom(left)
    relation.join.right.CopyFrom(right)
    relation.join.join_type = proto.Join.JoinType.Value(f"JOIN_TYPE_{kind}")
    return relation


def read(plan: Any) -> tuple[list[Predicate], bool]:
    """The conditions on the only table of a plan, and whether there may be more."""
    [found] = table_reads(plan, columns)
    return found.conditions, found.in_doubt


ID_IS_5 = text("id = 5")


@pytest.mark.parametrize(
    ("condition", "wanted"),
    [
        (call("==", col("id"), lit(integer=5)), [equal("id", 5)]),
        (call("<", lit(long=5), col("ID")), [compared(CompareOp.GREATER, "id", 5)]),
        (call("!=", col("id"), lit(integer=5)), [Not(equal("id", 5))]),
        (call("<=>", col("s"), lit(string="x")), [compared(CompareOp.NULL_SAFE_EQUAL, "s", "x")]),
        (
            call("and", call(">", col("id"), lit(integer=1)), call("isNotNull", col("s"))),
            [compared(CompareOp.GREATER, "id", 1), Not(IsNull(ref("s")))],
        ),
        (
            call("or", call("isNull", col("s")), call("not", call("==", col("id"), lit(byte=1)))),
            [Or((IsNull(ref("s")), Not(equal("id", 1))))],
        ),
        (
            call("in", col("id"), lit(integer=1), lit(integer=2)),
            [OneOf(ref("id"), (1, 2))],
        ),
        (call("like", col("s"), lit(string="k0%")), [StartsWith(ref("s"), "k0")]),
        (call("like", col("s"), lit(string="k0")), [equal("s", "k0")]),
        (call("startsWith", col("s"), lit(string="k%")), [StartsWith(ref("s"), "k%")]),
        (
            call("==", col("st.a"), lit(integer=1)),
            [Compare(CompareOp.EQUAL, ref("st", "a"), Const(1))],
        ),
        (call("==", col("day"), lit(date=19723)), [equal("day", dt.date(2024, 1, 1))]),
        (call("==", col("day"), lit(string="2024-01-01")), [equal("day", dt.date(2024, 1, 1))]),
        (
            call(">", col("ts"), lit(timestamp=1_000_000)),
            [compared(CompareOp.GREATER, "ts", EPOCH + dt.timedelta(seconds=1))],
        ),
        (text("id BETWEEN 1 AND 2 AND s LIKE 'k%'"), [
            compared(CompareOp.GREATER_OR_EQUAL, "id", 1),
            compared(CompareOp.LESS_OR_EQUAL, "id", 2),
            StartsWith(ref("s"), "k"),
        ]),
        (text("d > 1.5 AND d < 1e3 AND id > 119.5"), [
            compared(CompareOp.GREATER, "d", decimal.Decimal("1.5")),
            compared(CompareOp.LESS, "d", 1000.0),
            compared(CompareOp.GREATER, "id", decimal.Decimal("119.5")),
        ]),
        (text("d = -2.5D"), [equal("d", -2.5)]),
    ],
)  # fmt: skip
def test_conditions_that_are_understood(condition: Any, wanted: list[Predicate]) -> None:
    assert read(where(table(), condition)) == (wanted, False)


@pytest.mark.parametrize(
    "condition",
    [
        call("==", call("upper", col("s")), lit(string="X")),
        call("==", col("s"), lit(integer=5)),  # Spark casts the text
        call("==", col("ts"), lit(string="2024-01-01")),  # in the session's time zone
        call("like", col("s"), lit(string="k_")),
        call("like", col("s"), lit(string="a\\%%")),
        call("==", col("nothing"), lit(integer=5)),
        call("==", col("id", plan_id=77), lit(integer=5)),
        call("rand"),
        text("id = 5 OR rand() > 0.5"),
        text("s = 'it''s'"),
        text("id = 5; DROP TABLE t"),
        text("id = (SELECT max(id) FROM t)"),
    ],
)
def test_what_is_not_understood_is_in_doubt(condition: Any) -> None:
    conditions, in_doubt = read(where(table(), condition))
    assert in_doubt
    assert not [c for c in conditions if not isinstance(c, Opaque | Or | Not)]


def test_a_part_that_is_understood_counts() -> None:
    condition = call("and", call("==", col("id"), lit(integer=5)), call("f", col("s")))
    conditions, in_doubt = read(where(table(), condition))
    assert conditions[0] == equal("id", 5)
    assert in_doubt


def test_a_value_is_no_condition() -> None:
    value = "x' OR id = 5 --"
    assert read(where(table(), call("==", col("s"), lit(string=value)))) == (
        [equal("s", value)],
        False,
    )


@pytest.mark.parametrize(
    "between",
    [
        lambda rows: rows,
        lambda rows: named(rows, "t"),
        lambda rows: select(rows, star()),
        lambda rows: select(rows, col("id"), alias(call("+", col("d"), lit(integer=1)), "e")),
        lambda rows: where(rows, text("d > 0")),
    ],
)
def test_operators_that_hand_on_rows(between: Any) -> None:
    conditions, _ = read(where(between(table()), ID_IS_5))
    assert equal("id", 5) in conditions


def test_names_follow_projections() -> None:
    other = select(table(), alias(col("id"), "s"), alias(col("s"), "id"))
    assert read(where(other, text("s = 5"))) == ([equal("id", 5)], False)
    conditions, in_doubt = read(where(other, ID_IS_5))  # id is a text here
    assert in_doubt
    assert conditions == [Opaque(frozenset({ref("s")}))]
    computed = select(table(), alias(call("+", col("id"), lit(integer=1)), "id"))
    assert read(where(computed, ID_IS_5)) == ([Opaque(frozenset())], True)


def test_names_follow_new_and_dropped_columns() -> None:
    added = proto.Relation()
    added.with_columns.input.CopyFrom(table())
    added.with_columns.aliases.add(expr=call("+", col("id"), lit(integer=1)), name=["id"])
    added.with_columns.aliases.add(expr=col("d"), name=["e"])
    assert read(where(added, ID_IS_5))[0] == [Opaque(frozenset())]
    assert read(where(added, text("e = 5"))) == ([equal("d", 5)], False)
    renamed = proto.Relation()
    renamed.with_columns_renamed.input.CopyFrom(table())
    renamed.with_columns_renamed.rename_columns_map["id"] = "k"
    assert read(where(renamed, text("k = 5"))) == ([equal("id", 5)], False)
    assert read(where(renamed, ID_IS_5))[0] == [Opaque(frozenset())]
    dropped = proto.Relation()
    dropped.drop.input.CopyFrom(table())
    dropped.drop.column_names.append("id")
    assert read(where(dropped, ID_IS_5))[1]


@pytest.mark.parametrize("kind", ["limit", "offset", "tail", "sample", "deduplicate", "aggregate"])
def test_operators_that_do_not(kind: str) -> None:
    """Fewer rows below would be other rows above."""
    relation = proto.Relation()
    getattr(relation, kind).input.CopyFrom(table())
    assert read(where(relation, ID_IS_5)) == ([], True)
    assert read(relation) == ([], False)


def test_windows_functions_of_users_and_metrics_stop_conditions() -> None:
    window = proto.Expression()
    window.window.window_function.CopyFrom(call("row_number"))
    udf = call("f", col("s"))
    udf.unresolved_function.is_user_defined_function = True
    for expression in (window, udf, text("sum(id) OVER ()"), call("explode", col("s"))):
        assert read(where(select(table(), star(), expression), ID_IS_5)) == ([], True)
    observed = proto.Relation()
    observed.collect_metrics.input.CopyFrom(table())
    assert read(where(observed, ID_IS_5)) == ([], True)


def test_sides_of_a_join() -> None:
    left, right = where(table(1), text("id = 1")), where(table(2), text("id = 2"))
    for kind in ("INNER", "FULL_OUTER", "LEFT_ANTI", "CROSS"):
        one, other = table_reads(join(left, right, kind), columns)
        assert (one.conditions, other.conditions) == ([equal("id", 1)], [equal("id", 2)])
        assert one.in_doubt
        assert other.in_doubt


@pytest.mark.parametrize(
    ("kind", "reached"),
    [
        ("INNER", (True, True)),
        ("CROSS", (True, True)),
        ("LEFT_OUTER", (True, False)),
        ("RIGHT_OUTER", (False, True)),
        ("FULL_OUTER", (False, False)),
    ],
)
def test_conditions_above_a_join(kind: str, reached: tuple[bool, bool]) -> None:
    """A side that may show NULLs keeps all its rows: ``b.id IS NULL`` is true of none of them."""
    joined = join(named(table(1), "a"), named(table(2), "b"), kind)
    found = table_reads(where(joined, text("a.id = 1 AND b.id = 2")), columns)
    wanted = [equal("id", 1), equal("id", 2)]
    for use, condition, is_reached in zip(found, wanted, reached, strict=True):
        assert (condition in use.conditions) == is_reached
    either = table_reads(where(joined, ID_IS_5), columns)  # of which side?
    assert not [c for use in either for c in use.conditions if not isinstance(c, Opaque)]


def test_the_kept_side_of_a_semi_join() -> None:
    for kind in ("LEFT_SEMI", "LEFT_ANTI"):
        joined = join(named(table(1), "a"), named(table(2), "b"), kind)
        one, other = table_reads(where(joined, ID_IS_5), columns)
        assert one.conditions == [equal("id", 5)]
        assert other.conditions == []


def test_a_qualifier_of_an_unknown_side_is_no_struct() -> None:
    """``st`` is the alias of the other side there, and a struct here."""
    unknown = proto.Relation()
    unknown.range.end = 3
    joined = join(table(1), named(unknown, "st"))
    [found] = table_reads(where(joined, text("st.a = 5")), columns)
    assert found.conditions == [Opaque(frozenset())]
    assert found.in_doubt


def test_columns_that_are_bound_to_a_frame() -> None:
    assert read(where(table(7), call("==", col("id", plan_id=7), lit(integer=5)))) == (
        [equal("id", 5)],
        False,
    )
    joined = join(table(7), table(8))
    one, other = table_reads(
        where(joined, call("==", col("id", plan_id=8), lit(integer=5))), columns
    )
    assert not [c for c in one.conditions if c == equal("id", 5)]
    assert other.conditions == [equal("id", 5)]
    same = join(table(7), table(7))
    found = table_reads(where(same, call("==", col("id", plan_id=7), lit(integer=5))), columns)
    assert not [c for use in found for c in use.conditions if c == equal("id", 5)]


def test_a_bound_column_that_another_one_has_replaced() -> None:
    replaced = select(table(7), alias(col("d"), "id"))
    conditions, in_doubt = read(where(replaced, call("==", col("id", plan_id=7), lit(integer=5))))
    assert conditions == [Opaque(frozenset())]
    assert in_doubt


def as_text(query: str) -> Any:
    made = proto.Relation()
    made.with_relations.root.sql.query = query
    made.with_relations.references.add().CopyFrom(named(table(), "t"))
    return made


def test_a_plain_text_tells_its_conditions() -> None:
    assert read(as_text("SELECT * FROM t AS x WHERE x.id = 5")) == ([equal("id", 5)], False)
    shown = as_text("SELECT id AS key, d FROM (SELECT * FROM t)")
    key = call("==", col("key"), lit(integer=5))
    assert read(where(shown, key)) == ([equal("id", 5)], False)
    assert read(as_text("SELECT * FROM t WHERE id + 0 = 5"))[1]


def test_other_texts_and_subqueries_are_in_doubt() -> None:
    assert read(as_text("SELECT id FROM t GROUP BY id HAVING id = 5")) == ([], True)
    limited = as_text("SELECT DISTINCT * FROM t WHERE id = 5 LIMIT 3")
    assert read(limited) == ([equal("id", 5)], False)
    assert read(where(limited, ID_IS_5)) == ([equal("id", 5)], True)
    subquery = proto.Relation()
    subquery.with_relations.root.CopyFrom(where(table(1), ID_IS_5))
    subquery.with_relations.references.add().CopyFrom(where(table(2), text("id = 6")))
    outer, inner = table_reads(subquery, columns)
    assert (outer.conditions, outer.in_doubt) == ([equal("id", 5)], False)
    assert (inner.conditions, inner.in_doubt) == ([equal("id", 6)], True)


def test_unions_keep_the_conditions_of_their_parts() -> None:
    union = proto.Relation()
    union.set_op.left_input.CopyFrom(where(table(1), text("id = 1")))
    union.set_op.right_input.CopyFrom(table(2))
    one, other = table_reads(union, columns)
    assert (one.conditions, one.in_doubt) == ([equal("id", 1)], False)
    assert (other.conditions, other.in_doubt) == ([], False)
    assert [use.in_doubt for use in table_reads(where(union, ID_IS_5), columns)] == [True, True]


def test_deep_and_long_conditions() -> None:
    condition = call("==", col("id"), lit(integer=5))
    for _ in range(20):
        condition = call("not", condition)
    assert read(where(table(), condition))[1] is False
    long = text(" AND ".join("id = 5" for _ in range(3000)))
    assert len(read(where(table(), long))[0]) == 3000
