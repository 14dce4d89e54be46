"""The Spark session of a command, and the tables that its arguments name."""

from __future__ import annotations

import logging
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from pyspark.sql import SparkSession

from puredelta.activation.session import activate
from puredelta.cli.parse import Context
from puredelta.commands.statement.progress import ProgressLine, wants_progress
from puredelta.commands.statement.stages import logger as stages
from puredelta.log.replay.table_log import TableLog
from puredelta.spark.jvm.jobs import find_tasks
from puredelta.spark.session.delta_conf import PROGRESS
from puredelta.spark.session.names import quote, quote_name
from puredelta.spark.session.session import is_connect
from puredelta.statements.names.names import find_location, require_table
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
            if not is_connect(spark):
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
        find_tasks=lambda: find_tasks(sessions[0], None) if sessions else None,
        out=sys.stderr,
        first_s=_LINE_S,
        every_s=_LINE_S,
        counted=lambda tasks: f"task {tasks.done} of {tasks.known}",
    )
    line.show("starting Spark")
    context.output.call_before(line.end)
    if not wants_progress(context.conf, sys.stderr, classic=False):
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
