"""DEFAULT as a value of an INSERT, and text in quotes."""

from __future__ import annotations

import pytest

from puredelta.statements.parse.cursor import Cursor, SqlSyntaxError
from puredelta.statements.parse.expression_text import has_default, with_defaults
from puredelta.statements.parse.literals import accept_text, read_text

VALUES = ["'a'", "1 + 1", "NULL"]


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        (
            "INSERT INTO t VALUES (DEFAULT, 2, default), (1, DEFAULT, 'DEFAULT')",
            "INSERT INTO t VALUES (('a'), 2, (NULL)), (1, (1 + 1), 'DEFAULT')",
        ),
        (
            "INSERT INTO t (c, default) VALUES (f(1, DEFAULT), DEFAULT)",
            "INSERT INTO t (c, default) VALUES (f(1, DEFAULT), (1 + 1))",
        ),
        (
            "WITH s AS (VALUES (1)) INSERT INTO t SELECT 1, DEFAULT FROM s",
            "WITH s AS (VALUES (1)) INSERT INTO t SELECT 1, (1 + 1) FROM s",
        ),
        ("INSERT INTO t SELECT 1, DEFAULT", "INSERT INTO t SELECT 1, (1 + 1)"),
        ("INSERT INTO t SELECT 1 AS a, DEFAULT AS b", "INSERT INTO t SELECT 1 AS a, (1 + 1) AS b"),
        # Spark judges what is no whole value, and values of no column.
        ("INSERT INTO t VALUES (DEFAULT + 1)", "INSERT INTO t VALUES (DEFAULT + 1)"),
        ("INSERT INTO t VALUES (1, 2, 3, DEFAULT)", "INSERT INTO t VALUES (1, 2, 3, DEFAULT)"),
        ("INSERT INTO t SELECT t.default, default.x FROM t",) * 2,
        ("INSERT INTO t TABLE default",) * 2,
    ],
)
def test_values(text: str, meant: str) -> None:
    assert has_default(text)
    assert with_defaults(text, VALUES) == meant


def test_text_that_only_looks_like_it() -> None:
    assert not has_default("INSERT INTO t VALUES ('DEFAULT', `default`)")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("'plain'", "plain"),
        ('"double"', "double"),
        ("'it''s'", "it's"),
        (r"'it\'s\n\\ \u00e9\101 \% \x'", "it's\n\\ éA \\% x"),
        (r"r'raw\n'", r"raw\n"),
        ("'a' 'b'", "a"),
    ],
)
def test_text_in_quotes(text: str, value: str) -> None:
    assert accept_text(Cursor(text)) == value


def test_no_text() -> None:
    assert accept_text(Cursor("a")) is None
    with pytest.raises(SqlSyntaxError, match="text in quotes"):
        read_text(Cursor("1"))
