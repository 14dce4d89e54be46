"""A Spark Connect session in a process of its own, asked everything at once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
SECONDS_MAX = 300


def ask(module: str, directory: Path) -> dict[str, Any]:
    """Run a module that prints its answers as the last line, in JSON; skip without Connect."""
    for package in ("grpc", "google.protobuf", "grpc_status", "pandas"):
        pytest.importorskip(package, reason="Spark Connect needs pyspark[connect]")
    return answers_of(module, directory)


def answers_of(
    module: str, directory: Path, *more: str, seconds_max: int = SECONDS_MAX
) -> dict[str, Any]:
    """Run a module in a process of its own; its last line is its answers, in JSON."""
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)]),
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_SUBMIT_ARGS": "--driver-memory 1g --conf spark.ui.enabled=false pyspark-shell",
        "SPARK_TESTING": "1",  # a free port instead of the fixed one
    }
    run = subprocess.run(
        [sys.executable, "-m", module, str(directory), *more],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=seconds_max,
        check=False,
    )
    assert run.returncode == 0, run.stderr[-3000:]
    found: dict[str, Any] = json.loads(run.stdout.splitlines()[-1])
    return found
