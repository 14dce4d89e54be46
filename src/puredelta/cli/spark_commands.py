"""Commands that start a Spark session."""

from __future__ import annotations

import logging
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from puredelta.activation.session import activate
from puredelta.cli.parse import Context
from puredelta.commands.compare import diff_rows
from puredelta.commands.read_table import resolve_timestamp
from puredelta.commands.restore import differing_files, restore_table
from puredelta.commands.revert import plan_revert, revert_commit
from puredelta.commands.statement.progress import ProgressLine, wants_progress
from puredelta.commands.statement.stages import logger as stages
from puredelta.commands.vacuum import vacuum as run_vacuum
from puredelta.errors import InvalidRequestError, Message
from puredelta.inspection.commits import require_before
from puredelta.log.replay.table_log import TableLog
from puredelta.quantities import counted, size_text
from puredelta.recipes.upsert import upsert
from puredelta.spark.session.concurrent_jobs import find_running_tasks
from puredelta.spark.session.delta_conf import PROGRESS
from puredelta.spark.session.names import quote, quote_name
from puredelta.statements.names.names import find_location, require_table
from puredelta.statements.parse.parse import split_statements
from puredelta.statements.parse.table_name import parse_table_name
from puredelta.store.registry import has_scheme

_QUIET = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
}
_LINE_S = 0.1
"""Interval between two texts of the progress line."""
_PY4J_MODULES = frozenset({"java_gateway", "clientserver"})
"""Py4J logs to the root logger; the names of its modules identify it."""
_NAME = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*){0,2}")


@contextmanager
def spark_session(context: Context, title: str) -> Iterator[SparkSession]:
    """Start a session for one command and stop it afterwards; progress is printed to stderr.

    Workers run this Python unless PYSPARK_PYTHON names another. Ctrl-C ends a statement like any
    other failure: its written files are removed.
    """
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    if not context.verbose:
        _log_without_py4j()
    with _progress_line(context, title) as (line, sessions):
        spark = _started(context)
        try:
            activate(spark)
            for key, value in {PROGRESS.key: "off", **_storage(context)}.items():
                spark.conf.set(key, value)
            line.show("running")
            sessions.append(spark)
            yield spark
        finally:
            line.end()
            with suppress(Exception, KeyboardInterrupt):
                spark.stop()


def _storage(context: Context) -> dict[str, str]:
    return {f"spark.puredelta.storage.{k}": v for k, v in context.storage_options.items()}


@contextmanager
def _progress_line(
    context: Context, title: str
) -> Iterator[tuple[ProgressLine, list[SparkSession]]]:
    """Show the progress of a command until its answer is printed, if stderr is a terminal.

    It is the only line: those of statements are switched off. It counts the tasks of the session
    in the list; the ended stages of statements stay as lines above it.

    Raises:
        InvalidRequestError: ``spark.puredelta.progress`` has an unknown value.
    """
    sessions: list[SparkSession] = []
    line = ProgressLine(
        title=title,
        find_tasks=lambda: find_running_tasks(sessions[0]) if sessions else None,
        out=sys.stderr,
        first_s=_LINE_S,
        every_s=_LINE_S,
        counted=lambda tasks: f"task {tasks.done} of {tasks.known}",
    )
    line.show("starting Spark")
    context.output.call_before(line.end)
    if not wants_progress(context.conf, sys.stderr, spark_shows=False):
        yield line, sessions
        return
    handler, level = _EndedStages(line), stages.level
    stages.addHandler(handler)
    stages.setLevel(logging.DEBUG)
    try:
        with line.shown():
            yield line, sessions
    finally:
        stages.removeHandler(handler)
        stages.setLevel(level)


class _EndedStages(logging.Handler):
    """Log handler that leaves a line for each ended stage of a statement."""

    def __init__(self, line: ProgressLine) -> None:
        super().__init__(logging.DEBUG)
        self._line = line

    def emit(self, record: logging.LogRecord) -> None:
        """Leave one line."""
        self._line.leave(record.getMessage())


def _log_without_py4j() -> None:
    """Send warnings to stderr, without the traceback that Py4J logs for every interrupted call."""
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s: %(message)s")
    for handler in logging.getLogger().handlers:
        handler.addFilter(lambda record: record.module not in _PY4J_MODULES)


def _started(context: Context) -> SparkSession:
    builder = SparkSession.builder.appName("puredelta")
    if context.remote is not None:
        builder = builder.remote(context.remote)
    else:
        for key, value in ({} if context.verbose else _QUIET).items():
            builder = builder.config(key, value)
        if context.master is not None or "MASTER" not in os.environ:
            builder = builder.master(context.master or "local[*]")
    for key, value in context.conf.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def table_name(text: str) -> str:
    """Return a table as SQL names it; a path becomes absolute.

    >>> table_name("s3://b/t"), table_name("db.events"), table_name("delta.`/t`")
    ('delta.`s3://b/t`', '`db`.`events`', 'delta.`/t`')
    """
    return format_name(text, "delta")


def format_name(text: str, source: str) -> str:
    """Return a table, or files of a format, as SQL names them.

    >>> format_name("/data/a", "parquet")
    'parquet.`/data/a`'
    """
    if "`" in text:
        return text  # already in SQL form
    if _NAME.fullmatch(text) and not Path(text).exists():
        return quote_name(text.split("."))
    place = text if has_scheme(text) else str(Path(text).absolute())
    return f"{source}.{quote(place)}"


def table_log(spark: SparkSession, table: str) -> TableLog:
    """Open the log of a table.

    Raises:
        TableNotFoundError: there is no Delta table.
    """
    name = table_name(table)
    return require_table(spark, find_location(spark, parse_table_name(name)), name)


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
