"""Ctrl-C in a terminal in which a command runs."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import subprocess
import sys
import termios
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from py4j.protocol import Py4JNetworkError
from pyspark.sql import SparkSession

pytest.importorskip("click")

import puredelta
from puredelta.cli.output import ExitCode, code_of
from puredelta.log.replay.table_log import TableLog

_SECONDS_MAX = 120
_ENDLESS = """
MERGE INTO delta.`{}` t
USING (
    SELECT a.id, count(*) AS k FROM range(10) a CROSS JOIN range(1000000000000) b GROUP BY a.id
) s
ON t.id = s.id WHEN MATCHED THEN UPDATE SET k = s.k WHEN NOT MATCHED THEN INSERT *
"""


def test_ctrl_c_ends_a_merge_and_leaves_the_table(spark: SparkSession, tmp_path: Path) -> None:
    table = tmp_path / "t"
    puredelta.write(spark.range(0, 100, 1, 2).selectExpr("id", "id AS k"), str(table))
    before = sorted(path for path in table.rglob("*") if path.is_file())

    terminal, inner = pty.openpty()
    command = [sys.executable, "-m", "puredelta", "sql", _ENDLESS.format(table)]
    done = subprocess.Popen(
        command,
        stdin=inner,
        stdout=inner,
        stderr=inner,
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # noqa: PLW1509 - no lock is taken
    )
    os.close(inner)
    shown = _shown_until(terminal, lambda text: text.count("sql: running, task 0 of") > 10)
    os.write(terminal, b"\x03")
    shown += _shown_until(terminal, lambda _: done.poll() is not None)
    os.close(terminal)

    assert done.wait(_SECONDS_MAX) == ExitCode.INTERRUPTED, shown[-3000:]
    assert "Interrupted. A statement that had not committed has changed nothing" in shown
    assert "Traceback" not in shown
    assert "MERGE file:" not in shown  # the line that a statement shows elsewhere
    assert sorted(path for path in table.rglob("*") if path.is_file()) == before
    assert TableLog.open(str(table)).snapshot().version == 0


def test_a_connection_that_is_lost_by_an_interrupt_is_an_interrupt() -> None:
    interrupted = Py4JNetworkError("Answer from Java side is empty")
    interrupted.__context__ = KeyboardInterrupt()
    assert code_of(interrupted) is ExitCode.INTERRUPTED
    assert code_of(Py4JNetworkError("Answer from Java side is empty")) is ExitCode.FAILED


def _shown_until(terminal: int, enough: Callable[[str], bool]) -> str:
    """Read what a terminal shows until it is enough, without the colours."""
    shown, until = b"", time.monotonic() + _SECONDS_MAX
    while time.monotonic() < until:
        text = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", shown.decode(errors="replace"))
        if enough(text):
            return text
        if select.select([terminal], [], [], 0.2)[0]:
            try:
                shown += os.read(terminal, 65536)
            except OSError:  # the last program that had the terminal open is gone
                return text
    pytest.fail(f"the terminal showed no more than {shown[-3000:]!r}")
