"""Each command, once without a kill, then once for every point at which its driver can die."""

from __future__ import annotations

import json
import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from pyspark.sql import SparkSession

from puredelta.log.commit.commit_request import Phase
from puredelta.store.local import LocalStore
from simulation.kills.drivers import kill_within_job, run_copy, was_killed
from simulation.kills.points import Points, noted, watched
from simulation.sweep.commands import EVERY
from simulation.sweep.copies import Copies
from simulation.sweep.injection import Killed
from simulation.sweep.judge import State, broken_rules, state_of
from simulation.sweep.subject import Subject
from simulation.sweep.use_again import catalog_rules, use_again

WITHIN_JOB = "within a job that writes data files"
_RACED = (Phase.LOST_RACE, Phase.REBASED)
_WRITES = (
    "merge",
    "update",
    "delete",
    "insert",
    "create",
    "optimize",
    "drop mapping",
    "drop widening",
)
"""Commands whose driver is killed together with its JVM in the middle of a job."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What a command finds, and what becomes of it."""

    template: Path
    before: State
    after: State
    points: Mapping[str, int]
    """The points it reaches, and the newest version at that moment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One kill."""

    point: str
    version: int
    """The newest one when the driver dies."""
    has_rival: bool
    """Whether another commit comes before that of the driver."""


def _kind(point: str) -> str:
    return point.partition(" #")[0]


