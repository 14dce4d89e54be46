"""CREATE and REPLACE of clones, tables and views as text, without a session."""

from __future__ import annotations

import pytest

from puredelta.statements.parse.parse import parse
from puredelta.statements.parse.statement import (
    CloneStatement,
    LikeStatement,
    SparkParsedStatement,
    ViewLifetime,
    ViewStatement,
)
from puredelta.statements.parse.table_name import TableName, TimeTravel
from tests.statements.parse.reading import rejected

T, S = TableName(("t",)), TableName(("a", "s"))


def clone(**asked: object) -> CloneStatement:
    plain = {"target": T, "source": S, "shallow": True, "creates": True, "replaces": False}
    return CloneStatement(**{**plain, "if_not_exists": False, **asked})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "statement"),
    [
        ("CREATE TABLE t SHALLOW CLONE a.s", clone()),
        ("create table if not exists t shallow clone a.s;", clone(if_not_exists=True)),
        ("CREATE OR REPLACE TABLE t SHALLOW CLONE a.s", clone(replaces=True)),
        ("REPLACE TABLE t SHALLOW CLONE a.s", clone(replaces=True, creates=False)),
        ("CREATE TABLE t CLONE a.s", clone(shallow=False)),
        (
            "CREATE TABLE t SHALLOW CLONE a.s FOR SYSTEM_VERSION AS OF '3' TBLPROPERTIES "  # noqa: ISC004
            "('x' = 1) LOCATION '/it''s'",
            clone(state=TimeTravel(version="3"), properties={"x": "1"}, location="/it's"),
        ),
        (
            "CREATE TABLE t SHALLOW CLONE a.s TIMESTAMP AS OF '2025-01-01'",
            clone(state=TimeTravel(timestamp="2025-01-01")),
        ),
        (
            "CREATE TABLE t LIKE a.s USING Delta LOCATION '/p' TBLPROPERTIES (a 'b')",
            LikeStatement(
                target=T,
                source=S,
                if_not_exists=False,
                provider="Delta",
                properties={"a": "b"},
                location="/p",
            ),
        ),
        (
            "CREATE TABLE IF NOT EXISTS t LIKE a.s",
            LikeStatement(target=T, source=S, if_not_exists=True),
        ),
    ],
)
def test_statements(text: str, statement: object) -> None:
    assert parse(text) == statement


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("CREATE TABLE a.t (like INT) USING delta", "a.t"),
        ("create external table if not exists t (a INT)", "t"),
        ("CREATE OR REPLACE TABLE t USING delta AS TABLE s -- VIEW", "t"),
        ("REPLACE TABLE delta.`/t` AS SELECT 1", "delta.`/t`"),
    ],
)
def test_tables_that_sparks_parser_reads(text: str, name: str) -> None:
    statement = parse(text)
    assert isinstance(statement, SparkParsedStatement)
    assert statement.defines
    assert [text[target.start : target.end] for target in statement.targets] == [name]


QUERY = "AS SELECT * FROM delta.`/t`"


@pytest.mark.parametrize(
    ("text", "lifetime"),
    [
        (f"CREATE TEMP VIEW v {QUERY}", ViewLifetime.SESSION),
        (f"create or replace\n temporary view v (a COMMENT 'c') {QUERY}", ViewLifetime.SESSION),
        (
            f"/* why */ CREATE GLOBAL TEMPORARY VIEW IF NOT EXISTS v {QUERY}",
            ViewLifetime.GLOBAL,
        ),
        (f"CREATE VIEW v {QUERY}", ViewLifetime.PERMANENT),
        (f"CACHE LAZY TABLE v OPTIONS ('a' = 1) {QUERY}", ViewLifetime.SESSION),
    ],
)
def test_how_long_a_view_lasts(text: str, lifetime: ViewLifetime) -> None:
    assert parse(text) == ViewStatement(lifetime=lifetime)


@pytest.mark.parametrize(
    "text",
    [
        "CREATE TABLE t LIKE s STORED AS orc",
        "CREATE TEMPORARY TABLE t (a INT)",
        f"CACHE METADATA v {QUERY}",
        "REPLACE VIEW v AS SELECT 1",
    ],
)
def test_other_statements(text: str) -> None:
    assert parse(text) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("CREATE TABLE t SHALLOW CLONE", "an identifier"),
        ("CREATE TABLE t SHALLOW CLONE s VERSION AS OF one", "a version number"),
        ("CREATE TABLE t SHALLOW CLONE s FOR x", "VERSION AS OF or TIMESTAMP AS OF"),
        ("CREATE TABLE t SHALLOW CLONE s LOCATION x", "text in quotes"),
        ("CREATE TABLE t SHALLOW CLONE s more", "the end of the statement"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(text: str, expected: str) -> None:
    error = rejected(text).error
    assert error.details["expected"] == expected
    assert "^^^" in str(error)


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
def test_other_texts_with_insert(text: str) -> None:
    assert parse(text) is None
