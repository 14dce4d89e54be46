"""The rows that a range of commits changed, as a DataFrame: a few scans, no job.

For Spark every file belongs to a table that is also partitioned by the columns of the feed:
version, time and (unless the file holds it) kind of change are partition values of the file.
So filters on them choose files, and the number of scans does not grow with the commits.
"""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from typing import TypeVar

from pyspark.sql import DataFrame, SparkSession

from puredelta.log.changes.change_files import (
    ChangedFile,
    ChangedRows,
    ChangeFiles,
    read_vector_changes,
    with_change_values,
)
from puredelta.log.files.file_table import FileTable
from puredelta.log.replay.snapshot import Snapshot
from puredelta.protocol.features.column_mapping import physical_name
from puredelta.protocol.table.change_data import (
    CHANGE_TYPE,
    COMMIT_TIMESTAMP,
    COMMIT_VERSION,
    change_schema,
    require_no_change_columns,
)
from puredelta.protocol.table.table_config import TableConfig
from puredelta.spark.scan.bitmaps import rows_by_file, rows_inside
from puredelta.spark.scan.scan import scan
from puredelta.spark.session.helper_columns import FILE_ORDINAL, ROW_INDEX

_T = TypeVar("_T")


def scan_changes(spark: SparkSession, read: Snapshot, changes: ChangeFiles) -> DataFrame:
    """Return the changed rows: the columns of ``read``, then the three of the feed.

    Schema and location of the snapshot count, its files do not. One scan each for change
    files, for files that came or went, and for files of which rows did; several only where
    the table was partitioned anew meanwhile.

    Raises:
        InvalidRequestError: a column of the table has the name of one of the feed's.
        UnsupportedError: Spark cannot read a file, or this kind of session the table.
        CorruptTableError: a deletion vector or a partition value is damaged.
    """
    require_no_change_columns(read.config.schema.names, was_enabled=False)
    vector_changes = read_vector_changes(
        changes.vector_changes, read.root_uri, open_at=read.open_at
    )
    scans = [
        *(_file_scan(spark, read, files) for files in _alike(changes.recorded, _itself)),
        *(_file_scan(spark, read, files) for files in _alike(changes.whole, _itself)),
        *(_row_scan(spark, read, rows) for rows in _alike(vector_changes, _file_of)),
    ]
    return reduce(DataFrame.union, scans or [_file_scan(spark, read, [])])


def _file_scan(spark: SparkSession, read: Snapshot, files: Sequence[ChangedFile]) -> DataFrame:
    return scan(spark, _as_table(read, files), time_travel=True)


def _row_scan(spark: SparkSession, read: Snapshot, changed: Sequence[ChangedRows]) -> DataFrame:
    table = _as_table(read, [c.file for c in changed])
    chosen = rows_by_file({ordinal: c.rows for ordinal, c in enumerate(changed)})
    rows = rows_inside(scan(spark, table, with_position=True, time_travel=True), chosen)
    return rows.drop(FILE_ORDINAL, ROW_INDEX)


def _itself(file: ChangedFile) -> ChangedFile:
    return file


def _file_of(changed: ChangedRows) -> ChangedFile:
    return changed.file


def _alike(items: Iterable[_T], file_of: Callable[[_T], ChangedFile]) -> Iterable[list[_T]]:
    """Group files by the columns they are partitioned by: one group, as a rule.

    In a table that was partitioned anew every file keeps its own columns: what one has in
    its partition values, another holds inside.
    """
    groups: defaultdict[frozenset[str], list[_T]] = defaultdict(list)
    for item in items:
        groups[frozenset(file_of(item).file.partition_values)].append(item)
    return groups.values()


def _as_table(read: Snapshot, files: Sequence[ChangedFile]) -> Snapshot:
    """Return a table of just these files, which are partitioned alike, with the feed's columns."""
    changed = dataclasses.replace(read, config=_with_change_columns(read.config, files))
    return changed.with_files(FileTable.of(map(with_change_values, files)))


def _with_change_columns(config: TableConfig, files: Sequence[ChangedFile]) -> TableConfig:
    mode = config.column_mapping
    partitioned = files[0].file.partition_values if files else {}
    # A change file holds what happened to its rows, but no id of that column.
    is_recorded = bool(files) and files[0].change is None
    by_log = (COMMIT_VERSION, COMMIT_TIMESTAMP) if is_recorded else _EVERY_CHANGE_COLUMN
    return dataclasses.replace(
        config,
        schema=change_schema(config.schema),
        partition_columns=(
            *(f.name for f in config.schema.fields if physical_name(f, mode) in partitioned),
            *by_log,
        ),
    )


_EVERY_CHANGE_COLUMN = (CHANGE_TYPE, COMMIT_VERSION, COMMIT_TIMESTAMP)
