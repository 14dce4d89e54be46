"""A sample of the simulation, and that it would notice: `make simulate` runs the whole."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from simulation.__main__ import main
from simulation.faults import FaultKind
from simulation.many import silence
from simulation.plan import Mutant, Plan
from simulation.report import Totals
from simulation.shrink import shrink
from simulation.simulate import Run, simulate
from simulation.statements.statement import Outcome

ROOT = Path(__file__).parent.parent.parent
SHORT_RUNS, SHORT = 200, 6
LONG_RUNS = 4
SLOW_READER = 4_825
"""A VACUUM removes files of an old version while a reader of that version waits."""


@pytest.fixture(autouse=True)
def _silent() -> Iterator[None]:
    """Commands of a simulation silence the library; the tests after these look for its warnings."""
    level = logging.getLogger("puredelta").level
    silence()
    yield
    logging.getLogger("puredelta").setLevel(level)


def plans() -> Iterator[Plan]:
    yield from (Plan(seed=seed, statements=SHORT) for seed in range(SHORT_RUNS))
    yield from (Plan(seed=seed) for seed in range(LONG_RUNS))
    yield Plan(seed=SLOW_READER)


@pytest.mark.parametrize("every", [3, pytest.param(1, marks=pytest.mark.thorough)])
def test_nothing_is_lost(every: int) -> None:
    totals = Totals()
    for plan in list(plans())[::-every]:
        run = simulate(plan)
        assert run.violation is None, plan
        totals.add(run)
    assert set(totals.faults) == set(FaultKind), "every kind of fault was met"
    assert {outcome for _, outcome in totals.outcomes} == set(Outcome), "and every way to end"


def first_failure(mutant: Mutant) -> Run:
    for plan in plans():
        run = simulate(Plan(seed=plan.seed, statements=plan.statements, mutant=mutant))
        if run.violation is not None:
            return run
    pytest.fail(f"{mutant} went unnoticed")


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("mutant", "rules"),
    [
        (
            Mutant.NO_CONFLICT_CHECK,
            {"a row is in the table once", "a commit removes what is there"},
        ),
        (
            Mutant.NO_SETTLING,
            {"files of the table stay", "what was reported as failed is not in the table"},
        ),
        (Mutant.NO_READ_SET, {"each statement runs as if it were alone"}),
        (Mutant.NO_FLUSH, {"acknowledged commits survive"}),
        (Mutant.HASTY_CLEANUP, {"files of the table stay"}),
        (Mutant.WRONG_PLACES, {"each statement runs as if it were alone"}),
    ],
)
def test_a_safety_that_is_missing_is_noticed(mutant: Mutant, rules: set[str]) -> None:
    violation = first_failure(mutant).violation
    assert violation is not None
    assert violation.rule in rules


@pytest.mark.thorough
def test_mutants_are_listed_with_the_rule_they_break(capsys: pytest.CaptureFixture[str]) -> None:
    short = ["--seeds", "0:150", "--statements", "6", "--shrink-seconds", "0"]
    assert main(["--mutants", *short]) == 0
    printed = capsys.readouterr().out
    assert all(mutant.value in printed for mutant in Mutant)
    assert "NOT NOTICED" not in printed
    assert main(["--mutants", "--seeds", "0:1", "--statements", "1"]) == 1
    assert "NOT NOTICED" in capsys.readouterr().out


@pytest.mark.thorough
def test_a_failing_seed_is_cut_down_and_replayed(capsys: pytest.CaptureFixture[str]) -> None:
    failed = first_failure(Mutant.NO_READ_SET)
    smallest = shrink(failed, seconds=30)
    assert smallest.violation is not None
    assert failed.violation is not None
    assert smallest.violation.rule == failed.violation.rule
    assert len(smallest.plan.all_statements()) <= 6
    seed, statements = failed.plan.seed, failed.plan.statements
    mutated = ["--mutant", Mutant.NO_READ_SET.value, "--statements", str(statements)]
    chosen = ["--seeds", f"{seed}:{seed + 1}", "--processes", "1"]
    assert main([*chosen, *mutated, "--shrink-seconds", "5"]) == 1
    printed = capsys.readouterr().out
    replays = [line.partition('ARGS="')[2] for line in printed.splitlines() if "replay:" in line]
    assert len(replays) == 2
    for arguments in replays:
        assert main(arguments.rstrip('"').split(" ")) == 1
        assert failed.violation.rule in capsys.readouterr().out


def test_runs_without_a_violation_end_with_their_sums(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--seeds", "0:4", "--statements", "6", "--processes", "1"]) == 0
    printed = capsys.readouterr().out
    assert "4 seeds, 96 statements" in printed
    assert printed.endswith("nothing lost\n")


@pytest.mark.thorough
def test_a_seed_is_the_same_run_in_every_process() -> None:
    """Also where Python's hashes are others, and with them the order of sets."""
    digests = set()
    for hash_seed in ("0", "1"):
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": f"{ROOT}/src"}
        command = [sys.executable, "-m", "simulation", "--seed", "3", "--statements", "12"]
        done = subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True
        )
        digests.add(done.stdout.splitlines()[-1])
    assert len(digests) == 1
    assert "nothing lost" in digests.pop()
