"""One fault at one place: the n-th call of a store, or the n-th write of data files.

Calls are counted where the library meets the operating system, Spark and the workers, so nothing of
it is replaced: `LocalStore`'s methods, the writer of a frame, the end of a worker's file. A fault
that kills lets nothing through that comes later, neither to the disk nor to the JVM, as when the
driver's process is gone.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import itertools
import os
import shutil
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any
from unittest.mock import patch

import py4j.java_gateway
from pyspark import cloudpickle
from pyspark.sql.readwriter import DataFrameWriter

from puredelta.spark.session import data_access
from puredelta.spark.session.concurrent_jobs import BACKGROUND
from puredelta.store.base import StorageError, Store
from puredelta.store.local import LocalStore
from puredelta.worker.files import NewFile
from simulation.sweep import worker_fault

cloudpickle.register_pickle_by_value(worker_fault)  # type: ignore[no-untyped-call]

_CALLS = tuple(name for name in vars(Store) if not name.startswith("_") and name != "root_uri")
_PUTS = ("put", "put_if_absent")
_RELEASES = "m\n"
"""What the garbage collector tells the JVM: it may come at any time, and changes nothing."""


class Place(Enum):
    """What is counted."""

    STORE = "store call"
    SPARK_WRITE = "Spark write"
    """A job that writes data files."""
    WORKER_WRITE = "worker write"
    """A data file that a Python worker writes."""


class Kind(Enum):
    """What goes wrong."""

    IO_BEFORE = "EIO, nothing happened"
    FULL_BEFORE = "ENOSPC, nothing happened"
    DENIED_BEFORE = "EACCES, nothing happened"
    IO_AFTER = "EIO after it happened"
    DENIED_AFTER = "EACCES after it happened"
    SHORT = "ENOSPC after a part was written"
    CUT = "a part is lost, without an error"
    LOST = "all is lost, without an error"
    TASK_FAILED = "a task fails after its first row"
    KILLED_BEFORE = "kill -9 of the driver before"
    KILLED_AFTER = "kill -9 of the driver after"

    @property
    def kills(self) -> bool:
        """Whether the driver is gone."""
        return self in {Kind.KILLED_BEFORE, Kind.KILLED_AFTER}

    @property
    def happens(self) -> bool:
        """Whether what was asked for is done nevertheless."""
        return self in {Kind.IO_AFTER, Kind.DENIED_AFTER, Kind.KILLED_AFTER}

    @property
    def left(self) -> float | None:
        """The share of a worker's file that is there afterwards; ``None``: there is none."""
        return 1.0 if self.happens else 0.5 if self in {Kind.SHORT, Kind.CUT} else None

    @property
    def number(self) -> int:
        """The number of the operating system's error."""
        return 0 if self in _SILENT else _NUMBERS.get(self, errno.EIO)


_NUMBERS = {
    Kind.FULL_BEFORE: errno.ENOSPC,
    Kind.SHORT: errno.ENOSPC,
    Kind.DENIED_BEFORE: errno.EACCES,
    Kind.DENIED_AFTER: errno.EACCES,
}

_SILENT = frozenset({Kind.CUT, Kind.LOST})

KINDS = {
    Place.STORE: tuple(kind for kind in Kind if kind not in {Kind.TASK_FAILED, *_SILENT}),
    Place.SPARK_WRITE: tuple(kind for kind in Kind if kind not in _SILENT),
    Place.WORKER_WRITE: (
        Kind.IO_BEFORE,
        Kind.FULL_BEFORE,
        Kind.DENIED_BEFORE,
        Kind.IO_AFTER,
        Kind.SHORT,
        Kind.CUT,
        Kind.LOST,
    ),
}


class Killed(BaseException):
    """The driver is gone."""


@dataclass(slots=True)
class Injector:
    """Counts, and lets one call go wrong. ``nth`` counts from 1; 0 lets all pass."""

    root: str
    """Only stores at or below this path count."""
    place: Place = Place.STORE
    nth: int = 0
    kind: Kind = Kind.IO_BEFORE
    counts: dict[Place, int] = field(default_factory=lambda: dict.fromkeys(Place, 0))
    hit: str = ""
    """What went wrong, once it has."""
    is_dead: bool = False
    lock: threading.Lock = field(default_factory=threading.Lock)

    def meet(self, place: Place, what: str) -> Kind | None:
        """Count a call, and return what is to go wrong with it."""
        if self.is_dead:
            raise Killed
        with self.lock:
            self.counts[place] += 1
            if place is not self.place or self.counts[place] != self.nth:
                return None
            self.hit = what
            return self.kind

    def die(self) -> Killed:
        """Let nothing through from now on."""
        self.is_dead = True
        return Killed()


