"""Tokens and columns of random expressions are those that Spark's own lexer and parser find."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from pyspark.sql import SparkSession

from puredelta.protocol.schema.expression_names import referenced_paths
from puredelta.protocol.schema.sql_lexer import keywords, read_tokens
from puredelta.protocol.schema.types import LONG, StructField, StructType

SAMPLE = 500
MANY = 20_000
INNER = StructType((StructField("x", LONG), StructField("a", LONG)))
NAMES = ("a", "b", "c d", "q`r", "date", "upper", "1st", "it's", "select", "x -- y", "é", "struct_")
SCHEMA = StructType(tuple(StructField(n, INNER if n in "b struct_" else LONG) for n in NAMES))
GAPS = (
    *[" "] * 12,
    "\n",
    "\t ",
    "\u2003",
    " /* it's */ ",
    " /* ` /* ' */ \" */",
    " /**/",
    " -- it's a `\n",
    " -- a \\\n still 'b\n",
    " --\n",
)
TEXTS = (
    "'it''s a'",
    r"'it\'s \\'",
    r"r'\'",
    r'R"it\"',
    "'-- a'",
    "'/* a'",
    "'`b`'",
    '"it\'s a"',
    '"q"" a"',
    r'"\""',
    "'' ' b '",
    "'é\n'",
)
NUMBERS = ["1", "1L", "2.5", ".5", "5.", "1e5", "1.5E-3", "7S", "7Y", "3BD", "2.5f", "1d", "1.25BD"]
LITERALS = (
    *["NULL", "TRUE", "false", "X'0a'", "DATE'2020-01-01'"],
    "timestamp '2020-01-01 00:00:00'",
    "INTERVAL '1' DAY",
    "interval 3 hours",
)
TYPES = ("date", "int", "STRING", "decimal(10,2)", "array<int>", "struct<a:int,b:date>")
BINARY = sorted(keywords("+ - * / % = == <=> <> != < <= > >= & | ^ || div AND or LIKE"))


class Expressions:
    """Random expressions, as tokens that any gap may stand between."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def text(self) -> str:
        """Return one expression."""
        pick = self._random.choice
        return "".join(f"{token}{pick(GAPS)}" for token in self._any(self._random.randint(1, 4)))

    def _name(self) -> str:
        name = self._random.choice(NAMES)
        plain = re.fullmatch(r"[a-z_]+", name) is not None or name == "1st"
        if plain and self._random.random() < 0.7:
            return self._random.choice((name, name.upper(), name.title()))
        return "`" + name.replace("`", "``") + "`"

    def _column(self) -> Iterator[str]:
        yield self._name()
        while self._random.random() < 0.25:
            yield "."
            yield self._random.choice(("x", "`a`", "X", "nope", "b"))

    def _leaf(self) -> Iterator[str]:
        kind = self._random.random()
        if kind < 0.6:
            yield from self._column()
        else:
            yield self._random.choice(self._random.choice((TEXTS, NUMBERS, LITERALS)))

    def _any(self, depth: int) -> Iterator[str]:
        if depth <= 0:
            yield from self._leaf()
            return
        forms: tuple[Callable[[int], Iterator[str]], ...] = (
            self._binary,
            self._binary,
            self._brackets,
            self._call,
            self._cast,
            self._case,
            self._lambda,
            self._part,
            self._test,
        )
        yield from self._random.choice(forms)(depth - 1)

    def _brackets(self, depth: int) -> Iterator[str]:
        before = self._random.choice(("", "NOT", "-", "!"))
        yield from ("(", before, "(")
        yield from self._any(depth)
        yield from (")", ")")

    def _binary(self, depth: int) -> Iterator[str]:
        yield from self._brackets(depth)
        yield self._random.choice(BINARY)
        yield from self._brackets(depth)

    def _call(self, depth: int) -> Iterator[str]:
        yield self._random.choice(("upper", "`a`", "s.b", "coalesce", "named_struct", "year"))
        yield "("
        yield from self._any(depth)
        yield ","
        if self._random.random() < 0.3:
            yield from ("a", "=>")
        yield from self._any(depth - 1)
        yield ")"

    def _cast(self, depth: int) -> Iterator[str]:
        kind = self._random.choice(TYPES)
        if self._random.random() < 0.3:
            yield "("
            yield from self._any(depth)
            yield from (")", "::", self._random.choice(("date", "int", "STRING")))
            return
        yield self._random.choice(("CAST", "try_cast"))
        yield "("
        yield from self._any(depth)
        yield from ("AS", kind, ")")

    def _case(self, depth: int) -> Iterator[str]:
        yield "CASE WHEN"
        yield from self._any(depth)
        yield "THEN"
        yield from self._any(depth - 1)
        yield "ELSE"
        yield from self._any(depth - 2)
        yield "END"

    def _lambda(self, depth: int) -> Iterator[str]:
        yield from ("transform", "(")
        yield from self._any(depth - 1)
        yield ","
        yield from self._random.choice((("a",), ("`B`",), ("y",), ("(", "upper", ",", "y", ")")))
        yield "->"
        yield from self._any(depth)
        yield ")"

    def _part(self, depth: int) -> Iterator[str]:
        yield from ("struct", "(")
        yield from self._any(depth)
        yield from ("AS", self._name(), ")")
        yield from self._random.choice(((".", "a"), ("[", "0", "]"), ("[", "b", "]", ".", "date")))

    def _test(self, depth: int) -> Iterator[str]:
        yield "("
        yield from self._any(depth)
        yield ")"
        yield from self._random.choice(
            (
                ("IS NOT NULL",),
                ("BETWEEN", "1", "AND", "b"),
                ("IN (", "`a`", ",", "'it''s'", ")"),
                ("NOT LIKE 'a%' ESCAPE '!'",),
                ("IS DISTINCT FROM", "date"),
                ("COLLATE", "utf8_lcase"),
            )
        )


