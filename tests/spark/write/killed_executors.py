"""What `test_killed_executors` asks of a cluster whose executors are killed while they write.

Run as a program of its own: ``killed_executors.py DIRECTORY``. The answers are one JSON object on
the last line. Slow tasks run twice (speculation), so that attempts lose for that reason, too.
"""

from __future__ import annotations

import contextlib
import json
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
from puredelta.log.replay.table_log import TableLog
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
    """Kills an executor while tasks of a statement run."""

    spark: SparkSession
    killed: int = 0
    done: threading.Event = field(default_factory=threading.Event)

    def during(self, action: Callable[[], object], delay_s: float) -> None:
        """Run a statement; kill an executor once, some time after its first task has begun."""
        self.done.clear()
        thread = threading.Thread(target=self._kill, args=(delay_s,))
        thread.start()
        try:
            action()
        finally:
            self.done.set()
            thread.join()

    def _kill(self, delay_s: float) -> None:
        tracker = self.spark.sparkContext.statusTracker()
        while not self.done.is_set():
            running = (tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds())
            if any(info is not None and info.numActiveTasks for info in running):
                break
            time.sleep(0.01)
        if not self.done.wait(delay_s) and (executors := executor_pids()):
            with contextlib.suppress(ProcessLookupError):
                os.kill(executors[self.killed % len(executors)], signal.SIGKILL)
                self.killed += 1


def executor_pids() -> list[int]:
    """Return the processes of this user's executors that descend from this one."""
    parents, executors = {}, []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            pid = int(stat.parent.name)
            parents[pid] = int(stat.read_text().rpartition(") ")[2].split()[1])
            if b"CoarseGrainedExecutorBackend" in (stat.parent / "cmdline").read_bytes():
                executors.append(pid)
    return sorted(pid for pid in executors if _descends(pid, parents))


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


def main(directory: Path) -> dict[str, Any]:
    path = str(directory / "table")
    spark = session()
    puredelta.activate(spark)
    puredelta.write(spark.range(0, ROWS, 1, 8).withColumn("x", F.col("id")), path)
    expected = {n: n for n in range(ROWS)}
    killer = Killer(spark)
    table = DeltaTable.forPath(spark, path)
    wrong = []

    def append(delay_s: float) -> None:
        first = max(expected) + 1
        rows = numbers(spark, first, first + 500, add=7)
        killer.during(lambda: rows.write.format("delta").mode("append").save(path), delay_s)
        expected.update({n: n + 7 for n in range(first, first + 500)})

    def merge(delay_s: float) -> None:
        first, middle = min(expected) + 100, max(expected) + 1
        ids = spark.range(first, first + 400).union(spark.range(middle, middle + 100))
        rows = slow(ids.repartition(6).withColumn("x", F.col("id") * 3)).alias("s")
        merging = table.alias("t").merge(rows, "t.id = s.id").whenMatchedUpdateAll()
        killer.during(merging.whenNotMatchedInsertAll().execute, delay_s)
        changed = [*range(first, first + 400), *range(middle, middle + 100)]
        expected.update({n: n * 3 for n in changed})

    def optimize(delay_s: float) -> None:
        killer.during(table.optimize().executeCompaction, delay_s)

    def delete(delay_s: float) -> None:
        killer.during(lambda: table.delete("id % 10 = 3"), delay_s)
        for n in [n for n in expected if n % 10 == 3]:
            del expected[n]

    for statement, delay_s in (
        *((append, 0.3), (merge, 0.0), (merge, 0.6)),
        *((optimize, 0.0), (delete, 0.1), (merge, 2.0)),
    ):
        statement(delay_s)
        found = puredelta.read(spark, path).collect()
        if Counter(map(tuple, found)) != Counter(expected.items()):
            wrong.append([statement.__name__, delay_s, len(found), len(expected)])
    table.vacuum(0)
    active = {add.path for add in TableLog.open(path).snapshot().files.adds()}
    left = {str(file.relative_to(path)) for file in Path(path).rglob("*") if file.is_file()}
    spark.stop()
    return {
        "killed": killer.killed,
        "wrong": wrong,
        "left": sorted(
            name
            for name in left - active
            if not name.startswith("_delta_log/") and ".crc" not in name
        ),
    }


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]))))  # noqa: T201 - the answers
