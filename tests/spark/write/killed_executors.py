"""What `test_killed_executors` asks of a cluster whose executors are killed while they write.

Run as a program of its own: ``killed_executors.py DIRECTORY``. The answers are one JSON object on
the last line. Slow tasks run twice (speculation), so that attempts lose for that reason, too.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import puredelta
from puredelta.spark.session.storage import open_log
from puredelta.tables import DeltaTable

ROWS = 4000
_SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.executor.memory": "700m",
    "spark.sql.shuffle.partitions": "4",
    "spark.task.maxFailures": "20",
    "spark.speculation": "true",
    "spark.speculation.interval": "50ms",
    "spark.speculation.multiplier": "1.1",
    "spark.speculation.quantile": "0.1",
    "spark.databricks.delta.retentionDurationCheck.enabled": "false",
}


def session() -> SparkSession:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master("local-cluster[2,1,1024]")
    for key, value in _SETTINGS.items():
        builder = builder.config(key, value)
    path = os.environ.get("PYTHONPATH", "")
    return builder.config("spark.executorEnv.PYTHONPATH", path).getOrCreate()


@dataclass(slots=True)
class Killer:
    """Kills an executor while it runs tasks of a statement."""

    spark: SparkSession
    kills: list[str] = field(default_factory=list)
    """Of each kill that took tasks with it, the job's call and how many tasks there were."""
    done: threading.Event = field(default_factory=threading.Event)

    def during(self, action: Callable[[], object], delay_s: float) -> None:
        """Run a statement; kill an executor that runs its tasks once, some time after the first.

        A kill that comes after the last task is not counted.
        """
        self.done.clear()
        failed_before, found = self._failed_tasks(), list[str]()
        thread = threading.Thread(target=lambda: found.append(self._kill(delay_s)))
        thread.start()
        try:
            action()
        finally:
            self.done.set()
            thread.join()
        if found[0] and (failed := self._failed_tasks() - failed_before):
            self.kills.append(f"{found[0]}, {failed} tasks lost")

    def _kill(self, delay_s: float) -> str:
        began = math.inf
        while not self.done.wait(0.01):
            running = self._running()
            if running and began == math.inf:
                began = time.monotonic()
            for executor in running if time.monotonic() - began >= delay_s else ():
                if (pid := executor_pids().get(executor)) is not None:
                    call = self._call()
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
                        return f"executor {executor} in {call}"
        return ""

    def _running(self) -> list[str]:
        """Return the executors that run tasks, the busiest first."""
        found = _listed(self._status().executorList(True))
        busy = [(each.activeTasks(), each.id()) for each in found if each.activeTasks()]
        return [name for _, name in sorted(busy, reverse=True)]

    def _call(self) -> str:
        return ", ".join(stage.name() for stage in _listed(self._status().activeStages()))

    def _failed_tasks(self) -> int:
        self.spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
        jobs = _listed(self._status().jobsList(None))
        return sum(job.numFailedTasks() for job in jobs)

    def _status(self) -> Any:
        return self.spark.sparkContext._jsc.sc().statusStore()


def _listed(sequence: Any) -> list[Any]:
    return [sequence.apply(number) for number in range(sequence.size())]


def executor_pids() -> dict[str, int]:
    """Return the processes of this user's executors that descend from this one, by their ids."""
    parents, executors = {}, {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            pid = int(stat.parent.name)
            parents[pid] = int(stat.read_text().rpartition(") ")[2].split()[1])
            words = (stat.parent / "cmdline").read_bytes().decode(errors="replace").split("\0")
            if any("CoarseGrainedExecutorBackend" in word for word in words):
                executors[pid] = words[words.index("--executor-id") + 1]
    return {name: pid for pid, name in executors.items() if _descends(pid, parents)}


def _descends(pid: int, parents: dict[int, int]) -> bool:
    while pid and pid != os.getpid():
        pid = parents.get(pid, 0)
    return pid == os.getpid()


def slow(rows: DataFrame) -> DataFrame:
    """Return the same rows; each takes a little time in a Python worker."""

    @F.udf("long")
    def wait(number: int) -> int:
        time.sleep(0.001)
        return number

    return rows.withColumn("x", wait("x"))


def numbers(spark: SparkSession, first: int, last: int, *, add: int) -> DataFrame:
    return slow(spark.range(first, last, 1, 6).withColumn("x", F.col("id") + add))


class Workload:
    """Statements on a table of numbers, and the rows that it must then have."""

    def __init__(self, spark: SparkSession, path: str, killer: Killer) -> None:
        self.spark, self.path, self.killer = spark, path, killer
        puredelta.write(spark.range(0, ROWS, 1, 8).withColumn("x", F.col("id")), path)
        self.expected = {n: n for n in range(ROWS)}
        self.table = DeltaTable.forPath(spark, path)
        self.wrong: list[Any] = []

    def run(self, name: str, delay_s: float) -> None:
        """Run a statement in which an executor is killed, and compare the table's rows."""
        getattr(self, f"_{name}")(delay_s)
        found = puredelta.read(self.spark, self.path).collect()
        if Counter(map(tuple, found)) != Counter(self.expected.items()):
            self.wrong.append([name, delay_s, len(found), len(self.expected)])

    def left(self) -> list[str]:
        """Return the files that are in the way after VACUUM."""
        self.table.vacuum(0)
        log = open_log(self.spark, self.path)
        active = {add.path for add in log.snapshot().files.adds()}
        there = {file.path for file in log.store.walk("")}
        return sorted(
            name
            for name in there - active
            if not name.startswith("_delta_log/") and ".crc" not in name
        )

    def _append(self, delay_s: float) -> None:
        first = max(self.expected) + 1
        rows = numbers(self.spark, first, first + 500, add=7)
        writer = rows.write.format("delta").mode("append")
        self.killer.during(lambda: writer.save(self.path), delay_s)
        self.expected.update({n: n + 7 for n in range(first, first + 500)})

    def _merge(self, delay_s: float) -> None:
        first, middle = min(self.expected) + 100, max(self.expected) + 1
        ids = self.spark.range(first, first + 400).union(self.spark.range(middle, middle + 100))
        rows = slow(ids.repartition(6).withColumn("x", F.col("id") * 3)).alias("s")
        merging = self.table.alias("t").merge(rows, "t.id = s.id").whenMatchedUpdateAll()
        self.killer.during(merging.whenNotMatchedInsertAll().execute, delay_s)
        self.expected.update({n: n * 3 for n in range(middle, middle + 100)})
        self.expected.update({n: n * 3 for n in range(first, first + 400)})

    def _optimize(self, delay_s: float) -> None:
        self.killer.during(self.table.optimize().executeCompaction, delay_s)

    def _delete(self, delay_s: float) -> None:
        self.killer.during(lambda: self.table.delete("id % 10 = 3"), delay_s)
        for n in [n for n in self.expected if n % 10 == 3]:
            del self.expected[n]


def main(directory: Path) -> dict[str, Any]:
    spark = session()
    puredelta.activate(spark)
    killer = Killer(spark)
    work = Workload(spark, str(directory / "table"), killer)
    for name, delay_s in (
        *(("append", 0.3), ("merge", 0.0), ("merge", 0.6)),
        *(("optimize", 0.0), ("delete", 0.1), ("merge", 2.0)),
    ):
        work.run(name, delay_s)
    left = work.left()
    spark.stop()
    return {"kills": killer.kills, "wrong": work.wrong, "left": left}


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]))))  # noqa: T201 - the answers