def columns_of_spark(parser: Any, sql: str) -> set[tuple[str, ...]]:
    """Return the names that Spark's parser leaves to be resolved as columns."""
    nodes: list[dict[str, Any]] = json.loads(parser.parseExpression(sql).toJSON())
    found: set[tuple[str, ...]] = set()
    place = 0

    def walk(variables: frozenset[str]) -> None:
        nonlocal place
        node = nodes[place]
        place += 1
        kind = node["class"].rsplit(".", 1)[-1]
        if kind == "LambdaFunction":
            end = place
            skip = 1  # the body comes first
            while skip:
                skip += nodes[end]["num-children"] - 1
                end += 1
            arguments = range(end, end + node["num-children"] - 1)
            variables |= {nodes[n]["nameParts"][1:-1].lower() for n in arguments}
        if kind in {"UnresolvedAttribute", "UnresolvedNamedLambdaVariable"}:
            parts = tuple(node["nameParts"][1:-1].split(", "))
            if kind == "UnresolvedAttribute" or parts[0].lower() not in variables:
                found.add(parts)
        for _ in range(node["num-children"]):
            walk(variables)

    walk(frozenset())
    return found


def in_schema(parts: tuple[str, ...]) -> tuple[str, ...] | None:
    """Return the longest part of a name that is a column or a field."""
    top = next((f for f in SCHEMA.fields if f.name.lower() == parts[0].lower()), None)
    if top is None:
        return None
    inner = next((f.name for f in INNER.fields if parts[1:] and f.name == parts[1].lower()), None)
    return (top.name, inner) if top.type == INNER and inner is not None else (top.name,)


@pytest.mark.parametrize(
    "seeds",
    [range(SAMPLE), pytest.param(range(SAMPLE, MANY), marks=pytest.mark.thorough)],
    ids=["sample", "many"],
)
def test_columns_are_those_of_the_parser(spark: SparkSession, seeds: range) -> None:
    parser: Any = spark._jsparkSession.sessionState().sqlParser()
    for seed in seeds:
        sql = Expressions(seed).text()
        theirs = {p for name in columns_of_spark(parser, sql) if (p := in_schema(name))}
        ours = set(referenced_paths(sql, SCHEMA))
        missed = {p for p in theirs if not any(p[: len(q)] == q for q in ours)}
        invented = {q for q in ours if not any(p[: len(q)] == q for p in theirs)}
        assert (missed, invented) == (set(), set()), f"seed {seed}: {sql!r}"


@pytest.mark.parametrize(
    "seeds",
    [range(SAMPLE), pytest.param(range(SAMPLE, MANY), marks=pytest.mark.thorough)],
    ids=["sample", "many"],
)
def test_tokens_are_those_of_the_lexer(spark: SparkSession, seeds: range) -> None:
    lexer = SparkLexer(spark)
    for seed in seeds:
        sql = Expressions(seed).text()
        ours = [(token.start, token.end) for token in read_tokens(sql)]
        assert ours == lexer.places(sql), f"seed {seed}: {sql!r}"


class SparkLexer:
    """Spark's lexer, and where its tokens start and end."""

    _PLACE = re.compile(r"\[?@-1,(\d+):(\d+)='.*?',<\d+>,(channel=1,)?\d+:\d+\]", re.DOTALL)

    def __init__(self, spark: SparkSession) -> None:
        jvm: Any = spark._jvm
        self._streams = jvm.org.antlr.v4.runtime.CharStreams
        self._upper = jvm.org.apache.spark.sql.catalyst.parser.UpperCaseCharStream
        self._lexer = jvm.org.apache.spark.sql.catalyst.parser.SqlBaseLexer

    def places(self, text: str) -> list[tuple[int, int]]:
        """Return the start and the end of each token that is no space and no comment."""
        lexer = self._lexer(self._upper(self._streams.fromString(text)))
        found = self._PLACE.findall(str(lexer.getAllTokens().toString()))
        return [(int(start), int(end) + 1) for start, end, hidden in found if not hidden]
