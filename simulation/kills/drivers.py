"""Drivers to kill: copies of this process that share its JVM, and ones that take theirs along.

Starting a session takes ten seconds, running a small statement a half. At most points the JVM
has nothing to do, so a copy of the driver (a fork) dies there, by a real ``kill -9`` with whatever
Python, Arrow and the kernel hold of it, and the JVM stays. Within a job that is not the same:
there a driver of its own is killed together with its JVM and its workers.
"""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import subprocess
import sys
import time
import traceback
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from threading import local
from typing import Any

from pyspark.sql import SparkSession

from puredelta.protocol.actions.log_paths import LOG_DIRECTORY

_STARTED_S_MAX = 900.0
"""A session starts in seconds, on a machine that others use in minutes."""
_POLL_S = 0.02
_GONE_S = 0.5
"""How long workers may outlive their JVM."""


def run_copy(spark: SparkSession, run: Callable[[], object], failure: Path) -> int:
    """Run something in a copy of this process; return its wait status.

    0 is an end without an error; a traceback is written to ``failure``.
    """
    gc.collect()
    pid = os.fork()
    if pid:
        return os.waitpid(pid, 0)[1]
    code = 1
    try:
        _take_connections_of_its_own(spark)
        run()
        code = 0
    except BaseException:  # noqa: BLE001 - a copy must never go on as if it were the original
        failure.write_text(traceback.format_exc())
    finally:
        os._exit(code)


def was_killed(status: int) -> bool:
    """Return whether a wait status is that of kill -9."""
    return os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL


_inherited: list[Any] = []
"""Connections of the original: to close them would close them there, too."""


def _take_connections_of_its_own(spark: SparkSession) -> None:
    gateway: Any = spark.sparkContext._gateway  # noqa: SLF001 - Py4J's
    client = gateway._gateway_client  # noqa: SLF001
    _inherited.extend([*client.deque, client.thread_connection])
    client.deque = deque()
    client.thread_connection = local()


def kill_within_job(module: str, arguments: Sequence[str], root: Path, log: Path) -> bool:
    """Start a driver of its own and kill it, its JVM and its workers when a data file appears.

    Returns whether that came to pass.
    """
    before = set(root.rglob("*"))
    with log.open("a") as output:
        process = subprocess.Popen(  # noqa: S603 - our own module
            [sys.executable, "-m", module, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    give_up = time.monotonic() + _STARTED_S_MAX
    appeared: set[Path] = set()
    try:
        while not appeared and process.poll() is None and time.monotonic() < give_up:
            time.sleep(_POLL_S)
            there = set(root.rglob("*.parquet")) - before
            appeared = {file for file in there if LOG_DIRECTORY not in file.parts}
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    time.sleep(_GONE_S)
    return bool(appeared)
