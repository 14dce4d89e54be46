"""``VACUUM``, ``RESTORE`` and ``GENERATE``, which Spark does not know, and ``TRUNCATE TABLE``."""

from __future__ import annotations

import logging

from pyspark.sql import DataFrame, SparkSession

from puredelta.commands.generate import generate
from puredelta.commands.restore import restore_table
from puredelta.commands.truncate import truncate_table
from puredelta.commands.vacuum.run import vacuum
from puredelta.errors import ErrorCode, InvalidRequestError
from puredelta.log.replay.table_log import TableLog
from puredelta.spark.catalog.cached_frames import refresh_cached_frames
from puredelta.sql.execute.results import no_rows
from puredelta.sql.relations.names import find_location, resolve_name
from puredelta.sql.relations.table_argument import (
    not_found,
    read_number,
    read_table_argument,
    require_table,
)
from puredelta.sql.text.cursor import Cursor
from puredelta.sql.text.syntax_error import SqlSyntaxError
from puredelta.sql.text.table_name import ComputedName
from puredelta.sql.text.text_literal import accept_text

logger = logging.getLogger(__name__)

_PATHS = "path STRING"


def run_upkeep(spark: SparkSession, text: str) -> DataFrame | None:
    """Execute a statement that looks after a table; None for any other text.

    ``VACUUM table [RETAIN n HOURS] [DRY RUN]`` returns the table's path, or the paths that
    would go. ``RESTORE [TABLE] table TO VERSION AS OF n`` or ``TO TIMESTAMP AS OF 'time'``
    returns counts. ``GENERATE symlink_format_manifest FOR TABLE table`` writes manifests. The
    table is a name, ``delta.`/path` `` or a path in quotes. ``TRUNCATE TABLE table`` removes
    every row of a Delta table, ``DROP TABLE`` of a path does nothing; other tables are Spark's.

    Raises:
        SqlSyntaxError: it begins as one of these and goes on as something else.
        TableNotFoundError: there is no Delta table.
        DeltaError: what the commands raise.
    """
    cursor = Cursor(text)
    if cursor.accept("VACUUM"):
        return _vacuum(spark, cursor)
    if cursor.accept("RESTORE"):
        return _restore(spark, cursor)
    if cursor.accept("GENERATE"):
        return _generate(spark, cursor)
    if cursor.accept("TRUNCATE", "TABLE"):
        return _truncate(spark, cursor)
    if cursor.accept("DROP", "TABLE"):
        return _drop(spark, cursor)
    return None


def _vacuum(spark: SparkSession, cursor: Cursor) -> DataFrame:
    log = read_table_argument(spark, cursor)
    hours, is_dry = None, False
    while not (cursor.is_done or cursor.sees(";")):
        if hours is None and cursor.accept("RETAIN"):
            hours = float(read_number(cursor))
            cursor.expect("HOURS")
        elif not is_dry and cursor.accept("DRY", "RUN"):
            is_dry = True
        else:
            raise cursor.error(expected="RETAIN n HOURS or DRY RUN")
    cursor.expect_end()
    outcome = vacuum(spark, log, retention_hours=hours, dry_run=is_dry)
    paths = outcome.uris if is_dry else (outcome.root_uri,)
    return spark.createDataFrame([(path,) for path in paths], _PATHS)


def _restore(spark: SparkSession, cursor: Cursor) -> DataFrame:
    cursor.accept("TABLE")
    log = read_table_argument(spark, cursor)
    cursor.accept("TO")
    version, timestamp = None, None
    if cursor.accept("VERSION", "AS", "OF"):
        version = int(read_number(cursor))
    elif cursor.accept("TIMESTAMP", "AS", "OF"):
        timestamp = accept_text(cursor)
        if timestamp is None:
            raise cursor.error(expected="a time in quotes")
    else:
        raise cursor.error(expected="VERSION AS OF or TIMESTAMP AS OF")
    cursor.expect_end()
    outcome = restore_table(spark, log, version=version, timestamp=timestamp)
    if outcome is None:
        return no_rows(spark)
    refresh_cached_frames(spark, log)
    return outcome.row(spark)


def _truncate(spark: SparkSession, cursor: Cursor) -> DataFrame | None:
    try:
        table = cursor.table()
    except SqlSyntaxError:
        return None  # Spark's own parser says it best
    name = resolve_name(spark, table)
    location = find_location(spark, name)
    if location is None:
        return None
    if cursor.accept("PARTITION"):
        raise InvalidRequestError(
            "Operation not allowed: TRUNCATE TABLE on Delta tables does not support partition "
            "predicates; use DELETE to delete specific partitions or rows.",
            code=ErrorCode.TRUNCATE_TABLE_PARTITION_NOT_SUPPORTED,
        )
    cursor.expect_end()
    truncate_table(spark, require_table(location, name))
    return no_rows(spark)


def _drop(spark: SparkSession, cursor: Cursor) -> DataFrame | None:
    """Drop nothing at a path, as the reference: what has no name has nothing to lose."""
    if_exists = cursor.accept("IF", "EXISTS")
    try:
        name = cursor.table()
    except SqlSyntaxError:
        return None  # Spark's own parser says it best
    if isinstance(name, ComputedName) or name.path is None:
        return None
    cursor.accept("PURGE")
    cursor.expect_end()
    if TableLog.open(name.path).exists():
        logger.warning("DROP TABLE %s drops nothing: delete the directory of the table.", name)
    elif not if_exists:
        raise not_found(name)
    return no_rows(spark)


def _generate(spark: SparkSession, cursor: Cursor) -> DataFrame:
    mode = cursor.identifier()
    cursor.expect("FOR", "TABLE")
    log = read_table_argument(spark, cursor)
    cursor.expect_end()
    generate(log.store, log.snapshot(), mode)
    return no_rows(spark)
