"""The targets of INSERT as text, without a session."""

from __future__ import annotations

import pytest

from puredelta.sql.parse.parse import parse
from puredelta.sql.parse.statement import SparkParsedStatement


@pytest.mark.parametrize(
    ("text", "targets", "begins"),
    [
        ("INSERT INTO t VALUES (1)", ["t"], "INSERT INTO"),
        ("insert overwrite table a.`b c` TABLE s", ["a.`b c`"], "insert"),
        ("INSERT WITH SCHEMA EVOLUTION INTO t (a) TABLE s", ["t"], "INSERT"),
        ("WITH s AS (SELECT 1) INSERT INTO IDENTIFIER('t') TABLE s", ["IDENTIFIER('t')"], "INSERT"),
        ("INSERT INTO t SELECT a FROM s INSERT INTO u SELECT b", ["t"], "INSERT"),
        ("FROM s INSERT INTO t SELECT a INSERT INTO u SELECT b", ["t", "u"], "INSERT INTO t"),
        ("FROM (TABLE a INSERT) INSERT INTO t SELECT insert(1, (2))", ["t"], "INSERT INTO t"),
    ],
)
def test_targets(text: str, targets: list[str], begins: str) -> None:
    statement = parse(text)
    assert isinstance(statement, SparkParsedStatement)
    assert not statement.defines
    assert [text[target.start : target.end] for target in statement.targets] == targets
    assert text[statement.start :].startswith(begins)


@pytest.mark.parametrize(
    "text", ["FROM s SELECT a", "INSERT BY NAME", "WITH s AS (TABLE t) TABLE s"]
)
def test_other_statements(text: str) -> None:
    assert parse(text) is None
