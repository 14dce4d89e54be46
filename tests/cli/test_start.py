"""The command line as a process: what it imports, and what it says when something is missing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("typer")

from puredelta.cli.exit_codes import ExitCode
from tests.inspection.small_tables import make_table

_HEAVY = ("pyspark", "py4j", "pandas")


def python(*arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env={**os.environ, **environ},
    )


def test_reading_commands_import_no_spark_and_need_no_java(tmp_path: Path) -> None:
    make_table(tmp_path, [1])
    code = (
        "import sys; from puredelta.cli.entry import main\n"
        "for command in ('history', 'detail', 'show', 'doctor'):\n"
        f"    assert main([command, {str(tmp_path)!r}]) == 0\n"
        f"print([m for m in {_HEAVY} if m in sys.modules])"
    )
    done = python("-c", code, PATH="", JAVA_HOME="")
    assert done.stdout.endswith("[]\n"), done.stdout + done.stderr


@pytest.mark.parametrize("name", ["typer", "rich"])
def test_without_typer_it_says_what_to_install(name: str) -> None:
    code = (
        "import importlib.util, sys; real = importlib.util.find_spec\n"
        f"importlib.util.find_spec = lambda n: None if n == {name!r} else real(n)\n"
        "from puredelta.cli.entry import main; sys.exit(main(['history', 't']))"
    )
    done = python("-c", code)
    assert done.returncode == ExitCode.MISSING_SOFTWARE
    assert "pip install 'puredelta[cli]'" in done.stderr


def test_it_runs_as_a_module(tmp_path: Path) -> None:
    done = python("-m", "puredelta", "history", str(tmp_path / "none"))
    assert done.returncode == ExitCode.NOT_FOUND, done.stderr
    assert "Traceback" not in done.stderr
