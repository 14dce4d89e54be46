"""Two pieces of work at the same time: both results, or the first error."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from puredelta.spark.session.concurrent_jobs import run_concurrently
from tests.connect_session import answers_of

SECONDS_MAX = 60.0


def test_both_results_come_back_and_job_properties_hold_for_both(spark: SparkSession) -> None:
    context = spark.sparkContext
    context.setLocalProperty("spark.job.description", "a merge")
    try:
        answers = run_concurrently(
            spark,
            lambda: (spark.range(5).count(), context.getLocalProperty("spark.job.description")),
            lambda: spark.range(7).count(),
        )
    finally:
        context.setLocalProperty("spark.job.description", None)
    assert answers == ((5, "a merge"), 7)
    assert not context.getJobTags()


@pytest.mark.sampled(3)
@pytest.mark.parametrize("fails_in_background", [True, False])
def test_a_failure_cancels_the_other_and_is_the_error_raised(
    spark: SparkSession, *, fails_in_background: bool
) -> None:
    status = spark.sparkContext.statusTracker()
    started: list[int] = []

    def fail() -> int:
        until = time.monotonic() + SECONDS_MAX
        while not started:
            started.extend(status.getActiveJobsIds())
            assert time.monotonic() < until, "the other job did not start"
            time.sleep(0.01)
        raise ValueError("disk full")

    def endless() -> int:
        return spark.sparkContext.parallelize(range(2), 2).map(_never_return).count()

    works = (fail, endless) if fails_in_background else (endless, fail)
    with pytest.raises(ValueError, match="disk full"):
        run_concurrently(spark, *works)
    assert status.getActiveJobsIds() == []
    (job,) = started
    assert status.getJobInfo(job).status == "FAILED"


@pytest.mark.thorough
def test_an_interrupt_cancels_what_runs(tmp_path: Path) -> None:
    """As by Ctrl-C, in a process whose main thread waits, or is in a call into the JVM."""
    answers = answers_of("tests.spark.session.interrupted_wait", tmp_path)
    nothing_left = {"active jobs": 0, "left threads": 0, "left tags": 0}
    assert answers["waiting"] == {"raised": "KeyboardInterrupt", **nothing_left}
    assert answers["calling"] == {"raised": "KeyboardInterrupt", **nothing_left}


def _never_return(number: int) -> int:
    import time  # noqa: PLC0415 - runs in a worker

    while True:
        time.sleep(number + 1)
