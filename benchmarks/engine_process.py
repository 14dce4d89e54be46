"""One engine in a process of its own, kept warm: a request a line in, an answer a line out.

    python -m benchmarks.engine_process puredelta|delta-spark|delta-rs|arrow-copy

Requests and answers are JSON objects (`benchmarks.engines`). Only opening the table and the
command itself are timed; what a command reads lazily it reads within that time.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import pyarrow.parquet as pq

from benchmarks.processes import forget_peaks, peaks, processor_seconds
from benchmarks.requests import Answer, Command, Request


class Engine(Protocol):
    """What runs requests."""

    def prepare(self, request: Request) -> Command:
        """Return the command to time."""
        ...

    def report(self) -> Answer:
        """Tell what only the engine knows since `prepare`: Spark jobs, the heap."""
        ...


class ArrowCopy:
    """A copy of files by Arrow with one thread: each is decoded and encoded."""

    def prepare(self, request: Request) -> Command:
        target = Path(request["target"])
        target.mkdir(parents=True)
        return partial(
            self._copy, [*request["files"], request["source"]], target / "copied.parquet"
        )

    def report(self) -> Answer:
        return {}

    def _copy(self, files: Sequence[str], target: Path) -> None:
        for file in files:
            rows = pq.read_table(file, use_threads=False, partitioning=None)
            pq.write_table(rows, target)


def serve(engine: Engine, requests: Any, answers: Any) -> None:
    """Answer requests until there are none left."""
    for line in requests:
        try:
            answer = measured(engine, json.loads(line))
        except Exception as failure:  # noqa: BLE001 - the driver reports it and goes on
            answer = {"error": f"{type(failure).__name__}: {failure}"[:2_000]}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


def measured(engine: Engine, request: Request) -> Answer:
    """Run one request."""
    command = engine.prepare(request)
    forget_peaks()
    started, used = time.perf_counter(), processor_seconds()
    command()
    seconds = time.perf_counter() - started
    used = processor_seconds() - used
    memory = peaks()
    return {"seconds": seconds, "cpu_seconds": used, "memory_mb": memory, **engine.report()}


def engine_of(product: str) -> Engine:
    """Start an engine; the environment says how big a Spark driver is."""
    engine: Engine
    if product == "arrow-copy":
        return ArrowCopy()
    if product == "delta-rs":
        engine = importlib.import_module("benchmarks.rust_engine").RustEngine()
        return engine
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    engine = importlib.import_module("benchmarks.spark_engine").SparkEngine(
        product,
        os.environ.get("PUREDELTA_BENCH_MASTER", "local[2]"),
        os.environ.get("PUREDELTA_BENCH_MEMORY", "8g"),
    )
    return engine


def main() -> None:
    # What libraries print must not end up between the answers.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    serve(engine_of(sys.argv[1]), sys.stdin, answers)


if __name__ == "__main__":
    main()
