"""The sweep: a command without a fault first, then once for every point and kind."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

from pyspark.sql import SparkSession

from puredelta.errors import CommitUnknownError
from puredelta.store.local import LocalStore
from simulation.sweep.commands import EVERY
from simulation.sweep.copies import Copies
from simulation.sweep.injection import Injector, Killed, Kind, Place, injected, places
from simulation.sweep.judge import State, broken_rules, state_of
from simulation.sweep.session import forget_driver
from simulation.sweep.subject import Subject
from simulation.sweep.use_again import catalog_rules, use_again


def _store(root: Path) -> LocalStore:
    return LocalStore(root / "table")


class Sweep:
    """All points of some commands, tried on copies of small tables with one session."""

    def __init__(
        self,
        spark: SparkSession,
        directory: Path,
        *,
        until: float,
        subjects: Mapping[str, Subject] = EVERY,
    ) -> None:
        self._spark, self._until = spark, until
        self._subjects = subjects
        self._copies = Copies(spark, directory)
        self.num_points: dict[str, int] = {}
        """How many points there are, by command."""
        self.tried: Counter[tuple[str, Place, Kind]] = Counter()
        self.left_out: Counter[str] = Counter()
        """Points for which there was no time."""
        self.ended: Counter[tuple[str, str]] = Counter()
        self.violations: list[str] = []

    def run(self, name: str, *, every: int = 1) -> None:
        """Try the points of a command: all, or each so-manieth."""
        subject = self._subjects[name]
        template = self._copies.template_of(name)
        template.mkdir(parents=True)
        subject.prepare(self._spark, template)
        before = state_of(_store(template))
        counting, after = self._unharmed(subject, template)
        everything = list(places(counting.counts))
        self.num_points[name] = len(everything)
        points = everything[::every]
        for tried, (place, nth, kind) in enumerate(points):
            if time.monotonic() > self._until:
                self.left_out[name] += len(points) - tried
                return
            self.tried[name, place, kind] += 1
            label = f"{name}: {place.value} {nth}, {kind.value}"
            try:
                found = self._try(subject, template, (before, after), (place, nth, kind))
            except Exception as error:  # noqa: BLE001 - whatever it is, it is a violation
                found = [f"cannot be read: {error!r:.500}"]
            self.violations += [f"{label}: {rule}" for rule in found]

    def _unharmed(self, subject: Subject, template: Path) -> tuple[Injector, State]:
        root = self._copies.make(template)
        injector = Injector(str(root))
        subject.enter(self._spark, root)
        with injected(injector, root.with_suffix(".workers")):
            subject.run(self._spark, str(root))
        after = state_of(_store(root))
        self._forget(subject, root)
        return injector, after

    def _try(
        self,
        subject: Subject,
        template: Path,
        states: tuple[State, State],
        point: tuple[Place, int, Kind],
    ) -> list[str]:
        before, after = states
        root = self._copies.make(template)
        place, nth, kind = point
        injector = Injector(str(root), place, nth, kind)
        failed: BaseException | None = None
        subject.enter(self._spark, root)
        with injected(injector, root.with_suffix(".workers")):
            try:
                subject.run(self._spark, str(root))
            except (Exception, Killed) as error:  # noqa: BLE001 - judged by the table
                failed = error
        if isinstance(failed, Killed):
            forget_driver(self._spark)
        known = not isinstance(failed, CommitUnknownError | Killed)
        self.ended["failed" if failed else "succeeded", type(failed).__name__] += 1
        now = state_of(_store(root))
        found = broken_rules(before, after, now, failed=failed, known=known)
        found += catalog_rules(self._spark, subject, now, failed)
        found = [f"{rule} [{injector.hit}]" for rule in found]
        if not found:
            found = use_again(self._spark, subject, root, now, after)
        self._forget(subject, root)
        return found

    def _forget(self, subject: Subject, root: Path) -> None:
        self._copies.forget(subject, root)

    def lines_of(self, name: str) -> Iterator[str]:
        """Yield what a command has to say."""
        counts = {
            place: sum(n for (of, at, _), n in self.tried.items() if of == name and at is place)
            for place in Place
        }
        listed = ", ".join(f"{count} x {place.value}" for place, count in counts.items() if count)
        broken = sum(violation.startswith(f"{name}: ") for violation in self.violations)
        left = f", {self.left_out[name]} left out" if self.left_out[name] else ""
        tried = f"{sum(counts.values()):6,} of {self.num_points[name]:,} points"
        yield f"{name:20}{tried} ({listed}){left}: {broken} violations"
        yield from (f"    {v}" for v in self.violations if v.startswith(f"{name}: "))

    def summary(self) -> Iterator[str]:
        """Yield sums over all commands."""
        yield ""
        num_points = sum(self.num_points.values())
        yield f"{self.tried.total():,} of {num_points:,} points of (command, n, kind):"
        kinds = Counter[Kind]()
        for (_, _, kind), count in self.tried.items():
            kinds[kind] += count
        yield from (f"{count:8,} {kind.value}" for kind, count in kinds.most_common())
        for (how, error), count in self.ended.most_common():
            yield f"{count:8,} {how}{'' if how == 'succeeded' else f' with {error}'}"
        yield f"{len(self.violations):8,} violations"
