"""A writer's process as its driver sees it: ask, wait, kill."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

LIMIT_S = 900.0
"""A session starts in seconds; on a machine that others use it may take minutes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Product:
    """A library that writes tables, and the Python that has it."""

    name: str
    python: str
    writes_vectors: bool


class RivalProcess:
    """One process of a product; it starts again after it was killed."""

    def __init__(self, product: Product, log: Path) -> None:
        self.product = product
        self._log = log
        self._process: subprocess.Popen[str] | None = None

    def ask(self, message: Mapping[str, Any]) -> dict[str, Any]:
        """Send one message and wait for the answer; ``killed`` if there is none.

        A process that does not answer in time is killed: then nobody knows what it did.
        """
        process = self._started()
        assert process.stdin is not None  # noqa: S101 - both are pipes
        assert process.stdout is not None  # noqa: S101
        watchdog = threading.Timer(LIMIT_S, self.kill)
        watchdog.start()
        try:
            process.stdin.write(json.dumps(message) + "\n")
            process.stdin.flush()
            line = process.stdout.readline()
        except (BrokenPipeError, ValueError):
            line = ""
        finally:
            watchdog.cancel()
        if not line:
            self.kill()
            return {"outcome": "killed"}
        found: dict[str, Any] = json.loads(line)
        return found

    def kill(self) -> None:
        """Kill -9 the process with its JVM."""
        process, self._process = self._process, None
        if process is None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def _started(self) -> subprocess.Popen[str]:
        if self._process is None:
            with self._log.open("a") as log:
                self._process = subprocess.Popen(  # noqa: S603 - our own module
                    [self.product.python, "-m", "simulation.rivals.serve", self.product.name],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=log,
                    text=True,
                    start_new_session=True,
                )
        return self._process
