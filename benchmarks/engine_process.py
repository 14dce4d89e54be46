"""One engine in a process of its own, kept warm: a request a line in, an answer a line out.

    python -m benchmarks.engine_process puredelta|delta-spark|delta-rs

Requests and answers are JSON objects (`benchmarks.engines`). Only opening the table and the
command itself are timed; what a command reads lazily it reads within that time.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import sys
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Protocol, TypeAlias

Request: TypeAlias = Mapping[str, Any]
Answer: TypeAlias = dict[str, Any]
Command: TypeAlias = Callable[[], object]


class Engine(Protocol):
    """What runs requests."""

    def prepare(self, request: Request) -> Command:
        """Return the command to time."""
        ...

    def jobs(self) -> Answer:
        """Describe the Spark jobs since `prepare`; nothing for an engine without."""
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
    return {"seconds": seconds, "cpu_seconds": used, "memory_mb": peaks(), **engine.jobs()}


# --- Spark ----------------------------------------------------------------------------------


class SparkEngine:
    """puredelta or delta-spark, and Spark's own copy of files."""

    def __init__(self, product: str, master: str, driver_memory: str) -> None:
        from pyspark.sql import SparkSession  # noqa: PLC0415 - delta-rs runs without

        builder = (
            SparkSession.builder.master(master)
            .config("spark.driver.memory", driver_memory)
            .config("spark.ui.enabled", "false")
            .config("spark.ui.showConsoleProgress", "false")
            .config("spark.sql.session.timeZone", "UTC")
        )
        self._product = product
        if product == "delta-spark":
            builder = importlib.import_module("delta").configure_spark_with_delta_pip(
                builder.config(
                    "spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension"
                ).config(
                    "spark.sql.catalog.spark_catalog",
                    "org.apache.spark.sql.delta.catalog.DeltaCatalog",
                )
            )
        self._spark = builder.getOrCreate()
        self._spark.sparkContext.setLogLevel("ERROR")
        self._jobs_before = 0
        self._started_ms = 0

    def prepare(self, request: Request) -> Command:
        spark = self._spark
        command: Command
        if request["do"] == "merge":
            source = spark.read.parquet(request["source"])
            command = partial(self._merge, request, source)
        elif request["do"] == "convert":
            command = partial(self._convert, request)
        else:
            command = partial(self._copy, request)
        self._jobs_before = len(self._job_times())
        return command

    def jobs(self) -> Answer:
        new = self._job_times()[self._jobs_before :]
        return {"jobs": len(new), "job_seconds": covered(new) / 1_000}

    def _merge(self, request: Request, source: Any) -> None:
        table = self._delta_table().forPath(self._spark, request["table"])
        merge = table.alias("t").merge(source.alias("s"), request["on"])
        for kind, condition in request["clauses"]:
            match kind:
                case "update":
                    merge = merge.whenMatchedUpdateAll(condition)
                case "delete":
                    merge = merge.whenMatchedDelete(condition)
                case "insert":
                    merge = merge.whenNotMatchedInsertAll(condition)
                case _:
                    merge = merge.whenNotMatchedBySourceDelete(condition)
        merge.execute()

    def _convert(self, request: Request) -> None:
        identifier = f"parquet.`{request['table']}`"
        convert = self._delta_table().convertToDelta
        if request["partition_schema"] is None:
            convert(self._spark, identifier)
        else:
            convert(self._spark, identifier, request["partition_schema"])

    def _copy(self, request: Request) -> None:
        """Read and write what any engine must: no search, no join, no log."""
        spark = self._spark
        rows = spark.read.parquet(request["source"])
        if request["files"]:
            old = spark.read.parquet(*request["files"])
            rows = old.unionByName(rows, allowMissingColumns=True)
        rows.write.parquet(request["target"])

    def _delta_table(self) -> Any:
        package = "delta" if self._product == "delta-spark" else "puredelta"
        return importlib.import_module(f"{package}.tables").DeltaTable

    def _job_times(self) -> list[tuple[int, int]]:
        """Return begin and end of every job so far, in milliseconds, oldest first."""
        context: Any = self._spark.sparkContext._jsc.sc()  # noqa: SLF001
        context.listenerBus().waitUntilEmpty()  # else a job that is over may not be known yet
        jobs = context.statusStore().jobsList(None)
        found = []
        for n in range(jobs.size()):
            job = jobs.apply(n)
            begun, ended = job.submissionTime(), job.completionTime()
            if begun.isDefined() and ended.isDefined():
                found.append((job.jobId(), begun.get().getTime(), ended.get().getTime()))
        return [(begun, ended) for _, begun, ended in sorted(found)]


