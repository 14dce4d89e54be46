"""What `test_skipping` asks of a program that is interrupted while files are chosen for a query.

Run as a program of its own. The answers are one JSON object on the last line.
"""

from __future__ import annotations

import json
import signal
import sys
import threading
import time
from typing import Any

from py4j.protocol import Py4JNetworkError
from pyspark.sql import SparkSession

import puredelta
from puredelta.cli.output import is_interrupted
from puredelta.spark.scan.skippable_files import SkippableFiles


def main(path: str) -> dict[str, object]:
    spark = (
        SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    )
    puredelta.activate(spark)
    puredelta.write(spark.range(0, 100, 1, 4), path)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    original, asked = SkippableFiles.files_for, threading.Event()

    def interrupting(self: Any, nodes: Any, **how: Any) -> Any:
        asked.set()
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        time.sleep(0.5)
        return original(self, nodes, **how)

    before = threading.active_count()
    raised = None
    SkippableFiles.files_for = interrupting  # type: ignore[method-assign]
    try:
        spark.read.format("delta").load(path).where("id >= 90").collect()
    except (KeyboardInterrupt, Py4JNetworkError) as failure:
        # Py4J asks the JVM to close the interrupted connection, and the JVM may close the next one
        # with it. Spark's own clean-up after the interrupt then fails, on a plain Parquet file too.
        raised = "KeyboardInterrupt" if is_interrupted(failure) else type(failure).__name__
    SkippableFiles.files_for = original  # type: ignore[method-assign]
    time.sleep(1)
    rows = spark.read.format("delta").load(path)
    answers = [rows.where("id < 55").count(), len(rows.where("id > 94").collect())]
    left = [t for t in threading.enumerate() if not t.daemon and t is not threading.main_thread()]
    found: dict[str, object] = {
        "asked": asked.is_set(),
        "raised": raised,
        "rows": answers,
        "left threads": max(0, len(left) + 1 - before),
    }
    spark.stop()
    return found


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1])))  # noqa: T201 - the answers
