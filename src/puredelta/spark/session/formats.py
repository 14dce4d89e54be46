"""The name of the Delta format, and whether a call means it."""

from __future__ import annotations

from pyspark.sql import SparkSession

FORMAT = "delta"
"""As catalog entries spell it."""
_DEFAULT_FORMAT = "spark.sql.sources.default"


def is_delta(spark: SparkSession, *names: str | None) -> bool:
    """Return whether the format is Delta: the first that is named, or the session's default."""
    name = next((name for name in names if name is not None), None)
    if name is None:
        name = spark.conf.get(_DEFAULT_FORMAT, None)
    return (name or "").lower() == FORMAT
