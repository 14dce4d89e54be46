"""The functions a user calls first: one call, a path and a DataFrame."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from typing_extensions import TypedDict, Unpack

from puredelta.commands import changes
from puredelta.commands.definition.new_table import NOTHING_BUT_COLUMNS, NewTableProperties
from puredelta.commands.read_table import TimestampArgument, read_table
from puredelta.commands.statement.report import Report
from puredelta.commands.write import tried_write
from puredelta.commands.write.expectations import Expectations, RowCheck
from puredelta.commands.write.options import SaveMode, WriteOptions
from puredelta.commands.write.planned_write import WriteOutcome
from puredelta.commands.write.write_table import WriteRequest, write_table
from puredelta.log.replay.table_log import TableLog
from puredelta.spark.session.storage import file_system_options, open_log
from puredelta.statements.execute.dispatch import run_sql
from puredelta.statements.execute.explained import dry_run_text, explain_text, preview_text
from puredelta.statements.names.parameters import Arguments


class NewTableArguments(TypedDict, total=False):
    """What `write` takes for a table that it creates; a table that is there keeps its own."""

    properties: Mapping[str, str] | None
    """``delta.*`` properties."""
    name: str | None
    description: str | None


class WriteArguments(NewTableArguments, total=False):
    """What `write` takes, too."""

    expectations: Expectations
    """Conditions on the rows by name, see `Expectation`; a condition alone is a warning."""
    quarantine: str | os.PathLike[str]
    """The path of a table that gets the rows that an expectation with ``drop`` leaves out, with
    the names of what they broke in ``_violations``; it is created if it is not there."""


def read(
    spark: SparkSession,
    path: str | os.PathLike[str],
    *,
    version: int | str | None = None,
    timestamp: TimestampArgument | None = None,
    where: str | None = None,
    storage_options: Mapping[str, object] | None = None,
) -> DataFrame:
    """Return the rows of the Delta table at ``path``.

    Nothing is listed but the log and no job runs. ``version`` or ``timestamp`` choose an
    older state, not both. A timestamp is text as Spark casts it, a ``datetime`` or a ``date``;
    one without a zone is meant in the session's time zone. ``where`` is a condition as SQL text:
    the same as ``.where(...)`` on the result, and over Spark Connect, where a later condition
    reads every file, only files that it can reach are read.
    ``storage_options`` say how the log is reached and win over the session's settings: Hadoop's
    (``fs.s3a.endpoint``) or obstore's (``region``, ``AWS_REGION``), see ``docs/storage.md``.

    Raises:
        TableNotFoundError: no table at the path, or no such version.
        InvalidRequestError: a malformed version or timestamp, or one outside of the history.
        UnsupportedError: the table needs a feature that is not implemented.
        CorruptTableError: the log is damaged.

    Examples:
        >>> read(spark, "/data/events").filter("day = date'2025-01-31'").count()  # doctest: +SKIP
        1200
        >>> read(spark, "/data/events", version=3)  # doctest: +SKIP
        >>> read(spark, "/data/events", where="day = '2025-01-31'")  # doctest: +SKIP
        >>> read(spark, "/data/events", timestamp="2025-01-31 12:00:00")  # doctest: +SKIP
    """
    return read_table(
        spark,
        path,
        version=version,
        timestamp=timestamp,
        where=where,
        storage_options=storage_options,
    )


def read_changes(
    spark: SparkSession,
    path: str | os.PathLike[str],
    *,
    starting_version: int | str | None = None,
    starting_timestamp: TimestampArgument | None = None,
    ending_version: int | str | None = None,
    ending_timestamp: TimestampArgument | None = None,
) -> DataFrame:
    """Return the change data feed of the table at ``path``: the rows that commits changed.

    What ``option("readChangeFeed", "true")`` is to delta-spark's reader; the bounds are its
    ``startingVersion``, ``startingTimestamp``, ``endingVersion`` and ``endingTimestamp``, both
    ends included. A start is needed, by version or time; without an end the feed goes up to
    the newest version. The columns are the table's, then ``_change_type`` (``insert``,
    ``update_preimage``, ``update_postimage``, ``delete``), ``_commit_version`` and
    ``_commit_timestamp``. The log is read here, the data when the rows are used.

    Raises:
        TableNotFoundError: no table at the path, or the commit of the start is gone.
        InvalidRequestError: the bounds are wrong, the feed (``delta.enableChangeDataFeed``) was
            not on in some version, or a schema change lies between.
        UnsupportedError: the table needs a feature that is not implemented.
        CorruptTableError: the log is damaged.

    Examples:
        >>> read_changes(spark, "/data/events", starting_version=3)  # doctest: +SKIP
        >>> read_changes(
        ...     spark, "/data/events", starting_timestamp="2025-01-31", ending_version=12
        ... ).filter("_change_type = 'delete'")  # doctest: +SKIP
    """
    return changes.read_changes(
        spark,
        open_log(spark, path),
        starting_version=starting_version,
        starting_timestamp=starting_timestamp,
        ending_version=ending_version,
        ending_timestamp=ending_timestamp,
    )


def write(
    rows: DataFrame,
    path: str | os.PathLike[str],
    *,
    mode: str = "error",
    partition_by: Sequence[str] | str = (),
    options: Mapping[str, object] | None = None,
    **more: Unpack[WriteArguments],
) -> WriteOutcome:
    """Write a DataFrame into the Delta table at ``path``, which is created if it is not there.

    One Spark job writes the files, one commit makes them the table; if anything fails the
    table is as before and the files are gone. ``mode`` is Spark's: ``error``, ``append``,
    ``overwrite`` (every row is replaced) or ``ignore``. Columns go by name; what the rows
    lack is NULL, and what the table lacks is an error unless an option says otherwise.

    ``options``: ``mergeSchema`` adds new columns, ``overwriteSchema`` (with ``overwrite``)
    takes the frame's columns and ``partition_by``, ``userMetadata`` is kept in the history; those
    that begin with ``fs.`` say how the log is reached, as ``storage_options`` of `read` do.
    ``properties``, ``name`` and ``description`` are for a new table (`NewTableArguments`).
    ``expectations`` are checked before anything is written, on rows that are evaluated once
    (`WriteArguments`); the outcome has the number of ``violations`` of each.

    Raises:
        InvalidRequestError: the table is there, the rows do not fit, or break a constraint or
            an expectation that says ``fail``.
        UnsupportedError: the table needs a feature that is not implemented.
        ConflictError: another writer changed what this write relies on.
        DeltaError: the storage refused (DELTA_WRITE_FAILED).

    Examples:
        >>> write(events, "/data/events", partition_by=["day"])  # doctest: +SKIP
        >>> write(more, "/data/events", mode="append").version  # doctest: +SKIP
        1
    """
    request = _write_request(mode, partition_by, options, _new_table(more))
    log = open_log(rows.sparkSession, path, storage_options=file_system_options(request.options))
    if more.get("expectations"):
        return _checked_write(rows, log, request, more)
    return write_table(rows, log, request)


def dry_run_write(
    rows: DataFrame,
    path: str | os.PathLike[str],
    *,
    mode: str = "error",
    partition_by: Sequence[str] | str = (),
    options: Mapping[str, object] | None = None,
) -> Report:
    """Return what `write` would do with the same arguments; nothing is changed.

    The rows are computed, checked against the rules of the table, counted and dropped. With the
    option ``replaceWhere`` on data columns the counts are those of the execution.

    Raises what `write` raises before it commits.

    Examples:
        >>> dry_run_write(
        ...     corrected, "/data/events", mode="overwrite", options={"replaceWhere": "kind = 'x'"}
        ... ).rows.deleted  # doctest: +SKIP
        17
    """
    request = _write_request(mode, partition_by, options)
    log = open_log(rows.sparkSession, path, storage_options=file_system_options(request.options))
    return tried_write.dry_run_write(rows, log, request)


def preview_write(
    rows: DataFrame,
    path: str | os.PathLike[str],
    limit: int = 20,
    *,
    options: Mapping[str, object] | None = None,
) -> DataFrame:
    """Return up to ``limit`` rows that an overwrite with ``replaceWhere`` deletes and inserts.

    The columns are those of `preview`.

    Raises:
        UnsupportedError: the option ``replaceWhere`` is missing, or there is no table.
    """
    request = _write_request("overwrite", (), options)
    log = open_log(rows.sparkSession, path, storage_options=file_system_options(request.options))
    return tried_write.preview_write(rows, log, request, limit=limit)


def _write_request(
    mode: str,
    partition_by: Sequence[str] | str,
    options: Mapping[str, object] | None,
    created: NewTableProperties = NOTHING_BUT_COLUMNS,
) -> WriteRequest:
    return WriteRequest(
        mode=SaveMode.parse(mode),
        partition_by=[partition_by] if isinstance(partition_by, str) else partition_by,
        options=options or {},
        created=created,
    )


def _checked_write(
    rows: DataFrame, log: TableLog, request: WriteRequest, more: WriteArguments
) -> WriteOutcome:
    spark, quarantine = rows.sparkSession, more.get("quarantine")
    check = RowCheck.of(
        more.get("expectations", {}),
        quarantine=None if quarantine is None else open_log(spark, quarantine),
        set_transaction=WriteOptions.of(spark, request.options).settings.set_transaction,
    )
    violations: dict[str, int] = {}

    def checked(given: DataFrame) -> DataFrame:
        found = check(given)
        violations.update(found.violations)
        return found.rows

    outcome = write_table(rows, log, replace(request, check=checked))
    return replace(outcome, violations=violations)


def _new_table(given: WriteArguments) -> NewTableProperties:
    known = {*NewTableArguments.__annotations__, *WriteArguments.__annotations__}
    for name in given.keys() - known:
        raise TypeError(f"write() got an unexpected keyword argument {name!r}")
    return NewTableProperties(
        properties=given.get("properties") or {},
        name=given.get("name"),
        description=given.get("description"),
    )


def sql(spark: SparkSession, text: str, args: Arguments | None = None, **fields: Any) -> DataFrame:
    """Execute one SQL statement, as ``spark.sql`` does, and those on Delta tables, too.

    ``docs/sql.md`` lists them: MERGE, UPDATE, DELETE, INSERT, CREATE, ALTER, ...; every other
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


