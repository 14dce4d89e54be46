"""Routines that take turns: each runs until it pauses, and a seed decides who goes on.

A routine is a thread, of which only the one that holds the baton runs. No generator could do
it, since a writer must pause deep inside the code under test, in the middle of a call of its
store. What happens is therefore the same in each run, however the machine schedules threads.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol


class Aborted(BaseException):
    """Unwinds a routine, since another one has failed. Nothing under test may catch it."""


class Point(NamedTuple):
    """Where a routine pauses, by its own count: it stays when other routines do something else."""

    routine: int
    statement: int
    pause: int


class Switch(NamedTuple):
    """At a point, another routine goes on."""

    point: Point
    to: int


class Schedule(Protocol):
    """Decides who runs next."""

    def choose(self, point: Point, runnable: Sequence[int]) -> int:
        """Return who goes on at a point. Whoever reached it may be at its end, not runnable."""


_START = Point(-1, 0, 0)
_END = (-1, 0)
"""Statement and pause of the point at which a routine has ended."""


class _Routine:
    """One thread and its baton."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.baton = threading.Lock()
        self.baton.acquire()


class Interleaving:
    """A fixed set of routines, run to their ends in turns."""

    def __init__(self, schedule: Schedule) -> None:
        self._schedule = schedule
        self._waiting: dict[int, _Routine] = {}
        self._runnable: tuple[int, ...] = ()
        self._all_ended = threading.Lock()
        self._failure: BaseException | None = None
        self.step = 0
        """How often somebody has paused, or ended."""
        self.switches: list[Switch] = []
        """Each time that another routine went on."""

    def run(self, bodies: Sequence[Callable[[], None]]) -> None:
        """Run all to their ends; what one of them raises ends the others and comes out here."""
        routines = [_Routine(number) for number in range(len(bodies))]
        self._waiting = {routine.number: routine for routine in routines}
        self._runnable = tuple(self._waiting)
        self._all_ended.acquire()
        for routine, body in zip(routines, bodies, strict=True):
            arguments = (routine, body)
            threading.Thread(target=self._live, args=arguments, daemon=True).start()
        self._pass_on(_START)
        with self._all_ended:
            pass
        if self._failure is not None:
            raise self._failure

    def pause(self, point: Point) -> None:
        """Let others run; called by the routine that runs, which goes on when it is chosen."""
        self.step += 1
        chosen = self._schedule.choose(point, self._runnable)
        if chosen != point.routine:
            baton = self._waiting[point.routine].baton
            self._hand_over(point, chosen)
            baton.acquire()
        if self._failure is not None:
            raise Aborted

    def _live(self, routine: _Routine, body: Callable[[], None]) -> None:
        routine.baton.acquire()
        try:
            if self._failure is None:
                body()
        except Aborted:
            pass
        except BaseException as failure:  # noqa: BLE001 - raised again by run()
            self._failure = self._failure or failure
        del self._waiting[routine.number]
        self._runnable = tuple(self._waiting)
        self._pass_on(Point(routine.number, *_END))

    def _pass_on(self, point: Point) -> None:
        if not self._waiting:
            self._all_ended.release()
            return
        self.step += 1
        if self._failure is not None:
            self._hand_over(point, self._runnable[0])
            return
        self._hand_over(point, self._schedule.choose(point, self._runnable))

    def _hand_over(self, point: Point, chosen: int) -> None:
        self.switches.append(Switch(point, chosen))
        self._waiting[chosen].baton.release()
