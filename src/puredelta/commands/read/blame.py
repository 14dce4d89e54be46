"""Which version last changed each row, and what the history says of it.

A table that tracks rows knows it: every row has the version that last changed it. For any other
table the data files that commits added and removed are compared: a row was last changed by the
newest version that has more rows of its values than the one before. Rows that a commit only
copied from file to file cancel out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from puredelta.commands.read.diff import comparable, net_rows
from puredelta.commands.read.history import utc_time
from puredelta.log.changes.change_files import find_change_files
from puredelta.log.changes.change_range import commit_times
from puredelta.log.replay.segment import list_log
from puredelta.log.replay.snapshot import Snapshot
from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.table.change_data import CHANGE_TYPE, COMMIT_VERSION, ChangeType
from puredelta.protocol.table.row_tracking import tracked_columns
from puredelta.spark.scan.change_scan import scan_changes
from puredelta.spark.scan.row_tracking_scan import tracked_scan
from puredelta.spark.scan.scan import scan
from puredelta.spark.session.helper_columns import ROW_COMMIT_VERSION
from puredelta.spark.session.identifiers import quote

VERSION, TIMESTAMP = "_version", "_timestamp"
OPERATION, USER_METADATA = "_operation", "_user_metadata"
_HISTORY = "__blame_version BIGINT, _timestamp TIMESTAMP, _operation STRING, _user_metadata STRING"
_ADDS = (ChangeType.INSERT.value, ChangeType.UPDATE_POSTIMAGE.value)
_SIGN = "__diff_sign"
_ROW = "__blame_{}"


def blame_rows(
    spark: SparkSession, log: TableLog, condition: str | Column | None = None
) -> DataFrame:
    """Return rows of the newest version with the version that last changed them.

    The columns are those of the table, then ``_version`` (long), ``_timestamp``, ``_operation``
    and ``_user_metadata``; NULL where that commit is no longer in the log. ``condition`` chooses
    rows by their present values. Reads the log, and runs no job.

    Raises:
        TableNotFoundError: there is no table.
        CorruptTableError: the log is damaged, or a commit does not say what it removed.
    """
    snapshot = log.snapshot()
    tracked = tracked_columns(snapshot.config)
    if tracked is not None:
        names = snapshot.config.schema.names
        rows = tracked_scan(spark, snapshot, snapshot.files, tracked, columns=names)
        found = rows.select(*map(quote, names), F.col(ROW_COMMIT_VERSION).alias(VERSION))
        found = found if condition is None else found.where(condition)
    else:
        found = _by_changes(spark, log, snapshot, condition)
    return _with_history(spark, log, found)


def _by_changes(
    spark: SparkSession, log: TableLog, snapshot: Snapshot, condition: str | Column | None
) -> DataFrame:
    rows = scan(spark, snapshot)
    listing = list_log(log.store)
    commits = log.commits_after(_first(listing.commits) - 1, through=snapshot.version)
    changes = scan_changes(
        spark, snapshot, find_change_files(commits, commit_times(commits, listing))
    )
    if condition is not None:
        rows, changes = rows.where(condition), changes.where(condition)
    schema = rows.schema
    sign = F.when(F.col(CHANGE_TYPE).isin(*_ADDS), 1).otherwise(-1)
    net = net_rows(changes, sign, schema, COMMIT_VERSION)
    keys = [_ROW.format(n) for n in range(len(schema.fields))]
    newest = (
        net.where(F.col(_SIGN) > 0)
        .groupBy(*_named(schema, keys))
        .agg(F.max(COMMIT_VERSION).alias(VERSION))
    )
    same = [
        comparable(F.col(quote(f.name)), f.dataType).eqNullSafe(F.col(key))
        for f, key in zip(schema.fields, keys, strict=True)
    ]
    return rows.join(newest, same, "left").drop(*keys)


def _named(schema: T.StructType, keys: Sequence[str]) -> list[Column]:
    return [
        comparable(F.col(quote(f.name)), f.dataType).alias(key)
        for f, key in zip(schema.fields, keys, strict=True)
    ]


def _first(versions: Iterable[int]) -> int:
    """Return the oldest version from which on no commit is missing."""
    newest_first = sorted(versions, reverse=True)
    first = newest_first[0]
    for version in newest_first[1:]:
        if version != first - 1:
            break
        first = version
    return first


def _with_history(spark: SparkSession, log: TableLog, rows: DataFrame) -> DataFrame:
    entries = [
        (
            entry.version,
            utc_time(entry.timestamp_ms),
            None if entry.commit_info is None else entry.commit_info.operation,
            None if entry.commit_info is None else entry.commit_info.user_metadata,
        )
        for entry in log.history()
    ]
    history = spark.createDataFrame(entries, _HISTORY)
    joined = rows.join(F.broadcast(history), F.col(VERSION) == F.col("__blame_version"), "left")
    return joined.drop("__blame_version")
