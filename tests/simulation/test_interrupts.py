"""Statements that Ctrl-C interrupts: the table is whole, and the session goes on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

from simulation.interrupts.ctrl_c import interrupted
from tests.connect_session import ROOT


def test_the_signal_meets_the_call_or_comes_too_late(request: pytest.FixtureRequest) -> None:
    known = signal.signal(signal.SIGINT, signal.default_int_handler)
    request.addfinalizer(lambda: signal.signal(signal.SIGINT, known))

    def wait() -> None:
        time.sleep(30)

    sent, failed = interrupted(wait, 0.01)
    assert sent
    assert isinstance(failed, KeyboardInterrupt)
    assert interrupted(lambda: None, 30.0) == (False, None)
    sent, failed = interrupted(lambda: int("x"), 30.0)
    assert not sent
    assert isinstance(failed, ValueError)


def _interrupt(*options: str) -> str:
    """Interrupt statements in a process of its own, whose main thread runs them."""
    run = subprocess.run(
        [sys.executable, "-m", "simulation.interrupts", *options],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])},
        capture_output=True,
        text=True,
        timeout=3000,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr[-2000:]
    return run.stdout


@pytest.mark.spark
@pytest.mark.thorough
def test_an_interrupt_leaves_the_old_table_or_the_new_one() -> None:
    told = _interrupt("--commands", "merge", "--moments", "2")
    assert "0 violations" in told


@pytest.mark.faults
def test_many_interrupts(capfd: pytest.CaptureFixture[str]) -> None:
    told = _interrupt("--moments", "30")
    with capfd.disabled():
        print(told)  # noqa: T201 - counts
    assert "0 violations" in told
