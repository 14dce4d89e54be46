"""Which format a call means."""

from __future__ import annotations

from pyspark.sql import SparkSession

FORMAT = "delta"
"""Ours, in the spelling of catalog entries."""
_DEFAULT_FORMAT = "spark.sql.sources.default"


def is_delta(spark: SparkSession, *names: str | None) -> bool:
    """Tell whether the format is ours: the first that is named, or the session's default."""
    name = next((name for name in names if name is not None), None)
    if name is None:
        name = spark.conf.get(_DEFAULT_FORMAT, None)
    return (name or "").lower() == FORMAT
