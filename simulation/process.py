"""A writer's process as the machine sees it: it pauses, it is killed, its calls go wrong.

Every call of the store and every named phase of a commit is a point at which others may run.
A process that is killed there does nothing more: what its code still tries while it unwinds
has no effect, as after ``kill -9``.
"""

from __future__ import annotations

from datetime import timedelta
from random import Random
from zlib import crc32

from simulation.disk import Disk
from simulation.faults import Call, FaultKind, Faults, Place
from simulation.interleaving import Interleaving, Point
from simulation.ledger import Ledger

_BEGIN_MS = 1_700_000_000_000
_STEP_MS = 7
_HOUR_MS = timedelta(hours=1) // timedelta(milliseconds=1)


class Killed(BaseException):
    """The process is gone. Nothing under test may catch it."""


class Machine:
    """What all processes share: the disk, the time, who runs, what goes wrong."""

    def __init__(self, *, seed: int, interleaving: Interleaving, faults: Faults) -> None:
        self.seed = seed
        self.disk = Disk(clock=self.now_ms)
        self.ledger = Ledger(self.disk, self.now_ms)
        self.faults = faults
        self.injected: list[tuple[Place, FaultKind]] = []
        self.trace: list[str] | None = None
        """What happened, in order, if somebody wants to know."""
        self.digest = 0
        """Of all that happened: equal for equal runs."""
        self._interleaving = interleaving
        self._time_ms = _BEGIN_MS
        self.processes: dict[int, Process] = {}

    def now_ms(self) -> int:
        """Return the time; it passes from pause to pause."""
        return self._time_ms

    def pause(self, process: Process, what: str) -> None:
        """Let others run."""
        self._time_ms += _STEP_MS
        self.digest = crc32(what.encode(), self.digest * 31 + process.writer & 0xFFFFFFFF)
        if self.trace is not None:
            self.note(process.writer, what)
        self._interleaving.pause(process.next_point())
        if process.is_dead:
            raise Killed

    def note(self, writer: int, text: str) -> None:
        """Write a line of the trace."""
        if self.trace is not None:
            self.trace.append(f"{self._interleaving.step:6} writer {writer}: {text}")

    def pass_time(self, span_ms: int, *, longest_ms: int) -> None:
        """Let time pass at once, unless a statement would then have run longer than allowed."""
        begun = (process.begun_ms for process in self.processes.values())
        oldest = min((ms for ms in begun if ms is not None), default=self._time_ms)
        if self._time_ms + span_ms - oldest < longest_ms:
            self._time_ms += span_ms

    def cut_power(self, place: Place) -> None:
        """End all processes, and undo what is not on the disk for good."""
        for process in self.processes.values():
            process.is_dead = True
        undone = self.disk.cut_power(Random(self.seed * 7919 + place.key))
        self.note(place.writer, f"power cut, {len(undone)} names are lost")
        self.ledger.power_cut(undone)


class Process:
    """One process of a writer, until it is killed."""

    def __init__(self, machine: Machine, writer: int) -> None:
        self.machine, self.writer = machine, writer
        self.is_dead = False
        self.begun_ms: int | None = None
        """When the statement began that runs now."""
        self._statement = self._call = self._pause = 0
        self._outage = 0
        machine.processes[writer] = self

    def begin(self, statement: int) -> None:
        """Start counting the calls of a statement."""
        self._statement, self._call, self._pause, self._outage = statement, 0, 0, 0
        self.begun_ms = self.machine.now_ms()

    def end(self) -> None:
        """Note that no statement runs."""
        self.begun_ms = None

    def next_point(self) -> Point:
        """Count a pause and return its place."""
        self._pause += 1
        return Point(self.writer, self._statement, self._pause)

    def reach(self, what: str) -> None:
        """Pause at a named point."""
        if self.is_dead:
            raise Killed
        self.machine.pause(self, what)

    def call(self, call: Call, path: str) -> FaultKind | None:
        """Pause before a call of the store, and return what is to go wrong with it."""
        self.reach(f"{call.value} {path}")
        if self._outage:
            self._outage -= 1
            return FaultKind.FAILED
        place = Place(self.writer, self._statement, self._call)
        self._call += 1
        kind = self.machine.faults.at(place, call)
        if kind is None:
            return None
        self.machine.injected.append((place, kind))
        self.machine.note(self.writer, f"FAULT {kind.value}")
        match kind:
            case FaultKind.KILLED:
                self.is_dead = True
                raise Killed
            case FaultKind.POWER_CUT:
                self.machine.cut_power(place)
                raise Killed
            case FaultKind.OUTAGE | FaultKind.LOST_ANSWER_AND_OUTAGE:
                self._outage = 1 + place.key % 6
            case _:
                pass
        return kind
