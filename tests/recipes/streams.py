"""Random change streams, and what tables ought to be after them, in plain Python.

A stream has a few keys, and events in an order of arrival that is not that of their sequence:
some come late, some twice, some delete. The models sort all events that have arrived by their
sequence and replay them one by one.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

SCHEMA = "stream INT, k INT, seq INT, op STRING, v STRING, w INT"
UPSERT, DELETE, TRUNCATE = "U", "D", "T"

Key = tuple[int, int | None]
Values = tuple[str | None, int | None]


class Event(NamedTuple):
    """One change of one key."""

    stream: int
    k: int | None
    seq: int
    op: str
    v: str | None
    w: int | None

    @property
    def key(self) -> Key:
        return self.stream, self.k

    @property
    def values(self) -> Values:
        return self.v, self.w


class Version(NamedTuple):
    """A row of a type 2 table."""

    key: Key
    values: Values
    start: int
    end: int | None


@dataclass(frozen=True)
class Streams:
    """Batches of events of many streams, the n-th of each together."""

    batches: tuple[tuple[Event, ...], ...]

    def upto(self, batch: int) -> Iterator[Event]:
        """All events that have arrived with a batch and those before it."""
        for events in self.batches[: batch + 1]:
            yield from events


def random_streams(seed: int, *, streams: range, batches: int, deletes: float = 0.2) -> Streams:
    """Streams of up to four keys, one of which may be NULL."""
    cut: list[list[Event]] = [[] for _ in range(batches)]
    for stream in streams:
        rng = random.Random(f"{seed}/{stream}")
        arrival = []
        for k in (None, 1, 2, 3)[: rng.randint(1, 4)]:
            for seq in rng.sample(range(30), rng.randint(1, 9)):
                op = DELETE if rng.random() < deletes else UPSERT
                v = rng.choice(["a", "b", None])
                event = Event(stream, k, seq, op, v, rng.choice([0, 1, None]))
                times = 2 if rng.random() < 0.2 else 1
                arrival += [(seq + rng.uniform(0, 15), event) for _ in range(times)]
        arrival.sort(key=lambda late: late[0])
        for n, (_, event) in enumerate(arrival):
            cut[min(batches - 1, n * batches // len(arrival))].append(event)
        for events in cut[1:]:  # some are delivered again in a later batch
            if arrival and rng.random() < 0.3:
                events.append(rng.choice(arrival[: len(arrival) // batches or 1])[1])
    return Streams(batches=tuple(tuple(events) for events in cut))


def with_truncates(given: Streams, seed: int) -> Streams:
    """The same with two events that empty the table, which counts for all streams."""
    rng = random.Random(f"truncates of {seed}")
    batches = [list(events) for events in given.batches]
    for seq in rng.sample(range(5, 20), 2):
        event = Event(-1, None, seq, TRUNCATE, None, None)
        batches[rng.randrange(len(batches))].append(event)
    return Streams(batches=tuple(tuple(events) for events in batches))


def in_order(events: Iterable[Event]) -> dict[Key, list[Event]]:
    """The events of each key, once each, by sequence."""
    by_key: dict[Key, list[Event]] = defaultdict(list)
    for event in sorted(set(events), key=lambda event: event.seq):
        by_key[event.key].append(event)
    return by_key


def after_truncates(events: Iterable[Event]) -> list[Event]:
    """What no truncate covers."""
    every = list(events)
    limit = max((e.seq for e in every if e.op == TRUNCATE), default=-1)
    return [e for e in every if e.seq > limit]


def newest(events: Iterable[Event], *, null_keeps: bool = False) -> dict[Key, Values]:
    """A type 1 table."""
    rows: dict[Key, Values] = {}
    for key, ordered in in_order(events).items():
        row: Values | None = None
        for event in ordered:
            if event.op == DELETE:
                row = None
            elif null_keeps and row is not None:
                row = (
                    row[0] if event.v is None else event.v,
                    row[1] if event.w is None else event.w,
                )
            else:
                row = event.values
        if row is not None:
            rows[key] = row
    return rows


def versions(
    events: Iterable[Event], *, tracks_w: bool = True, null_keeps: bool = False
) -> set[Version]:
    """A type 2 table: its versions."""
    found: set[Version] = set()
    for key, ordered in in_order(events).items():
        begun: tuple[Values, int] | None = None
        for event in ordered:
            values = event.values
            if begun is not None and null_keeps and event.op != DELETE:
                old = begun[0]
                values = (
                    old[0] if values[0] is None else values[0],
                    old[1] if values[1] is None else values[1],
                )
            if event.op == DELETE:
                if begun is not None:
                    found.add(Version(key, *begun, event.seq))
                begun = None
            elif begun is None:
                begun = values, event.seq
            elif begun[0] == values or (not tracks_w and begun[0][0] == values[0]):
                begun = values, begun[1]
            else:
                found.add(Version(key, *begun, event.seq))
                begun = values, event.seq
        if begun is not None:
            found.add(Version(key, *begun, None))
    return found


def upserted(batches: Sequence[Sequence[Event]]) -> dict[Key, tuple[Values, int]]:
    """What `upsert` with ``order_by`` leaves: it remembers nothing of keys that are deleted."""
    rows: dict[Key, tuple[Values, int]] = {}
    for events in batches:
        latest = {key: ordered[-1] for key, ordered in in_order(events).items()}
        for key, event in latest.items():
            if key in rows and event.seq < rows[key][1]:
                continue
            if event.op == DELETE:
                rows.pop(key, None)
            else:
                rows[key] = event.values, event.seq
    return rows
