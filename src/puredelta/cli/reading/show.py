"""``puredelta show``."""

from __future__ import annotations

from puredelta.cli.context import Context
from puredelta.cli.reading.open_log import open_log
from puredelta.inspection.table.described import file_rows
from puredelta.inspection.table.rows import first_rows

_FILE_COLUMNS = ("path", "sizeInBytes", "numRows", "numDeletedRows", "partitionValues")


def run(context: Context, *, table: str, limit: int, files: bool, version: int | None) -> None:
    """Print the first rows of a version, or its largest files."""
    snapshot = open_log(context, table).snapshot(version=version)
    if files:
        context.output.rows(file_rows(snapshot, limit=limit), _FILE_COLUMNS)
        return
    rows = first_rows(snapshot, limit)
    context.output.rows(rows.to_pylist(), rows.column_names)
