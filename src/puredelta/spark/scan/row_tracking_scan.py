"""Rows with their row ids and row commit versions, for tables that track rows.

For Spark the two numbers in the log are partition values of each file, and the hidden columns
are columns like others, so the scan stays one native scan.

For users the scan computes ``_metadata`` as a column, and a projection above hides it: ``SELECT *``
does not show it, a query that names it finds it. What no query names is not computed.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from puredelta.log.files.file_table import FileTable
from puredelta.log.replay.snapshot import Snapshot
from puredelta.protocol.table.row_tracking import RowTrackingColumns
from puredelta.spark.jvm.frames import frame_of, logical_plan
from puredelta.spark.jvm.plans import named_plan, with_last_column_hidden
from puredelta.spark.scan.scan import (
    POSITION,
    for_query,
    physical_rows,
    read_columns,
    readable_ids,
)
from puredelta.spark.scan.scan_columns import (
    commit_version_text,
    metadata_text,
    row_id_text,
)
from puredelta.spark.scan.table_rows import set_origin, table_rows
from puredelta.spark.session.names import METADATA, ROW_COMMIT_VERSION, ROW_ID, ROW_INDEX
from puredelta.spark.session.session import is_connect


def tracked_scan(
    spark: SparkSession,
    snapshot: Snapshot,
    files: FileTable,
    tracked: RowTrackingColumns,
    *,
    columns: Sequence[str],
) -> DataFrame:
    """Scan ``columns`` with positions as `scan` does, and with `ROW_ID` and
    `ROW_COMMIT_VERSION` (long); NULL where neither file nor log knows them.
    """
    read = read_columns(spark, snapshot, columns, files)
    rows = physical_rows(spark, snapshot, files, read.with_row_ids(tracked), with_position=True)
    ids = {
        ROW_ID: F.expr(row_id_text(tracked, ROW_INDEX)),
        ROW_COMMIT_VERSION: F.expr(commit_version_text(tracked)),
    }
    return read.select(rows.withColumns(ids), *POSITION, *ids)


def hidden_row_columns(tracked: RowTrackingColumns | None) -> dict[str, str]:
    """Return the helper columns of rows that are copied, with their names inside files."""
    if tracked is None:
        return {}
    return {ROW_ID: tracked.row_id, ROW_COMMIT_VERSION: tracked.row_commit_version}


def rows_with_row_ids(
    spark: SparkSession, snapshot: Snapshot, *, time_travel: bool, name: Sequence[str] = ()
) -> DataFrame | None:
    """Return the rows of a snapshot, ``_metadata`` with what delta-spark adds to it in reach.

    ``name`` is what columns may be qualified by. None if the table does not track its rows, or
    the session cannot tell their ids. Errors as `table_rows`.
    """
    tracked = None if is_connect(spark) else readable_ids(spark, snapshot)
    if tracked is None:
        return None
    read = for_query(spark, read_columns(spark, snapshot, None))
    every_column = read.with_row_ids(tracked).with_file_fields()
    physical = physical_rows(spark, snapshot, None, every_column, time_travel=time_travel)
    shown = read.select(physical.withColumn(METADATA, F.expr(metadata_text(tracked))), METADATA)
    plan = logical_plan(shown)
    if name:
        plan = named_plan(name[-1], plan, qualifier=name[:-1])
    rows = frame_of(spark, with_last_column_hidden(plan))
    set_origin(logical_plan(rows), snapshot, time_travel=time_travel)
    return rows


def readable_rows(
    spark: SparkSession, snapshot: Snapshot, *, time_travel: bool, where: str | None = None
) -> DataFrame:
    """Return the rows of a snapshot as `table_rows`, with ids of rows in reach where there are."""
    rows = rows_with_row_ids(spark, snapshot, time_travel=time_travel)
    if rows is None:
        return table_rows(spark, snapshot, time_travel=time_travel, where=where)
    return rows if where is None else rows.where(where)
