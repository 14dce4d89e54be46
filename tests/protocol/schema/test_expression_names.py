"""The columns that a stored expression mentions."""

from __future__ import annotations

import pytest

from puredelta.protocol.schema.expression_names import referenced_paths
from puredelta.protocol.schema.types import (
    DATE,
    INTEGER,
    LONG,
    ArrayType,
    StructField,
    StructType,
)

SCHEMA = StructType(
    (
        StructField("a", INTEGER),
        StructField("b", StructType((StructField("x", INTEGER), StructField("a", INTEGER)))),
        StructField("c d", LONG),
        StructField("q`r", LONG),
        StructField("date", DATE),
        StructField("upper", LONG),
        StructField("arr", ArrayType(INTEGER, contains_null=True)),
    )
)
EVERY = ["a", "b", "c_d", "q`r", "date", "upper", "arr"]


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        # comments
        ("upper > 0 -- it's\n AND a < 3 -- it's", "upper a"),
        ("upper > 0 /* it's */ AND a < 3 /* it's */", "upper a"),
        ("upper > 0 /* 'x /* ' */ ` */ AND a < 3", "upper a"),
        ("upper > 0 -- a\\\n b\n AND arr[0] = 1", "upper arr"),
        ("upper /* open", "upper"),
        ("b/*a*/. -- date\n x > 0", "b.x"),
        # text
        (r"upper <> r'\' AND a = 1", "upper a"),
        (r'upper <> R"\" AND a = 1', "upper a"),
        (r"upper <> 'it\'s' AND a = 1", "upper a"),
        ("upper <> 'it''s a' AND arr[0] = 1", "upper arr"),
        ("upper <> X'0a' AND arr[0] = x'0a'", "upper arr"),
        ('"a" > 1', "a"),  # a session may say that it is a name
        ('"b"."x" > 1', "b.x"),
        # names
        ("B.X > `A` + `q``r`", "b.x a q`r"),
        ("b . `x` + b.nope", "b.x b"),
        ("`c d` > 1", "c_d"),
        ("upper(b.x)", "b.x"),
        ("`upper` (a)", "a"),
        ("spark.upper(a)", "a"),
        # numbers
        ("1.a + 1.e + 1d + .5e1", ""),
        ("1.+a", "a"),
        ("b.1x + a", "b a"),
        # parts of values
        ("f(arr)[0].a + (b).a", "arr b"),
        ("arr[a].date", "arr a"),
        ("b:a.date > :date", "b"),
        # types, literals, names of arguments and aliases
        ("CAST(a AS date) > date'2020-01-01'", "a"),
        ("CAST(a AS struct<b: int, date: array<string>>).date", "a"),
        ("a::date > date", "a date"),
        ("f(a => upper)", "upper"),
        ("struct(upper AS a).a > 0", "upper"),
        ("a COLLATE date", "a"),
        # lambda functions
        ("exists(arr, a -> a > upper)", "arr upper"),
        ("transform(arr, (a, date) -> a + date + upper) = array(a)", "arr upper a"),
        ("reduce(arr, 0, (a, x) -> a + x, a -> a + upper) + a", "arr upper a"),
        ("exists(arr, `A` -> exists(arr, x -> a > x AND upper > 0))", "arr upper"),
        ("a", "a"),
        ("", ""),
    ],
)
def test_columns_of_an_expression(sql: str, expected: str) -> None:
    found = [".".join(path).replace(" ", "_") for path in referenced_paths(sql, SCHEMA)]
    assert found == expected.split()


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("identifier('b.x') > 0", ["b.x"]),
        ("identifier('a' || 'b') > 0", EVERY),
        (r"identifier('\u0061') > 0", EVERY),
        ("hash(*) > 0", EVERY),
        ("hash(a, *) > 0", EVERY),
        ("a * date", ["a", "date"]),
        ("struct(b.*).x > 0", ["b"]),
    ],
)
def test_names_that_are_computed(sql: str, expected: list[str]) -> None:
    found = [".".join(path).replace(" ", "_") for path in referenced_paths(sql, SCHEMA)]
    assert found == expected
