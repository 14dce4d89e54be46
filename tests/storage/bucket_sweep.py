"""Every request of a command goes wrong once, in every way; the table is judged without Spark.

A fault strikes one request, or it and its repetitions, or it and all that follow: obstore repeats
what fails, so the first must be survived, and the others show what is left of a command that gives
up with a store that answers, and with one that does not.
"""

from __future__ import annotations

import itertools
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from enum import Enum
from pathlib import Path
from typing import Any, NamedTuple

from pyspark.sql import SparkSession

from puredelta.errors import CommitUnknownError, InvalidRequestError
from puredelta.log.replay.table_log import TableLog
from puredelta.spark.session.data_access import DataIo
from puredelta.spark.session.delta_conf import IO
from puredelta.spark.write.parquet_job import temporary_settings
from puredelta.store.base import Store
from puredelta.tables import DeltaTable
from simulation.sweep.commands import COMMANDS
from simulation.sweep.judge import State, broken_rules, rubbish, state_of
from simulation.sweep.subject import Subject
from tests.servers import s3
from tests.servers.proxy import Fault, Proxy, Request

RETRIES = 2
_roots = (f"sweep-{number}-" for number in itertools.count())
"""Names in the bucket, which all sweeps of a process share."""
SECONDS = "4s"
"""How long a client waits for an answer."""
_TASK_SECONDS_MAX = 120
SETTINGS = {
    "spark.puredelta.storage.timeout": SECONDS,
    "spark.databricks.delta.retentionDurationCheck.enabled": "false",
}
IMPATIENT_S3A = {
    "fs.s3a.attempts.maximum": f"{RETRIES}",
    "fs.s3a.retry.limit": f"{RETRIES}",
    "fs.s3a.retry.interval": "50ms",
    "fs.s3a.retry.throttle.limit": f"{RETRIES}",
    "fs.s3a.retry.throttle.interval": "50ms",
    "fs.s3a.connection.timeout": SECONDS,
    "fs.s3a.connection.establish.timeout": SECONDS,
    "fs.s3a.connection.request.timeout": SECONDS,
}
"""With its own settings s3a would try for an hour what a silent store does not answer."""
WAYS: Mapping[DataIo, Mapping[str, str]] = {DataIo.ARROW: {}, DataIo.SPARK: IMPATIENT_S3A}
"""Settings of the two ways to data files."""
SUBJECTS: Mapping[str, Subject] = {
    # Objects cannot be made to look old.
    **{n: each for n, each in COMMANDS.items() if n not in ("clean-up", "truncate history")},
    "vacuum": replace(
        COMMANDS["vacuum"],
        run=lambda spark, root: DeltaTable.forPath(spark, f"{root}/table").vacuum(0),
    ),
}


class Extent(Enum):
    """Which requests a fault strikes, beginning with the n-th."""

    ONE = "once"
    SAME = "and its repetitions"
    ALL = "and all that follow"


class Point(NamedTuple):
    """One fault of one command."""

    nth: int
    fault: Fault
    extent: Extent


class Struck:
    """What a proxy is asked of each request; only those below ``root`` count."""

    def __init__(self, root: str, point: Point | None) -> None:
        self._root, self._point = root, point
        self.num_requests = 0
        self.hit: Request | None = None

    def __call__(self, request: Request) -> Fault | None:
        if self._root not in request.path:
            return None
        self.num_requests += 1
        if self._point is None:
            return None
        nth, fault, extent = self._point
        if self.num_requests == nth:
            self.hit = request
        if self.hit is None:
            return None
        strikes = (
            self.num_requests == nth
            or extent is Extent.ALL
            or (extent is Extent.SAME and request == self.hit)
        )
        return fault if strikes else None


@contextmanager
def _own_clients(spark: SparkSession) -> Iterator[None]:
    """Close Hadoop's clients before and after: one that is kept knows another sweep's proxy."""
    jvm: Any = spark.sparkContext._jvm
    file_systems = jvm.org.apache.hadoop.fs.FileSystem
    file_systems.closeAll()
    try:
        yield
    finally:
        file_systems.closeAll()


def _location(root: str) -> str:
    return f"s3a://{s3.BUCKET}/{root}"


def copy_files(template: Path, store: Store) -> None:
    """Put the files of a template into a store, without what Hadoop's local client adds."""
    for file in sorted(template.rglob("*")):
        if file.is_file() and not file.name.endswith(".crc"):
            store.put(file.relative_to(template).as_posix(), file.read_bytes())


def used_again(
    spark: SparkSession, subject: Subject, store: Store, location: str, states: tuple[State, State]
) -> list[str]:
    """Use a table again; return what is wrong.

    A creation is repeated, then VACUUM takes what is left. ``states`` are what the table is, and
    what it is after the command.
    """
    now, after = states
    if now.version < 0:
        try:
            subject.run(spark, location)
        except InvalidRequestError:  # files lie there, which somebody has to remove
            for file in list(store.walk("")):
                store.delete(file.path)
            subject.run(spark, location)
        now = state_of(store)
        if now.rows != after.rows:
            return ["a second try makes another table"]
    _wait_for_tasks(spark)  # what one of them writes after VACUUM is the next one's
    DeltaTable.forPath(spark, f"{location}/table").vacuum(0)
    if state_of(store).rows != now.rows:
        return ["VACUUM changed rows"]
    found = rubbish(store, TableLog(store).snapshot())
    return [f"VACUUM leaves {found[:3]}"] if found else []


