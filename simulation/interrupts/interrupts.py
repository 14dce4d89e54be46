"""Statements run unharmed, then interrupted at random moments; table and session are judged."""

from __future__ import annotations

import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from pyspark.sql import SparkSession

import puredelta
from puredelta.log.replay.table_log import TableLog
from puredelta.spark.jvm.gateway import insist
from puredelta.store.local import LocalStore
from simulation.interrupts.ctrl_c import interrupted
from simulation.sweep.commands import EVERY
from simulation.sweep.copies import Copies
from simulation.sweep.judge import State, broken_rules, rubbish, state_of
from simulation.sweep.subject import Subject
from simulation.sweep.use_again import catalog_rules, use_again

COMMANDS = ("merge", "merge, vectors", "update", "optimize", "convert", "drop mapping")
"""What is interrupted unless others are asked for."""
JOBS_END_WITHIN_S = 5.0
"""Tasks of a job that was cancelled may need a moment."""
_LATE = 0.95
"""Part of a statement's time in which the signal comes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What a statement finds, what becomes of it, and how long that takes."""

    template: Path
    before: State
    after: State
    seconds: float


class Interrupts:
    """Random moments of some statements, tried on copies of small tables with one session."""

    def __init__(self, spark: SparkSession, directory: Path, *, seed: int = 0) -> None:
        self._spark, self._random = spark, Random(seed)
        self._copies = Copies(spark, directory)
        self.outcomes: Counter[tuple[str, str]] = Counter()
        """By command, and what was raised or that the signal came too late."""
        self.left: Counter[str] = Counter()
        """Files of statements that changed nothing, which waited for VACUUM, by command."""
        self.violations: list[str] = []
        self._handlers: Mapping[str, Any] = {
            "Spark's handler": signal.getsignal(signal.SIGINT),
            "Python's handler": signal.default_int_handler,
        }

    def run(self, name: str, moments: int) -> None:
        """Interrupt a statement that many times, under both handlers in turn."""
        found = self._unharmed(name)
        number = late = 0
        while number < moments and late < 2 * moments:
            handler = list(self._handlers)[number % len(self._handlers)]
            delay_s = self._random.uniform(0, _LATE * found.seconds)
            signal.signal(signal.SIGINT, self._handlers[handler])
            try:
                how, rules = self._try(EVERY[name], found, delay_s)
            except Exception as error:  # noqa: BLE001 - whatever it is, it is a violation
                how, rules = "unusable", [f"it cannot be used: {error!r:.500}"]
            self.outcomes[name, how] += 1
            label = f"{name}: {handler}, after {delay_s:.3f} s, {how}"
            self.violations += [f"{label}: {rule}" for rule in rules]
            if how == "too late":
                late += 1
            else:
                number += 1

    def _unharmed(self, name: str) -> Found:
        subject = EVERY[name]
        template = self._copies.template_of(name)
        template.mkdir(parents=True)
        subject.prepare(self._spark, template)
        before = state_of(LocalStore(template / "table"))
        self._timed(subject, template)  # warms up
        seconds, after = self._timed(subject, template)
        return Found(template=template, before=before, after=after, seconds=seconds)

    def _timed(self, subject: Subject, template: Path) -> tuple[float, State]:
        root = self._copies.enter(subject, template)
        began = time.monotonic()
        subject.run(self._spark, str(root))
        seconds = time.monotonic() - began
        after = state_of(LocalStore(root / "table"))
        self._copies.forget(subject, root)
        return seconds, after

    def _try(self, subject: Subject, found: Found, delay_s: float) -> tuple[str, list[str]]:
        root = self._copies.enter(subject, found.template)
        known = self._traces()
        sent, failed = interrupted(lambda: subject.run(self._spark, str(root)), delay_s)
        rules = [] if failed is None or sent else [f"it failed by itself: {failed!r:.300}"]
        rules += self._running()
        store = LocalStore(root / "table")
        now = state_of(store)
        rules += broken_rules(found.before, found.after, now, failed=failed, known=False)
        rules += catalog_rules(self._spark, subject, now, failed)
        rules += [f"{what} is left" for what in sorted(self._traces() - known)]
        if now.version >= 0:
            rules += self._queried(root, now)
        if 0 <= now.version == found.before.version:
            known_files = rubbish(LocalStore(found.template / "table"), TableLog(store).snapshot())
            left = set(rubbish(store, TableLog(store).snapshot())) - set(known_files)
            self.left[subject_name(subject)] += len(left)
        rules += use_again(self._spark, subject, root, now, found.after)
        if not rules and subject.drops is None and 0 <= now.version == found.before.version:
            subject.run(self._spark, str(root))
        if state_of(store).rows != found.after.rows:
            rules.append("repeated, the statement makes other rows")
        self._copies.forget(subject, root)
        return type(failed).__name__ if failed is not None else "too late", rules

    def _queried(self, root: Path, now: State) -> list[str]:
        rows = puredelta.read(self._spark, str(root / "table")).select("id", "v").collect()
        return [] if Counter(map(tuple, rows)) == now.rows else ["a query finds other rows"]

    def _running(self) -> list[str]:
        """Return what still runs in the session after a while."""
        return [
            f"{what} run on"
            for what, count in (("jobs", self._jobs), ("threads", _threads))
            if not _becomes_zero(count)
        ]

    def _jobs(self) -> int:
        # The first call after the interrupt, of whose connection the JVM may know nothing.
        return insist(lambda: len(self._spark.sparkContext.statusTracker().getActiveJobsIds()))

    def _traces(self) -> set[str]:
        """Return what a statement could leave in the session."""
        settings = self._spark.conf.getAll
        views = {table.name for table in self._spark.catalog.listTables() if table.isTemporary}
        return {
            *(f"setting {key}={value}" for key, value in dict(settings).items()),
            *(f"view {name}" for name in views),
            *(f"tag {tag}" for tag in self._spark.sparkContext.getJobTags()),
        }

    def lines_of(self, name: str) -> Iterator[str]:
        """Yield what a command has to say."""
        counts = {how: count for (of, how), count in self.outcomes.items() if of == name}
        told = ", ".join(f"{count} x {how}" for how, count in sorted(counts.items()))
        broken = [rule for rule in self.violations if rule.startswith(f"{name}: ")]
        left = self.left[subject_name(EVERY[name])]
        yield f"{name:20}{told}; {left} files left for VACUUM: {len(broken)} violations"
        yield from (f"    {rule}" for rule in broken)


def subject_name(subject: Subject) -> str:
    """Return the name of a command."""
    return next(name for name, each in EVERY.items() if each is subject)


def _threads() -> int:
    return sum(thread.name.startswith("puredelta") for thread in threading.enumerate())


def _becomes_zero(count: Callable[[], int]) -> bool:
    until = time.monotonic() + JOBS_END_WITHIN_S
    while count():
        if time.monotonic() > until:
            return False
        time.sleep(0.02)
    return True
