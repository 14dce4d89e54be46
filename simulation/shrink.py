"""From a run that fails to a small one: statements, faults and switches that do not matter go.

Whatever is left out, the rest stays as it was: a statement draws its chances from the seed and
its own number, a fault sits at a call of its statement. Only the schedule changes when others are
gone, so a few are tried while statements are left out, and then it is listed and cut down, too.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

from simulation.plan import Plan
from simulation.simulate import Run, simulate

T = TypeVar("T")

SALTS = 3
"""How many schedules are tried for each set of statements."""
SECONDS_MAX = 120.0
"""How long it is tried to get further."""
_DRAWING = 0.25
"""The part of the time for schedules that are drawn: the rest is for the one that failed."""


def shrink(failed: Run, *, seconds: float = SECONDS_MAX) -> Run:
    """Return a run that breaks the same rule with as little as was found to be needed."""
    return _Shrinking(failed, seconds).run()


class _Shrinking:
    """The smallest failing run so far."""

    def __init__(self, failed: Run, seconds: float) -> None:
        self._best = failed
        self._seconds = seconds
        self._until = time.monotonic() + seconds

    def run(self) -> Run:
        until, self._until = self._until, time.monotonic() + self._seconds * _DRAWING
        self._drop_statements()
        self._until = until
        # From here on nothing is drawn: what happened is listed.
        best = self._best
        self._accept(replace(best.plan, faults=best.faults, switches=best.switches))
        before = self._size + 1
        while self._size < before and time.monotonic() < self._until:
            before = self._size
            self._drop_statements()
            self._minimise(lambda run: run.faults, lambda plan, kept: replace(plan, faults=kept))
            self._minimise(
                lambda run: run.switches, lambda plan, kept: replace(plan, switches=kept)
            )
        return self._best

    @property
    def _size(self) -> int:
        best = self._best
        return len(best.plan.all_statements()) + len(best.faults) + len(best.switches)

    def _drop_statements(self) -> None:
        def keeping(plan: Plan, kept: tuple[tuple[int, int], ...]) -> Plan:
            return replace(plan, kept=frozenset(kept))

        for writer in range(self._best.plan.writers):
            others = tuple(s for s in self._best.plan.all_statements() if s[0] != writer)
            self._accept(keeping(self._best.plan, others))
        self._minimise(lambda run: run.plan.all_statements(), keeping)

    def _minimise(
        self,
        items: Callable[[Run], Sequence[T]],
        keeping: Callable[[Plan, tuple[T, ...]], Plan],
    ) -> None:
        """Leave out halves, quarters and so on of the items, as long as the run fails."""
        size = max(1, len(items(self._best)) // 2)
        while True:
            start = 0
            while start < len(items(self._best)):
                current = tuple(items(self._best))
                fewer = (*current[:start], *current[start + size :])
                if not self._accept(keeping(self._best.plan, fewer), smaller=items):
                    start += size
            if size == 1 or time.monotonic() > self._until:
                return
            size //= 2

    def _accept(
        self, plan: Plan, *, smaller: Callable[[Run], Sequence[object]] | None = None
    ) -> bool:
        """Take over a plan that breaks the same rule, under one of a few schedules.

        Where something was to go, less of it must have happened: a switch that is left out may
        come back at another point.
        """
        salts = range(SALTS) if plan.switches is None else (0,)
        for salt in salts:
            if time.monotonic() > self._until:
                return False
            run = simulate(replace(plan, salt=salt))
            if run.violation is None or run.violation.rule != self._rule:
                continue
            if smaller is None or len(smaller(run)) < len(smaller(self._best)):
                self._best = run
                return True
        return False

    @property
    def _rule(self) -> str:
        assert self._best.violation is not None  # noqa: S101 - it failed
        return self._best.violation.rule