def _wait_for_tasks(spark: SparkSession) -> None:
    """Wait for the tasks of a statement that has failed: Spark does not wait for their Python."""
    tracker: Any = spark.sparkContext._jsc.sc().statusTracker()
    until = time.monotonic() + _TASK_SECONDS_MAX
    while any(executor.numRunningTasks() for executor in tracker.getExecutorInfos()):
        assert time.monotonic() < until, "tasks of a failed statement run on"
        time.sleep(0.05)


class BucketSweep:
    """Tries points of some commands on copies of small tables in a bucket."""

    def __init__(self, spark: SparkSession, directory: Path, endpoint: str, way: DataIo) -> None:
        self._spark, self._directory, self._endpoint = spark, directory, endpoint
        self._settings = {**SETTINGS, **WAYS[way], IO.key: way.value}
        self._way = way
        self._storage = s3.storage(endpoint)
        self.tried: Counter[tuple[str, Extent, str]] = Counter()
        """By command, extent, and how it ended."""
        self.violations: list[str] = []

    def run(self, name: str, every: int) -> None:
        """Try each so-manieth point of a command."""
        subject = SUBJECTS[name]
        template = Path(tempfile.mkdtemp(dir=self._directory))
        subject.prepare(self._spark, template)
        with Proxy(self._endpoint) as proxy:
            settings = {**s3.settings(proxy.endpoint), **self._settings}
            with temporary_settings(self._spark, settings), _own_clients(self._spark):
                before, after, num_requests = self._unharmed(subject, template, proxy)
                every_point = itertools.product(range(1, num_requests + 1), Fault, Extent)
                for point in itertools.islice(map(Point._make, every_point), 0, None, every):
                    label = f"{name}: request {point.nth}, {point.fault.name} {point.extent.value}"
                    try:
                        found = self._try(name, template, proxy, (before, after), point)
                    except Exception as error:  # noqa: BLE001 - whatever it is, it is a violation
                        found = [f"cannot be read: {error!r:.500}"]
                    self.violations += [f"{label}: {rule}" for rule in found]
        shutil.rmtree(template)

    def _unharmed(self, subject: Subject, template: Path, proxy: Proxy) -> tuple[State, State, int]:
        root = self._copy(template)
        before = state_of(self._store(root))
        proxy.fault = counted = Struck(root, None)
        subject.run(self._spark, _location(root))
        after = state_of(self._store(root))
        self._forget(subject)
        return before, after, counted.num_requests

    def _try(
        self,
        name: str,
        template: Path,
        proxy: Proxy,
        states: tuple[State, State],
        point: Point,
    ) -> list[str]:
        subject, (before, after) = SUBJECTS[name], states
        root = self._copy(template)
        proxy.fault = struck = Struck(root, point)
        failed: Exception | None = None
        try:
            subject.run(self._spark, _location(root))
        except Exception as error:  # noqa: BLE001 - judged by the table
            failed = error
        proxy.fault = lambda _: None
        known = not isinstance(failed, CommitUnknownError)
        self.tried[name, point.extent, type(failed).__name__ if failed else "succeeded"] += 1
        store = self._store(root)
        now = state_of(store)
        found = broken_rules(before, after, now, failed=failed, known=known)
        once = point.extent is Extent.ONE and not self._is_final(point.fault, struck.hit)
        if failed is not None and once:
            found.append(f"one fault is not survived: {failed!r:.300}")
        found = found or self._afterwards(subject, root, now, after)
        self._forget(subject)
        return [f"{rule} [{struck.hit}]" for rule in found]

    def _is_final(self, fault: Fault, hit: Request | None) -> bool:
        """Return whether a client that is not ours gives up at one fault.

        s3a repeats no listing whose answer breaks off: ``UncheckedIOException`` ends Spark's job.
        """
        listing = hit is not None and "list-type" in hit.path
        return self._way is DataIo.SPARK and fault is Fault.CUT and listing

    def _afterwards(self, subject: Subject, root: str, now: State, after: State) -> list[str]:
        """Use the table again: a creation is repeated, then VACUUM takes what is left."""
        if now.version < 0:
            self._forget(subject)
        return used_again(self._spark, subject, self._store(root), _location(root), (now, after))

    def _copy(self, template: Path) -> str:
        """Put the files of a template into the bucket; return the name of its root there."""
        root = next(_roots)
        copy_files(template, self._storage.open(_location(root)))
        return root

    def _store(self, root: str) -> Store:
        return self._storage.open(f"{_location(root)}/table")

    def _forget(self, subject: Subject) -> None:
        if subject.table is not None:
            self._spark.sql(f"DROP TABLE IF EXISTS {subject.table}")

    def lines(self) -> Iterator[str]:
        """Yield how often commands ended how."""
        for (name, extent, end), count in sorted(self.tried.items(), key=str):
            yield f"{name:20} {extent.value:22} {end:28} {count:5}"
        yield f"{self.tried.total()} points, {len(self.violations)} violations"
