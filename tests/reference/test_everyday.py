"""The statements of everyday do the same on delta-spark and in an activated session.

Each runs in a process of its own: a session with delta-spark's JAR is not activated.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.reference.everyday import STATEMENTS

ROOT = Path(__file__).resolve().parents[2]


def printed(engine: str, *words: str, program: str = "everyday") -> dict[str, list[str]]:
    """What each statement of a program printed."""
    command = [sys.executable, "-m", f"tests.reference.{program}", engine, *words]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])}
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert not done.returncode, done.stderr[-3000:]
    found: dict[str, list[str]] = {}
    for line in done.stdout.splitlines():
        if line.startswith("# "):
            lines = found.setdefault(line.removeprefix("# "), [])
        elif line.startswith("> "):  # the JVM prints, too
            lines.append(line)
    return found


def test_everyday_statements_do_the_same() -> None:
    pytest.importorskip("delta", reason="delta-spark is installed by `make reference`")
    theirs, ours = printed("delta"), printed("puredelta")
    assert len(STATEMENTS) == 40
    assert list(ours) == list(theirs) == [label for label, _ in STATEMENTS]
    assert ours == theirs
