"""The command line as a process: what it imports, and what it says when something is missing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("click")

from puredelta.cli.output import ExitCode
from tests.inspection.small_tables import make_table

_NOT_NEEDED = (
    *(
        "pyspark",
        "py4j",
        "pandas",
        "deltalake",
        "typer",
        "pydantic",
        "jinja2",
        "pyiceberg",
    ),
    *("pyarrow.dataset", "pyarrow.flight", "pyarrow.orc", "numpy.random"),
    *(
        "puredelta.api",
        "puredelta.commands",
        "puredelta.spark",
        "puredelta.sql",
        "puredelta.tables",
    ),
    *(
        "puredelta.cli.spark_commands",
        "puredelta.cli.spark_commands",
        "puredelta.inspection.report",
    ),
    *("puredelta.log.checkpoint", "puredelta.log.commit"),
)
"""By any command that reads a log: slow to import, or loaded by a module in the wrong place."""
_CHANGES = ("puredelta.log.changes.change_feed", "puredelta.log.changes.stream")
_MORE = {
    "history": ("puredelta.inspection.environment", *_CHANGES),
    "detail": ("puredelta.inspection.environment", *_CHANGES),
    "show": ("puredelta.inspection.environment", "puredelta.inspection.migration"),
    "doctor": _CHANGES,
}
"""Not needed by these commands, but by others."""


def python(*arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env={**os.environ, **environ},
    )


@pytest.mark.parametrize("command", _MORE)
def test_reading_commands_import_what_they_need_and_need_no_java(
    tmp_path: Path, command: str
) -> None:
    make_table(tmp_path, [1])
    unwanted = {*_NOT_NEEDED, *_MORE[command]}
    code = (
        "import sys; from puredelta.cli.entry import main\n"
        f"assert main({[command, str(tmp_path)]!r}) == 0\n"
        f"print([m for m in {sorted(unwanted)!r} if m in sys.modules])"
    )
    done = python("-c", code, PATH="", JAVA_HOME="")
    assert done.stdout.endswith("[]\n"), done.stdout + done.stderr


@pytest.mark.parametrize("name", ["click", "rich"])
def test_without_a_package_it_says_what_to_install(name: str) -> None:
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
