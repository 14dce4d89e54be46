"""Rows with their row ids and row commit versions, for tables that track rows.

For Spark the two numbers in the log are partition values of each file, and the hidden columns
are columns like others, so the scan stays one native scan.

For users the scan computes ``_metadata`` as a column, and a projection above hides it: ``SELECT *``
does not show it, a query that names it finds it. What no query names is not computed.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from puredelta.log.files.file_table import FileTable
from puredelta.log.replay.snapshot import Snapshot
from puredelta.protocol.actions.actions import Add
from puredelta.protocol.features.column_mapping import PHYSICAL_NAME
from puredelta.protocol.schema.types import LONG, StructField, StructType
from puredelta.protocol.table.row_tracking import (
    ROW_COMMIT_VERSION_COLUMN,
    ROW_ID_COLUMN,
    RowTrackingColumns,
    tracked_columns,
)
from puredelta.protocol.table.table_config import TableConfig
from puredelta.spark.jvm.frames import frame_of, logical_plan
from puredelta.spark.jvm.plans import named_plan, with_last_column_hidden
from puredelta.spark.scan.scan import scan, scan_with_metadata
from puredelta.spark.scan.scan_columns import METADATA
from puredelta.spark.scan.skippable_files import is_for_spark
from puredelta.spark.scan.table_rows import set_origin, table_rows
from puredelta.spark.session.helper_columns import (
    FILE_ORDINAL,
    ROW_COMMIT_VERSION,
    ROW_ID,
    ROW_INDEX,
)
from puredelta.spark.session.session import is_connect
from puredelta.spark.session.types import quoted


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
    names = _Names.of(tracked)
    read = dataclasses.replace(snapshot, config=_with_hidden_columns(snapshot.config, names))
    rows = scan(
        spark,
        read,
        FileTable.of(_with_values(add, names) for add in files.adds()),
        columns=[*columns, *names.all],
        with_position=True,
    )
    row_id = F.coalesce(
        F.col(quoted(names.row_id)), F.col(quoted(names.base_row_id)) + F.col(ROW_INDEX)
    )
    version = F.coalesce(
        F.col(quoted(names.row_commit_version)), F.col(quoted(names.default_version))
    )
    return rows.select(
        *(F.col(quoted(name)) for name in columns),
        FILE_ORDINAL,
        ROW_INDEX,
        row_id.alias(ROW_ID),
        version.alias(ROW_COMMIT_VERSION),
    )


def hidden_row_columns(tracked: RowTrackingColumns | None) -> dict[str, str]:
    """Return the helper columns of rows that are copied, with their names inside files."""
    if tracked is None:
        return {}
    return {ROW_ID: tracked.row_id, ROW_COMMIT_VERSION: tracked.row_commit_version}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class _Names:
    """Columns beside those of the table. The hidden ones are unique, so what starts with
    their names is.
    """

    row_id: str
    row_commit_version: str
    base_row_id: str
    default_version: str

    @classmethod
    def of(cls, tracked: RowTrackingColumns) -> _Names:
        return cls(
            row_id=tracked.row_id,
            row_commit_version=tracked.row_commit_version,
            base_row_id=f"{tracked.row_id}-base",
            default_version=f"{tracked.row_commit_version}-default",
        )

    @property
    def all(self) -> tuple[str, str, str, str]:
        return (self.row_id, self.row_commit_version, self.base_row_id, self.default_version)


def _with_hidden_columns(config: TableConfig, names: _Names) -> TableConfig:
    hidden = (StructField(name, LONG, metadata={PHYSICAL_NAME: name}) for name in names.all)
    return dataclasses.replace(
        config,
        schema=StructType((*config.schema.fields, *hidden)),
        partition_columns=(*config.partition_columns, names.base_row_id, names.default_version),
    )


def _with_values(add: Add, names: _Names) -> Add:
    values = {
        names.base_row_id: add.base_row_id,
        names.default_version: add.default_row_commit_version,
    }
    return dataclasses.replace(
        add,
        partition_values={
            **add.partition_values,
            **{name: None if value is None else str(value) for name, value in values.items()},
        },
    )


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
