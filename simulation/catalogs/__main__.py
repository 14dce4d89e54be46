"""``python -m simulation.catalogs``: run seeds beside a faulty catalog, or take out its rules."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence

from simulation.catalogs.catalog import CatalogFault, fault_counts
from simulation.catalogs.mutants import CatalogMutant
from simulation.catalogs.run import CatalogRun, run_seed
from simulation.report import print_lines

SEEDS = "0:600"


def main(arguments: Sequence[str] | None = None) -> int:
    """Return 0 if no rule was broken, or with ``--mutants`` if each removal broke one."""
    parser = argparse.ArgumentParser(prog="simulation.catalogs", description=__doc__)
    default = os.environ.get("PUREDELTA_SEEDS", SEEDS)
    parser.add_argument("--seeds", default=default, metavar="FROM:TO")
    parser.add_argument("--mutants", action="store_true", help="take each rule out")
    options = parser.parse_args(arguments)
    first, _, last = options.seeds.partition(":")
    seeds = range(int(first), int(last))
    return _run_mutants(seeds) if options.mutants else _run_all(seeds)


def _run_all(seeds: Sequence[int]) -> int:
    started, runs = time.monotonic(), []
    for seed in seeds:
        run = run_seed(seed)
        runs.append(run)
        if run.violation is not None:
            print_lines(f"SEED {seed} BREAKS A RULE: {run.violation}")
            return 1
    print_lines(*summary(runs), f"{time.monotonic() - started:.0f} s; nothing lost")
    return 0


def summary(runs: Sequence[CatalogRun]) -> Iterator[str]:
    """Yield the sums of runs."""
    outcomes, faults = Counter[str](), Counter[CatalogFault]()
    for run in runs:
        outcomes.update(run.outcomes)
        faults.update(run.faults)
    ended = ", ".join(f"{count:,} {name}" for name, count in sorted(outcomes.items()))
    yield f"{len(runs):,} seeds, {sum(outcomes.values()):,} statements: {ended}"
    yield f"{sum(run.num_versions for run in runs):,} versions ratified and judged"
    yield f"{sum(run.num_copies for run in runs):,} copies published and judged"
    yield f"{sum(run.num_steps for run in runs):,} points at which another process might go on"
    yield f"{sum(run.num_limits for run in runs):,} commits refused by the limit"
    yield f"{sum(run.num_restores for run in runs):,} catalogs restored from a backup"
    yield f"{sum(faults.values()):,} faults: {fault_counts(faults)}"


def _run_mutants(seeds: Sequence[int]) -> int:
    noticed = True
    for mutant in CatalogMutant:
        found = next((run for run in _mutated(seeds, mutant) if run.violation is not None), None)
        noticed = noticed and found is not None
        said = "NOT NOTICED" if found is None else f"seed {found.seed}: {found.violation}"
        print_lines(f"{mutant.value:45} {said}")
    return 0 if noticed else 1


def _mutated(seeds: Sequence[int], mutant: CatalogMutant) -> Iterator[CatalogRun]:
    return (run_seed(seed, mutant=mutant) for seed in seeds)


if __name__ == "__main__":
    sys.exit(main())
