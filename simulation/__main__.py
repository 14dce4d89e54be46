"""``python -m simulation``: run seeds, or one, and say whether anything was lost."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from simulation.command_line import add_options, plan_of
from simulation.many import run_all, silence
from simulation.mutation import HEADER, hunt, hunt_line
from simulation.report import Totals, print_lines, violation_lines
from simulation.shrink import SECONDS_MAX, shrink
from simulation.simulate import simulate

SEEDS = "0:1000"
_PROGRESS_SECONDS = 10.0


def main(arguments: Sequence[str] | None = None) -> int:
    """Return 0 if no rule was broken."""
    parser = argparse.ArgumentParser(prog="simulation", description=__doc__)
    parser.add_argument(
        "--seeds", default=os.environ.get("PUREDELTA_SEEDS", SEEDS), metavar="FROM:TO"
    )
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--shrink-seconds", type=float, default=SECONDS_MAX)
    parser.add_argument(
        "--mutants", action="store_true", help="take each safety out: all must be noticed"
    )
    add_options(parser)
    options = parser.parse_args(arguments)
    if options.mutants:
        return _run_mutants(options)
    return _run_one(options) if options.seed is not None else _run_many(options)


def _run_one(options: argparse.Namespace) -> int:
    silence()
    run = simulate(plan_of(options, options.seed), traced=True)
    print_lines(*run.trace)
    if run.violation is None:
        print_lines(f"seed {options.seed}: nothing lost, digest {run.digest}")
        return 0
    print_lines(f"seed {options.seed} BREAKS A RULE: {run.violation}")
    return 1


def _run_mutants(options: argparse.Namespace) -> int:
    print_lines(HEADER)
    noticed = True
    for hunted in hunt(
        _seeds(options),
        lambda seed, mutant: replace(plan_of(options, seed), mutant=mutant),
        seconds=options.shrink_seconds,
    ):
        print_lines(hunt_line(hunted))
        noticed = noticed and hunted.found is not None
    return 0 if noticed else 1


def _seeds(options: argparse.Namespace) -> range:
    first, _, last = options.seeds.partition(":")
    return range(int(first), int(last))


def _run_many(options: argparse.Namespace) -> int:
    seeds = _seeds(options)
    totals = Totals()
    started = reported = time.monotonic()
    runs = run_all(seeds, partial(plan_of, options), processes=options.processes)
    for run in runs:
        totals.add(run)
        if run.violation is not None:
            silence()
            smallest = shrink(run, seconds=options.shrink_seconds)
            print_lines(*violation_lines(run, simulate(smallest.plan, traced=True)))
            return 1
        if time.monotonic() - reported > _PROGRESS_SECONDS:
            reported = time.monotonic()
            print_lines(f"{totals.seeds:,} of {len(seeds):,} seeds, nothing lost")
    print_lines(*totals.lines(time.monotonic() - started), "nothing lost")
    return 0


if __name__ == "__main__":
    sys.exit(main())
