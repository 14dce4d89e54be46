"""Tokens of Spark SQL text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from puredelta.protocol.schema.sql_lexer import (
    TokenKind,
    keywords,
    may_hold_query,
    parse_identifier,
    tokenize,
)

# Fragments that open something, close something or hide something.
FRAGMENTS = st.sampled_from(
    sorted(keywords("""' " ` \\ -- /* */ /*+ a r' R" 1 .5 e ( ) : ? ; = <=> :: é ${x} 0x 1e ://"""))
) | st.sampled_from(["\n", "\r", " ", "\u2003"])


def texts(text: str) -> list[str]:
    return [token.text for token in tokenize(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (r"'it\'s' x", [r"'it\'s'", "x"]),
        ("'it''s' x", ["'it''s'", "x"]),
        ('"it""s" x', ['"it""s"', "x"]),
        ("$$ it's $$ $b$ $$ $b$", ["$$ it's $$", "$b$ $$ $b$"]),
        (r"r'\' x", [r"r'\'", "x"]),
        ('R"it\'s"', ['R"it\'s"']),
        ('"a\\"b" c', ['"a\\"b"', "c"]),
        ("`a``b`.c", ["`a``b`", ".", "c"]),
        ("a -- b\nc", ["a", "c"]),
        ("a -- b \\\n still\nc", ["a", "c"]),
        ("a /* b /* c */ d */ e", ["a", "e"]),
        ("a /* b /*+ c */ e", ["a", "e"]),
        ("a /* b /* c */ e", ["a"]),
        ("/*+ x */ a", ["/*+", "x", "*/", "a"]),
        ("1.5e-3 .5 5. 1e5 7L 3BD 2.5bd", ["1.5e-3", ".5", "5.", "1e5", "7L", "3BD", "2.5bd"]),
        ("db.1st", ["db", ".", "1st"]),
        ("t.1.2", ["t", ".1", ".2"]),
        ("a<=>b==c::int->d", ["a", "<=>", "b", "==", "c", "::", "int", "->", "d"]),
        ("map<int,array<int>>", ["map", "<", "int", ",", "array", "<", "int", ">", ">"]),
        ("abfss://c@x", ["abfss://c", "@", "x"]),
        ("'open", ["'", "open"]),
        (":p ?", [":", "p", "?"]),
    ],
)
def test_tokens(text: str, expected: list[str]) -> None:
    assert texts(text) == expected


@given(st.lists(FRAGMENTS | st.text(max_size=3), max_size=40).map("".join))
def test_any_text_has_tokens_where_they_say(text: str) -> None:
    at = 0
    for token in tokenize(text):
        assert token.start >= at
        assert text[token.start : token.end] == token.text != ""
        at = token.end


@given(st.text(max_size=20))
def test_what_is_quoted_is_one_token(inside: str) -> None:
    quoted = "`" + inside.replace("`", "``") + "`"
    plain = "'" + inside.replace("\\", "\\\\").replace("'", "\\'") + "'"
    kinds = [(t.kind, t.text) for t in tokenize(f"a {quoted} , {plain} b")]
    assert kinds == [
        (TokenKind.WORD, "a"),
        (TokenKind.QUOTED, quoted),
        (TokenKind.SYMBOL, ","),
        (TokenKind.STRING, plain),
        (TokenKind.WORD, "b"),
    ]


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("a", ("a",)),
        (" a /* . */ . `b.c` -- d", ("a", "b.c")),
        ("1st.2nd", ("1st", "2nd")),
        ("", ()),
        ("a.", ()),
        (".a", ()),
        ("a..b", ()),
        ("a b", ()),
        ("a.1", ()),
        ("``", ()),
        ("`a", ()),
    ],
)
def test_identifiers(text: str, parts: tuple[str, ...]) -> None:
    assert parse_identifier(text) == parts


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a IN (SELECT 1)", True),
        ("a IN ( /* it's */ -- (\n select 1)", True),
        ("exists(TABLE t)", True),
        ("a IN (VALUES (1))", True),
        ("'(SELECT 1)' || \"(SELECT 1)\"", False),
        ("a /* (SELECT 1) */ = 1 -- (SELECT 1)", False),
        (r"r'\' = (SELECT 1)", True),
        ("f(table, 1) + (values) + f(from.a)", False),
        ("f(selected)", False),
    ],
)
def test_queries_in_expressions(text: str, expected: bool) -> None:
    assert may_hold_query(text) is expected
