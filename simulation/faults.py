"""What goes wrong: one fault at one call of one statement, drawn from the seed or listed.

Which call of a statement is hit depends on the seed, the writer and the statement alone, so
that a fault stays where it is when other statements are left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from random import Random
from typing import Protocol


class Call(Enum):
    """The calls of a store, as far as they differ in what may go wrong."""

    READ = "read"
    LIST = "list"
    CREATE = "create"
    """Put if absent: commits, checkpoints, sidecars."""
    REPLACE = "replace"
    """The hint, and deletion vectors."""
    DELETE = "delete"
    WRITE_DATA = "write data"
    """What a Spark job does, not the store."""


class FaultKind(Enum):
    """What goes wrong."""

    FAILED = "failed, nothing happened"
    LOST_ANSWER = "happened, the answer was lost"
    REPEATED = "happened, the answer was lost, the client below repeated it"
    REFUSED = "permission denied, nothing happened"
    REFUSED_AFTER = "happened, then permission was denied"
    OUTAGE = "failed, nothing happened, and the store is gone for some calls"
    LOST_ANSWER_AND_OUTAGE = "happened, the answer was lost, and the store is gone for some calls"
    SHORT_WRITE = "a part was written"
    OLD_LISTING = "what others wrote of late is not listed"
    KILLED = "kill -9 of the writer"
    POWER_CUT = "power cut: all writers are gone, and what was not flushed"


_ANYWHERE = (FaultKind.FAILED, FaultKind.KILLED)
_WRITING = (*_ANYWHERE, FaultKind.LOST_ANSWER, FaultKind.REFUSED, FaultKind.REFUSED_AFTER)
KINDS: Mapping[Call, tuple[FaultKind, ...]] = {
    Call.READ: _ANYWHERE,
    Call.LIST: (*_ANYWHERE, FaultKind.OLD_LISTING),
    Call.CREATE: (
        *_WRITING,
        FaultKind.LOST_ANSWER,
        FaultKind.REPEATED,
        FaultKind.OUTAGE,
        FaultKind.LOST_ANSWER_AND_OUTAGE,
        FaultKind.POWER_CUT,
    ),
    Call.REPLACE: _WRITING,
    Call.DELETE: _WRITING,
    Call.WRITE_DATA: (*_ANYWHERE, FaultKind.SHORT_WRITE),
}
"""What may go wrong at which call. A kind that stands twice is drawn twice as often."""

RATES: Mapping[Call, float] = {
    Call.READ: 0.004,
    Call.LIST: 0.008,
    Call.CREATE: 0.06,
    Call.REPLACE: 0.04,
    Call.DELETE: 0.02,
    Call.WRITE_DATA: 0.015,
}
"""How many of the calls go wrong."""


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """The n-th call of a statement of a writer, all counted from 0."""

    writer: int
    statement: int
    call: int

    @property
    def key(self) -> int:
        """A number of this place alone, to draw from."""
        return (self.writer * 10_007 + self.statement) * 100_003 + self.call


class Faults(Protocol):
    """Decides what goes wrong."""

    def at(self, place: Place, call: Call) -> FaultKind | None:
        """Return what goes wrong at a call, None if nothing does."""


class DrawnFaults:
    """Faults at random, by the rates times a factor: some runs are calm, some a storm."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._factor = Random(seed * 31 + 7).choice((0.0, 0.5, 1.0, 1.0, 2.0, 4.0))

    def at(self, place: Place, call: Call) -> FaultKind | None:
        """Return what goes wrong; the same for the same seed and place."""
        if self._factor == 0.0:
            return None
        # Cheaper than a generator per call: a multiplicative hash of the place.
        mixed = ((self._seed * 1_000_003 + place.key) * 0x9E3779B97F4A7C15) & (2**64 - 1)
        mixed = ((mixed ^ (mixed >> 29)) * 0xBF58476D1CE4E5B9) & (2**64 - 1)
        if (mixed >> 11) / 2**53 >= RATES[call] * self._factor:
            return None
        kinds = KINDS[call]
        return kinds[mixed % len(kinds)]


class ListedFaults:
    """The faults of a list, where they fit: a place may be another call than it was."""

    def __init__(self, faults: Iterable[tuple[Place, FaultKind]]) -> None:
        self._faults = dict(faults)

    def at(self, place: Place, call: Call) -> FaultKind | None:
        """Return the listed fault of the place, if it can happen to such a call."""
        kind = self._faults.get(place)
        return kind if kind in KINDS[call] else None
