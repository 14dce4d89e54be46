"""Who writes: the text that the history shows for every commit of this library."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

from pyspark.sql import SparkSession

_PACKAGE = "puredelta"


def engine_info(spark: SparkSession) -> str:
    """Return the ``engineInfo`` of commits made through this session.

    >>> engine_info(spark)  # doctest: +SKIP
    'Apache-Spark/4.1.0 puredelta/0.1.0'
    """
    return f"Apache-Spark/{spark.version} {_PACKAGE}/{_own_version()}"


def _own_version() -> str:
    try:
        return version(_PACKAGE)
    except PackageNotFoundError:
        return "source"  # run from a checkout that nobody installed
