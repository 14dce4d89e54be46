"""CLONE and LIKE text into statements, without a session."""

from __future__ import annotations

import pytest

from puredelta.sql.parse.copy_text import (
    CloneStatement,
    LikeStatement,
    Moment,
    may_copy,
    parse_copy,
)
from puredelta.sql.text.syntax_error import SqlSyntaxError
from puredelta.sql.text.table_name import TableName

T, S = TableName(("t",)), TableName(("a", "s"))


def clone(**said: object) -> CloneStatement:
    plain = {"target": T, "source": S, "shallow": True, "creates": True, "replaces": False}
    return CloneStatement(**{**plain, "if_not_exists": False, **said})  # type: ignore[arg-type]


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
            clone(moment=Moment(version=3), properties={"x": "1"}, location="/it's"),
        ),
        (
            "CREATE TABLE t SHALLOW CLONE a.s TIMESTAMP AS OF '2025-01-01'",
            clone(moment=Moment(timestamp="2025-01-01")),
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
    assert may_copy(text)
    assert parse_copy(text) == statement


@pytest.mark.parametrize(
    "text",
    [
        "CREATE TABLE t (like INT)",
        "CREATE VIEW t AS SELECT 1 LIKE 2",
        "CREATE TABLE t LIKE s STORED AS orc",
        "REPLACE TABLE t AS SELECT 1",
        "SELECT 1",
    ],
)
def test_other_statements(text: str) -> None:
    assert parse_copy(text) is None


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
    with pytest.raises(SqlSyntaxError, match=rf"expected {expected}[\s\S]*\^\^\^"):
        parse_copy(text)
