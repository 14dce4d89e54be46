"""Keeps Spark's Python workers from idling between a task's arrival and its work.

Shipped by value: it knows the standard library only.

Two things make a small task take several times as long as what it does:

* Since 4.3 Spark sends a task in two pieces: the code, then the rows. Its socket holds the
  second, small one back until the first is acknowledged (Nagle's algorithm), and the worker's
  kernel holds the acknowledgement back for 40 ms because the worker answers nothing (delayed
  acknowledgement). Spark had the same between workers and its state server, and mended it there
  (SPARK-51667). From the worker's side it can be mended while the first piece is unpacked.
* After every task a worker looks through all its objects for garbage: 40 ms of a core for what
  importing pyarrow leaves, while the driver goes on and needs it.
"""

from __future__ import annotations

import contextlib
import gc
import os
import socket
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

_OPEN_FILES = "/proc/self/fd"
SPARED = "puredelta_worker_is_prompt"
"""An empty module of this name says that a process has been here before."""


class Prompt:
    """Unpacked in a worker, it makes the worker prompt; nothing else comes out of it."""

    def __reduce__(self) -> tuple[Callable[[], None], tuple[()]]:
        """Travel as a call."""
        return make_prompt, ()


def answered(_prompt: Prompt | None, work: Callable[[Any], Any], batch: Any) -> Any:
    """Return what ``work`` answers to a batch; the first argument matters on its way only."""
    return work(batch)


def make_prompt() -> None:
    """Acknowledge what has arrived, and take what is loaded for no garbage."""
    acknowledge_at_once()
    # Between tasks, with nothing of ours unpacked: only what stays anyway is spared. Once: what
    # comes later may be garbage. To ask how much is spared takes as long as to look through it.
    if "pyarrow" in sys.modules and SPARED not in sys.modules:
        sys.modules[SPARED] = ModuleType(SPARED)
        gc.freeze()


def acknowledge_at_once() -> None:
    """Acknowledge what this process's connections have received; where Linux is, else nothing.

    The option lasts for some messages only, and nothing else about a connection changes.
    """
    quick = getattr(socket, "TCP_QUICKACK", None)
    # A default timeout would make connections that are looked at return early from then on.
    if quick is None or socket.getdefaulttimeout() is not None:
        return
    if not os.path.isdir(_OPEN_FILES):  # noqa: PTH112
        return
    for name in os.listdir(_OPEN_FILES):  # noqa: PTH208 - text in, text out
        try:
            copy = os.dup(int(name))
        except OSError:
            continue  # that of the listing
        try:
            connection = socket.socket(fileno=copy)
        except OSError:
            os.close(copy)
            continue
        with connection, contextlib.suppress(OSError):  # not of this kind
            connection.setsockopt(socket.IPPROTO_TCP, quick, 1)
