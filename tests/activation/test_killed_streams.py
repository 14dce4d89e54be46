"""A program that streams one table into another and is killed again and again: exactly once."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.activation.killed_stream import RESTART

SECONDS_MAX = 300
RUNS_MAX = 60


def run(root: Path, point: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tests.activation.killed_stream", str(root), point]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=SECONDS_MAX)


@pytest.mark.faults
def test_each_row_once_whatever_dies(tmp_path: Path) -> None:
    """Every run comes one step further than the one before, so that each step is the last once."""
    made = run(tmp_path, "make")
    assert made.returncode == 0, made.stderr[-4000:]
    codes: list[int] = []
    while 0 not in codes[-1:]:
        assert len(codes) < RUNS_MAX, codes
        ended = run(tmp_path, str(len(codes) + 1))
        codes.append(ended.returncode)
        assert ended.returncode in {0, RESTART, -signal.SIGKILL}, ended.stderr[-4000:]
    assert codes.count(-signal.SIGKILL) > 10, codes
    looked = run(tmp_path, "look")
    assert looked.returncode == 0, looked.stderr[-4000:]
    old = [[n, "old", None] for n in range(20)]
    new = [[n, None, "new"] for n in range(20, 30)]
    assert json.loads(looked.stdout.splitlines()[-1]) == old + new
