"""The first code of this package that runs in a Spark task: it unpacks all other code, if it can.

It needs the standard library only, so any worker can unpack it. A worker that lacks numpy or
pyarrow says so in one line, instead of a stack trace in its log.
"""

from __future__ import annotations

import pickle
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import ModuleType
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
    as `puredelta.worker.tcp_quickack.Quickack`.
    """
    return work(batch)
