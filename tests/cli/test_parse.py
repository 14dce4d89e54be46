"""Command lines: the values that they mean, the help, and what is said of wrong ones."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("click")

import click

from puredelta.cli.declared import COMMANDS
from puredelta.cli.output import ExitCode
from puredelta.cli.parse import COMMON, LOG, SPARK, DeclaredCommand, Invocation
from puredelta.cli.run import read_command_line, run_command_line

TEXTS = {
    "float range": ("1.5", 1.5),
    "choice": ("export", "export"),
    "integer range": ("7", 7),
    "path": ("some/file", Path("some/file")),
    "text": ("a b", "a b"),
}
"""A word of a command line for each type, and the value that it means."""


def read(*words: str) -> Invocation:
    invocation = read_command_line(words)
    assert isinstance(invocation, Invocation), words
    return invocation


def own(command: DeclaredCommand) -> list[click.Parameter]:
    return [parameter for parameter in command.params if parameter not in COMMON]


def ways(option: click.Parameter) -> list[tuple[list[str], object]]:
    """Return every way to give one option, with its value."""
    if isinstance(option, click.Option) and option.is_flag:
        return [
            *(([word], True) for word in option.opts),
            *(([word], False) for word in option.secondary_opts),
        ]
    text, value = TEXTS[option.type.name]
    spaced = [([flag, text], value) for flag in option.opts]
    long = next(flag for flag in option.opts if flag.startswith("--"))
    return [*spaced, ([f"{long}={text}"], value)]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: str(command.name))
def test_every_option_of_every_command_is_read(command: DeclaredCommand) -> None:
    name = str(command.name)
    places = [p for p in own(command) if isinstance(p, click.Argument)]
    options = [p for p in own(command) if isinstance(p, click.Option)]
    needed = [TEXTS[p.type.name][0] for p in places if p.required]
    every = [TEXTS[p.type.name][0] for p in places]
    least = read(name, *needed).values
    assert set(least) == {p.name for p in own(command)} - {command.spark_switch}
    for option in options:
        for words, value in ways(option):
            expected = {**least, str(option.name): value}
            expected.pop(str(command.spark_switch), None)
            assert read(name, *needed, *words).values == expected
            assert read(name, *words, *needed).values == expected
    words = [word for option in options for word in ways(option)[0][0]]
    most = read(name, *every, *words).values
    assert most == read(name, *words, *every).values
    assert most == {
        p.name: TEXTS[p.type.name][1] if p in places else ways(p)[0][1]
        for p in own(command)
        if p.name != command.spark_switch
    }


def test_defaults() -> None:
    assert read("history", "t").values == {"table": "t", "limit": 20}
    assert read("doctor").values == {
        "table": None, "migrate": None, "catalog": None, "environment": False, "list_files": True,
        "deep": False, "resume": None,
    }  # fmt: skip
    assert read("diff", "t", "1").values == {
        "table": "t", "older": 1, "newer": None, "keys": None, "limit": 50,
    }  # fmt: skip


def test_a_switch_makes_it_a_command_with_spark() -> None:
    assert read("diff", "t", "1").module == LOG
    assert not read("diff", "t", "1").starts_spark
    invocation = read("diff", "t", "1", "--rows")
    assert invocation.module == SPARK
    assert invocation.starts_spark


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
        ("vacuum t --retain nan", ExitCode.USAGE),
        ("historie t", ExitCode.USAGE),
        ("history t --json=yes", ExitCode.USAGE),
        ("history t --master a --master b", ExitCode.USAGE),
        ("--master a history t --master b", ExitCode.USAGE),
        ("history t --conf =x", ExitCode.USAGE),
        ("", ExitCode.USAGE),
        ("--json", ExitCode.USAGE),
        ("--help", ExitCode.DONE),
        ("-h", ExitCode.DONE),
        ("history --help", ExitCode.DONE),
        ("history -h", ExitCode.DONE),
        ("--version", ExitCode.DONE),
    ],
)
def test_other_lines_have_an_exit_code(line: str, code: ExitCode) -> None:
    assert read_command_line(line.split()) == code


def test_short_and_unusual_lines() -> None:
    assert read("history", "t", "-n5").values["limit"] == 5
    assert read("history", "--", "-t").values["table"] == "-t"
    assert read("history", "--", "--json").values["table"] == "--json"
    retained = read("vacuum", "t", "--retain", "1e3").values["retain"]
    assert math.isclose(float(str(retained)), 1000)


def test_options_of_every_command_may_be_written_anywhere() -> None:
    line = ["--conf", "a=1", "--storage-option=k=v", "sql", "--conf=b=x=y", "SELECT 1", "--verbose"]
    context = read(*line, "--remote", "sc://h").context
    assert context.conf == {"a": "1", "b": "x=y"}
    assert context.storage_options == {"k": "v"}
    assert (context.verbose, context.remote, context.master) == (True, "sc://h", None)
    assert not context.output.as_json
    assert read("--json", "history", "t").context.output.as_json
    assert read("history", "t", "--json").context.output.as_json


def test_a_misspelled_word_is_answered_with_similar_ones(
    capsys: pytest.CaptureFixture[str],
) -> None:
    run_command_line(["historie", "t"])
    assert "Did you mean 'history'" in capsys.readouterr().err
    run_command_line(["nonsense"])
    assert capsys.readouterr().err.endswith("No such command 'nonsense'.\n")
    run_command_line(["history", "t", "--limt", "3"])
    assert "--limit" in capsys.readouterr().err


def test_wrong_usage_is_json_where_json_is_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    for line in (["--json", "history"], ["history", "--json"], ["--json", "nonsense"]):
        assert run_command_line(line) == ExitCode.USAGE
        captured = capsys.readouterr()
        assert json.loads(captured.err)["error"] == "USAGE"
        assert not captured.out
    run_command_line(["--json", "--conf", "x", "history", "t"])
    assert "KEY=VALUE" in json.loads(capsys.readouterr().err)["message"]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: str(command.name))
def test_help_has_every_argument_and_option(
    command: DeclaredCommand, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command_line([str(command.name), "--help"]) == 0
    text = capsys.readouterr().out
    for parameter in own(command):
        if isinstance(parameter, click.Argument):
            assert f"  {str(parameter.name).upper()} " in text
        for flag in (*parameter.opts, *parameter.secondary_opts):
            assert flag.upper() in text.upper()
    for word in ("--json", "--verbose", "--storage-option KEY=VALUE"):
        assert word in text
    takes_spark = command.module == SPARK or command.spark_switch is not None
    assert ("--conf KEY=VALUE" in text) is takes_spark


def test_a_shell_completes_commands_and_options() -> None:
    def completed(line: str, word: int) -> list[str]:
        environ = {
            **os.environ,
            "_PUREDELTA_COMPLETE": "bash_complete",
            "COMP_WORDS": line,
            "COMP_CWORD": str(word),
        }
        done = subprocess.run(
            [sys.executable, "-m", "puredelta"],
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
            env=environ,
        )
        return [each.partition(",")[2] for each in done.stdout.split()]

    assert completed("puredelta re", 1) == ["report", "revert", "restore"]
    assert completed("puredelta history --li", 2) == ["--limit"]