def explain(
    spark: SparkSession,
    text: str,
    *,
    mode: str = "plan",
    args: Arguments | None = None,
    **fields: Any,
) -> Report:
    """Return what a statement will do, and why; it is not executed.

    ``text`` is a MERGE, UPDATE, DELETE, OPTIMIZE, VACUUM, RESTORE or CONVERT TO DELTA, ``args`` and
    ``fields`` are those of `sql`. ``mode="plan"`` runs no Spark job; ``"source"`` evaluates the
    source of a MERGE, so that its keys skip files. See ``docs/explain.md``.

    Raises:
        pyspark.errors.ParseException: the text is wrong; the message says where.
        InvalidRequestError: it is another statement, or on no Delta table.
        DeltaError: what the statement itself raises before it reads rows.

    Examples:
        >>> print(explain(spark, "DELETE FROM events WHERE day < '2020-01-01'"))  # doctest: +SKIP
    """
    return explain_text(spark, text, mode=mode, args=args, fields=fields)


def dry_run(spark: SparkSession, text: str, args: Arguments | None = None, **fields: Any) -> Report:
    """Return what a statement would do, with the counts of its execution; nothing is changed.

    Takes what `explain` takes, and searches the rows as the execution does.

    Raises what the statement itself raises before it writes.

    Examples:
        >>> dry_run(spark, "UPDATE events SET kind = 'click' WHERE kind = 'clck'")  # doctest: +SKIP
    """
    return dry_run_text(spark, text, args=args, fields=fields)


def preview(
    spark: SparkSession,
    text: str,
    limit: int = 20,
    *,
    args: Arguments | None = None,
    **fields: Any,
) -> DataFrame:
    """Return up to ``limit`` rows that a MERGE, UPDATE or DELETE would change, before and after.

    The columns are the table's, ``_change_type`` (``insert``, ``update_preimage``,
    ``update_postimage``, ``delete``) and ``_clause``, the number of the clause, from 1. The driver
    holds the rows.

    Raises what the statement itself raises before it writes.

    Examples:
        >>> preview(spark, "DELETE FROM events WHERE id = 7").show()  # doctest: +SKIP
    """
    return preview_text(spark, text, limit=limit, args=args, fields=fields)
