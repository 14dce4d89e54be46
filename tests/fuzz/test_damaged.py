"""A sample of the damaged Parquet files of ``make fuzz``."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent


@pytest.mark.parametrize("files", [100, pytest.param(600, marks=pytest.mark.thorough)])
def test_no_damaged_file_ends_a_process_or_takes_much_memory(files: int) -> None:
    """In a process of its own: this one may have threads, which do not survive a fork."""
    command = [sys.executable, "-m", "tests.fuzz.damaged", "--examples", str(files)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "convert: read" in done.stdout
    assert "convert: refused FAILED_READ_FILE_FOOTER" in done.stdout
