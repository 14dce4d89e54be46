"""Read a table version into a DataFrame, the newest one or one chosen by time travel."""

from __future__ import annotations

import datetime as dt
import os
import re
from collections.abc import Mapping
from typing import TypeAlias

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from puredelta.errors import ErrorCode, InvalidRequestError
from puredelta.log.replay.snapshot import Snapshot
from puredelta.log.replay.table_log import TableLog
from puredelta.quantities import in_milliseconds
from puredelta.spark.scan.row_tracking_scan import readable_rows
from puredelta.spark.scan.table_rows import named_rows
from puredelta.spark.session.open_log import open_log

TimestampArgument: TypeAlias = str | dt.datetime | dt.date
"""A moment: text as Spark casts it to a timestamp, a datetime, or a day's first moment. What
names no zone is meant in the session's time zone."""

_ONE_ROW = "SELECT * FROM VALUES (0)"
_RELATIVE = re.compile(r"\s*(?:epoch|now|today|tomorrow|yesterday)\b", re.IGNORECASE)
"""Words that Spark takes in a literal alone."""
_WHOLE = re.compile(r"[+-]?\d{1,18}")
"""As Java reads a long; more digits are no version of any table."""
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc)


def read_table(
    spark: SparkSession,
    path: str | os.PathLike[str],
    *,
    version: int | str | None = None,
    timestamp: TimestampArgument | None = None,
    where: str | None = None,
    storage_options: Mapping[str, object] | None = None,
) -> DataFrame:
    """Return the rows of the table at ``path``, or those of which ``where`` is true.

    Runs no job on the table's data.

    Raises:
        TableNotFoundError: there is no table, or no such version
            (DELTA_PATH_DOES_NOT_EXIST, DELTA_TABLE_NOT_FOUND, DELTA_VERSION_NOT_FOUND).
        InvalidRequestError: both ways to choose a version are used, or one is malformed or
            outside of the table's history.
        UnsupportedError: the table needs a feature that is not implemented.
        CorruptTableError: the log is damaged.
    """
    log = open_log(spark, path, storage_options=storage_options)
    snapshot = snapshot_of(spark, log, version=version, timestamp=timestamp)
    chosen = version is not None or timestamp is not None
    return readable_rows(spark, snapshot, time_travel=chosen, where=where)


def read_named(
    spark: SparkSession,
    path: str | os.PathLike[str],
    names: frozenset[str] | None,
    *,
    version: int | str | None = None,
    timestamp: TimestampArgument | None = None,
) -> DataFrame:
    """Return the rows of the table at ``path`` for a query.

    ``names`` has, in lower case, every column that the query can need, None for any. The frame
    lacks other columns where a plan could not ask for some. Errors as `read_table`.
    """
    snapshot = snapshot_of(spark, open_log(spark, path), version=version, timestamp=timestamp)
    chosen = version is not None or timestamp is not None
    rows = None if names is None else named_rows(spark, snapshot, names, time_travel=chosen)
    return readable_rows(spark, snapshot, time_travel=chosen) if rows is None else rows


def find_snapshot(
    spark: SparkSession,
    path: str | os.PathLike[str],
    *,
    version: int | str | None = None,
    timestamp: TimestampArgument | None = None,
) -> Snapshot:
    """Return the state of the table at ``path``, by default the newest; errors as `read_table`."""
    return snapshot_of(spark, open_log(spark, path), version=version, timestamp=timestamp)


def snapshot_of(
    spark: SparkSession,
    log: TableLog,
    *,
    version: int | str | None = None,
    timestamp: TimestampArgument | None = None,
) -> Snapshot:
    """Return the state of the table of a log, by default the newest; errors as `read_table`."""
    if version is not None and timestamp is not None:
        raise InvalidRequestError(
            "Please either provide 'timestamp' or 'version' for time travel, not both: "
            f"version {version!r}, timestamp {timestamp!r}.",
            code=ErrorCode.ONE_OF_IN_TIME_TRAVEL,
        )
    if timestamp is not None:
        return log.snapshot(timestamp_ms=resolve_timestamp(spark, timestamp))
    return log.snapshot(version=None if version is None else parse_version(version))


def resolve_timestamp(spark: SparkSession, instant: TimestampArgument) -> int:
    """Return milliseconds since 1970; only text and values without a zone ask Spark.

    Raises:
        InvalidRequestError: the text is no timestamp (DELTA_TIMESTAMP_INVALID).
    """
    match instant:
        case dt.datetime() if instant.tzinfo is not None:
            return in_milliseconds(instant - _EPOCH)
        case dt.datetime() | dt.date():
            text = instant.isoformat()
        case _:
            text = instant
            if _RELATIVE.match(text) is not None:  # Spark's optimizer would take it
                raise _not_a_timestamp(instant)
    # The session's own cast knows its zone and every spelling Spark takes. No job: one row.
    # No SQL parameter: parsers that extensions bring, delta-spark's for one, may not bind it.
    millis = F.unix_millis(F.lit(text).try_cast("timestamp")).alias("millis")
    row = spark.sql(_ONE_ROW).select(millis).first()
    if row is None or row["millis"] is None:
        raise _not_a_timestamp(instant)
    return int(row["millis"])


def _not_a_timestamp(instant: TimestampArgument) -> InvalidRequestError:
    return InvalidRequestError(
        f"The provided timestamp ({instant!r}) cannot be converted to a valid timestamp.",
        code=ErrorCode.TIMESTAMP_INVALID,
        timestamp=instant,
    )


def parse_version(version: object) -> int:
    """Return a version as a number; a user may give it as text.

    Raises:
        InvalidRequestError: it is no whole number (DELTA_VERSION_INVALID).
    """
    match version:
        case bool():
            raise _not_a_version(version)
        case int():
            return version
        case str() if _WHOLE.fullmatch(version) is not None:
            return int(version)
        case _:
            raise _not_a_version(version)


def _not_a_version(version: object) -> InvalidRequestError:
    return InvalidRequestError(
        f"The provided version ({version!r}) is not a valid version. Pass a whole number.",
        code=ErrorCode.VERSION_INVALID,
        version=version,
    )
