"""What `test_concurrent_jobs` asks of a program that is interrupted while it waits.

Run as a program of its own. The answers are one JSON object on the last line.
"""

from __future__ import annotations

import json
import signal
import threading
import time

from pyspark.sql import SparkSession

from puredelta.spark.session.concurrent_jobs import run_concurrently

_SECONDS_MAX = 60.0


def main() -> dict[str, object]:
    spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    session = spark.getOrCreate()
    context = session.sparkContext
    status = context.statusTracker()

    def endless() -> int:
        return context.parallelize(range(2), 2).map(_never_return).count()

    def interrupt() -> None:
        until = time.monotonic() + _SECONDS_MAX
        while not status.getActiveJobsIds() and time.monotonic() < until:
            time.sleep(0.01)
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    signal.signal(signal.SIGINT, signal.default_int_handler)
    threading.Thread(target=interrupt).start()
    raised = None
    try:
        run_concurrently(session, endless, lambda: 1)
    except KeyboardInterrupt as interruption:
        raised = type(interruption).__name__
    names = [thread.name for thread in threading.enumerate()]
    answers: dict[str, object] = {
        "raised": raised,
        "active jobs": len(status.getActiveJobsIds()),
        "left threads": names.count("puredelta-background"),
        "left tags": len(context.getJobTags()),
    }
    session.stop()
    return answers


def _never_return(number: int) -> int:
    time.sleep(600)
    return number


if __name__ == "__main__":
    print(json.dumps(main()))  # noqa: T201 - the answers
