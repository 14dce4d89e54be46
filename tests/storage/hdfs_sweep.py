"""Every call of Hadoop's client goes wrong once; the table on HDFS is judged without Spark.

A fault strikes one call of `HadoopFiles`: nothing happened, it happened and the answer is lost, a
part was written, or the driver is killed before or after. Data files are written by Spark's own
tasks, whose calls are Spark's.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import itertools
import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

from pyspark.sql import SparkSession

from puredelta.errors import CommitUnknownError
from puredelta.spark.jvm.hadoop import HadoopFiles
from puredelta.spark.session.storage import session_storage
from puredelta.store.base import StorageError, Store
from simulation.sweep.injection import Injector, Killed, Kind, Place, jvm_cut_off
from simulation.sweep.judge import State, broken_rules, state_of
from simulation.sweep.session import forget_driver
from simulation.sweep.subject import Subject
from tests.storage.bucket_sweep import SUBJECTS, copy_files, used_again

_CALLS = [
    "list",
    "size",
    "read",
    "read_range",
    "create",
    "create_conditionally",
    "rename",
    "move",
    "make_directories",
    "delete",
    "exists",
]
_WRITES = ("create", "create_conditionally")
_KINDS = (
    Kind.IO_BEFORE,
    Kind.IO_AFTER,
    Kind.DENIED_BEFORE,
    Kind.SHORT,
    Kind.KILLED_BEFORE,
    Kind.KILLED_AFTER,
)
_roots = itertools.count()


@contextlib.contextmanager
def _struck(injector: Injector) -> Iterator[list[str]]:
    """Let the injector's own call go wrong; yield the calls of the block below its root."""
    calls: list[str] = []
    with contextlib.ExitStack() as patches:
        for name in _CALLS:
            call = _call(injector, calls, name, getattr(HadoopFiles, name))
            patches.enter_context(patch.object(HadoopFiles, name, call))
        patches.enter_context(jvm_cut_off(injector))
        yield calls


def _call(
    injector: Injector, calls: list[str], name: str, original: Callable[..., Any]
) -> Callable[..., Any]:
    @functools.wraps(original)
    def call(files: HadoopFiles, path: str, *args: Any, **kwargs: Any) -> Any:
        if not files.root_uri.startswith(injector.root):
            return original(files, path, *args, **kwargs)
        calls.append(name)
        kind = injector.meet(Place.STORE, f"{name} {path}")
        if kind is None:
            return original(files, path, *args, **kwargs)
        if kind is Kind.SHORT and name in _WRITES:  # threads may come in another order
            content = args[0]
            original(files, path, content[: len(content) // 2], *args[1:], **kwargs)
        elif kind.happens:
            original(files, path, *args, **kwargs)
        if kind.kills:
            raise injector.die()
        error = PermissionError if kind.number == errno.EACCES else StorageError
        raise error(kind.number, os.strerror(kind.number), path)

    return call


class HdfsSweep:
    """Tries points of some commands on copies of small tables below a location."""

    def __init__(self, spark: SparkSession, directory: Path, location: str) -> None:
        self._spark, self._directory, self._location = spark, directory, location
        self.tried: Counter[tuple[str, str, str]] = Counter()
        """By command, fault, and how it ended."""
        self.violations: list[str] = []

    def run(self, name: str, every: int) -> None:
        """Try each so-manieth point of a command."""
        subject = SUBJECTS[name]
        template = Path(tempfile.mkdtemp(dir=self._directory))
        subject.prepare(self._spark, template)
        root = self._copy(template)
        before = state_of(self._store(root))
        counting = Injector(root)
        with _struck(counting) as calls:
            subject.run(self._spark, root)
        states = before, state_of(self._store(root))
        self._forget(subject)
        points = [
            (nth, kind)
            for nth, call in enumerate(calls, 1)
            for kind in _KINDS
            if kind is not Kind.SHORT or call in _WRITES
        ]
        for nth, kind in points[::every]:
            injector = Injector(self._copy(template), Place.STORE, nth, kind)
            try:
                found = self._try(name, states, injector)
            except Exception as error:  # noqa: BLE001 - whatever it is, it is a violation
                found = [f"cannot be read: {error!r:.500}"]
            label = f"{name}: call {nth}, {kind.value} [{injector.hit}]"
            self.violations += [f"{label}: {rule}" for rule in found]
        shutil.rmtree(template)

    def _try(self, name: str, states: tuple[State, State], injector: Injector) -> list[str]:
        subject, (before, after) = SUBJECTS[name], states
        failed: BaseException | None = None
        with _struck(injector):
            try:
                subject.run(self._spark, injector.root)
            except (Exception, Killed) as error:  # noqa: BLE001 - judged by the table
                failed = error
        if isinstance(failed, Killed):
            forget_driver(self._spark)
        known = not isinstance(failed, CommitUnknownError | Killed)
        ended = type(failed).__name__ if failed else "succeeded"
        self.tried[name, injector.kind.value, ended] += 1
        store = self._store(injector.root)
        now = state_of(store)
        found = broken_rules(before, after, now, failed=failed, known=known)
        self._forget(subject)
        if not found:
            found = used_again(self._spark, subject, store, injector.root, (now, after))
            self._forget(subject)
        return found

    def _copy(self, template: Path) -> str:
        """Put the files of a template below the location; return where they are now."""
        root = f"{self._location}/{next(_roots)}"
        copy_files(template, session_storage(self._spark).open(root))
        return root

    def _store(self, root: str) -> Store:
        return session_storage(self._spark).open(f"{root}/table")

    def _forget(self, subject: Subject) -> None:
        if subject.table is not None:
            self._spark.sql(f"DROP TABLE IF EXISTS {subject.table}")

    def lines(self) -> Iterator[str]:
        """Yield how often commands ended how."""
        for (name, fault, end), count in sorted(self.tried.items()):
            yield f"{name:20} {fault:32} {end:24} {count:5}"
        yield f"{self.tried.total()} points, {len(self.violations)} violations"
