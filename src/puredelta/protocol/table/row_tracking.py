"""Where a table that tracks rows keeps their ids (section "Row Tracking").

A file knows its rows by two numbers in the log: row ``n`` has the id ``baseRowId + n``, and
``defaultRowCommitVersion`` is when it last changed. A row that moves to another file takes
both along in hidden columns, which are in no schema; NULL there, or no such column, means
what the log says.
"""

from __future__ import annotations

from dataclasses import dataclass

from puredelta.errors import CorruptTableError, ErrorCode
from puredelta.protocol.table.table_config import TableConfig

ROW_TRACKING = "rowTracking"
ROW_ID_COLUMN = "delta.rowTracking.materializedRowIdColumnName"
ROW_COMMIT_VERSION_COLUMN = "delta.rowTracking.materializedRowCommitVersionColumnName"


@dataclass(frozen=True, slots=True, kw_only=True)
class RowTrackingColumns:
    """The names of the hidden columns inside data files."""

    row_id: str
    row_commit_version: str


def tracked_columns(config: TableConfig) -> RowTrackingColumns | None:
    """Return the hidden columns of a table; ``None`` where rows need not keep their ids.

    Rows keep them while ``delta.enableRowTracking`` is set. A table that only supports the
    feature gives ids to files and promises nothing about rows (X-14).

    Raises:
        CorruptTableError: rows are tracked and a column has no name.
    """
    if not (config.properties.enable_row_tracking and config.supports(ROW_TRACKING)):
        return None
    row_id = config.metadata.configuration.get(ROW_ID_COLUMN)
    version = config.metadata.configuration.get(ROW_COMMIT_VERSION_COLUMN)
    if not row_id or not version:
        missing = ROW_COMMIT_VERSION_COLUMN if row_id else ROW_ID_COLUMN
        raise CorruptTableError(
            f"The table tracks rows (delta.enableRowTracking) but its property {missing} is "
            "missing, so nobody knows which column of a data file holds the ids.",
            code=ErrorCode.LOG_CORRUPTED,
            property=missing,
        )
    return RowTrackingColumns(row_id=row_id, row_commit_version=version)
