"""Workers acknowledge what they are sent before they go on."""

from __future__ import annotations

import io
import os
import pickle
import socket
import sys
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import BinaryIO

import pytest
from pyspark import cloudpickle
from pyspark.sql import SparkSession

from puredelta.spark.offload.workers import WorkerSettings, low_latency
from puredelta.worker.bootstrap import Quickack, acknowledge

PYSPARK = tuple(map(int, version("pyspark").split(".")[:2]))
linux = pytest.mark.skipif(sys.platform != "linux", reason="an option of Linux")


@pytest.fixture
def connections() -> Iterator[tuple[socket.socket, socket.socket]]:
    """Return two connections of this process that acknowledge nothing at once."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        near = [socket.create_connection(server.getsockname()) for _ in range(2)]
        one, other = (server.accept()[0] for _ in range(2))
    with near[0], near[1], one, other:
        for connection in (one, other):
            if sys.platform == "linux":
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 0)
        yield one, other


def is_quick(connection: socket.socket) -> bool:
    assert sys.platform == "linux"
    return bool(connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK))


def main(infile: BinaryIO, unpack: Callable[[], None]) -> None:
    """Stand for what PySpark's workers run: a task is unpacked below a function of this name."""
    unpack()


def worker(connection: socket.socket, unpack: Callable[[], None]) -> None:
    """Unpack something as a worker does that has this connection to Spark."""
    with os.fdopen(os.dup(connection.fileno()), "rb") as infile:
        main(infile, unpack)


def open_files() -> set[str]:
    return {path.name for path in Path("/proc/self/fd").iterdir()}


@linux
def test_what_is_unpacked_acknowledges_for_its_worker_only(
    connections: tuple[socket.socket, socket.socket],
) -> None:
    """Other connections of a worker belong to the user."""
    own, other = connections
    payload: bytes = cloudpickle.dumps(Quickack())  # type: ignore[no-untyped-call]
    before = open_files()
    worker(own, lambda: pickle.loads(payload))
    assert (is_quick(own), is_quick(other)) == (True, False)
    assert open_files() == before
    assert own.getblocking()


@linux
def test_outside_of_a_worker_nothing_happens(
    connections: tuple[socket.socket, socket.socket],
) -> None:
    acknowledge()
    assert not any(map(is_quick, connections))


@linux
def test_a_default_timeout_keeps_hands_off(
    connections: tuple[socket.socket, socket.socket],
) -> None:
    own, _ = connections
    socket.setdefaulttimeout(5)
    try:
        worker(own, acknowledge)
    finally:
        socket.setdefaulttimeout(None)
    assert not is_quick(own)
    assert own.getblocking()


def test_without_the_option_nothing_happens(
    connections: tuple[socket.socket, socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(socket, "TCP_QUICKACK", raising=False)
    own, _ = connections
    worker(own, acknowledge)
    assert own.getblocking()


def test_what_is_no_connection_is_left_alone(tmp_path: Path) -> None:
    before = open_files() if sys.platform == "linux" else set()
    pair = socket.socketpair()
    with pair[0], pair[1]:
        worker(pair[0], acknowledge)  # no TCP
        pair[1].sendall(b"x")
        assert pair[0].recv(1) == b"x"
    (tmp_path / "file").write_bytes(b"")
    with (tmp_path / "file").open("rb") as infile:
        main(infile, acknowledge)
    assert sys.platform != "linux" or open_files() == before


def quick_tasks(spark: SparkSession, settings: WorkerSettings, num_tasks: int) -> int:
    """Count the tasks that begin to work on an acknowledged connection."""

    def ask(batches: Iterator[int]) -> list[bool]:
        frame = sys._getframe()
        while frame.f_code.co_name != "main" or "infile" not in frame.f_locals:
            assert frame.f_back is not None
            frame = frame.f_back
        infile = frame.f_locals["infile"]
        assert isinstance(infile, io.BufferedReader)
        with socket.socket(fileno=os.dup(infile.fileno())) as connection:
            return [bool(connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK))]

    tasks = spark.sparkContext.parallelize(range(num_tasks), num_tasks)
    return sum(tasks.mapPartitions(low_latency(ask, settings)).collect())


@linux
@pytest.mark.skipif(PYSPARK < (4, 3), reason="tasks come in one piece there")
def test_tasks_of_workers_are_acknowledged(spark: SparkSession) -> None:
    """A task that is not waits for 40 ms, whatever else it takes on this machine."""
    assert quick_tasks(spark, WorkerSettings(), 20) == 20
