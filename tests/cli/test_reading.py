"""Commands that need no Spark, through the app in this process."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("click")

from puredelta.cli.output import ExitCode
from puredelta.cli.run import run_command_line
from tests.inspection.small_tables import append, make_table


@pytest.fixture
def table(tmp_path: Path) -> str:
    root = tmp_path / "events"
    root.mkdir()
    log = make_table(root, [1, 2], [3])
    append(
        log, root, "g.parquet", [4, 5], metrics={"numOutputRows": 2}, user_metadata="\x1b[31mred"
    )
    return str(root)


def answer(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> Any:
    assert run_command_line(["--json", *arguments]) == code
    return json.loads(capsys.readouterr().out)


def text_of(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> str:
    assert run_command_line(list(arguments)) == code
    captured = capsys.readouterr()
    return captured.out + captured.err


def test_history(table: str, capsys: pytest.CaptureFixture[str]) -> None:
    rows = answer(capsys, "history", table)
    assert [row["version"] for row in rows] == [1, 0]
    assert rows[0]["operationMetrics"] == {"numOutputRows": 2}
    assert len(answer(capsys, "history", table, "-n", "1")) == 1


def test_no_terminal_is_commanded_by_a_table(
    table: str, capsys: pytest.CaptureFixture[str]
) -> None:
    text = text_of(capsys, "history", table)
    assert "\x1b[31m" not in text
    assert "\\x1b[31mred" in text


def test_common_options_may_stand_anywhere(table: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line(["history", table, "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)) == 2


def test_detail(table: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert answer(capsys, "detail", table)["numRows"] == 5
    assert answer(capsys, "detail", table, "--version", "0")["numRows"] == 3
    assert "id bigint" in text_of(capsys, "detail", table)


def test_show(table: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert [row["id"] for row in answer(capsys, "show", table)] == [1, 2, 3, 4, 5]
    assert [row["id"] for row in answer(capsys, "show", table, "-n", "2")] == [1, 2]
    assert len(answer(capsys, "show", table, "--version", "0")) == 3
    files = answer(capsys, "show", table, "--files")
    assert {row["path"] for row in files} == {"f0.parquet", "f1.parquet", "g.parquet"}


def test_diff(table: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = answer(capsys, "diff", table, "0")
    assert (found["filesAdded"], found["filesRemoved"], found["numRows"]) == (1, 0, [3, 5])
    assert [commit["inserted"] for commit in found["commits"]] == [2]
    assert "Version 0 -> 1" in text_of(capsys, "diff", table, "0", "1")
    assert "not before" in text_of(capsys, "diff", table, "1", "1", code=ExitCode.USAGE)


def test_doctor(table: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert {f["severity"] for f in answer(capsys, "doctor", table)} == {"ok"}
    (Path(table) / "g.parquet").unlink()
    found = answer(capsys, "doctor", table, code=ExitCode.FINDINGS)
    assert [f["check"] for f in found if f["severity"] == "error"] == ["missing-files"]
    assert run_command_line(["doctor", table, "--no-files"]) == 0


def test_doctor_of_a_script(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script = tmp_path / "job.py"
    script.write_text("from delta.tables import DeltaTable\n")
    text = text_of(capsys, "doctor", "--migrate", str(script), code=ExitCode.FINDINGS)
    assert "job.py:1" in text


def test_report(table: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "page.html"
    assert answer(capsys, "report", table, "--out", str(page))["report"] == str(page)
    assert page.read_text().startswith("<!doctype html>")


@pytest.mark.parametrize("command", ["history", "detail", "show", "doctor", "report"])
def test_no_table_is_exit_code_3(
    tmp_path: Path, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command_line([command, str(tmp_path / "none")]) == ExitCode.NOT_FOUND
    captured = capsys.readouterr()
    assert "none" in captured.err
    assert not captured.out


def test_errors_are_json_where_json_is_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command_line(["--json", "history", str(tmp_path / "none")]) == ExitCode.NOT_FOUND
    captured = capsys.readouterr()
    assert json.loads(captured.err)["error"].startswith("DELTA_")
    assert not captured.out


@pytest.mark.parametrize(
    "arguments",
    [
        ["history"],
        ["nonsense"],
        ["history", "t", "--limit", "0"],
        ["--conf", "x", "history", "t"],
        ["history", "t", "--master"],
        ["restore", "t"],
        ["sql"],
        ["merge", "nothing.sql"],
        ["merge", "t", "--source", "s"],
    ],
)
def test_wrong_usage_is_exit_code_2(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command_line(arguments) == ExitCode.USAGE
    assert capsys.readouterr().err


def test_help_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line(["--help"]) == 0
    text = capsys.readouterr().out
    for name in ("convert", "merge", "sql", "history", "detail", "show", "diff", "optimize",
                 "vacuum", "restore", "doctor", "report", "130"):  # fmt: skip
        assert name in text
