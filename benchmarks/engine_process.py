"""One engine in a process of its own, kept warm: a request a line in, an answer a line out.

    python -m benchmarks.engine_process puredelta|delta-spark|delta-rs

Requests and answers are JSON objects (`benchmarks.engines`). Only opening the table and the
command itself are timed; what a command reads lazily it reads within that time.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import time
from typing import Any, Protocol

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
