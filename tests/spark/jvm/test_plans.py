"""Logical plans: opaque values that know little, and new plans made of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pyspark.errors import ParseException

from puredelta.spark.jvm.expressions import aliased
from puredelta.spark.jvm.frames import analyzed_plan, frame_of, logical_plan
from puredelta.spark.jvm.plans import (
    cross_join,
    empty_relation,
    named_plan,
    parsed_plan,
    projected,
    relation_names,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_a_plan_says_what_it_is(spark: SparkSession) -> None:
    plan = analyzed_plan(spark.range(3).selectExpr("id + 1 AS next"))
    assert (plan.kind, plan.child().kind) == ("Project", "Range")
    assert plan.class_name.endswith(".Project")
    assert [attribute.name() for attribute in plan.output()] == ["next"]
    (column,) = plan.projections()
    assert (column.kind, column.name(), len(plan.projections())) == ("Alias", "next", 1)
    assert plan.is_deterministic()
    assert not analyzed_plan(spark.range(3).selectExpr("rand()")).is_deterministic()


def test_a_tag_stays_with_a_plan_and_does_not_make_it_another(spark: SparkSession) -> None:
    rows = spark.range(3)
    plan = logical_plan(rows)
    assert plan.find_tag("test") is None
    plan.set_tag("test", "noted")
    above = analyzed_plan(rows.where("id > 1"))
    assert above.find_tag("test") is None
    assert above.child().find_tag("test") == "noted"


def test_a_part_is_replaced_in_subqueries_too(spark: SparkSession) -> None:
    known = spark.range(3)
    known.createOrReplaceTempView("known")
    rows = spark.sql("SELECT id FROM known WHERE id = (SELECT max(id) FROM known)")
    parts = []
    pending = [analyzed_plan(rows)]
    while pending:
        plan = pending.pop()
        if plan.kind == "Range":
            parts.append(plan)
        pending += [*plan.children(), *plan.subqueries()]
    assert len(parts) == 2
    new = analyzed_plan(spark.range(7))
    replaced = []
    for part in parts:  # other rows under the very columns
        (column,), (known_column,) = new.output(), part.output()
        replaced.append((part, projected([aliased(column, "id", like=known_column)], new)))
    assert rows.collect() == [(2,)]
    plan = analyzed_plan(rows).with_replaced(replaced)
    assert frame_of(spark, plan).collect() == [(6,)]


def test_relations_and_joins_without_rows(spark: SparkSession) -> None:
    output = analyzed_plan(spark.range(1).selectExpr("id", "'x' AS name")).output()
    relation = empty_relation(output)
    assert relation.output().expr_ids() == output.expr_ids()
    other = relation.new_instance()
    assert set(other.output().expr_ids()).isdisjoint(output.expr_ids())
    both = frame_of(spark, cross_join(named_plan("a", relation), named_plan("b", other)))
    assert both.select("a.id", "b.name").columns == ["id", "name"]
    assert both.isEmpty()


def test_a_name_may_have_parts_before_it(spark: SparkSession) -> None:
    plan = named_plan("t", analyzed_plan(spark.range(2)), qualifier=["cat", "db"])
    rows = frame_of(spark, plan)
    for name in ("t.id", "db.t.id", "cat.db.t.id"):
        assert rows.select(name).count() == 2


if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("SELECT * FROM a JOIN db.b USING (id) JOIN a AS again", {("a",), ("db", "b")}),
        ("SELECT * FROM a WHERE id IN (SELECT id FROM b)", {("a",), ("b",)}),
        ("WITH c AS (SELECT * FROM a) SELECT * FROM c", {("a",), ("c",)}),
        ("EXPLAIN SELECT * FROM cat.db.a", {("cat", "db", "a")}),
        ("SELECT 1", set()),
    ],
)
def test_every_name_is_found(spark: SparkSession, text: str, names: set[tuple[str, ...]]) -> None:
    plan = parsed_plan(spark, text)
    for found in (relation_names(plan), relation_names(plan, text)):
        assert len(found) == len(names)
        assert set(found) == names


def test_what_is_no_statement_is_an_error(spark: SparkSession) -> None:
    with pytest.raises(ParseException):
        parsed_plan(spark, "SELEC 1")
