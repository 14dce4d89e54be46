"""``spark.read.format("delta").load(path)`` and ``.table(name)``: options to calls of our own."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame, SparkSession

from puredelta.activation.paths import require_path
from puredelta.activation.told import Told
from puredelta.commands.changes import read_changes
from puredelta.commands.read import read_table
from puredelta.errors import ErrorCode, InvalidRequestError
from puredelta.log.table_log import TableLog

_CHANGES = ("readChangeFeed", "readChangeData")


def load(spark: SparkSession, told: Told, path: Any) -> DataFrame:
    """Return the rows that a reader was told to read.

    ``versionAsOf`` or ``timestampAsOf`` choose the state; ``readChangeFeed`` with
    ``startingVersion`` or ``startingTimestamp`` and their ``ending`` kin give the changes.
    Other options have no effect, as in the reference. Runs no job.

    Raises:
        InvalidRequestError: no path or several, a schema was given, options are wrong.
        TableNotFoundError: there is no table at the path, or no such version.
    """
    if told.has_schema:
        raise InvalidRequestError(
            "Delta does not support specifying the schema at read time. Leave schema(...) out: a "
            "table knows its columns.",
            code=ErrorCode.UNSUPPORTED_SCHEMA_DURING_READ,
        )
    return rows_at(spark, told, require_path(told, path))


def rows_at(spark: SparkSession, told: Told, location: str) -> DataFrame:
    """Return what the options of a reader mean for the table at a location."""
    version, timestamp = told.option("versionAsOf"), told.option("timestampAsOf")
    if not _reads_changes(told):
        return read_table(spark, location, version=version, timestamp=timestamp)
    if version is not None or timestamp is not None:
        raise InvalidRequestError(
            "Cannot time travel views, subqueries, streams or change data feed queries. With "
            "readChangeFeed use startingVersion or startingTimestamp.",
            code=ErrorCode.UNSUPPORTED_TIME_TRAVEL_VIEWS,
        )
    return read_changes(
        spark,
        TableLog.open(location),
        starting_version=told.option("startingVersion"),
        starting_timestamp=told.option("startingTimestamp"),
        ending_version=told.option("endingVersion"),
        ending_timestamp=told.option("endingTimestamp"),
    )


def _reads_changes(told: Told) -> bool:
    return any((told.option(name) or "").lower() == "true" for name in _CHANGES)
