"""Commands on the log alone, without Spark and Java, with a fast start."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa

from puredelta.catalogs.catalog import TableIdentifier
from puredelta.catalogs.settings import find_catalog
from puredelta.cli.parse import Context
from puredelta.errors import InvalidRequestError, Message
from puredelta.iceberg.entry import export_log, register_log
from puredelta.inspection.commits import CommitFacts, commit_facts, diff_lines, require_before
from puredelta.inspection.described import Row, detail_row, file_rows, history_row
from puredelta.log.files.file_table import file_keys
from puredelta.log.replay.catalog_table import open_loaded
from puredelta.log.replay.snapshot import Snapshot
from puredelta.log.replay.table_log import TableLog
from puredelta.quantities import counted, size_text
from puredelta.store.registry import NO_SESSION

_HISTORY_COLUMNS = (
    "version",
    "timestamp",
    "operation",
    "rows",
    "files",
    "engineInfo",
    "userMetadata",
)
_ROW_METRICS = (
    ("numTargetRowsInserted", "+"), ("numTargetRowsUpdated", "~"), ("numTargetRowsDeleted", "-"),
    ("numUpdatedRows", "~"), ("numDeletedRows", "-"),
)  # fmt: skip
_FILE_METRICS = (
    ("numTargetFilesAdded", "+"), ("numTargetFilesRemoved", "-"), ("numAddedFiles", "+"),
    ("numRemovedFiles", "-"), ("numFiles", "+"), ("numConvertedFiles", "+"),
)  # fmt: skip
_FILE_COLUMNS = ("path", "sizeInBytes", "numRows", "numDeletedRows", "partitionValues")
_COMMIT_COLUMNS = (
    "version",
    "operation",
    "inserted",
    "updated",
    "deleted",
    "addedFiles",
    "removedFiles",
)
_PAGE = "puredelta.inspection.report_page"
"""Imported by name: only ``report`` needs jinja2, whose import takes long."""
_ROWS = "puredelta.inspection.described"
"""Imported by name: only ``show`` needs the Parquet reader, whose import takes long."""
_CATALOG_NAME = re.compile(r"(\w+)\.(\w+)\.(\w+)")
_UNSAFE = re.compile(r"[^A-Za-z0-9_.-]+")


def open_log(context: Context, table: str) -> TableLog:
    """Open the log of a table at a path or URI, or of a catalog that ``--conf`` names.

    Raises:
        CatalogRequestError: the catalog refuses, or has no such table.
    """
    storage = NO_SESSION.with_options(context.storage_options)
    name = _CATALOG_NAME.fullmatch(table)
    configured = None if name is None else find_catalog(context.conf, name[1])
    if name is None or configured is None:
        return TableLog.open(table, storage=storage)
    found = configured.catalog.load(TableIdentifier(*name.groups()))
    return open_loaded(configured, found, storage)


def history(context: Context, *, table: str, limit: int) -> None:
    """Print the newest commits."""
    rows = [history_row(entry) for entry in open_log(context, table).history(limit=limit)]
    if not context.output.as_json:
        rows = [{**row, "rows": _rows(row), "files": _changes(row, _FILE_METRICS)} for row in rows]
    context.output.rows(rows, _HISTORY_COLUMNS)


def _rows(row: Row) -> str:
    changes = _changes(row, _ROW_METRICS)
    written = row["operationMetrics"].get("numOutputRows")
    return changes or (f"+{written:,}" if isinstance(written, int) else "")


def _changes(row: Row, names: tuple[tuple[str, str], ...]) -> str:
    """Return counts that are not 0 with their signs: ``+12 ~3``."""
    metrics = row["operationMetrics"]
    found = [f"{sign}{metrics[n]:,}" for n, sign in names if isinstance(metrics.get(n), int)]
    return " ".join(text for text in found if text[1:] != "0")


def detail(context: Context, *, table: str, version: int | None) -> None:
    """Print the description of the table at a version."""
    row = detail_row(open_log(context, table).snapshot(version=version))
    if not context.output.as_json:
        size_bytes = row["sizeInBytes"]
        row["sizeInBytes"] = f"{size_bytes:,} ({size_text(size_bytes)})"
        row["columns"] = "\n".join(f"{name} {kind}" for name, kind in row["columns"].items())
        for name in ("partitionColumns", "clusteringColumns", "tableFeatures"):
            row[name] = ", ".join(row[name])
        row["properties"] = "\n".join(f"{k} = {v}" for k, v in row["properties"].items())
    context.output.value(row)


def show(context: Context, *, table: str, limit: int, files: bool, version: int | None) -> None:
    """Print the first rows of a version, or its largest files."""
    snapshot = open_log(context, table).snapshot(version=version)
    if files:
        context.output.rows(file_rows(snapshot, limit=limit), _FILE_COLUMNS)
        return
    first_rows: Callable[[Snapshot, int], pa.Table] = importlib.import_module(_ROWS).first_rows
    rows = first_rows(snapshot, limit)
    context.output.rows(rows.to_pylist(), rows.column_names)


def diff(context: Context, *, table: str, older: int, newer: int | None, **of_rows: object) -> None:
    """Print the differences between two versions, from the log alone.

    ``of_rows`` are options of ``--rows``, with which `puredelta.cli.spark_commands.diff` runs.
    """
    if of_rows["keys"] is not None:
        raise InvalidRequestError(Message.INVALID_WRITE_OPTION_KEYS_WITHOUT_ROWS)
    log = open_log(context, table)
    after = log.snapshot(version=newer)
    require_before(older, after.version)
    before = log.snapshot(version=older)
    commits = [
        _commit_row(commit_facts(commit.version, commit.modified_ms, commit.actions))
        for commit in log.read_commits(older, through=after.version)
    ]
    named = [set(file_keys(s.files.rows).to_pylist()) for s in (before, after)]
    sizes = [s.files.total_size_bytes for s in (before, after)]
    counts = [s.files.num_records() for s in (before, after)]
    changes = [dict(zip(("what", "before", "after"), line, strict=True))
               for line in diff_lines(before, after)]  # fmt: skip
    numbers = len(named[1] - named[0]), len(named[0] - named[1])
    value = {
        "older": before.version,
        "newer": after.version,
        "filesAdded": numbers[0],
        "filesRemoved": numbers[1],
        "numRows": counts,
        "sizeInBytes": sizes,
    }
    out = context.output
    if out.as_json:
        out.value({**value, "commits": commits, "changes": changes})
        return
    added, removed = (counted(number, "file") for number in numbers)
    out.text(f"Version {before.version} -> {after.version}: {added} added, {removed} removed, "
             f"{size_text(sizes[0])} -> {size_text(sizes[1])}, rows {counts[0]} -> {counts[1]}"
             )  # fmt: skip
    out.rows(commits, _COMMIT_COLUMNS)
    if changes:
        out.rows(changes)


def _commit_row(commit: CommitFacts) -> dict[str, object]:
    return {
        "version": commit.version,
        "operation": commit.operation,
        "inserted": commit.rows_inserted,
        "updated": commit.rows_updated,
        "deleted": commit.rows_deleted,
        "addedFiles": commit.num_added,
        "removedFiles": commit.num_removed,
    }


def iceberg(
    context: Context, *, action: str, table: str, catalog: str | None, name: str | None
) -> None:
    """Export the newest version to Iceberg; ``register`` also names it in a catalog of pyiceberg.

    Raises:
        InvalidRequestError: the catalog or the name is missing, or given without ``register``.
    """
    wanted = 2 if action == "register" else 0
    if sum(given is not None for given in (catalog, name)) != wanted:
        raise InvalidRequestError(Message.INVALID_WRITE_OPTION_CATALOG_OF_ICEBERG, action=action)
    log = open_log(context, table)
    exported = export_log(log)
    if catalog is not None and name is not None:
        exported = register_log(log, catalog, name)
    context.output.value(
        {
            "version": exported.version,
            "snapshotId": exported.snapshot_id,
            "metadataLocation": exported.metadata_location,
            "isNew": exported.is_new,
        }
    )


def report(context: Context, *, table: str, out: Path | None, commits: int) -> None:
    """Write the page; an older one of the same name is replaced."""
    log = open_log(context, table)
    report_page: Callable[..., str] = importlib.import_module(_PAGE).report_page
    page = report_page(log, commits=commits)
    if out is None:
        name = _UNSAFE.sub("-", log.root_uri.rpartition("/")[2]).strip("-.") or "table"
        out = Path(f"{name}-report.html")
    out.write_text(page, encoding="utf-8")
    context.output.value({"report": str(out), "sizeInBytes": len(page.encode())})