def covered(spans: list[tuple[int, int]]) -> int:
    """Return how long at least one of the spans lasted."""
    result, reached = 0, 0
    for begun, ended in sorted(spans):
        result += max(0, ended - max(begun, reached))
        reached = max(reached, ended)
    return result


# --- delta-rs -------------------------------------------------------------------------------


class RustEngine:
    """deltalake."""

    def prepare(self, request: Request) -> Command:
        if request["do"] == "convert":
            return partial(self._convert, request)
        return partial(self._merge, request)

    def jobs(self) -> Answer:
        return {}

    def _merge(self, request: Request) -> None:
        import pyarrow.parquet as pq  # noqa: PLC0415
        from deltalake import DeltaTable  # noqa: PLC0415

        source = pq.read_table(request["source"], partitioning=None)
        merge = DeltaTable(request["table"]).merge(
            source, request["on"], source_alias="s", target_alias="t"
        )
        for kind, condition in request["clauses"]:
            match kind:
                case "update":
                    merge = merge.when_matched_update_all(condition)
                case "delete":
                    merge = merge.when_matched_delete(condition)
                case "insert":
                    merge = merge.when_not_matched_insert_all(condition)
                case _:
                    merge = merge.when_not_matched_by_source_delete(condition)
        merge.execute()

    def _convert(self, request: Request) -> None:
        from deltalake import Field, Schema, convert_to_deltalake  # noqa: PLC0415
        from deltalake.schema import PrimitiveType  # noqa: PLC0415

        if request["partition_schema"] is None:
            convert_to_deltalake(request["table"])
        else:
            name = request["partition_schema"].split()[0]
            partitions = Schema([Field(name, PrimitiveType("integer"))])
            convert_to_deltalake(
                request["table"], partition_by=partitions, partition_strategy="hive"
            )


# --- memory and processor time --------------------------------------------------------------


def processor_seconds() -> float:
    """Return what this process and all it started have used, those that ended included (Linux)."""
    ticks = 0
    for pid in _family():
        with contextlib.suppress(OSError):
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
            ticks += sum(map(int, fields[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def forget_peaks() -> None:
    """Start the peaks of this process and those it started anew (Linux)."""
    for pid in _family():
        with contextlib.suppress(OSError):
            Path(f"/proc/{pid}/clear_refs").write_text("5")


def peaks() -> dict[str, float]:
    """Return the peak resident memory of Java and of Python processes since, in MB (Linux)."""
    found = {"java": 0.0, "python": 0.0}
    for pid in _family():
        try:
            status = Path(f"/proc/{pid}/status").read_text()
        except OSError:
            continue
        fields = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
        kind = "java" if "java" in fields["Name"] else "python"
        found[kind] += int(fields.get("VmHWM", "0").split()[0]) / 1024
    return found


def _family() -> list[int]:
    """Return this process and all that descend from it."""
    parents: dict[int, int] = {}
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            after_name = status.read_text().rpartition(") ")[2]
        except OSError:
            continue
        parents[int(status.parent.name)] = int(after_name.split()[1])
    family = [os.getpid()]
    for pid in family:
        family += [child for child, parent in parents.items() if parent == pid]
    return family


def main() -> None:
    product = sys.argv[1]
    # What libraries print must not end up between the answers.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    engine: Engine
    if product == "delta-rs":
        engine = RustEngine()
    else:
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        engine = SparkEngine(
            product,
            os.environ.get("PUREDELTA_BENCH_MASTER", "local[2]"),
            os.environ.get("PUREDELTA_BENCH_MEMORY", "8g"),
        )
    serve(engine, sys.stdin, answers)


if __name__ == "__main__":
    main()
