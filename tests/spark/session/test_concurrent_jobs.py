from __future__ import annotations

import time

import pytest
from pyspark.sql import SparkSession

from puredelta.spark.session.concurrent_jobs import run_concurrently


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


@pytest.mark.parametrize("fails_in_background", [True, False])
def test_a_failure_cancels_the_other_and_is_the_error_raised(
    spark: SparkSession, *, fails_in_background: bool
) -> None:
    def fail() -> int:
        time.sleep(0.5)
        raise ValueError("disk full")

    def slow() -> int:
        return spark.sparkContext.parallelize(range(60), 60).map(_nap).sum()

    works = (fail, slow) if fails_in_background else (slow, fail)
    started = time.monotonic()
    with pytest.raises(ValueError, match="disk full"):
        run_concurrently(spark, *works)
    assert time.monotonic() - started < 20
    status = spark.sparkContext.statusTracker()
    assert status.getActiveJobsIds() == []


def _nap(number: int) -> int:
    import time  # noqa: PLC0415 - runs in a worker

    time.sleep(2)
    return number
