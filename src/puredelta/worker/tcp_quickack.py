"""Acknowledges a task at once when it arrives in a Python worker, so that the rest of it follows.

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
import os
import socket
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


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
