"""Rows of a table that tracks them, with ``_metadata.row_id`` and its like in reach.

The scan computes ``_metadata`` as a column, and a projection above hides it: ``SELECT *`` does not
show it, a query that names it finds it. What no query names is not computed. Classic sessions only.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession

from puredelta.log.replay.snapshot import Snapshot
from puredelta.protocol.table.row_tracking import (
    ROW_COMMIT_VERSION_COLUMN,
    ROW_ID_COLUMN,
    RowTrackingColumns,
    tracked_columns,
)
from puredelta.spark.jvm.frames import frame_of, logical_plan
from puredelta.spark.jvm.plans import named_plan, with_last_column_hidden
from puredelta.spark.scan.scan import METADATA, scan_with_metadata
from puredelta.spark.scan.skippable_files import is_for_spark
from puredelta.spark.scan.table_rows import set_origin, table_rows
from puredelta.spark.session.session import is_connect


def rows_with_row_ids(
    spark: SparkSession, snapshot: Snapshot, *, time_travel: bool, name: Sequence[str] = ()
) -> DataFrame | None:
    """Return the rows of a snapshot, ``_metadata`` with what delta-spark adds to it in reach.

    ``name`` is what columns may be qualified by. None if the table does not track its rows, or
    the session cannot tell their ids. Errors as `table_rows`.
    """
    tracked = _readable_columns(spark, snapshot)
    if tracked is None:
        return None
    plan = logical_plan(scan_with_metadata(spark, snapshot, tracked, time_travel=time_travel))
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


def _readable_columns(spark: SparkSession, snapshot: Snapshot) -> RowTrackingColumns | None:
    config = snapshot.config
    names = config.metadata.configuration
    if is_connect(spark) or not (names.get(ROW_ID_COLUMN) and names.get(ROW_COMMIT_VERSION_COLUMN)):
        return None
    tracked = tracked_columns(config)
    has_own = config.schema.find_ignoring_case(METADATA) is not None
    if tracked is None or has_own or not config.schema.fields:
        return None
    return tracked if is_for_spark(spark, snapshot.files, snapshot.root_uri) else None
