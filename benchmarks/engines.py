"""The engines that are compared, and the processes they run in."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent


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
    )
}
MAIN = ("puredelta", "delta-spark", "delta-rs", "spark-copy")


class EngineProcess:
    """A warm process that answers requests one by one."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._process = subprocess.Popen(
            [python_of(name), "-m", "benchmarks.engine_process", name],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYSPARK_PYTHON": python_of(name)},
        )

    def ask(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Send a request and wait for its answer."""
        if self._process.stdin is None or self._process.stdout is None:
            raise RuntimeError("the pipes of the process are missing")
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            return {"error": f"the process of {self.name} died"}
        answer: dict[str, Any] = json.loads(line)
        return answer

    def close(self) -> None:
        """Let the process end."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        try:
            self._process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            self._process.kill()


def python_of(process: str) -> str:
    """Return the interpreter whose environment has the engine."""
    if process != "delta-spark":
        return sys.executable
    own = ROOT / ".venv-reference" / "bin" / "python"
    return os.environ.get("PUREDELTA_BENCH_REFERENCE_PYTHON", str(own))
