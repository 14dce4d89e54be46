"""The clock in plans of a Connect client: messages and text, no session."""

from __future__ import annotations

from typing import Any

import pytest

from puredelta.spark.resolve.connect import reads_clock, text_with_timestamp, with_timestamp

MOMENT = "CAST(timestamp_micros(7) AS timestamp)"
DAY = "CAST(timestamp_micros(7) AS date)"


@pytest.mark.parametrize(
    ("text", "fixed"),
    [
        ("current_timestamp()", MOMENT),
        ("CURRENT_TIMESTAMP", MOMENT),
        ("t.seen < now ( ) - interval 1 day", f"t.seen < {MOMENT} - interval 1 day"),
        ("current_date = curdate()", f"{DAY} = {DAY}"),
        ("t.current_date", "t.current_date"),
        ("current_date.x", "current_date.x"),
        ("`current_date`", "`current_date`"),
        ("'now()' || \"now()\" -- now()", "'now()' || \"now()\" -- now()"),
        ("/* now() */ snow() + now(1)", "/* now() */ snow() + now(1)"),
        ("now /* a /* b */ () */ ( -- )\n )", MOMENT),
        ("/* a /* b */ now() */ curdate()", f"/* a /* b */ now() */ {DAY}"),
        (r"r'\' || now()", rf"r'\' || {MOMENT}"),
        ("a /* . */ . now()", "a /* . */ . now()"),
        ("struct(1 AS current_date)", "struct(1 AS current_date)"),
        ("unix_timestamp()", "CAST(timestamp_micros(7) AS bigint)"),
        ("unix_timestamp(x)", "unix_timestamp(x)"),
    ],
)
def test_expressions(text: str, fixed: str) -> None:
    assert text_with_timestamp(text, 7, is_expression=True) == fixed


def test_queries_keep_words_that_may_be_names() -> None:
    text = "SELECT now() AS current_timestamp FROM t"
    fixed = text_with_timestamp(text, 7, is_expression=False)
    assert fixed == f"SELECT {MOMENT} AS current_timestamp FROM t"


def test_functions_of_a_plan() -> None:
    relations: Any = pytest.importorskip("pyspark.sql.connect.proto.relations_pb2")
    plan = relations.Relation()
    plan.project.input.sql.query = "SELECT now() AS seen"
    chosen = plan.project.expressions
    chosen.add().unresolved_function.function_name = "current_date"
    nested = chosen.add().unresolved_function
    nested.function_name = "year"
    nested.arguments.add().unresolved_function.function_name = "now"
    chosen.add().expression_string.expression = "now() AS moment"
    chosen.add().literal.string = "now()"
    assert reads_clock(plan)
    fixed = with_timestamp(plan, 7)
    assert fixed.project.input.sql.query == f"SELECT {MOMENT} AS seen"
    day, year, moment, text = fixed.project.expressions
    assert list(day.alias.name) == ["current_date()"]
    assert day.alias.expr.cast.type_str == "date"
    assert year.unresolved_function.arguments[0].cast.expr.literal.timestamp == 7
    assert moment.expression_string.expression == f"{MOMENT} AS moment"
    assert text.literal.string == "now()"
    assert plan.project.input.sql.query == "SELECT now() AS seen"  # the caller's stays


def test_a_plan_without_the_clock_is_known() -> None:
    relations: Any = pytest.importorskip("pyspark.sql.connect.proto.relations_pb2")
    plan = relations.Relation()
    plan.sql.query = "SELECT 1"
    assert not reads_clock(plan)
