"""The main functions of the package: one call, a path and a DataFrame."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from typing_extensions import TypedDict, Unpack

from puredelta.commands import changes
from puredelta.commands.new_table import NOTHING_BUT_COLUMNS, NewTableProperties
from puredelta.commands.read_table import TimestampArgument, read_table
from puredelta.commands.statement.report import Report
from puredelta.commands.write import tried_write
from puredelta.commands.write.expectations import Expectations, RowCheck
from puredelta.commands.write.options import SaveMode, WriteOptions
from puredelta.commands.write.planned_write import WriteOutcome
from puredelta.commands.write.write_table import WriteRequest, write_table
from puredelta.log.replay.table_log import TableLog
from puredelta.spark.session.pyspark_errors import like_pyspark
from puredelta.spark.session.storage import file_system_options, open_log
from puredelta.statements.execute.dispatch import run_sql
from puredelta.statements.execute.explained import dry_run_text, explain_text, preview_text
from puredelta.statements.names.parameters import Arguments


class NewTableArguments(TypedDict, total=False):
    """Arguments of `write` for a new table; an existing table keeps its own values."""

    properties: Mapping[str, str] | None
    """``delta.*`` properties."""
    name: str | None
    description: str | None


class WriteArguments(NewTableArguments, total=False):
    """Further arguments of `write`."""

    expectations: Expectations
    """Conditions on the rows by name, see `Expectation`; a condition alone is a warning."""
    quarantine: str | os.PathLike[str]
    """The path of a table for the rows that an expectation with ``drop`` leaves out, with the names
    of their broken expectations in ``_violations``; it is created if it does not exist.
    """


@like_pyspark
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

    Only the log is listed and no job runs. ``version`` or ``timestamp`` choose an
    older version, not both. A timestamp is text as Spark casts it, a ``datetime`` or a ``date``;
    one without a zone is in the session's time zone. ``where`` is a condition as SQL text:
    the same as ``.where(...)`` on the result.
    ``storage_options`` configure the access to the log and override the session's settings. Their
    keys are Hadoop's (``fs.s3a.endpoint``) or obstore's (``region``, ``AWS_REGION``), see
    ``docs/storage.md``.

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


@like_pyspark
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

    The counterpart of ``option("readChangeFeed", "true")`` of delta-spark's reader, with its bounds
    ``startingVersion``, ``startingTimestamp``, ``endingVersion`` and ``endingTimestamp``, both
    ends included. A start is needed, by version or time; without an end the feed continues to
    the newest version. The columns are the table's, then ``_change_type`` (``insert``,
    ``update_preimage``, ``update_postimage``, ``delete``), ``_commit_version`` and
    ``_commit_timestamp``. The log is read here, the data when the rows are used.

    Raises:
        TableNotFoundError: no table at the path, or the commit of the start has been deleted.
        InvalidRequestError: the bounds are wrong, the feed (``delta.enableChangeDataFeed``) was
            not on in some version, or the schema changed in between.
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


@like_pyspark
def write(
    rows: DataFrame,
    path: str | os.PathLike[str],
    *,
    mode: str = "error",
    partition_by: Sequence[str] | str = (),
    options: Mapping[str, object] | None = None,
    **more: Unpack[WriteArguments],
) -> WriteOutcome:
    """Write a DataFrame into the Delta table at ``path``, which is created if it does not exist.

    One Spark job writes the files, and one commit adds them to the table; after a failure the
    table is unchanged and the files are removed. ``mode`` is Spark's: ``error``, ``append``,
    ``overwrite`` (every row is replaced) or ``ignore``. Columns are matched by name; columns that
    the rows lack are NULL, and columns that the table lacks are an error unless an option allows
    them.

    ``options``: ``mergeSchema`` adds new columns, ``overwriteSchema`` (with ``overwrite``)
    takes the frame's columns and ``partition_by``, ``userMetadata`` is kept in the history; those
    that begin with ``fs.`` configure the access to the log, like ``storage_options`` of `read`.
    ``properties``, ``name`` and ``description`` are for a new table (`NewTableArguments`).
    ``expectations`` are checked before anything is written, on rows that are evaluated once
    (`WriteArguments`); the outcome has the number of ``violations`` of each.

    Raises:
        InvalidRequestError: the table exists, the rows do not fit, or break a constraint or
            an expectation with ``fail``.
        UnsupportedError: the table needs a feature that is not implemented.
        ConflictError: another writer changed data that this write relies on.
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


