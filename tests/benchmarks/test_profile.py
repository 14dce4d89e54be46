"""Phases of a command: which functions they are, how they nest, how they are shown."""

from __future__ import annotations

import threading
import time
from dataclasses import asdict
from typing import Any

import pytest

from benchmarks import profile, tracing
from benchmarks.profile import Profile, phase_table, report
from benchmarks.tracing import PHASES, Tracer, replaced


@pytest.mark.parametrize("where", [where for _, where in PHASES])
def test_every_phase_is_a_function(where: str) -> None:
    wrapped = []
    restore = replaced(where, lambda function: wrapped.append(function) or function)
    restore()
    [function] = wrapped
    assert callable(function)


class Work:
    """A command with phases."""

    def whole(self) -> None:
        thread = threading.Thread(target=self.aside)
        thread.start()
        Work.part()
        Work.part()
        thread.join()

    @classmethod
    def part(cls) -> None:
        time.sleep(0.01)

    def aside(self) -> None:
        time.sleep(0.01)


def test_phases_nest_also_in_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("whole", "part", "aside")
    phases = tuple((name, f"{__name__}:Work.{name}") for name in names)
    monkeypatch.setattr(tracing, "PHASES", phases)
    before = dict(vars(Work))
    tracer = Tracer()
    tracer.run(lambda: Work().whole())  # looked up while it is traced
    assert dict(vars(Work)) == before
    paths = [(span.path[1:], span.beside) for span in tracer.spans]
    assert sorted(paths) == [
        ((), False),
        (("whole",), False),
        (("whole", "aside"), True),
        (("whole", "part"), False),
        (("whole", "part"), False),
    ]
    assert all(span.ended > span.begun for span in tracer.spans)


def span(begun: float, ended: float, *path: str, beside: bool = False) -> dict[str, Any]:
    return asdict(
        tracing.Span(("command", *path), begun, ended, calls=3, python_seconds=0.5, beside=beside)
    )


JOB = {
    "name": "parquet at x",
    "begun_ms": 101_000,
    "ended_ms": 104_000,
    "tasks": 2,
    "run_seconds": 5.0,
    "cpu_seconds": 4.0,
    "read_bytes": 2**20,
    "written_bytes": 2**21,
    "shuffled_bytes": 0,
}
ANSWER = {
    "seconds": 10.0,
    "cpu_seconds": 12.0,
    "jobs": 1,
    "job_seconds": 3.0,
    "spans": [
        span(100, 110),
        span(100, 106, "write"),
        span(100, 103, "write", "copy", beside=True),
        span(102, 104, "write", "new rows"),
        span(106, 107, "commit"),
    ],
    "ran": [JOB],
}


def test_a_phase_has_its_own_time_and_that_of_jobs() -> None:
    lines = phase_table(ANSWER)[2:]
    indent = profile._INDENT
    assert lines == [
        "| command | 1 | 10.00 | 3.00 | 3.00 | 7.00 | 1 | 3 | 0.50 |",
        f"| {indent}write | 1 | 6.00 | 4.00 | 3.00 | 3.00 | 1 | 3 | 0.50 |",
        f"| {indent * 2}copy (at the same time) | 1 | 3.00 | 3.00 | 2.00 | 1.00 | 1 | 3 | 0.50 |",
        f"| {indent * 2}new rows | 1 | 2.00 | 2.00 | 2.00 | 0.00 | 0 | 3 | 0.50 |",
        f"| {indent}commit | 1 | 1.00 | 1.00 | 0.00 | 1.00 | 0 | 3 | 0.50 |",
    ]


def test_the_slowest_are_taken_apart() -> None:
    slow = Profile(workload="slow", engine="puredelta", answer=ANSWER, copy_seconds=2.5)
    fast = Profile(
        workload="fast", engine="puredelta", answer={**ANSWER, "seconds": 4.0}, copy_seconds=None
    )
    text = report([fast, slow], "Size S", 1)
    assert "| slow | puredelta | 10.00 | 3.00 | 7.00 | 1 | 3 | 12.00 | 2.50 |\n| fast |" in text
    assert "## slow, puredelta: 10.00 s" in text
    assert "## fast" not in text
    assert "| parquet at x | 1.00 | 3.00 | 2 | 5.00 | 4.00 | 1.0 | 2.0 | 0.0 |" in text
