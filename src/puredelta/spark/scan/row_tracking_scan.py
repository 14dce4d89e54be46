"""Rows with their row ids and row commit versions, for tables that track rows.

For Spark the two numbers in the log are partition values of each file, and the hidden columns
are columns like others, so the scan stays one native scan.
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
from puredelta.protocol.table.row_tracking import RowTrackingColumns
from puredelta.protocol.table.table_config import TableConfig
from puredelta.spark.scan.scan import scan
from puredelta.spark.session.helper_columns import (
    FILE_ORDINAL,
    ROW_COMMIT_VERSION,
    ROW_ID,
    ROW_INDEX,
)
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
