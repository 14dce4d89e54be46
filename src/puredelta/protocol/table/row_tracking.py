"""Row ids and row commit versions in the files of a table (section "Row Tracking").

Two numbers of a file in the log identify its rows: row ``n`` has the id ``baseRowId + n``, and
``defaultRowCommitVersion`` is the version that last changed it. A row that moves to another file
keeps both in materialized columns, which are in no schema. If such a column is NULL or missing,
the numbers in the log count.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from puredelta.errors import CorruptTableError, Message
from puredelta.protocol.table.table_config import TableConfig

ROW_TRACKING = "rowTracking"
ROW_ID_COLUMN = "delta.rowTracking.materializedRowIdColumnName"
ROW_COMMIT_VERSION_COLUMN = "delta.rowTracking.materializedRowCommitVersionColumnName"
_NAME_PREFIXES = {
    ROW_ID_COLUMN: "_row-id-col-",
    ROW_COMMIT_VERSION_COLUMN: "_row-commit-version-col-",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RowTrackingColumns:
    """The names of the materialized columns in data files."""

    row_id: str
    row_commit_version: str


def column_name_properties(known: Mapping[str, str], new_id: Callable[[], str]) -> dict[str, str]:
    """Return the properties that name the materialized columns: those ``known``, else new ones."""
    return {key: known.get(key) or f"{prefix}{new_id()}" for key, prefix in _NAME_PREFIXES.items()}


def tracked_columns(config: TableConfig) -> RowTrackingColumns | None:
    """Return the materialized columns of a table; ``None`` if rows need not keep their ids.

    Rows keep their ids while ``delta.enableRowTracking`` is set. If a table only supports the
    feature, files get ids, but rows need not keep them (X-14).

    Raises:
        CorruptTableError: rows are tracked and the name of a column is missing.
    """
    if not (config.properties.enable_row_tracking and config.supports(ROW_TRACKING)):
        return None
    row_id = config.metadata.configuration.get(ROW_ID_COLUMN)
    version = config.metadata.configuration.get(ROW_COMMIT_VERSION_COLUMN)
    if not row_id or not version:
        missing = ROW_COMMIT_VERSION_COLUMN if row_id else ROW_ID_COLUMN
        raise CorruptTableError(Message.LOG_CORRUPTED_ROW_TRACKING_COLUMNS, property=missing)
    return RowTrackingColumns(row_id=row_id, row_commit_version=version)
