"""puredelta and delta-spark: what both are asked through the same API, and what Spark tells."""

from __future__ import annotations

import importlib
import json
import os
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

from pyspark.sql import SparkSession

from benchmarks.requests import HADOOP, Answer, Command, Kind, Request, with_clauses
from benchmarks.tracing import Tracer
from tests.servers import s3a

_METHODS = {
    Kind.UPDATE: "whenMatchedUpdateAll",
    Kind.DELETE: "whenMatchedDelete",
    Kind.INSERT: "whenNotMatchedInsertAll",
    Kind.DELETE_BY_SOURCE: "whenNotMatchedBySourceDelete",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A Spark job that has ended. Times are milliseconds since the epoch."""

    number: int
    name: str
    begun_ms: int
    ended_ms: int
    tasks: int = 0
    run_seconds: float = 0.0
    """Of all its tasks together."""
    cpu_seconds: float = 0.0
    """What the JVM used for them; Python workers not included."""
    read_bytes: int = 0
    written_bytes: int = 0
    shuffled_bytes: int = 0


class SparkEngine:
    """puredelta or delta-spark, and Spark's own copy of files."""

    def __init__(self, product: str, master: str, driver_memory: str) -> None:
        builder = (
            SparkSession.builder.master(master)
            .config("spark.driver.memory", driver_memory)
            .config("spark.ui.enabled", "false")
            .config("spark.ui.showConsoleProgress", "false")
            .config("spark.sql.session.timeZone", "UTC")
        )
        if master.startswith("local-cluster["):
            megabytes = master.rstrip("]").rpartition(",")[2].strip()
            builder = builder.config("spark.executor.memory", f"{megabytes}m")
        for key, value in json.loads(os.environ.get(HADOOP, "{}")).items():
            builder = builder.config(f"spark.hadoop.{key}", value)
        self._product = product
        if product == "delta-spark":
            builder = _with_delta_spark(
                builder.config(
                    "spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension"
                ).config(
                    "spark.sql.catalog.spark_catalog",
                    "org.apache.spark.sql.delta.catalog.DeltaCatalog",
                )
            )
        self.spark = builder.getOrCreate()
        self.spark.sparkContext.setLogLevel("ERROR")
        self._last_job = -1
        self._tracer: Tracer | None = None

    def prepare(self, request: Request) -> Command:
        command: Command
        self._tracer = Tracer() if request.get("trace") else None
        match request["do"]:
            case "merge":
                source = self.spark.read.parquet(request["source"])
                command = partial(self._merge, request, source)
            case "convert":
                command = partial(self._convert, request)
            case "sql":
                command = self._statement(request)
            case _:
                command = partial(self._copy, request)
        self._last_job = max((job.number for job in self._jobs_since()), default=self._last_job)
        self._heap_pools(reset=True)
        self._wait_for_finalizer()
        return command if self._tracer is None else partial(self._tracer.run, command)

    def report(self) -> Answer:
        heap = sum(self._heap_pools(reset=False)) / 2**20
        jobs = self._jobs_since()
        times = [(job.begun_ms, job.ended_ms) for job in jobs]
        answer: Answer = {
            "jobs": len(jobs),
            "job_seconds": covered(times) / 1_000,
            "heap_mb": heap,
        }
        if self._tracer is not None:
            answer["spans"] = [asdict(span) for span in self._tracer.spans]
            answer["ran"] = [asdict(self._measured(job)) for job in jobs]
        return answer

    def _merge(self, request: Request, source: Any) -> None:
        table = self._delta_table().forPath(self.spark, request["table"])
        merge = table.alias("t").merge(source.alias("s"), request["on"])
        with_clauses(merge, request["clauses"], _METHODS).execute()

    def _statement(self, request: Request) -> Command:
        for key, value in request["settings"].items():
            self.spark.conf.set(key, value)
        for view, path in request["views"].items():
            self.spark.read.parquet(path).createOrReplaceTempView(view)
        if self._product == "delta-spark":
            return lambda: self.spark.sql(request["text"]).collect()
        run = importlib.import_module("puredelta").sql
        return lambda: run(self.spark, request["text"]).collect()

    def _convert(self, request: Request) -> None:
        identifier = f"parquet.`{request['table']}`"
        convert = self._delta_table().convertToDelta
        if request["partition_schema"] is None:
            convert(self.spark, identifier)
        else:
            convert(self.spark, identifier, request["partition_schema"])

    def _copy(self, request: Request) -> None:
        """Read and write what any engine must: no search, no join, no log."""
        rows = self.spark.read.parquet(request["source"])
        if request["files"]:
            old = self.spark.read.parquet(*request["files"])
            rows = old.unionByName(rows, allowMissingColumns=True)
        rows.write.parquet(request["target"])

    def _delta_table(self) -> Any:
        package = "delta" if self._product == "delta-spark" else "puredelta"
        return importlib.import_module(f"{package}.tables").DeltaTable

    def _wait_for_finalizer(self) -> None:
        """Wait until Java knows which of its objects Python has dropped.

        A thread of Py4J's tells it once a second, an object at a time. Most of them are those that
        were asked for jobs and heaps: telling would share the interpreter with what is timed.
        """
        gateway: Any = self.spark.sparkContext._gateway  # noqa: SLF001
        while gateway._gateway_client.finalizer_deque:  # noqa: SLF001
            time.sleep(0.01)

    def _jobs_since(self) -> list[Job]:
        """Return the jobs that have ended since `prepare`, oldest first."""
        context: Any = self.spark.sparkContext._jsc.sc()  # noqa: SLF001
        context.listenerBus().waitUntilEmpty()  # else a job that is over may not be known yet
        found = []
        for job in _items(context.statusStore().jobsList(None)):  # the newest first
            if job.jobId() <= self._last_job:
                break
            begun, ended = job.submissionTime(), job.completionTime()
            if begun.isDefined() and ended.isDefined():
                found.append(
                    Job(
                        number=job.jobId(),
                        name=job.name(),
                        begun_ms=begun.get().getTime(),
                        ended_ms=ended.get().getTime(),
                    )
                )
        return sorted(found, key=lambda job: job.number)

    def _measured(self, job: Job) -> Job:
        """Add what the stages of a job did; those that it found done are no part of it."""
        store: Any = self.spark.sparkContext._jsc.sc().statusStore()  # noqa: SLF001
        ids = _items(store.job(job.number).stageIds())
        stages = [store.lastStageAttempt(stage) for stage in ids]
        ran = [stage for stage in stages if stage.numCompleteTasks()]
        return replace(
            job,
            tasks=sum(stage.numCompleteTasks() for stage in ran),
            run_seconds=sum(stage.executorRunTime() for stage in ran) / 1e3,
            cpu_seconds=sum(stage.executorCpuTime() for stage in ran) / 1e9,
            read_bytes=sum(stage.inputBytes() for stage in ran),
            written_bytes=sum(stage.outputBytes() for stage in ran),
            shuffled_bytes=sum(stage.shuffleWriteBytes() for stage in ran),
        )

    def _heap_pools(self, *, reset: bool) -> list[int]:
        """Return the peaks of the driver's heap, garbage included, in bytes; or forget them."""
        jvm: Any = self.spark.sparkContext._jvm  # noqa: SLF001
        pools = jvm.java.lang.management.ManagementFactory.getMemoryPoolMXBeans()
        heap = [pool for pool in pools if pool.getType().name() == "HEAP"]
        if not reset:
            return [pool.getPeakUsage().getUsed() for pool in heap]
        for pool in heap:
            pool.resetPeakUsage()
        return []


def _with_delta_spark(builder: Any) -> Any:
    """Add the JARs of delta-spark, and Hadoop's client for S3 where tables are there."""
    add = importlib.import_module("delta").configure_spark_with_delta_pip
    if HADOOP not in os.environ:
        return add(builder)
    builder = builder.config("spark.jars.excludes", ",".join(s3a.EXCLUDES))
    return add(builder, extra_packages=list(s3a.PACKAGES))


def _items(sequence: Any) -> Iterator[Any]:
    """Yield what a sequence of Scala holds."""
    return (sequence.apply(n) for n in range(sequence.size()))


def covered(spans: list[tuple[int, int]]) -> int:
    """Return how long at least one of the spans lasted."""
    result, reached = 0, 0
    for begun, ended in sorted(spans):
        result += max(0, ended - max(begun, reached))
        reached = max(reached, ended)
    return result
