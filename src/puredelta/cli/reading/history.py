"""``puredelta history``."""

from __future__ import annotations

from puredelta.cli.context import Context
from puredelta.cli.reading.open_log import open_log
from puredelta.inspection.table.described import Row, history_row

_COLUMNS = ("version", "timestamp", "operation", "rows", "files", "engineInfo", "userMetadata")
_ROWS = (
    ("numTargetRowsInserted", "+"), ("numTargetRowsUpdated", "~"), ("numTargetRowsDeleted", "-"),
    ("numUpdatedRows", "~"), ("numDeletedRows", "-"),
)  # fmt: skip
_FILES = (
    ("numTargetFilesAdded", "+"), ("numTargetFilesRemoved", "-"), ("numAddedFiles", "+"),
    ("numRemovedFiles", "-"), ("numFiles", "+"), ("numConvertedFiles", "+"),
)  # fmt: skip


def run(context: Context, *, table: str, limit: int) -> None:
    """Print the newest commits."""
    rows = [history_row(entry) for entry in open_log(context, table).history(limit=limit)]
    if not context.output.as_json:
        rows = [{**row, "rows": _rows(row), "files": _changes(row, _FILES)} for row in rows]
    context.output.rows(rows, _COLUMNS)


def _rows(row: Row) -> str:
    changes = _changes(row, _ROWS)
    written = row["operationMetrics"].get("numOutputRows")
    return changes or (f"+{written:,}" if isinstance(written, int) else "")


def _changes(row: Row, names: tuple[tuple[str, str], ...]) -> str:
    """Return counts that are not 0 with their signs: ``+12 ~3``."""
    metrics = row["operationMetrics"]
    found = [f"{sign}{metrics[n]:,}" for n, sign in names if isinstance(metrics.get(n), int)]
    return " ".join(text for text in found if text[1:] != "0")
