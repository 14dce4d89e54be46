"""Workers acknowledge what they are sent before they go on."""

from __future__ import annotations

import gc
import pickle
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import pytest
from pyspark import cloudpickle
from pyspark.sql import SparkSession

from puredelta.spark.offload import workers
from puredelta.spark.offload.workers import collect_if_fit
from puredelta.worker import tcp_quickack
from puredelta.worker.tcp_quickack import Prompt, acknowledge_at_once

PYSPARK = tuple(map(int, version("pyspark").split(".")[:2]))
linux = pytest.mark.skipif(sys.platform != "linux", reason="an option of Linux")


@pytest.fixture
def connection() -> Iterator[tuple[socket.socket, socket.socket]]:
    """Return both ends of a connection; nothing is acknowledged at once by the second."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        near = socket.create_connection(server.getsockname())
        far, _ = server.accept()
    with near, far:
        if sys.platform == "linux":
            far.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 0)
        yield near, far


def is_quick(connection: socket.socket) -> bool:
    assert sys.platform == "linux"
    return bool(connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK))


def open_files() -> set[str]:
    return {path.name for path in Path("/proc/self/fd").iterdir()}


@linux
def test_what_is_unpacked_acknowledges(connection: tuple[socket.socket, socket.socket]) -> None:
    _, far = connection
    payload: bytes = cloudpickle.dumps(Prompt())  # type: ignore[no-untyped-call]
    assert not is_quick(far)
    before = open_files()
    try:
        assert pickle.loads(payload) is None
    finally:
        gc.unfreeze()
        sys.modules.pop(tcp_quickack.SPARED, None)
    assert is_quick(far)
    assert open_files() == before


@pytest.mark.parametrize(("loaded", "spared"), [("json", False), ("pyarrow", True)])
def test_what_stays_is_looked_through_no_more(loaded: str, spared: bool) -> None:
    """Once a worker has the libraries, and once only: what comes later may be garbage."""
    program = f"""
import gc, runpy, {loaded}
make_prompt = runpy.run_path({tcp_quickack.__file__!r})["make_prompt"]
count, asked, counts = gc.get_freeze_count, [], []
gc.get_freeze_count = lambda: asked.append(1) or count()
for _ in range(2):
    make_prompt()
    counts.append(count())
    kept = [[] for _ in range(100)]
print(counts[0] > 10_000, counts[0] == counts[1], asked)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    # To ask how many they are takes as long as to look through them.
    assert done.stdout.decode().split() == [str(spared), "True", "[]"]


@linux
def test_what_comes_next_comes_at_once(connection: tuple[socket.socket, socket.socket]) -> None:
    near, far = connection
    near.sendall(b"one")
    assert far.recv(10) == b"one"
    acknowledge_at_once()
    near.sendall(b"two")
    time.sleep(0.01)
    assert far.recv(10, socket.MSG_DONTWAIT) == b"two"
    assert far.getblocking()
    pair = socket.socketpair()
    with pair[0], pair[1]:
        acknowledge_at_once()  # no TCP
        pair[0].sendall(b"x")
        assert pair[1].recv(1) == b"x"


@linux
def test_a_default_timeout_keeps_hands_off(
    connection: tuple[socket.socket, socket.socket],
) -> None:
    _, far = connection
    socket.setdefaulttimeout(5)
    try:
        acknowledge_at_once()
    finally:
        socket.setdefaulttimeout(None)
    assert not is_quick(far)
    assert far.getblocking()


def test_elsewhere_nothing_happens(
    connection: tuple[socket.socket, socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(socket, "TCP_QUICKACK", raising=False)
    acknowledge_at_once()
    _, far = connection
    assert far.getblocking()


@linux
@pytest.mark.skipif(PYSPARK < (4, 3), reason="tasks come in one piece there")
def test_tasks_of_workers_do_not_wait(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """Others wait for 40 ms each, whatever else a task takes on this machine."""
    numbers = [[n] for n in range(60)]

    def seconds() -> float:
        started = time.perf_counter()
        assert collect_if_fit(spark.sparkContext, numbers, list) == list(range(60))
        return time.perf_counter() - started

    prompt, waiting = [], []
    for _ in range(3):
        prompt.append(seconds())
        with monkeypatch.context() as patch:
            patch.setattr(workers, "promptly", lambda work: work)
            waiting.append(seconds())
    saved_per_task = (min(waiting) - min(prompt)) / 60 * spark.sparkContext.defaultParallelism
    assert saved_per_task > 0.02
