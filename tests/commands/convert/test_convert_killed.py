"""C-60, C-08: a driver that dies while it converts a table by name leaves the old or the new."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.commands.convert.killed import POINTS

SECONDS_MAX = 900
"""For one session of Spark with a metastore of its own, on a machine that does other work, too."""


def run(root: Path, point: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tests.commands.convert.killed", str(root), point]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=SECONDS_MAX)


@pytest.mark.faults
def test_c_60_old_or_new_never_neither(tmp_path: Path) -> None:
    for point in POINTS:
        assert run(tmp_path, point).returncode == -signal.SIGKILL, point
        for lock in (tmp_path / "metastore").glob("*.lck"):
            lock.unlink()  # Derby's, of the process that is gone
    looked = run(tmp_path, "look")
    assert looked.returncode == 0, looked.stderr[-4000:]
    found = json.loads(looked.stdout.splitlines()[-1])
    assert set(found) == {f"t_{point}" for point in POINTS}
    for name, (before, after, history) in found.items():
        assert before == [[1, 1], [2, 2]], name
        assert after == [[1, 1], [2, 2], [3, 3]], name
        assert history == ["WRITE", "CONVERT"], name
