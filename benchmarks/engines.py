"""The engines that are compared, and the processes they run in."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.requests import Request

ROOT = Path(__file__).parent.parent
_ENDING_SECONDS = 10.0
_CLOSING_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Engine:
    """A column of the report."""

    name: str
    process: str
    """Engines of one process share it."""
    deletion_vectors: bool = False
    merges: bool = True
    """Otherwise it only copies the files a merge must touch."""

    @property
    def converts(self) -> bool:
        return self.merges and not self.deletion_vectors


ENGINES = {
    engine.name: engine
    for engine in (
        Engine("puredelta", "puredelta"),
        Engine("puredelta-dv", "puredelta", deletion_vectors=True),
        Engine("delta-spark", "delta-spark"),
        Engine("delta-spark-dv", "delta-spark", deletion_vectors=True),
        Engine("delta-rs", "delta-rs"),
        Engine("spark-copy", "puredelta", merges=False),
        Engine("arrow-copy", "arrow-copy", merges=False),
    )
}
MAIN = ("puredelta", "delta-spark", "delta-rs", "spark-copy")


class EngineProcess:
    """A warm process that answers requests one by one."""

    def __init__(
        self, name: str, *, limit_seconds: float, command: Sequence[str] | None = None
    ) -> None:
        self.name = name
        self._limit_seconds = limit_seconds
        python = python_of(name)
        self._process = subprocess.Popen(
            command or [python, "-m", "benchmarks.engine_process", name],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYSPARK_PYTHON": python},
        )

    @property
    def is_running(self) -> bool:
        """Whether it will take another request."""
        return self._process.poll() is None

    def ask(self, request: Request) -> dict[str, Any]:
        """Send a request and wait for its answer; one that takes too long is the last.

        A process that died, or was stopped, answers with an ``error``.
        """
        if self._process.stdin is None or self._process.stdout is None:
            raise RuntimeError("the pipes of the process are missing")
        late = threading.Event()

        def stop() -> None:
            late.set()
            self._process.kill()

        timer = threading.Timer(self._limit_seconds, stop)
        timer.start()
        try:
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        except OSError:
            line = ""
        finally:
            timer.cancel()
        if line:
            answer: dict[str, Any] = json.loads(line)
            return answer
        self._end(_ENDING_SECONDS)
        if late.is_set():
            return {"error": f"{self.name} took longer than {self._limit_seconds:g} s"}
        return {"error": f"the process of {self.name} died ({self._process.returncode})"}

    def close(self) -> None:
        """Let the process end."""
        if self._process.stdin is not None:
            with contextlib.suppress(OSError):  # it has ended, something was left to be sent
                self._process.stdin.close()
        self._end(_CLOSING_SECONDS)

    def _end(self, seconds: float) -> None:
        try:
            self._process.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def python_of(process: str) -> str:
    """Return the interpreter whose environment has the engine."""
    if process != "delta-spark":
        return sys.executable
    own = ROOT / ".venv-reference" / "bin" / "python"
    return os.environ.get("PUREDELTA_BENCH_REFERENCE_PYTHON", str(own))
