"""Starts Spark with delta-spark's JARs, which the first on a machine downloads."""

from __future__ import annotations

import fcntl
import tempfile
from pathlib import Path

from pyspark.sql import SparkSession


def started_in_turn(builder: SparkSession.Builder) -> SparkSession:
    """Start a session while no other process of these tests starts one.

    Two that download the same JARs at once leave one of them without.
    """
    with (Path(tempfile.gettempdir()) / "puredelta-reference-jars.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return builder.getOrCreate()
