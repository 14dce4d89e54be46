"""Readers of format ``delta`` as calls of puredelta."""

from __future__ import annotations

import datetime as dt
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from puredelta.activation.captured_options import (
    CapturedOptions,
    require_path,
)
from puredelta.commands.changes import read_changes
from puredelta.commands.read_table import read_stream, read_table, resolve_timestamp
from puredelta.commands.version_changes import read_row_changes
from puredelta.errors import InvalidRequestError, Message
from puredelta.log.changes.stream_options import StreamOptions
from puredelta.spark.session.delta_conf import REFUSED_BY_PATHS_WITH_VERSIONS
from puredelta.spark.session.session import settings_of
from puredelta.spark.session.storage import file_system_options, open_log
from puredelta.statements.names.names import require_table
from puredelta.statements.parse.table_name import TimeTravel, split_time_travel

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc)
_CHANGES = ("readChangeFeed", "readChangeData")


def load(spark: SparkSession, captured: CapturedOptions, path: Any) -> DataFrame:
    """Return the rows selected by the options of a reader.

    ``versionAsOf`` or ``timestampAsOf`` choose the version, and so does the end of a path that is
    no table itself (``/t@v3``, ``/t@20250131120000000``). ``readChangeFeed`` returns the changes,
    with ``startingVersion`` or ``startingTimestamp`` and their ``ending`` counterparts. Other
    options have no effect, as in delta-spark. Runs no job.

    Raises:
        InvalidRequestError: no path or several, a schema was given, options are wrong.
        TableNotFoundError: there is no table at the path, or no such version.
    """
    if captured.has_schema:
        raise _schema_given()
    location = require_path(captured, path)
    root, state = split_time_travel(location)
    if state is None or open_log(spark, location).exists():
        return rows_at(spark, captured, location)
    REFUSED_BY_PATHS_WITH_VERSIONS.require_defaults(settings_of(spark))
    return rows_at(spark, _at_state(captured, state, location), root)


def _at_state(captured: CapturedOptions, state: TimeTravel, path: str) -> CapturedOptions:
    """Return the options with the version or time at the end of the path."""
    if captured.option("versionAsOf") is not None or captured.option("timestampAsOf") is not None:
        raise InvalidRequestError(Message.ONE_OF_IN_TIME_TRAVEL_PATH, path=path)
    if state.version is not None:
        return captured.with_options({"versionAsOf": state.version})
    return captured.with_options({"timestampAsOf": state.timestamp})


def rows_at(spark: SparkSession, captured: CapturedOptions, location: str) -> DataFrame:
    """Return the rows that the options of a reader select in the table at a location."""
    version, timestamp = captured.option("versionAsOf"), captured.option("timestampAsOf")
    if not _reads_changes(captured):
        return read_table(
            spark,
            location,
            version=version,
            timestamp=timestamp,
            storage_options=file_system_options(captured.options or {}),
        )
    if version is not None or timestamp is not None:
        raise _time_travel()
    return read_changes(
        spark,
        open_log(spark, location, storage_options=file_system_options(captured.options or {})),
        starting_version=captured.option("startingVersion"),
        starting_timestamp=captured.option("startingTimestamp"),
        ending_version=captured.option("endingVersion"),
        ending_timestamp=captured.option("endingTimestamp"),
    )


def changes_at(
    spark: SparkSession, captured: CapturedOptions, location: str, name: object
) -> DataFrame:
    """Return the changed rows that the options of a reader select in the table at a location.

    Raises:
        InvalidRequestError: a schema was given; errors as `read_row_changes`.
        TableNotFoundError: there is no table at the location.
    """
    if captured.has_schema:
        raise _schema_given()
    options = captured.options or {}
    log = require_table(spark, location, name, storage_options=file_system_options(options))
    return read_row_changes(spark, log, options, name=str(name))


def load_stream(spark: SparkSession, captured: CapturedOptions, path: Any) -> DataFrame:
    """Return a streaming frame over the table of a reader in a classic session.

    Options unknown to `StreamOptions` have no effect, as in delta-spark.

    Raises:
        InvalidRequestError: no path or several, a schema was given, options are wrong.
        TableNotFoundError: there is no table (DELTA_PATH_DOES_NOT_EXIST, DELTA_TABLE_NOT_FOUND).
    """
    if captured.has_schema:
        raise _schema_given()
    return read_stream(spark, require_path(captured, path), captured.options or {})


def prepare_stream(spark: SparkSession, captured: CapturedOptions) -> str | None:
    """Check the options of a stream over Connect; return its start time, if any, with UTC offset.

    The data source does not know the session's time zone.
    """
    chosen = StreamOptions.parse(captured.option, lambda text: resolve_timestamp(spark, text))
    chosen.require_untracked()
    start = chosen.settings.start
    if start.timestamp_ms is None:
        return None
    return (_EPOCH + dt.timedelta(milliseconds=start.timestamp_ms)).isoformat()


def _schema_given() -> InvalidRequestError:
    return InvalidRequestError(Message.UNSUPPORTED_SCHEMA_DURING_READ_SCHEMA_GIVEN)


def _time_travel() -> InvalidRequestError:
    return InvalidRequestError(Message.UNSUPPORTED_TIME_TRAVEL_VIEWS_STREAM_READER)


def _reads_changes(captured: CapturedOptions) -> bool:
    return any((captured.option(name) or "").lower() == "true" for name in _CHANGES)
