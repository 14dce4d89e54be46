"""Start of this package's code in a Spark task: unpacking, and settings of the process.

It needs the standard library only, so any worker can unpack it. A worker that lacks numpy or
pyarrow says so in one line, instead of a stack trace in its log.

After every task a worker looks through all its objects for garbage (``gc.collect``). With pyarrow
and Spark's own modules loaded that takes 30 to 45 ms of a core, while the driver goes on and needs
that core. ``gc.freeze`` tells the collector that what is loaded by now stays.

What other tasks of the same worker hold at that moment and drop later in cycles is never
collected either: once per worker, no more than it held.

glibc gives memory back to the system as soon as the end of its heap is free. A lookup makes some
arrays of a megabyte for each file and frees them, so half of its time was the system's, for pages
that it had just given back. `KeepMemory` lets a worker keep 64 MB.

Since 4.3 Spark sends a task in two pieces: the code, then the rows. Its socket holds the second,
small piece back until the first is acknowledged (Nagle's algorithm). The worker's kernel holds the
acknowledgement back for 40 ms, because the worker answers nothing (delayed acknowledgement).
Spark had the same between workers and its state server and mended it there (SPARK-51667). From the
worker's side it can be mended while the first piece is unpacked: `Quickack` sets ``TCP_QUICKACK``.

Only the connection to Spark is touched, on Linux only. The kernel forgets the option after some
messages, and nothing else about the connection changes.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import pickle
import socket
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import FrameType, ModuleType
from typing import Any, TypeAlias

UNPACKED = "puredelta_worker_functions"
"""A module of this name has the functions that a worker has unpacked, by their packed code."""
_MOST_UNPACKED = 16

Task: TypeAlias = tuple[int, bytes]
"""The number of the function that is called, and its packed argument."""
TaskAnswer: TypeAlias = tuple[int, str | None, Any]
"""The number of the function, why this worker cannot run it, and what it returned."""


def run_task(functions: Sequence[bytes], task: Task) -> list[TaskAnswer]:
    """Unpack the function of a task and its argument, call it, and return its one answer."""
    number, argument = task
    try:
        function, message = unpacked(functions[number]), pickle.loads(argument)  # noqa: S301
    except ImportError as missing:
        return [(number, f"{type(missing).__name__} on a worker: {missing}", None)]
    return [(number, None, function(message))]


def run_rows(functions: Sequence[bytes], batches: Iterable[Any]) -> Iterator[Any]:
    """Run the tasks that come as rows of Arrow, and yield each answer as a row."""
    for batch in batches:
        for row in batch.to_pylist():
            (answer,) = run_task(functions, (row["function"], row["argument"]))
            yield batch.from_pydict({"answer": [pickle.dumps(answer)]})


def run_stream(function: bytes, argument: Any, batches: Iterable[Any]) -> Iterator[Any]:
    """Unpack a function, and yield what it makes of a stream of Arrow batches."""
    yield from unpacked(function)(argument, batches)


def unpacked(code: bytes) -> Callable[..., Any]:
    """Return the function that was packed (pickled, then compressed by zlib).

    A worker unpacks it once, for all the tasks that it runs: that takes milliseconds a task.
    Functions of this package keep nothing from one call to the next.
    """
    known = _known_functions()
    if code not in known:
        function = pickle.loads(zlib.decompress(code))  # noqa: S301 - our own
        while len(known) >= _MOST_UNPACKED:
            del known[next(iter(known))]
        known[code] = function
    return known[code]


def _known_functions() -> dict[bytes, Callable[..., Any]]:
    """Return what this worker has unpacked. Code that travels has no module of its own."""
    module = sys.modules.setdefault(UNPACKED, ModuleType(UNPACKED))
    known: dict[bytes, Callable[..., Any]] = vars(module).setdefault("functions", {})
    return known


def after_arrival(_arrivals: Sequence[object], work: Callable[[Any], Any], batch: Any) -> Any:
    """Return what ``work`` answers to a batch.

    The first argument matters on its way only: objects that act when a worker unpacks them, such
    as `puredelta.worker.bootstrap.Quickack`.
    """
    return work(batch)


FROZEN = "puredelta_worker_is_frozen"
"""An empty module of this name says that a worker has been frozen before."""


class Freeze:
    """Unpacked in a worker, it takes everything that is loaded for no garbage."""

    def __reduce__(self) -> tuple[Callable[[], None], tuple[()]]:
        """Travel as a call, which leaves nothing but None in the worker."""
        return freeze_once, ()


def freeze_once() -> None:
    """Take what is loaded for no garbage: once the worker has pyarrow, and only once.

    What comes later may be garbage. To ask the collector how much is frozen would take as long as
    the search that is spared.
    """
    if "pyarrow" in sys.modules and FROZEN not in sys.modules:
        sys.modules[FROZEN] = ModuleType(FROZEN)
        gc.freeze()


KEPT = "puredelta_worker_keeps_memory"
"""An empty module of this name says that a worker keeps freed memory."""
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
"""The names of glibc's parameters in ``mallopt``."""
KEPT_BYTES = 64 << 20
LARGE_BYTES = 8 << 20
"""Larger blocks go back to the system at once."""


class KeepMemory:
    """Unpacked in a worker, it lets the worker keep some of the memory that it frees."""

    def __reduce__(self) -> tuple[Callable[[], None], tuple[()]]:
        """Travel as a call, which leaves nothing but None in the worker."""
        return keep_memory_once, ()


def keep_memory_once() -> None:
    """Let glibc keep freed memory for the next batch; with another C library nothing happens.

    Without that each array of a batch is new memory of the system, page by page.
    """
    if KEPT in sys.modules:
        return
    sys.modules[KEPT] = ModuleType(KEPT)
    with contextlib.suppress(ImportError, OSError, AttributeError, TypeError):
        mallopt = importlib.import_module("ctypes").CDLL(None).mallopt
        mallopt(_TRIM_THRESHOLD, KEPT_BYTES)
        mallopt(_MMAP_THRESHOLD, LARGE_BYTES)


class Quickack:
    """Unpacked in a worker, it acknowledges what the worker has received from Spark."""

    def __reduce__(self) -> tuple[Callable[[], None], tuple[()]]:
        """Travel as a call, which leaves nothing but None in the worker."""
        return acknowledge, ()


def acknowledge() -> None:
    """Acknowledge what this worker has received from Spark; elsewhere nothing happens."""
    quickack = getattr(socket, "TCP_QUICKACK", None)
    stream = _spark_stream(sys._getframe())  # noqa: SLF001
    # With a default timeout, a socket object would make the connection return early from now on.
    if quickack is None or stream is None or socket.getdefaulttimeout() is not None:
        return
    copy = os.dup(stream.fileno())
    try:
        connection = socket.socket(fileno=copy)
    except OSError:
        os.close(copy)
        return
    with connection, contextlib.suppress(OSError):  # a Unix domain socket has no such option
        connection.setsockopt(socket.IPPROTO_TCP, quickack, 1)


def _spark_stream(frame: FrameType | None) -> Any:
    """Return what the worker reads its tasks from, ``None`` outside of a worker.

    The code of a task is unpacked below PySpark's ``main(infile, outfile)``.
    """
    while frame is not None:
        if frame.f_code.co_name == "main" and "infile" in frame.f_code.co_varnames:
            return frame.f_locals["infile"]
        frame = frame.f_back
    return None
