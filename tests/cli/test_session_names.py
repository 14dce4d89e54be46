"""Statements of a file, and tables that arguments name."""

from __future__ import annotations

from pathlib import Path

import pytest

from puredelta.cli.spark_commands import table_name
from puredelta.statements.parse.parse import split_statements


@pytest.mark.parametrize(
    ("text", "statements"),
    [
        ("", []),
        (" ; -- nothing\n ; /* ; */", []),
        ("SELECT 1", ["SELECT 1"]),
        ("SELECT 1; SELECT 2;", ["SELECT 1", "SELECT 2"]),
        ("SELECT ';', \";\", `a;b`; SELECT 2", ["SELECT ';', \";\", `a;b`", "SELECT 2"]),
        (r"SELECT 'it\'s;'; SELECT 2", [r"SELECT 'it\'s;'", "SELECT 2"]),
        ("SELECT 1 -- a; b\n; SELECT 6 / 2 - 1", ["SELECT 1 -- a; b", "SELECT 6 / 2 - 1"]),
        ("SELECT 1 /* a /* b; */ c; */; SELECT 2", ["SELECT 1 /* a /* b; */ c; */", "SELECT 2"]),
        (
            "BEGIN DELETE FROM t; INSERT INTO t VALUES (1); END; SELECT 2",
            ["BEGIN DELETE FROM t; INSERT INTO t VALUES (1); END", "SELECT 2"],
        ),
    ],
)
def test_statements_end_with_semicolons(text: str, statements: list[str]) -> None:
    assert split_statements(text) == statements


def test_what_is_there_is_a_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert table_name("events") == "`events`"
    (tmp_path / "events").mkdir()
    assert table_name("events") == f"delta.`{tmp_path}/events`"
    assert table_name("./events/x") == f"delta.`{tmp_path}/events/x`"
