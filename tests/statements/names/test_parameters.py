"""Parameters become literals of the very type and value that Spark gives them."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from puredelta.protocol.schema.sql_lexer import tokenize
from puredelta.statements.names.parameters import literal, with_literals
from puredelta.statements.parse.literals import python_literal, string_literal

VALUES: list[Any] = [
    None,
    True,
    False,
    0,
    -1,
    2**31 - 1,
    -(2**31),
    2**31,
    -(2**63),
    2**63 - 1,
    1.5,
    -1e300,
    1e-7,
    0.1,
    float("inf"),
    float("-inf"),
    Decimal("1.50"),
    Decimal("-12345678901234567890.123456789"),
    Decimal(7),
    "plain",
    "",
    'it\'s \\ a ${path} "x" ` -- /* \n?',
    "'",
    "''\\'",
    "${",
    "$",
    b"",
    b"\x00\xff",
    dt.date(2024, 2, 29),
    dt.datetime(2024, 2, 29, 12, 30, 1, 5),  # noqa: DTZ001 - local time, as Spark takes it
    dt.datetime(2024, 2, 29, 12, 30, tzinfo=dt.timezone(dt.timedelta(hours=-5))),
    dt.timedelta(days=3, seconds=5, microseconds=7),
    dt.timedelta(microseconds=-1),
    [1, 2],
    ["a'", "b"],
]


def same(spark: SparkSession, *values: Any) -> None:
    """Two queries for all values: through Spark's own binding, and through our literals."""

    def query(texts: list[str]) -> str:
        return "SELECT " + ", ".join(f"{text}, typeof({text})" for text in texts)

    args = {f"v{n}": value for n, value in enumerate(values)}
    theirs = spark.sql(query([f":{name}" for name in args]), args=args).collect()
    ours = spark.sql(query([literal(spark, value) for value in values])).collect()
    assert [tuple(row) for row in ours] == [tuple(row) for row in theirs]


def test_literals_are_what_spark_makes_of_the_values(spark: SparkSession) -> None:
    same(spark, *VALUES)


def test_values_that_only_spark_knows(spark: SparkSession) -> None:
    same(
        spark,
        F.array(F.lit(1), F.lit(2)),
        F.create_map(F.lit("a"), F.array(F.lit(1.5))),
        F.struct(F.lit("it's"), F.lit(2)),
    )


def test_strings_do_not_depend_on_the_parser_s_settings(spark: SparkSession) -> None:
    text = "it's a \\ and ${HOME}"
    spark.conf.set("spark.sql.parser.escapedStringLiterals", "true")
    try:
        assert spark.sql(f"SELECT {string_literal(text)}").first()[0] == text
    finally:
        spark.conf.unset("spark.sql.parser.escapedStringLiterals")


@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.text(alphabet=st.characters(exclude_categories=["Cs"], exclude_characters="\x00")))
def test_any_string(spark: SparkSession, text: str) -> None:
    assert spark.sql(f"SELECT {string_literal(text)}").first()[0] == text


@given(st.integers(-(2**63), 2**63 - 1) | st.floats() | st.decimals(allow_nan=False, places=3))
def test_numbers_cannot_run_into_an_operator(value: Any) -> None:
    text = python_literal(value)
    if text is not None:
        assert [t.text for t in tokenize(f"a-{text}")][:2] == ["a", "-"]


NO_SPARK: Any = None
"""Plain values need none."""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a = :x AND b>:y", "a = 1 AND b>'two'"),
        (":x", "1"),
        ("f(:x,:x) - : x", "f(1,1) - 1"),
        ("CASE WHEN :x THEN :y END", "CASE WHEN 1 THEN 'two' END"),
        ("a.b:x, c:y.x, d[0]:x, f(a):x", "a.b:x, c:y.x, d[0]:x, f(a):x"),
        ("a::x", "a::x"),
        ("':x' \":x\" `:x` -- :x\n/* :x */", "':x' \":x\" `:x` -- :x\n/* :x */"),
        (":other + :x", ":other + 1"),
        ("struct<x:int,y:x>", "struct<x:int,y:x>"),
        ("? + :x", "? + 1"),
    ],
)
def test_named_parameters(text: str, expected: str) -> None:
    assert with_literals(NO_SPARK, text, {"x": 1, "y": "two"}) == expected


def test_positional_parameters() -> None:
    text = "a = ? AND b = '?' -- ?\nAND c IN (?, ?)"
    assert with_literals(NO_SPARK, text, [1, None]) == "a = 1 AND b = '?' -- ?\nAND c IN (NULL, ?)"
    assert with_literals(NO_SPARK, ":x ?", ["?"]) == ":x '?'"
