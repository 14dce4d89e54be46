"""What `test_concurrent_jobs` asks of a program that is interrupted while it waits.

Run as a program of its own. The answers are one JSON object on the last line.
"""

from __future__ import annotations

import json
import signal
import threading
import time
from collections.abc import Callable

from py4j.protocol import Py4JNetworkError
from pyspark.sql import SparkSession

from puredelta.cli.output import is_interrupted
from puredelta.spark.jvm.gateway import insist
from puredelta.spark.session.concurrent_jobs import run_concurrently, tagged_jobs

_SECONDS_MAX = 60.0
_ENDS_WITHIN_S = 5.0


def main() -> dict[str, object]:
    spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    session = spark.getOrCreate()
    context = session.sparkContext

    def endless() -> int:
        return context.parallelize(range(2), 2).map(_never_return).count()

    def tagged() -> None:
        with tagged_jobs(session):
            endless()

    signal.signal(signal.SIGINT, signal.default_int_handler)
    answers: dict[str, object] = {
        "waiting": _after(session, lambda: run_concurrently(session, endless, lambda: 1)),
        "calling": _after(session, tagged),
    }
    session.stop()
    return answers


def _after(session: SparkSession, call: Callable[[], object]) -> dict[str, object]:
    """Interrupt a call once a job runs, and return what is left."""
    context = session.sparkContext
    status = context.statusTracker()

    def interrupt() -> None:
        until = time.monotonic() + _SECONDS_MAX
        while not status.getActiveJobsIds() and time.monotonic() < until:
            time.sleep(0.01)
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    threading.Thread(target=interrupt).start()
    raised = None
    try:
        call()
    except (KeyboardInterrupt, Py4JNetworkError) as failure:
        # PySpark's own clean-up may fail after it.
        raised = "KeyboardInterrupt" if is_interrupted(failure) else type(failure).__name__
    until = time.monotonic() + _ENDS_WITHIN_S
    while insist(status.getActiveJobsIds) and time.monotonic() < until:
        time.sleep(0.01)
    names = [thread.name for thread in threading.enumerate()]
    return {
        "raised": raised,
        "active jobs": len(status.getActiveJobsIds()),
        "left threads": names.count("puredelta-background"),
        "left tags": len(context.getJobTags()),
    }


def _never_return(number: int) -> int:
    time.sleep(600)
    return number


if __name__ == "__main__":
    print(json.dumps(main()))  # noqa: T201 - the answers
