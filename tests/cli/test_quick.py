"""DeclaredCommand lines that are read without typer mean what they mean with it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path

import pytest

pytest.importorskip("typer")

from puredelta.cli import app, command_line
from puredelta.cli.context import Context
from puredelta.cli.declared import COMMANDS, DeclaredCommand, DeclaredParameter
from puredelta.cli.exit_codes import ExitCode
from puredelta.cli.output import Output
from puredelta.cli.quick import CommandLine, read_quickly

_VALUES = {bool: "", float: "1.5", int: "7", Path: "some/file", str: "a b"}


def read_by_typer(words: list[str], monkeypatch: pytest.MonkeyPatch) -> CommandLine | int:
    """Return what typer reads, or the exit code with which it refuses."""
    asked = []

    def note(command: DeclaredCommand, _context: Context, values: Mapping[str, object]) -> int:
        asked.append(CommandLine(command=command, values=dict(values)))
        return 0

    monkeypatch.setattr(app, "run_command", note)
    code = app.run_app(words, Context(output=Output(as_json=False)))
    return asked[0] if asked else code


def options(parameter: DeclaredParameter) -> list[list[str]]:
    """Return every way to give one option."""
    if parameter.kind is bool:
        return [[word] for word in parameter.flags[0].split("/")]
    value = _VALUES[parameter.kind]
    spaced = [[flag, value] for flag in parameter.flags]
    return [*spaced, [f"{parameter.flags[0]}={value}"]]


def lines(command: DeclaredCommand) -> list[list[str]]:
    """Return lines without options, with each one, and with all of them, before and behind."""
    places = [p for p in command.parameters if not p.flags]
    least = [_VALUES[p.kind] for p in places if p.is_required]
    most = [_VALUES[p.kind] for p in places]
    each = [ways for p in command.parameters if p.flags for ways in options(p)]
    every = [word for p in command.parameters if p.flags for word in options(p)[0]]
    found = [least, most, [*most, *every], [*every, *most]]
    return [[command.name, *words] for words in [*found, *([*least, *one] for one in each)]]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
def test_plain_lines_mean_the_same(
    command: DeclaredCommand, monkeypatch: pytest.MonkeyPatch
) -> None:
    for line in lines(command):
        assert read_quickly(line) == read_by_typer(line, monkeypatch), line


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("history", ExitCode.USAGE),
        ("history t more", ExitCode.USAGE),
        ("history t -n 0", ExitCode.USAGE),
        ("history t -n x", ExitCode.USAGE),
        ("history t -n", ExitCode.USAGE),
        ("history t --lim 3", ExitCode.USAGE),
        ("show t --files=yes", ExitCode.USAGE),
        ("vacuum t --retain -1", ExitCode.USAGE),
        ("historie t", ExitCode.USAGE),
        ("--help", ExitCode.DONE),
        ("history --help", ExitCode.DONE),
        ("--version", ExitCode.DONE),
    ],
)
def test_other_lines_are_left_to_typer(
    line: str, code: ExitCode, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert read_quickly(line.split()) is None
    assert read_by_typer(line.split(), monkeypatch) == code


@pytest.mark.parametrize("line", ["history t -n5", "vacuum t --retain 1e3", "history -- -t"])
def test_lines_that_only_typer_reads(line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert read_quickly(line.split()) is None
    assert isinstance(read_by_typer(line.split(), monkeypatch), CommandLine)


def test_a_shell_that_completes_asks_typer(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[list[str]] = []

    def note(words: list[str], _context: Context) -> int:
        seen.append(words)
        return 0

    monkeypatch.setenv("_PUREDELTA_COMPLETE", "complete_bash")
    monkeypatch.setattr(app, "run_app", note)
    command_line.run_command_line(["history", "t"])
    assert seen == [["history", "t"]]


def test_floats_are_read() -> None:
    asked = read_quickly(["vacuum", "t", "--retain", "0.5"])
    assert asked is not None
    assert math.isclose(float(str(asked.values["retain"])), 0.5)
