"""Takes long answers of the driver's JVM as fast as short ones. Classic sessions, on Linux.

Java writes an answer in pieces of 8 KB, and its socket holds the second piece back until the
first is acknowledged (Nagle's algorithm). The kernel on Python's side holds acknowledgements
back for 40 ms, in the hope of a request that could carry them (delayed acknowledgement). So
the schema of a table with 120 columns, or the list of a source's 80 files, takes 40 ms more than
one that fits. `puredelta.worker.tcp_quickack` does the same for tasks.
"""

from __future__ import annotations

import contextlib
import io
import socket
from collections.abc import Iterator
from typing import Any

from pyspark.sql import SparkSession

from puredelta.spark.jvm.classes import gateway_of, has_jvm

_QUICK = getattr(socket, "TCP_QUICKACK", None)


@contextlib.contextmanager
def quick_answers(spark: SparkSession) -> Iterator[None]:
    """Acknowledge at once what arrives for this thread in pieces, until the block ends.

    Examples:
        >>> with quick_answers(spark):  # doctest: +SKIP
        ...     schema = frame.schema
    """
    connection = None if _QUICK is None or not has_jvm(spark) else _connection(spark)
    stream = getattr(connection, "stream", None)
    if connection is None or not isinstance(stream, io.BufferedReader):
        yield  # another version of Py4J, or a block within another
        return
    connection.stream = prompt = QuickackReader(stream, connection.socket)
    try:
        yield
    finally:
        if connection.stream is prompt:  # else it was closed
            connection.stream = stream


class QuickackReader:
    """A stream that asks for the rest of a line when it sees that there is more."""

    def __init__(self, stream: io.BufferedReader, connection: socket.socket) -> None:
        self._stream = stream
        self._connection = connection

    def readline(self, *args: Any) -> bytes:
        """Read a line; after its first piece what has arrived is acknowledged."""
        if _QUICK is not None and b"\n" not in self._stream.peek(1):
            # It lasts until something is sent: a request for every answer.
            with contextlib.suppress(OSError):  # the line will tell what is wrong
                self._connection.setsockopt(socket.IPPROTO_TCP, _QUICK, 1)
        return self._stream.readline(*args)

    def __getattr__(self, name: str) -> Any:
        """Be the stream in all else."""
        return getattr(self._stream, name)


def _connection(spark: SparkSession) -> Any:
    """Return Py4J's connection of this thread, ``None`` where threads share some."""
    of_thread = getattr(gateway_of(spark)._gateway_client, "get_thread_connection", None)
    return None if of_thread is None else of_thread()
