"""Commands that start a Spark session."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from pyspark.sql import DataFrame

from puredelta.cli.parse import Context
from puredelta.cli.session import format_name, spark_session, table_log, table_name
from puredelta.commands.compare import diff_rows
from puredelta.commands.read_table import resolve_timestamp
from puredelta.commands.restore import differing_files, restore_table
from puredelta.commands.revert import plan_revert, revert_commit
from puredelta.commands.vacuum import vacuum as run_vacuum
from puredelta.errors import InvalidRequestError, Message
from puredelta.inspection.commits import require_before
from puredelta.quantities import counted, size_text
from puredelta.recipes.upsert import upsert
from puredelta.spark.session.names import quote_name
from puredelta.statements.parse.parse import split_statements

_FORMATS = {".parquet": "parquet", ".csv": "csv", ".json": "json", ".jsonl": "json", ".orc": "orc"}
_ROWS_MAX = 50
_MERGE_COUNTS = (
    "num_affected_rows",
    "num_updated_rows",
    "num_deleted_rows",
    "num_inserted_rows",
)
"""The columns of a MERGE statement, in their order."""
_CONVERTED_MAX = 1_000
_PATHS_MAX = 1_000


def sql(context: Context, *, statement: str | None, file: Path | None, limit: int) -> None:
    """Run statements one after the other and print the rows of the last."""
    if (statement is None) == (file is None):
        raise InvalidRequestError(Message.INVALID_WRITE_OPTION_NO_SQL)
    text = statement if file is None else file.read_text(encoding="utf-8")
    run_statements(context, split_statements(text or ""), limit=limit)


def run_statements(context: Context, statements: list[str], *, limit: int) -> None:
    """Run statements in one session; the first that fails ends the run."""
    if not statements:
        raise InvalidRequestError(Message.INVALID_WRITE_OPTION_NO_STATEMENT)
    with spark_session(context, "sql") as spark:
        for each in statements[:-1]:
            spark.sql(each).collect()
        print_rows(context, spark.sql(statements[-1]), limit=limit)


def print_rows(context: Context, frame: DataFrame, *, limit: int) -> None:
    """Print at most ``limit`` rows, and say if there are more."""
    rows = frame.limit(limit + 1).collect()
    context.output.rows([row.asDict(recursive=True) for row in rows[:limit]], frame.columns)
    if len(rows) > limit:
        context.output.note(f"Only the first {limit} rows are shown (--limit).")


def merge(context: Context, *, table: str, source: str | None, keys: str | None) -> None:
    """Run the statement of a file, or an upsert of a source by its keys."""
    if source is None and keys is None:
        path = Path(table)
        if not path.is_file():
            raise InvalidRequestError(Message.INVALID_WRITE_OPTION_NO_SQL_FILE, path=table)
        statements = split_statements(path.read_text(encoding="utf-8"))
        run_statements(context, statements, limit=_ROWS_MAX)
        return
    columns = [name.strip() for name in (keys or "").split(",") if name.strip()]
    if source is None or not columns:
        raise InvalidRequestError(Message.INVALID_WRITE_OPTION_UPSERT)
    with spark_session(context, f"merge {table}") as spark:
        suffix = Path(source).suffix.lower()
        if _FORMATS.get(suffix) == "csv":
            rows = spark.read.csv(source, header=True, inferSchema=True)
        else:
            rows = spark.table(format_name(source, _FORMATS.get(suffix, "delta")))
        done = upsert(table_name(table), rows, columns)
        row = {name: getattr(done, name) for name in _MERGE_COUNTS}
        context.output.rows([row])


def convert(
    context: Context, *, source: str, partitions: str | None, dry_run: bool, statistics: bool
) -> None:
    """Convert, or print a preview of the conversion."""
    with spark_session(context, f"convert {source}") as spark:
        text = f"CONVERT TO DELTA {format_name(source, 'parquet')}"
        text += "" if statistics else " NO STATISTICS"
        text += f" PARTITIONED BY ({partitions})" if partitions else ""
        rows = spark.sql(text + (" DRY RUN" if dry_run else ""))
        print_rows(context, rows, limit=_CONVERTED_MAX)
        if not dry_run:
            context.output.note("Converted. puredelta detail and puredelta history show it.")


def optimize(
    context: Context, *, table: str, where: str | None, zorder: str | None, full: bool
) -> None:
    """Compact, cluster or order files, and print the metrics."""
    columns = [name.strip() for name in (zorder or "").split(",") if name.strip()]
    text = f"OPTIMIZE {table_name(table)}" + (" FULL" if full else "")
    text += f" WHERE {where}" if where else ""
    if columns:
        names = ", ".join(quote_name(c.split(".")) for c in columns)
        text += f" ZORDER BY ({names})"
    with spark_session(context, f"optimize {table}") as spark:
        for row in spark.sql(text).collect():
            values = row.asDict(recursive=True)
            metrics = values.get("metrics") or {}
            context.output.value({"path": values.get("path"), **_plain(metrics)})


def _plain(metrics: dict[str, object]) -> dict[str, object]:
    """Leave out NULL and empty values."""
    return {name: value for name, value in metrics.items() if value not in (None, {}, [])}


def vacuum(context: Context, *, table: str, retain: float | None, delete: bool) -> None:
    """List unneeded files; delete them only if requested."""
    with spark_session(context, f"vacuum {table}") as spark:
        log = table_log(spark, table)
        outcome = run_vacuum(spark, log, retention_hours=retain, dry_run=not delete)
        out = context.output
        value = {
            "dryRun": not delete,
            "numPaths": len(outcome.paths),
            "numDeleted": outcome.num_deleted,
            "sizeInBytes": outcome.size_bytes,
            "paths": outcome.paths[:_PATHS_MAX],
        }
        if out.as_json:
            out.value(value)
            return
        for path in outcome.paths[:_PATHS_MAX]:
            out.text(path)
        what = f"{counted(len(outcome.paths), 'path')}, {size_text(outcome.size_bytes)}"
        out.text(
            f"{what}: {outcome.num_deleted:,} deleted."
            if delete
            else f"{what} would be deleted. Nothing is: add --delete."
        )


def restore(
    context: Context, *, table: str, version: int | None, timestamp: str | None, apply: bool
) -> None:
    """Print the changes of a RESTORE; make them only if requested."""
    if (version is None) == (timestamp is None):
        raise InvalidRequestError(Message.ONE_OF_IN_TIME_TRAVEL_RESTORE)
    with spark_session(context, f"restore {table}") as spark:
        log = table_log(spark, table)
        out = context.output
        if apply:
            outcome = restore_table(spark, log, version=version, timestamp=timestamp)
            out.value({"restored": outcome is not None, **(outcome.metrics() if outcome else {})})
            return
        time_ms = None if timestamp is None else resolve_timestamp(spark, timestamp)
        latest = log.snapshot()
        target = log.snapshot(version=version, timestamp_ms=time_ms)
        restored, removed = differing_files(target.files, latest.files)
        out.value(
            {
                "dryRun": True,
                "fromVersion": latest.version,
                "toVersion": target.version,
                "numRestoredFiles": len(restored),
                "numRemovedFiles": len(removed),
                "numRowsNow": latest.files.num_records(),
                "numRowsThen": target.files.num_records(),
            }
        )
        out.text("Nothing is changed: add --apply.")


def revert(context: Context, *, table: str, version: int | None, apply: bool) -> None:
    """Print the changes of a REVERT of one commit; make them only if requested."""
    if version is None:
        raise InvalidRequestError(Message.INVALID_WRITE_OPTION_REVERT_VERSION)
    with spark_session(context, f"revert {table}") as spark:
        log, out = table_log(spark, table), context.output
        run = revert_commit if apply else plan_revert
        outcome = run(spark, log, version)
        out.value({"dryRun": not apply, **asdict(outcome)})
        if not apply:
            out.text("Nothing is changed: add --apply.")


def diff(
    context: Context,
    *,
    table: str,
    older: int,
    newer: int | None,
    keys: str | None,
    limit: int,
) -> None:
    """Print at most ``limit`` rows that two versions do not share; see `puredelta.diff`.

    Only files that the versions do not share are read.
    """
    columns = [name.strip() for name in (keys or "").split(",") if name.strip()]
    with spark_session(context, f"diff {table}") as spark:
        log = table_log(spark, table)
        after = log.snapshot(version=newer).version
        require_before(older, after)
        differing = diff_rows(spark, log, older, after, keys=columns or None)
        print_rows(context, differing, limit=limit)
