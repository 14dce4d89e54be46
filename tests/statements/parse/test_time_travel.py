"""``AS OF`` in statements and ``@v1`` in paths."""

from __future__ import annotations

import pytest

from puredelta.statements.parse.cursor import Cursor, SqlSyntaxError
from puredelta.statements.parse.table_name import (
    TimeTravel,
    accept_time_travel,
    accept_time_travel_of_query,
    sees_time_travel,
    split_time_travel,
)


@pytest.mark.parametrize(
    ("text", "travel", "rest"),
    [
        ("VERSION AS OF 3 JOIN s", TimeTravel(version="3"), "JOIN"),
        ("for system_version as of '3'", TimeTravel(version="3"), None),
        ("VERSION AS OF soon", TimeTravel(version="soon"), None),
        ("TIMESTAMP AS OF '2025' t", TimeTravel(timestamp="'2025'"), "t"),
        ("FOR SYSTEM_TIME AS OF now() t", TimeTravel(timestamp="now()"), "t"),
        ("TIMESTAMP AS OF DATE '2025-01-01' t", TimeTravel(timestamp="DATE '2025-01-01'"), "t"),
        ("TIMESTAMP AS OF (now() - '1 d'))", TimeTravel(timestamp="(now() - '1 d')"), ")"),
        ("VERSION AS OF", TimeTravel(version=""), None),
        ("FOR x", None, "FOR"),
        ("version AS t", None, "version"),
    ],
)
def test_time_travel_of_a_query(text: str, travel: TimeTravel | None, rest: str | None) -> None:
    cursor = Cursor(text)
    assert sees_time_travel(cursor) == (travel is not None)
    assert accept_time_travel_of_query(cursor) == travel
    token = cursor.peek()
    assert (None if token is None else token.text) == rest


@pytest.mark.parametrize(
    ("text", "travel"),
    [
        ("VERSION AS OF 3", TimeTravel(version="3")),
        ("FOR VERSION AS OF '3'", TimeTravel(version="3")),
        ("TIMESTAMP AS OF '2025-01-01'", TimeTravel(timestamp="2025-01-01")),
        ("LOCATION '/x'", None),
    ],
)
def test_time_travel_to_a_literal(text: str, travel: TimeTravel | None) -> None:
    assert accept_time_travel(Cursor(text)) == travel


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("VERSION AS OF -1", "a version number"),
        ("VERSION AS OF", "a version number"),
        ("TIMESTAMP AS OF now()", "a time in quotes"),
        ("FOR x", "VERSION AS OF or TIMESTAMP AS OF"),
    ],
)
def test_what_is_no_literal(text: str, expected: str) -> None:
    with pytest.raises(SqlSyntaxError, match=f"expected {expected}"):
        accept_time_travel(Cursor(text))


@pytest.mark.parametrize(
    ("path", "root", "travel"),
    [
        ("/t@v3", "/t", TimeTravel(version="3")),
        ("/t@V10", "/t", TimeTravel(version="10")),
        ("/t@20250131120000007", "/t", TimeTravel(timestamp="2025-01-31 12:00:00.007000")),
        ("/t@2025", "/t@2025", None),
        ("/t@v1/x", "/t@v1/x", None),
    ],
)
def test_time_travel_in_a_path(path: str, root: str, travel: TimeTravel | None) -> None:
    assert split_time_travel(path) == (root, travel)
