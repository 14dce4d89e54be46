"""Processes of engines: what they answer, and what is known of one that does not."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks import bench as benches
from benchmarks.bench import Bench, Try
from benchmarks.engine_process import serve
from benchmarks.engines import ENGINES, EngineProcess
from benchmarks.options import Options
from benchmarks.processes import DRIVER_PYTHON, WORKERS, peaks
from benchmarks.requests import Kind, with_clauses


def test_a_request_that_fails_is_answered_too() -> None:
    class Moody:
        def prepare(self, request: dict[str, Any]) -> Any:
            if request["do"] == "fail":
                raise ValueError("as asked")
            return lambda: None

        def report(self) -> dict[str, Any]:
            return {"jobs": 2}

    answers = io.StringIO()
    serve(Moody(), ['{"do": "fail"}', '{"do": "merge"}'], answers)
    failed, done = map(json.loads, answers.getvalue().splitlines())
    assert failed == {"error": "ValueError: as asked"}
    assert done["jobs"] == 2
    assert done["seconds"] >= 0
    assert done["cpu_seconds"] >= 0
    assert done["memory_mb"].keys() == peaks().keys()


def test_memory_is_told_by_kind_of_process() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        found = peaks()
        child.communicate(b"\n")
    assert found[DRIVER_PYTHON] > 1
    assert found[WORKERS] > 1


def test_clauses_are_added_in_order() -> None:
    class Builder:
        def __init__(self, *told: Any) -> None:
            self.told = told

        def update(self, condition: str | None) -> Builder:
            return Builder(*self.told, ("update", condition))

        def insert(self, condition: str | None) -> Builder:
            return Builder(*self.told, ("insert", condition))

    methods = {Kind.UPDATE: "update", Kind.INSERT: "insert"}
    built = with_clauses(Builder(), [("update", "a > b"), ("insert", None)], methods)
    assert built.told == (("update", "a > b"), ("insert", None))


SCRIPT = """
import sys, time
for line in sys.stdin:
    if "die" in line:
        sys.exit(3)
    if "sleep" in line:
        time.sleep(60)
    print('{"seconds": 0.5, "cpu_seconds": 0.5, "memory_mb": {}}', flush=True)
"""


def process(limit_seconds: float) -> EngineProcess:
    command = [sys.executable, "-c", SCRIPT]
    return EngineProcess("puredelta", limit_seconds=limit_seconds, command=command)


def test_a_process_that_dies_or_sleeps_is_told_of() -> None:
    dying, sleeping = process(60), process(0.3)
    assert dying.ask({"do": "merge"})["seconds"] == 0.5
    assert dying.ask({"do": "die"}) == {"error": "the process of puredelta died (3)"}
    assert not dying.is_running
    assert "died" in dying.ask({"do": "merge"})["error"]
    assert sleeping.ask({"do": "sleep"}) == {"error": "puredelta took longer than 0.3 s"}
    assert not sleeping.is_running
    dying.close()
    sleeping.close()


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(benches, "EngineProcess", lambda _, limit_seconds: process(limit_seconds))
    monkeypatch.setattr(Bench, "_warm_up", lambda *_: None)
    options = Options.of(
        {"PUREDELTA_BENCH_DIRECTORY": str(tmp_path), "PUREDELTA_BENCH_REPEATS": "2"},
        engines="puredelta,delta-rs",
    )
    made = Bench(options)
    yield made
    made.close()


def test_one_broken_engine_leaves_the_others_their_report(bench: Bench) -> None:
    asked = []

    def attempt(engine: Any) -> Try:
        asked.append(engine.name)
        answer = bench.ask(engine, {"do": "die" if engine.name == "puredelta" else "merge"})
        return Try(answer, answer.get("error"))

    engines = [ENGINES["puredelta"], ENGINES["delta-rs"]]
    states = list(bench.repeat("upsert", engines, attempt))
    assert asked == ["puredelta", "delta-rs", "delta-rs"], "what failed is not tried again"
    broken, whole = states[-1]
    assert broken.problem == "the process of puredelta died (3)"
    assert whole.seconds == (0.5, 0.5)
    assert len(states) == 2, "there is something to keep after every repeat"
    answer = bench.ask(ENGINES["puredelta"], {"do": "merge"})
    assert answer["seconds"] == 0.5, "it has a new process"


def test_what_goes_wrong_here_is_a_problem_too(bench: Bench) -> None:
    def attempt(_: Any) -> Try:
        raise FileNotFoundError("no such table")

    [found], _ = bench.repeat("upsert", [ENGINES["delta-rs"]], attempt)
    assert found.problem == "FileNotFoundError: no such table"
