"""The functions a user calls first: one call, a path and a DataFrame."""

from __future__ import annotations

import os

from pyspark.sql import DataFrame, SparkSession

from puredelta.commands.read import Instant, read_table


def read(
    spark: SparkSession,
    path: str | os.PathLike[str],
    *,
    version: int | str | None = None,
    timestamp: Instant | None = None,
) -> DataFrame:
    """Return the rows of the Delta table at ``path``.

    Nothing is listed but the log and no job runs. ``version`` or ``timestamp`` choose an
    older state, not both. A timestamp is text as Spark casts it, a ``datetime`` or a ``date``;
    one without a zone is meant in the session's time zone.

    Raises:
        TableNotFoundError: no table at the path, or no such version.
        InvalidRequestError: a malformed version or timestamp, or one outside of the history.
        UnsupportedError: the table needs a feature that is not implemented.
        CorruptTableError: the log is damaged.

    Examples:
        >>> read(spark, "/data/events").filter("day = date'2025-01-31'").count()  # doctest: +SKIP
        1200
        >>> read(spark, "/data/events", version=3)  # doctest: +SKIP
        >>> read(spark, "/data/events", timestamp="2025-01-31 12:00:00")  # doctest: +SKIP
    """
    return read_table(spark, path, version=version, timestamp=timestamp)
