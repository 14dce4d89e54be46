"""Differences between versions, and the last change of each row.

Files that both versions have, with the same deletion vector, hold equal rows and are not read.
All other files are read with the columns of the newer version, by the names inside the files, so
renamed, added, widened and dropped columns need no special case. None of them may be missing or
damaged, whatever the session says.

In a table with row tracking every row records the version of its last change. For any other table,
the files added and removed by each commit are compared: a row was last changed by the newest
version with more rows of its values than the version before. Rows that a commit only copied from
file to file cancel out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from puredelta.commands.read_table import utc_time
from puredelta.errors import InvalidRequestError, Message
from puredelta.log.changes.change_feed import find_change_files
from puredelta.log.changes.change_range import commit_times
from puredelta.log.files.file_table import FileTable, file_keys
from puredelta.log.replay.segment import list_log
from puredelta.log.replay.snapshot import Snapshot
from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.features.column_mapping import physical_name
from puredelta.protocol.features.type_widening import can_widen
from puredelta.protocol.schema.types import ArrayType, DataType, MapType, StructType
from puredelta.protocol.table.change_data import CHANGE_TYPE, COMMIT_VERSION, ChangeType
from puredelta.protocol.table.row_tracking import tracked_columns
from puredelta.protocol.table.table_config import TableConfig
from puredelta.spark.scan.change_scan import scan_changes
from puredelta.spark.scan.row_tracking_scan import tracked_scan
from puredelta.spark.scan.scan import scan_strictly
from puredelta.spark.session.names import ROW_COMMIT_VERSION, quote

CHANGE = "_change"
"""``added``, ``removed``, and with keys ``changed``."""
BEFORE, AFTER = "before", "after"
_SIGN = "__diff_sign"
_GROUPED = "__diff_{}"


def diff_rows(
    spark: SparkSession,
    log: TableLog,
    version_a: int,
    version_b: int,
    *,
    keys: Sequence[str] | None = None,
) -> DataFrame:
    """Return the rows that two versions do not share; reads the log, runs no job.

    Without keys: ``_change`` (``added`` or ``removed``) and the columns; a row is repeated as
    often as one version has it more than the other. With keys, which must be unique in each
    version: ``_change`` (``changed``, too), the keys, and ``before`` and ``after``, structs of
    the other columns.

    Raises:
        TableNotFoundError: there is no such version.
        InvalidRequestError: a key is no column, or a column changed its type in a way that
            values of one version cannot be read as those of the other.
    """
    before, after = log.snapshot(version=version_a), log.snapshot(version=version_b)
    newer = after if version_b >= version_a else before
    names = newer.config.schema.names
    if unknown := [key for key in keys or () if key not in names]:
        raise InvalidRequestError(
            Message.COLUMN_NOT_FOUND_IN_SCHEMA_DIFF_KEYS, names=", ".join(names), column=unknown[0]
        )
    require_same_types(before.config, after.config)
    rows = _net_rows(
        _rows_of(spark, newer, before, _files_without(before, after)),
        _rows_of(spark, newer, after, _files_without(after, before)),
    )
    return _without_sign(rows) if keys is None else _by_keys(rows, keys)


def require_same_types(one: TableConfig, two: TableConfig) -> None:
    """Refuse two versions between which the meaning of a column's values changed.

    Raises:
        InvalidRequestError: a column has another type, and none that the feature typeWidening
            knows.
    """
    types = {physical_name(f, one.column_mapping): f for f in one.schema.fields}
    for field in two.schema.fields:
        old = types.get(physical_name(field, two.column_mapping))
        if old is not None and not _is_readable(old.type, field.type):
            raise InvalidRequestError(
                Message.INVALID_ARGUMENT_DIFF_TYPES,
                old_type=old.type,
                field_type=field.type,
                column=field.name,
            )


def _is_readable(one: DataType, two: DataType) -> bool:
    match one, two:
        case StructType(), StructType():
            kinds = {field.name: field.type for field in one.fields}
            return all(
                field.name not in kinds or _is_readable(kinds[field.name], field.type)
                for field in two.fields
            )
        case ArrayType(element), ArrayType(other):
            return _is_readable(element, other)
        case MapType(key, value), MapType(other_key, other_value):
            return _is_readable(key, other_key) and _is_readable(value, other_value)
        case _:
            return one == two or can_widen(one, two) or can_widen(two, one)


def _files_without(one: Snapshot, other: Snapshot) -> FileTable:
    """Return the files of one version that the other lacks, or has with another vector."""
    shared = pc.is_in(file_keys(one.files.rows), value_set=file_keys(other.files.rows))
    return one.files.select(pc.invert(shared))


def _rows_of(
    spark: SparkSession, newer: Snapshot, version: Snapshot, files: FileTable
) -> DataFrame:
    read = newer
    if set(version.config.partition_columns) != set(newer.config.partition_columns):
        config = replace(newer.config, partition_columns=version.config.partition_columns)
        read = replace(newer, config=config)
    return scan_strictly(spark, read, files, time_travel=True)


def _net_rows(before: DataFrame, after: DataFrame) -> DataFrame:
    """Return the rows that one side has more often; `_SIGN` is the surplus in ``after``."""
    signed = before.withColumn(_SIGN, F.lit(-1)).unionByName(after.withColumn(_SIGN, F.lit(1)))
    return net_rows(signed, F.col(_SIGN), before.schema)


def net_rows(
    signed: DataFrame, sign: Column, schema: T.StructType, *more: str, sign_column: str = _SIGN
) -> DataFrame:
    """Sum equal rows by their sign, and return those with a sum other than 0 in ``sign_column``.

    ``more`` are further columns that distinguish rows, and stay. NULL equals NULL; values that
    Spark does not compare, or compares loosely, are compared as JSON (`comparable`).
    """
    grouped = {
        _GROUPED.format(n): comparable(F.col(quote(f.name)), f.dataType)
        for n, f in enumerate(schema.fields)
    }
    ready = signed.withColumns({**grouped, sign_column: sign})
    counted = ready.groupBy(*grouped, *more).agg(
        *(F.first(quote(f.name)).alias(f.name) for f in schema.fields),
        F.sum(sign_column).alias(sign_column),
    )
    return counted.where(F.col(sign_column) != 0).drop(*grouped)


_COMPARED_AS_JSON = ("map<", "variant", "float", "double", "collate")
_JSON_OPTIONS = {
    "ignoreNullFields": "false",
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSxxx",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}


def comparable(value: Column, kind: T.DataType) -> Column:
    """Return a value in a form that Spark can group by, with other text for another value.

    Spark groups 0.0 with -0.0, and texts that are equal by their collation.
    """
    if any(name in kind.simpleString() for name in _COMPARED_AS_JSON):
        return F.to_json(F.struct(value.alias("v")), _JSON_OPTIONS)
    return value


_COPIES = "__diff_copy"
_COPIES_MAX = 1 << 16


def repeated(rows: DataFrame, times: Column) -> DataFrame:
    """Return each row a number of times; no array of more than 65,536 entries is made."""
    parts = F.sequence(F.lit(0).cast("long"), F.floor((times - 1) / _COPIES_MAX))
    left = F.least(times - F.col(_COPIES) * _COPIES_MAX, F.lit(_COPIES_MAX).cast("long"))
    parted = rows.withColumn(_COPIES, F.explode(parts))
    return parted.withColumn(_COPIES, F.explode(F.sequence(F.lit(1).cast("long"), left))).drop(
        _COPIES
    )


def _without_sign(rows: DataFrame) -> DataFrame:
    """Return each row as often as its count."""
    change = F.when(F.col(_SIGN) > 0, "added").otherwise("removed")
    names = [quote(name) for name in rows.columns if name != _SIGN]
    return repeated(rows, F.abs(_SIGN)).select(change.alias(CHANGE), *names)


def _by_keys(rows: DataFrame, keys: Sequence[str]) -> DataFrame:
    values = [name for name in rows.columns if name not in {*keys, _SIGN}]
    row = F.struct(*(F.col(quote(name)) for name in values)) if values else F.lit("")
    added = F.col(_SIGN) > 0
    sides = rows.select(
        *map(quote, keys),
        F.when(~added, row).alias(BEFORE),
        F.when(added, row).alias(AFTER),
    )
    paired = sides.groupBy(*map(quote, keys)).agg(
        F.max(F.col(BEFORE).isNotNull()).alias("__diff_was"),
        F.max(F.col(AFTER).isNotNull()).alias("__diff_is"),
        F.first(BEFORE, ignorenulls=True).alias(BEFORE),
        F.first(AFTER, ignorenulls=True).alias(AFTER),
    )
    change = (
        F.when(F.col("__diff_was") & F.col("__diff_is"), "changed")
        .when(F.col("__diff_is"), "added")
        .otherwise("removed")
    )
    return paired.select(change.alias(CHANGE), *map(quote, keys), BEFORE, AFTER)


VERSION, TIMESTAMP = "_version", "_timestamp"
OPERATION, USER_METADATA = "_operation", "_user_metadata"
_HISTORY = "__blame_version BIGINT, _timestamp TIMESTAMP, _operation STRING, _user_metadata STRING"
_ADDS = (ChangeType.INSERT.value, ChangeType.UPDATE_POSTIMAGE.value)
_ROW = "__blame_{}"


def blame_rows(
    spark: SparkSession, log: TableLog, condition: str | Column | None = None
) -> DataFrame:
    """Return rows of the newest version with the version that last changed them.

    The columns are those of the table, then ``_version`` (long), ``_timestamp``, ``_operation``
    and ``_user_metadata``; NULL where that commit is no longer in the log. ``condition`` selects
    rows by their present values. Reads the log, and runs no job.
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
    rows = scan_strictly(spark, snapshot)
    listing = list_log(log.store)
    commits = log.commits_after(_first(listing.commits) - 1, through=snapshot.version)
    found = find_change_files(commits, commit_times(commits, listing))
    changes = scan_changes(spark, snapshot, found, strictly=True)
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
    """Return the oldest version since which no commit is missing."""
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
