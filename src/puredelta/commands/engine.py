"""Who writes: the text that the history shows for every commit of this library."""

from __future__ import annotations

from pyspark.sql import SparkSession

from puredelta.version import __version__


def engine_info(spark: SparkSession) -> str:
    """Return the ``engineInfo`` of commits made through this session.

    >>> engine_info(spark)  # doctest: +SKIP
    'Apache-Spark/4.1.0 puredelta/0.1.0'
    """
    return f"Apache-Spark/{spark.version} puredelta/{__version__}"