class Kills:
    """All points of some commands, tried on copies of small tables."""

    def __init__(
        self, spark: SparkSession, directory: Path, subjects: Mapping[str, Subject] = EVERY
    ) -> None:
        self._spark, self._directory, self._subjects = spark, directory, subjects
        self._copies = Copies(spark, directory)
        self.killed: Counter[str] = Counter()
        """Drivers, by command."""
        self.by_point: Counter[str] = Counter()
        self.violations: list[str] = []

    def run(self, name: str, *, every: bool = True) -> None:
        """Kill a driver at every point of a command, and within its job if it has one.

        If not ``every``, only at the first point of each kind.
        """
        subject = self._subjects[name]
        found = self.unharmed(name)
        trials = self._trials(subject, found)
        firsts = {(_kind(trial.point), trial.has_rival): trial for trial in reversed(trials)}
        for trial in trials if every else firsts.values():
            self._judge(name, trial.point, partial(self.at_point, name, found, trial))
        if name in _WRITES:
            self._judge(name, WITHIN_JOB, partial(self._within_job, name, subject, found))

    def _trials(self, subject: Subject, found: Found) -> list[Trial]:
        alone = [Trial(point=p, version=v, has_rival=False) for p, v in found.points.items()]
        if found.before.version < 0:
            return alone
        raced = self._raced(subject, found)
        return alone + [Trial(point=p, version=v, has_rival=True) for p, v in raced.items()]

    def _judge(self, name: str, point: str, kill: Callable[[], list[str]]) -> None:
        try:
            rules = kill()
        except Exception as error:  # noqa: BLE001 - whatever it is, it is a violation
            rules = [f"it cannot be used: {error!r:.500}"]
        self.killed[name] += 1
        self.by_point[_kind(point)] += 1
        self.violations += [f"{name}: {point}: {rule}" for rule in rules]

    def unharmed(self, name: str) -> Found:
        """Run a command on a copy of its table, and return what becomes of it."""
        subject = self._subjects[name]
        template = self._copies.template_of(name)
        template.mkdir(parents=True)
        subject.prepare(self._spark, template)
        before = state_of(LocalStore(template / "table"))
        root = self._copies.enter(subject, template)
        points = self._reached(subject, root, rival=False)
        after = state_of(LocalStore(root / "table"))
        self._forget(subject, root)
        return Found(template=template, before=before, after=after, points=points)

    def _raced(self, subject: Subject, found: Found) -> Mapping[str, int]:
        """Return the points that only a commit reaches which another one comes before."""
        root = self._copies.enter(subject, found.template)
        points = self._reached(subject, root, rival=True)
        self._forget(subject, root)
        names = {f"phase {phase.name}" for phase in _RACED}
        return {p: version for p, version in points.items() if _kind(p) in names}

    def _reached(self, subject: Subject, root: Path, *, rival: bool) -> Mapping[str, int]:
        status, _ = self._driver(subject, root, fatal="", rival=rival)
        if status:
            raise RuntimeError(root.with_suffix(".failure").read_text())
        return noted(root.with_suffix(".notes"))

    def _driver(self, subject: Subject, root: Path, *, fatal: str, rival: bool) -> tuple[int, str]:
        table = root / "table"
        points = Points(
            root=table,
            notes=root.with_suffix(".notes"),
            fatal=fatal,
            at_staged=(lambda: _commit_of_rival(table)) if rival else None,
        )

        def run() -> None:
            with watched(points):
                subject.run(self._spark, str(root))

        failure = root.with_suffix(".failure")
        status = run_copy(self._spark, run, failure)
        return status, failure.read_text() if failure.exists() else ""

    def at_point(self, name: str, found: Found, trial: Trial) -> list[str]:
        """Kill a driver at a point, and return what is wrong with the table."""
        subject = self._subjects[name]
        root = self._copies.enter(subject, found.template)
        status, failure = self._driver(subject, root, fatal=trial.point, rival=trial.has_rival)
        if not was_killed(status):
            return [f"the driver was not killed: it ended with {status} {failure[-300:]}"]
        now = state_of(LocalStore(root / "table"))
        rules = broken_rules(found.before, found.after, now, failed=Killed(), known=False)
        if now.version != trial.version:
            rules.append(f"it was killed at version {trial.version}, and {now.version} is there")
        if trial.has_rival and _RIVAL not in now.commits.get(
            _commit(found.before.version + 1), b""
        ):
            rules.append("the commit of a rival is gone")
        return rules or self._used_again(subject, found, root, now)

    def _within_job(self, name: str, subject: Subject, found: Found) -> list[str]:
        root = self._copies.enter(subject, found.template)
        arguments = [name, str(root)]
        log = self._directory / "victims.log"
        if not kill_within_job("simulation.kills.victim", arguments, root, log):
            return [f"no data file appeared: {log.read_text()[-500:]}"]
        now = state_of(LocalStore(root / "table"))
        rules = broken_rules(found.before, found.before, now, failed=Killed(), known=True)
        shutil.rmtree(root.with_suffix(".session"), ignore_errors=True)
        return rules or self._used_again(subject, found, root, now)

    def _used_again(self, subject: Subject, found: Found, root: Path, now: State) -> list[str]:
        rules = catalog_rules(self._spark, subject, now, Killed())
        if not rules:
            rules = use_again(self._spark, subject, root, now, found.after)
        self._forget(subject, root)
        return rules

    def _forget(self, subject: Subject, root: Path) -> None:
        self._copies.forget(subject, root)
        root.with_suffix(".notes").unlink(missing_ok=True)

    def line_of(self, name: str) -> str:
        """Return what a command has to say."""
        broken = [rule for rule in self.violations if rule.startswith(f"{name}: ")]
        head = f"{name:20}{self.killed[name]:4} drivers killed: {len(broken)} violations"
        return "\n".join([head, *(f"    {rule}" for rule in broken)])

    def summary(self) -> Iterator[str]:
        """Yield sums over all commands."""
        yield ""
        yield f"{self.killed.total():6,} drivers killed with kill -9:"
        yield from (f"{count:6,} {point}" for point, count in self.by_point.most_common())
        yield f"{len(self.violations):6,} violations"


_RIVAL = b'"txn":{"appId":"rival"'


def _commit(version: int) -> str:
    return f"{version:020}.json"


def _commit_of_rival(table: Path) -> None:
    """Commit the next version before the driver does; nothing that it has read changes."""
    log = table / "_delta_log"
    newest = max(int(file.stem) for file in log.glob("*.json"))
    info = {"timestamp": int(time.time() * 1000), "operation": "STREAMING UPDATE"}
    lines = [{"commitInfo": info}, {"txn": {"appId": "rival", "version": 1}}]
    content = "\n".join(json.dumps(line, separators=(",", ":")) for line in lines).encode()
    LocalStore(log).put_if_absent(_commit(newest + 1), content)
