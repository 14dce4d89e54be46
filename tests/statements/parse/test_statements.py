"""A text of several statements."""

from __future__ import annotations

import pytest

from puredelta.statements.parse.parse import split_statements


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        (" ;; -- nothing\n; /* ; */", []),
        ("SELECT 1", ["SELECT 1"]),
        ("SELECT 1;\n SELECT 2 ; ", ["SELECT 1", "SELECT 2"]),
        ("SELECT ';', \";\", `;`, r'\\', ';'; b", ["SELECT ';', \";\", `;`, r'\\', ';'", "b"]),
        (r"SELECT 'it\'s; '; b", [r"SELECT 'it\'s; '", "b"]),
        ("a /* ; /* ; */ ; */ ; b", ["a /* ; /* ; */ ; */", "b"]),
        ("a -- it's; \n; b", ["a -- it's;", "b"]),
        ("-- first\na; -- second\nb", ["-- first\na", "-- second\nb"]),
        ("a /*+ x */; b", ["a /*+ x */", "b"]),
        ("CREATE FUNCTION f() AS $$ a; b $$; c", ["CREATE FUNCTION f() AS $$ a; b $$", "c"]),
        ("BEGIN a; END; b", ["BEGIN a; END", "b"]),
        ("l: BEGIN a; BEGIN b; END; END l; c", ["l: BEGIN a; BEGIN b; END; END l", "c"]),
        (
            "BEGIN IF a THEN b; ELSE c; END IF; d; END; e",
            ["BEGIN IF a THEN b; ELSE c; END IF; d; END", "e"],
        ),
        (
            "BEGIN WHILE a DO SELECT CASE WHEN b THEN IF(c) ELSE if(f) END; END WHILE; END; g",
            ["BEGIN WHILE a DO SELECT CASE WHEN b THEN IF(c) ELSE if(f) END; END WHILE; END", "g"],
        ),
        (
            "BEGIN CASE WHEN a THEN b; ELSE LOOP c; LEAVE l; END LOOP; END CASE; END; d",
            ["BEGIN CASE WHEN a THEN b; ELSE LOOP c; LEAVE l; END LOOP; END CASE; END", "d"],
        ),
        (
            "BEGIN FOR x AS SELECT 1 DO REPEAT a; UNTIL b END REPEAT; END FOR; END; c",
            ["BEGIN FOR x AS SELECT 1 DO REPEAT a; UNTIL b END REPEAT; END FOR; END", "c"],
        ),
        ("BEGIN SELECT t.end, `end`; END; c", ["BEGIN SELECT t.end, `end`; END", "c"]),
        ("SELECT begin; SELECT end", ["SELECT begin", "SELECT end"]),
        ("BEGIN a; b", ["BEGIN a; b"]),
    ],
)
def test_statements(text: str, expected: list[str]) -> None:
    assert split_statements(text) == expected
