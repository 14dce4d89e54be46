"""Everything that a run depends on, as one value that a command line can spell."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from random import Random

from simulation.faults import DrawnFaults, FaultKind, Faults, ListedFaults, Place
from simulation.interleaving import Point, Schedule, Switch

WRITERS = 4
STATEMENTS = 50


class Mutant(Enum):
    """A safety of the code under test that is taken out, to see whether anybody notices."""

    NO_CONFLICT_CHECK = "no-conflict-check"
    """What rivals committed is not looked at."""
    NO_SETTLING = "no-settling"
    """A lost answer is taken for a failure."""
    NO_READ_SET = "no-read-set"
    """Statements do not say what they have read."""
    NO_FLUSH = "no-flush"
    """What is written is not flushed to the disk."""
    HASTY_CLEANUP = "hasty-cleanup"
    """Data files are removed although the outcome of their commit is unknown."""
    WRONG_PLACES = "wrong-places"
    """A compaction turns the rows round, and says that it keeps their order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """One run. What is None is drawn from the seed."""

    seed: int
    writers: int = WRITERS
    statements: int = STATEMENTS
    """Of each writer."""
    mutant: Mutant | None = None
    salt: int = 0
    """Draws another schedule for the same statements."""
    kept: frozenset[tuple[int, int]] | None = None
    """The statements that run, by writer and number; None for all."""
    faults: tuple[tuple[Place, FaultKind], ...] | None = None
    switches: tuple[Switch, ...] | None = None

    def all_statements(self) -> tuple[tuple[int, int], ...]:
        """Return the statements that run, by writer and number."""
        everything = ((w, n) for w in range(self.writers) for n in range(self.statements))
        return tuple(each for each in everything if self.kept is None or each in self.kept)

    def fault_source(self) -> Faults:
        """Return what decides where something goes wrong."""
        return DrawnFaults(self.seed) if self.faults is None else ListedFaults(self.faults)

    def schedule(self) -> Schedule:
        """Return what decides who goes on."""
        if self.switches is None:
            return DrawnSchedule(self.seed, self.salt)
        return ListedSchedule(self.switches)


class DrawnSchedule:
    """Writers at random: often or seldom switched, all alike or some of them slow."""

    def __init__(self, seed: int, salt: int) -> None:
        self._random = Random(seed * 1009 + salt * 17 + 3)
        self._switching = self._random.choice((0.05, 0.2, 0.5, 0.9))
        self._weights = [self._random.choice((1, 1, 1, 8)) for _ in range(64)]

    def choose(self, point: Point, runnable: Sequence[int]) -> int:
        """Stay with the current writer or draw one, slow ones more seldom."""
        current = point.routine
        if self._random.random() >= self._switching and current in runnable:
            return current
        if len(runnable) == 1:
            return runnable[0]
        weights = [self._weights[number] for number in runnable]
        return self._random.choices(runnable, weights)[0]


class ListedSchedule:
    """The switches of a list; in between, everybody runs to the end."""

    def __init__(self, switches: Sequence[Switch]) -> None:
        self._switches = dict(switches)

    def choose(self, point: Point, runnable: Sequence[int]) -> int:
        """Switch where the list says so, and when the current writer has ended."""
        chosen = self._switches.get(point, point.routine)
        return chosen if chosen in runnable else runnable[0]
