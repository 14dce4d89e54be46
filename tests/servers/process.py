"""A server as a process that ends with the test, whatever happens to the test."""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from pathlib import Path

LOOPBACK = "127.0.0.1"
START_SECONDS = 600
"""A busy machine takes minutes to start a JVM; a server that ends is noticed at once."""
_STOP_SECONDS = 10


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        port: int = probe.getsockname()[1]
        return port


def program(name: str) -> str | None:
    """Find a program in the folder SERVERS_BIN, or on the path."""
    folders = [os.environ.get("SERVERS_BIN", ""), os.environ.get("PATH", "")]
    return shutil.which(name, path=os.pathsep.join(folder for folder in folders if folder))


class Server:
    """A process in a session of its own. Start it in the main thread, which it does not outlive."""

    def __init__(
        self, command: Sequence[object], log: Path, env: dict[str, str] | None = None
    ) -> None:
        self.log = log
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("ab") as output:  # a pipe that nobody reads would stop the server
            self.process = subprocess.Popen(
                [str(part) for part in command],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**os.environ, **(env or {})},
                start_new_session=True,
                preexec_fn=_die_with_parent,  # noqa: PLW1509 - there is none yet
            )

    def wait_until(self, is_ready: Callable[[], bool]) -> None:
        end = time.monotonic() + START_SECONDS
        while not is_ready():
            if self.process.poll() is not None or time.monotonic() > end:
                text = self.log.read_text(errors="replace")[-5_000:]
                self.stop()
                raise RuntimeError(f"{self.process.args} is not there:\n{text}")
            time.sleep(0.05)

    def says(self, text: str) -> Callable[[], bool]:
        return lambda: text in self.log.read_text(errors="replace")

    def stop(self) -> None:
        for number in (signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError, subprocess.TimeoutExpired):
                os.killpg(self.process.pid, number)
                self.process.wait(_STOP_SECONDS)
        self.process.wait()


def answers(url: str) -> Callable[[], bool]:
    """Return a question: does anything answer at an address, be it with an error?"""

    def ask() -> bool:
        try:
            urllib.request.urlopen(url, timeout=1).close()
        except urllib.error.HTTPError:
            return True
        except OSError:
            return False
        return True

    return ask


def _die_with_parent() -> None:
    if hasattr(os, "posix_fadvise"):  # Linux
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)