@like_pyspark
def dry_run_write(
    rows: DataFrame,
    path: str | os.PathLike[str],
    *,
    mode: str = "error",
    partition_by: Sequence[str] | str = (),
    options: Mapping[str, object] | None = None,
) -> Report:
    """Return the report of a `write` with the same arguments; nothing is changed.

    The rows are computed, checked against the rules of the table, counted and dropped. With the
    option ``replaceWhere`` on data columns the counts are those of the execution.

    Raises the errors of `write` that occur before it commits.

    Examples:
        >>> dry_run_write(
        ...     corrected, "/data/events", mode="overwrite", options={"replaceWhere": "kind = 'x'"}
        ... ).rows.deleted  # doctest: +SKIP
        17
    """
    request = _write_request(mode, partition_by, options)
    log = open_log(rows.sparkSession, path, storage_options=file_system_options(request.options))
    return tried_write.dry_run_write(rows, log, request)


@like_pyspark
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
        needs_partitions=True,
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


@like_pyspark
def sql(spark: SparkSession, text: str, args: Arguments | None = None, **fields: Any) -> DataFrame:
    """Execute one SQL statement like ``spark.sql``, including those on Delta tables.

    ``docs/sql.md`` lists them: MERGE, UPDATE, DELETE, INSERT, CREATE, ALTER, ...; every other
    text is passed to ``spark.sql`` unchanged. ``args`` fills ``:name`` or ``?`` parameters,
    ``fields`` the ``{name}`` fields, which may be DataFrames.

    Raises:
        pyspark.errors.ParseException: the text is wrong; the message has the position.
        DeltaError: an error of the command itself.

    Examples:
        >>> sql(
        ...     spark,
        ...     '''MERGE INTO delta.`/data/events` AS t USING {updates} AS s ON t.id = s.id
        ...        WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *''',
        ...     updates=updates,
        ... )  # doctest: +SKIP
    """
    return run_sql(spark, text, args=args, fields=fields)


@like_pyspark
def explain(
    spark: SparkSession,
    text: str,
    *,
    mode: str = "plan",
    args: Arguments | None = None,
    **fields: Any,
) -> Report:
    """Return the plan of a statement, with reasons; it is not executed.

    ``text`` is a MERGE, UPDATE, DELETE, OPTIMIZE, VACUUM, RESTORE or CONVERT TO DELTA, ``args`` and
    ``fields`` are those of `sql`. ``mode="plan"`` runs no Spark job; ``"source"`` evaluates the
    source of a MERGE, so that its keys skip files. See ``docs/explain.md``.

    Raises:
        pyspark.errors.ParseException: the text is wrong; the message has the position.
        InvalidRequestError: it is another statement, or on no Delta table.
        DeltaError: an error of the statement itself that occurs before it reads rows.

    Examples:
        >>> print(explain(spark, "DELETE FROM events WHERE day < '2020-01-01'"))  # doctest: +SKIP
    """
    return explain_text(spark, text, mode=mode, args=args, fields=fields)


@like_pyspark
def dry_run(spark: SparkSession, text: str, args: Arguments | None = None, **fields: Any) -> Report:
    """Return the plan of a statement, with the counts of its execution; nothing is changed.

    Takes the arguments of `explain`, and searches the rows like the execution.

    Raises the errors of the statement itself that occur before it writes.

    Examples:
        >>> dry_run(spark, "UPDATE events SET kind = 'click' WHERE kind = 'clck'")  # doctest: +SKIP
    """
    return dry_run_text(spark, text, args=args, fields=fields)


@like_pyspark
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

    Raises the errors of the statement itself that occur before it writes.

    Examples:
        >>> preview(spark, "DELETE FROM events WHERE id = 7").show()  # doctest: +SKIP
    """
    return preview_text(spark, text, limit=limit, args=args, fields=fields)
