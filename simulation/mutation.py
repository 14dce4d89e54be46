"""Whether anybody would notice: each safety is taken out in turn, and a rule must break."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from simulation.many import silence
from simulation.plan import Mutant, Plan
from simulation.shrink import shrink
from simulation.simulate import Run, simulate


@dataclass(frozen=True, slots=True, kw_only=True)
class Hunt:
    """What became of a mutant."""

    mutant: Mutant
    seeds_tried: int
    found: Run | None
    """The first run that broke a rule."""
    smallest: Run | None
    """The same, cut down."""


def hunt(
    seeds: Sequence[int],
    plan_of: Callable[[int, Mutant], Plan],
    *,
    seconds: float,
) -> Iterator[Hunt]:
    """Run seeds with each mutant until one of them breaks a rule."""
    silence()
    for mutant in Mutant:
        tried, found = 0, None
        for seed in seeds:
            tried += 1
            run = simulate(plan_of(seed, mutant))
            if run.violation is not None:
                found = run
                break
        smallest = None if found is None else shrink(found, seconds=seconds)
        yield Hunt(mutant=mutant, seeds_tried=tried, found=found, smallest=smallest)


def hunt_line(hunted: Hunt) -> str:
    """Return one row of the table: mutant, seed, how little suffices, the rule that broke."""
    found, smallest = hunted.found, hunted.smallest
    name = hunted.mutant.value
    if found is None or smallest is None or found.violation is None:
        return f"{name:20}{'-':>6}   NOT NOTICED in {hunted.seeds_tried:,} seeds"
    size = (
        f"{len(smallest.plan.all_statements())} statements, {len(smallest.faults)} faults, "
        f"{len(smallest.switches)} switches"
    )
    return f"{name:20}{found.plan.seed:6}   {size:36} {found.violation.rule}"


HEADER = f"{'mutant':20}{'seed':>6}   {'shrunk to':36} rule broken"
