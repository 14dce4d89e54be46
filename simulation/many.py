"""Many seeds, on all cores: each run is one process's, and none knows of another."""

from __future__ import annotations

import logging
import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from simulation.plan import Plan
from simulation.simulate import Run, simulate

CHUNK = 8
"""How many seeds a process takes at once."""


def silence() -> None:
    """Drop the library's warnings: what goes wrong here goes wrong on purpose."""
    logging.getLogger("puredelta").setLevel(logging.CRITICAL + 1)


def run_all(
    seeds: Sequence[int], plan_of: Callable[[int], Plan], *, processes: int
) -> Iterator[Run]:
    """Run seeds, in their order if it is one process, and yield what came of each."""
    if processes == 1:
        silence()
        yield from (simulate(plan_of(seed)) for seed in seeds)
        return
    context = multiprocessing.get_context("forkserver")
    with context.Pool(processes, initializer=silence) as pool:
        yield from pool.imap_unordered(partial(_run, plan_of), seeds, chunksize=CHUNK)


def _run(plan_of: Callable[[int], Plan], seed: int) -> Run:
    return simulate(plan_of(seed))
