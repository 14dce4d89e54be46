"""The functions a user calls first: one call, a path and a DataFrame."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from puredelta.commands.read import Instant, read_table
from puredelta.commands.write import WriteOutcome, write_table
from puredelta.commands.write_options import SaveMode
from puredelta.log.table_log import TableLog
from puredelta.sql.parameters import Arguments
from puredelta.sql.run import run_sql


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


def write(
    rows: DataFrame,
    path: str | os.PathLike[str],
    *,
    mode: str = "error",
    partition_by: Sequence[str] | str = (),
    options: Mapping[str, object] | None = None,
    properties: Mapping[str, str] | None = None,
    name: str | None = None,
    description: str | None = None,
) -> WriteOutcome:
    """Write a DataFrame into the Delta table at ``path``, which is created if it is not there.

    One Spark job writes the files, one commit makes them the table; if anything fails the
    table is as before and the files are gone. ``mode`` is Spark's: ``error``, ``append``,
    ``overwrite`` (every row is replaced) or ``ignore``. Columns go by name; what the rows
    lack is NULL, and what the table lacks is an error unless an option says otherwise.

    ``options``: ``mergeSchema`` adds new columns, ``overwriteSchema`` (with ``overwrite``)
    takes the frame's columns and ``partition_by``, ``userMetadata`` is kept in the history.
    ``properties`` (``delta.*``), ``name`` and ``description`` are for a new table.

    Raises:
        InvalidRequestError: the table is there, the rows do not fit or break a constraint.
        UnsupportedError: the table needs a feature that is not implemented.
        ConflictError: another writer changed what this write relies on.
        DeltaError: the storage refused (DELTA_WRITE_FAILED).

    Examples:
        >>> write(events, "/data/events", partition_by=["day"])  # doctest: +SKIP
        >>> write(more, "/data/events", mode="append").version  # doctest: +SKIP
        1
    """
    return write_table(
        rows,
        TableLog.open(os.fspath(path)),
        mode=SaveMode.parse(mode),
        partition_by=[partition_by] if isinstance(partition_by, str) else partition_by,
        options=options,
        properties=properties,
        name=name,
        description=description,
    )


def sql(spark: SparkSession, text: str, args: Arguments | None = None, **fields: Any) -> DataFrame:
    """Execute one SQL statement, as ``spark.sql`` does, and MERGE and CONVERT TO DELTA, too.

    Statements on ``delta.`/path` `` tables are ours (``docs/sql.md`` lists them); every other
    text goes to ``spark.sql`` untouched. ``args`` fills ``:name`` or ``?`` parameters,
    ``fields`` the ``{name}`` fields, which may be DataFrames.

    Raises:
        pyspark.errors.ParseException: the text is wrong; the message says where.
        DeltaError: what the command itself raises.

    Examples:
        >>> sql(
        ...     spark,
        ...     '''MERGE INTO delta.`/data/events` AS t USING {updates} AS s ON t.id = s.id
        ...        WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *''',
        ...     updates=updates,
        ... )  # doctest: +SKIP
    """
    return run_sql(spark, text, args=args, fields=fields)
