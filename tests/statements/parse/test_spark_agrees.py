"""What we make of a MERGE is what Spark's own parser makes of it."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from pyspark.errors import ParseException
from pyspark.sql import SparkSession

from puredelta.commands.dml.spec import (
    Clause,
    Delete,
    Matched,
    MergeSpec,
    NotMatched,
    NotMatchedBySource,
    Star,
)
from puredelta.statements.parse.parse import parse
from puredelta.statements.parse.statement import MergeStatement
from tests.statements.statements import SPECS, merge_text

HEAD = "MERGE INTO delta.`/t` t USING s ON "


class SparkParser:
    """Spark's parser, and what it sees in a statement as comparable text."""

    def __init__(self, spark: SparkSession) -> None:
        self._parser: Any = spark._jsparkSession.sessionState().sqlParser()

    def expression(self, text: Any) -> str:
        return _text(self._parser.parseExpression(text))

    def name(self, text: str) -> str:
        parts = self._parser.parseMultipartIdentifier(text)
        return ".".join(f"[{parts.apply(n)}]" for n in range(parts.size()))

    def merge(self, text: str) -> list[Any]:
        plan = self._parser.parsePlan(text)
        kinds = (plan.matchedActions(), plan.notMatchedActions(), plan.notMatchedBySourceActions())
        return [
            _text(plan.mergeCondition()),
            plan.withSchemaEvolution(),
            *[[self._action(some.apply(n)) for n in range(some.size())] for some in kinds],
        ]

    def _action(self, action: Any) -> list[Any]:
        kind = action.getClass().getSimpleName()
        condition = action.condition()
        seen = [kind, _text(condition.get()) if condition.isDefined() else None]
        if "Star" in kind or kind == "DeleteAction":
            return seen
        pairs = [action.assignments().apply(n) for n in range(action.assignments().size())]
        return [*seen, *[(self._parts(p.key()), _text(p.value())) for p in pairs]]

    @staticmethod
    def _parts(key: Any) -> str:
        return ".".join(f"[{key.nameParts().apply(n)}]" for n in range(key.nameParts().size()))

    def ours(self, spec: MergeSpec) -> list[Any]:
        kinds = (spec.matched, spec.not_matched, spec.not_matched_by_source)
        return [
            self.expression(spec.on),
            spec.evolve_schema,
            *[[self._clause(clause) for clause in some] for some in kinds],
        ]

    def _clause(self, clause: Clause) -> list[Any]:
        condition = None if clause.condition is None else self.expression(clause.condition)
        if isinstance(clause.action, Delete):
            return ["DeleteAction", condition]
        word = "Insert" if isinstance(clause, NotMatched) else "Update"
        if clause.action.assignments is Star.STAR:
            return [f"{word}StarAction", condition]
        pairs = [(self.name(a.column), self.expression(a.value)) for a in clause.action.assignments]
        return [f"{word}Action", condition, *pairs]


@pytest.fixture(scope="module")
def parser(spark: SparkSession) -> SparkParser:
    return SparkParser(spark)


def _text(expression: Any) -> str:
    return re.sub(r"#\d+", "", expression.toString())


def agrees(parser: SparkParser, text: str) -> None:
    statement = parse(text)
    assert isinstance(statement, MergeStatement)
    assert parser.ours(statement.spec) == parser.merge(text)


def in_order(spec: MergeSpec) -> MergeSpec:
    """The clauses as Spark's grammar wants them: kind after kind, all but the last with AND."""
    order = [Matched, NotMatched, NotMatchedBySource]
    clauses = sorted(spec.clauses, key=lambda c: order.index(type(c)))
    lasts = {type(c): n for n, c in enumerate(clauses)}
    kept = [c for n, c in enumerate(clauses) if c.condition is not None or lasts[type(c)] == n]
    return MergeSpec(on=spec.on, clauses=tuple(kept), evolve_schema=spec.evolve_schema)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(spec=SPECS)
def test_generated_statements(parser: SparkParser, spec: MergeSpec) -> None:
    spec = in_order(spec)
    if spec.clauses and ":p + ?" not in merge_text(spec):
        agrees(parser, merge_text(spec))


@pytest.mark.parametrize(
    "text",
    [
        "when = 1 WHEN MATCHED THEN DELETE",
        "t.when WHEN MATCHED AND then = 1 THEN DELETE",
        "end WHEN MATCHED AND case WHEN end THEN then ELSE else END THEN DELETE",
        "case.a = case AND b WHEN MATCHED AND CASE end WHEN when THEN 1 END = 1 THEN DELETE",
        "a WHEN MATCHED AND (CASE WHEN end > 1 THEN 2 END) + end > 3 THEN DELETE",
        "a WHEN MATCHED AND a IS NOT NULL THEN DELETE",
        "a WHEN MATCHED AND a IS NOT DISTINCT FROM then THEN DELETE",
        "a WHEN MATCHED AND a NOT LIKE then THEN DELETE",
        "a WHEN MATCHED AND a NOT BETWEEN end AND case THEN DELETE",
        "a WHEN MATCHED AND NOT then THEN DELETE",
        "a WHEN MATCHED AND a -- THEN DELETE\n = 2 THEN DELETE",
        "a WHEN MATCHED THEN UPDATE SET set = set, update = values, a = a::map<int,int>, b = -1",
        "a WHEN MATCHED THEN UPDATE SET a = b::decimal(10, 2), c = x -> y, d = m[1]::array<int>",
        "a WHEN MATCHED THEN UPDATE SET a = array(1, 2)[0], b = CASE WHEN c THEN d END, e = f",
        "a WHEN MATCHED THEN UPDATE SET a = DEFAULT, matched = s.matched, by = target",
        "a WHEN NOT MATCHED AND source THEN INSERT (by, target) VALUES (s.by, target)",
        "a WHEN NOT MATCHED BY TARGET THEN INSERT * WHEN NOT MATCHED BY SOURCE AND by THEN DELETE;",
        "a WHEN NOT MATCHED THEN INSERT (a, `b.c`) VALUES ((1, 2), named_struct('x', (3)).x)",
        "a COLLATE UTF8_LCASE = 'x' 'y' WHEN MATCHED THEN DELETE",
        "a = CAST(b AS STRUCT<c: INT, d: ARRAY<INT>>).c WHEN MATCHED THEN DELETE",
        "a > TIMESTAMP '2024-01-01' - INTERVAL '1 2' DAY TO HOUR WHEN MATCHED THEN DELETE",
        "a = \"WHEN MATCHED\" WHEN MATCHED THEN UPDATE SET `t`.`a` == 'x''y'",
        "EXISTS (SELECT CASE WHEN 1 THEN 2 END FROM x WHERE when = 1) WHEN MATCHED THEN DELETE",
    ],
)
def test_statements_that_are_hard_to_split(parser: SparkParser, text: str) -> None:
    agrees(parser, HEAD + text)


@pytest.mark.parametrize(
    ("text", "condition"),
    [
        ("a WHEN NOT MATCHED THEN INSERT * WHEN MATCHED THEN DELETE", "PARSE_SYNTAX_ERROR"),
        ("a WHEN MATCHED THEN DELETE WHEN MATCHED THEN DELETE", "NON_LAST_MATCHED_CLAUSE"),
        ("a", "MERGE_WITHOUT_WHEN"),
    ],
)
def test_spark_refuses_what_we_would_take(parser: SparkParser, text: str, condition: str) -> None:
    """Why its parser is asked first (M-07, M-08, M-09)."""
    assert parse(HEAD + text) is not None
    with pytest.raises(ParseException, match=condition):
        parser.merge(HEAD + text)