@contextlib.contextmanager
def injected(injector: Injector, scratch: Path) -> Iterator[None]:
    """Count the calls of the block, and let the injector's go wrong.

    ``scratch`` is a new directory, where workers count; it is removed at the end.
    """
    scratch.mkdir(parents=True)
    finish = worker_fault.failing(
        NewFile.finish,
        str(scratch),
        injector.nth if injector.place is Place.WORKER_WRITE else 0,
        injector.kind.number,
        injector.kind.left,
    )
    with contextlib.ExitStack() as patches:
        # Last of all: a second thread may pack the code for workers until the patches are gone.
        patches.callback(data_access.packed_code.cache_clear)
        patches.callback(shutil.rmtree, scratch)
        for name in _CALLS:
            store_call = _store_call(injector, name, getattr(LocalStore, name))
            patches.enter_context(patch.object(LocalStore, name, store_call))
        parquet = _parquet(injector, DataFrameWriter.parquet)
        patches.enter_context(patch.object(DataFrameWriter, "parquet", parquet))
        patches.enter_context(patch.object(NewFile, "finish", finish))
        patches.enter_context(jvm_cut_off(injector))
        data_access.packed_code.cache_clear()
        try:
            yield
        finally:
            num_files = len(list(scratch.iterdir()))
            injector.counts[Place.WORKER_WRITE] = num_files
            if injector.place is Place.WORKER_WRITE and 0 < injector.nth <= num_files:
                injector.hit = "a worker's file"


def _store_call(injector: Injector, name: str, original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def call(store: LocalStore, *args: Any, **kwargs: Any) -> Any:
        def run() -> Any:
            answer = original(store, *args, **kwargs)
            return iter(list(answer)) if name in {"list_from", "walk", "inventory"} else answer

        path = store.root_uri.removeprefix("file:")
        if not path.startswith(injector.root):
            return run()
        kind = injector.meet(Place.STORE, f"{name} {args[0] if args else ''}")
        if kind is None:
            return run()
        if kind is Kind.SHORT and name in _PUTS:
            _leave_part(Path(path) / args[0], args[1])
        if kind.happens:
            run()
        if kind.kills:
            raise injector.die()
        error = PermissionError if kind.number == errno.EACCES else StorageError
        raise error(kind.number, os.strerror(kind.number), args[0] if args else path)

    return call


def _leave_part(target: Path, content: bytes) -> None:
    """Leave what a store leaves that cannot even remove its temporary file."""
    target.parent.mkdir(parents=True, exist_ok=True)
    (target.parent / ".0123456789abcdef0123456789abcdef.tmp").write_bytes(
        content[: len(content) // 2]
    )


def _parquet(injector: Injector, original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def parquet(writer: Any, path: str, *args: Any, **kwargs: Any) -> Any:
        kind = injector.meet(Place.SPARK_WRITE, f"parquet {Path(path).name}")
        if kind is None:
            return original(writer, path, *args, **kwargs)
        if kind is Kind.TASK_FAILED:
            first = "monotonically_increasing_id() % 8589934592 < 1"
            failing = f"if({first}, true, raise_error('Input/output error'))"
            return original(writer._df.where(failing).write, path)  # noqa: SLF001 - its frame
        if kind.happens or kind is Kind.SHORT:
            original(writer, path, *args, **kwargs)
        if kind is Kind.SHORT:
            for file in Path(path.removeprefix("file:")).rglob("*.parquet"):
                os.truncate(file, file.stat().st_size // 2)
        if kind.kills:
            raise injector.die()
        raise RuntimeError(os.strerror(kind.number))

    return parquet


@contextlib.contextmanager
def jvm_cut_off(injector: Injector) -> Iterator[None]:
    """Let nothing reach the JVM once the driver is dead, until the block ends.

    A job that a second thread of the driver had begun runs on in this JVM, which was not killed.
    The block waits for that thread, so that the table is at rest when somebody looks at it.
    """
    client = py4j.java_gateway.GatewayClient
    report = threading.excepthook
    with (
        patch.object(client, "send_command", _send(injector, client.send_command)),
        patch.object(threading, "excepthook", lambda args: args.exc_type is Killed or report(args)),
    ):
        try:
            yield
        finally:
            if injector.is_dead:
                for thread in threading.enumerate():
                    if thread.name == BACKGROUND:
                        thread.join()
            injector.is_dead = False


def _send(injector: Injector, original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def send(client: Any, command: str, *args: Any, **kwargs: Any) -> Any:
        if injector.is_dead and not command.startswith(_RELEASES):
            raise Killed
        return original(client, command, *args, **kwargs)

    return send


def places(counts: dict[Place, int]) -> Iterator[tuple[Place, int, Kind]]:
    """Yield every fault of a command that makes so many calls."""
    for place, count in counts.items():
        yield from (
            (place, nth, kind) for nth, kind in itertools.product(range(1, count + 1), KINDS[place])
        )
