"""A session in which Spark's Parquet writer writes what the Delta protocol wants.

These settings are no writer options: Spark takes them from the session. A classic session
is cloned for the length of one job, so the user's own is never touched. In two cases they are
set and put back under a lock: on Spark Connect, where no session can be cloned, and for rows that
have an ``Observation``, which would get no metrics from a clone.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial

from pyspark.sql import DataFrame, SparkSession

from puredelta.spark.jvm.classes import insist
from puredelta.spark.jvm.frames import logical_plan, rebound
from puredelta.spark.session.session import is_connect

WRITE_SETTINGS: Mapping[str, str] = {
    # INT96 is Spark's default; it has no statistics and is deprecated.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.parquet.writeLegacyFormat": "false",
    # The protocol knows the proleptic Gregorian calendar only.
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.fieldId.write.enabled": "true",
    # Shredded variants are a table feature of their own.
    "spark.sql.variant.writeShredding.enabled": "false",
}

ORDERED_SETTINGS: Mapping[str, str] = {
    # Else Spark sorts by the columns of directories, and drops the sort that was there.
    "spark.sql.maxConcurrentOutputFileWriters": "1",
}
"""For tasks whose rows go into one directory each, in an order they shall keep."""

_LOCK = threading.RLock()
"""Two writes must not put back each other's settings."""


@contextmanager
def write_session(rows: DataFrame, more: Mapping[str, str] | None = None) -> Iterator[DataFrame]:
    """Yield the same rows, bound to a session with `WRITE_SETTINGS` and ``more``; runs no job.

    Everything that decides what the rows *are* stays: caches, temporary views, functions,
    the time zone, adaptive execution, job groups and tags of the calling thread.
    """
    spark, settings = rows.sparkSession, {**WRITE_SETTINGS, **(more or {})}
    if is_connect(spark) or _is_observed(rows):
        with _LOCK, temporary_settings(spark, settings):
            yield rows
    else:
        yield rebound(rows, settings)


def _is_observed(rows: DataFrame) -> bool:
    """Return whether the plan holds an `Observation`: its ``get`` would wait for ever."""
    return "CollectMetrics" in logical_plan(rows).text()


@contextmanager
def temporary_settings(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """Set what a session is asked to do, and put back what there was."""
    before = {key: spark.conf.get(key, None) for key in settings}
    try:
        for key, value in settings.items():
            spark.conf.set(key, value)
        yield
    finally:
        for key, old in before.items():
            insist(partial(_put_back, spark, key, old))


def _put_back(spark: SparkSession, key: str, value: str | None) -> None:
    if value is None:
        spark.conf.unset(key)
    else:
        spark.conf.set(key, value)
