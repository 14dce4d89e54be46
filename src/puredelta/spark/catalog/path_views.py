"""Temporary views that show the newest version of a table at a path, as of their last use.

A view of SQL text that names a path refers to such a view in its place. Before a text that
may use it is analyzed, the view is made again of what the table is by then. Classic sessions.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession

from puredelta.log.files.clock import random_id
from puredelta.log.replay.table_log import TableLog
from puredelta.spark.plans.catalyst import Catalyst
from puredelta.spark.scan.table_rows import find_shown_table, table_rows

_PREFIX = "__puredelta_shown_"
_GLOBAL = "global_temp"

_roots: dict[str, str] = {}
"""Where the tables of the views are that follow one, by the last part of their names."""


def show_table(rows: DataFrame, *, is_global: bool) -> str:
    """Make a lasting view of rows and return its name; the same table has one.

    Rows of a version that was asked for stay those of this version.
    """
    catalyst = Catalyst(rows.sparkSession)
    shown = find_shown_table(catalyst, catalyst.logical(rows))
    if shown is None:
        what = random_id()  # an address may be that of other rows later
    else:
        what = f"{shown.root_uri}@{shown.version}" if shown.is_time_travel else shown.root_uri
    name = _PREFIX + hashlib.sha256(what.encode()).hexdigest()[:20]
    if shown is not None and not shown.is_time_travel:
        _roots[name] = shown.root_uri
    return _make(rows, name, is_global=is_global)


def refresh_view(spark: SparkSession, parts: Sequence[str]) -> None:
    """Let a view of this name show its table as it is now; nothing for other names."""
    root_uri = _roots.get(parts[-1])
    if root_uri is not None:
        rows = table_rows(spark, TableLog.open(root_uri).snapshot(), time_travel=False)
        _make(rows, parts[-1], is_global=_GLOBAL in parts[:-1])


def _make(rows: DataFrame, name: str, *, is_global: bool) -> str:
    if is_global:
        rows.createOrReplaceGlobalTempView(name)
        return f"{_GLOBAL}.{name}"
    rows.createOrReplaceTempView(name)
    return name
