"""``VACUUM``, ``RESTORE`` and ``OPTIMIZE``, which Spark's parser does not know."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from puredelta.commands.restore import restore_table
from puredelta.commands.vacuum.run import vacuum
from puredelta.errors import ErrorCode, UnsupportedError
from puredelta.sql.cursor import Cursor
from puredelta.sql.table_argument import accept_text, read_number, read_table_argument

_PATHS = "path STRING"


def run_upkeep(spark: SparkSession, text: str) -> DataFrame | None:
    """Execute a statement that looks after a table; None for any other text.

    ``VACUUM table [RETAIN n HOURS] [DRY RUN]`` returns the table's path, or the paths that
    would go. ``RESTORE [TABLE] table TO VERSION AS OF n`` or ``TO TIMESTAMP AS OF 'time'``
    returns counts. The table is a name, ``delta.`/path` `` or a path in quotes.

    Raises:
        SqlSyntaxError: it begins as one of these and goes on as something else.
        UnsupportedError: ``OPTIMIZE``.
        TableNotFoundError: there is no Delta table.
        DeltaError: what the commands raise.
    """
    cursor = Cursor(text)
    if cursor.accept("VACUUM"):
        return _vacuum(spark, cursor)
    if cursor.accept("RESTORE"):
        return _restore(spark, cursor)
    if cursor.accept("OPTIMIZE"):
        raise UnsupportedError(
            "OPTIMIZE is not supported as SQL text.", code=ErrorCode.OPERATION_NOT_ALLOWED
        )
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
    return spark.createDataFrame([], StructType([])) if outcome is None else outcome.row(spark)
