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
from puredelta.cli.progress import Progress
from puredelta.log.replay.table_log import TableLog
from puredelta.spark.session.delta_conf import PROGRESS
from puredelta.spark.session.session import is_connect
from puredelta.sql.relations.names import find_location, require_table
from puredelta.sql.text.table_name import parse_table_name
from puredelta.store.registry import has_scheme

_QUIET = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
}
_PY4J_MODULES = frozenset({"java_gateway", "clientserver"})
"""Py4J logs by the root logger; the names of its modules tell."""
_NAME = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*){0,2}")


@contextmanager
def spark_session(context: Context, title: str) -> Iterator[SparkSession]:
    """Start a session for one command and stop it afterwards; progress goes to stderr.

    Workers run this Python unless PYSPARK_PYTHON names another. Ctrl-C ends a statement as any
    other failure of it does: files that it wrote are removed again.
    """
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    if not context.verbose:
        _log_without_py4j()
    with Progress(context.output.stderr, title) as progress:
        progress.phase("starting Spark")
        spark = _started(context)
        activate(spark)
        storage = {f"spark.puredelta.storage.{k}": v for k, v in context.storage_options.items()}
        own_line = {} if PROGRESS.key in context.conf else {PROGRESS.key: "off"}  # one is enough
        for key, value in (own_line | storage).items():
            spark.conf.set(key, value)
        progress.watch(None if is_connect(spark) else spark)
        try:
            yield spark
        finally:
            progress.stop()
            with suppress(Exception, KeyboardInterrupt):
                spark.stop()


def _log_without_py4j() -> None:
    """Warnings go to stderr, but not the traceback that Py4J logs for every interrupted call."""
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


def quoted(name: str) -> str:
    """Return a name in backquotes.

    >>> quoted("a`b")
    '`a``b`'
    """
    return "`" + name.replace("`", "``") + "`"


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
        return text  # as SQL has it already
    if _NAME.fullmatch(text) and not Path(text).exists():
        return ".".join(quoted(part) for part in text.split("."))
    place = text if has_scheme(text) else str(Path(text).absolute())
    return f"{source}.{quoted(place)}"


def table_log(spark: SparkSession, table: str) -> TableLog:
    """Open the log of a table.

    Raises:
        TableNotFoundError: there is no Delta table.
    """
    name = table_name(table)
    return require_table(spark, find_location(spark, parse_table_name(name)), name)
