"""A sample of the simulation of catalogs: `python -m simulation.catalogs` runs the whole."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator

import pytest

from simulation.catalogs.__main__ import main
from simulation.catalogs.catalog import CatalogFault
from simulation.catalogs.mutants import CatalogMutant
from simulation.catalogs.run import run_seed


@pytest.fixture(autouse=True)
def _level() -> Iterator[None]:
    level = logging.getLogger("puredelta").level
    yield
    logging.getLogger("puredelta").setLevel(level)


@pytest.mark.parametrize("seeds", [15, pytest.param(60, marks=pytest.mark.thorough)])
def test_no_commit_is_lost_or_doubled(seeds: int) -> None:
    faults, outcomes = Counter[CatalogFault](), Counter[str]()
    limits = restores = 0
    for seed in range(seeds):
        run = run_seed(seed)
        assert run.violation is None, seed
        faults.update(run.faults)
        outcomes.update(run.outcomes)
        limits += run.num_limits
        restores += run.num_restores
    assert set(faults) == set(CatalogFault), "every kind of fault was met"
    assert {"committed", "conflict", "failed", "killed", "unknown", "published"} <= set(outcomes)
    assert limits
    assert restores


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("mutant", "rules"),
    [
        (CatalogMutant.REPORT_FIRST, {"nothing is reported before its copy"}),
        (CatalogMutant.NEWEST_FIRST, {"commits are published in order"}),
        (
            CatalogMutant.NEW_NAME,
            {"what was reported as failed is not in the table", "a commit is there once"},
        ),
        (
            CatalogMutant.NO_SETTLING,
            {"what was reported as failed is not in the table", "a commit is there once"},
        ),
        (CatalogMutant.LIST_FIRST, {"readers see the newest version"}),
        (CatalogMutant.PLAIN_ONLY, {"readers see the newest version"}),
        (CatalogMutant.FAILED_UNKNOWN, {"what was reported as failed is not in the table"}),
        (CatalogMutant.NO_MEMORY, {"a lost commit is not replaced"}),
    ],
)
def test_a_rule_that_is_missing_is_noticed(mutant: CatalogMutant, rules: set[str]) -> None:
    for seed in range(150):
        violation = run_seed(seed, mutant=mutant).violation
        if violation is not None:
            assert violation.rule in rules
            return
    pytest.fail(f"{mutant} went unnoticed")


def test_a_seed_is_the_same_run_each_time() -> None:
    assert run_seed(7) == run_seed(7)


@pytest.mark.thorough
def test_the_command_prints_its_counts(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--seeds", "0:3"]) == 0
    printed = capsys.readouterr().out
    assert "3 seeds, 144 statements" in printed
    assert "versions ratified and judged" in printed
    assert "nothing lost" in printed
