"""Temporary views of a table at a path, brought up to date each time they are used.

A view of SQL text that names a path refers to such a view in its place. Before a text that
may use it is analyzed, the view is made again over the newest version. Classic sessions only.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import TypeAlias

from pyspark.sql import DataFrame, SparkSession

from puredelta.log.files.clock import random_id
from puredelta.spark.jvm.frames import logical_plan
from puredelta.spark.scan.table_rows import find_origin, table_rows
from puredelta.spark.session.open_log import open_log

_PREFIX = "__puredelta_shown_"
_GLOBAL = "global_temp"

Rows: TypeAlias = Callable[[SparkSession], DataFrame]

_shown: dict[str, Rows] = {}
"""What the views show that are brought up to date, by the last part of the name.

One entry, and one view in each session, per table that a view names: kept, because nobody tells
when the last text that refers to it is gone.
"""


def path_view(rows: DataFrame, *, is_global: bool) -> str:
    """Make a view of the rows of a table and return its name; the same table has one view.

    Rows of a version that was asked for stay those of this version.
    """
    origin = find_origin(logical_plan(rows))
    if origin is None:
        key = random_id()  # an address may be that of other rows later
    else:
        key = f"{origin.root_uri}@{origin.version}" if origin.is_time_travel else origin.root_uri
    name = _PREFIX + hashlib.sha256(key.encode()).hexdigest()[:20]
    if origin is not None and not origin.is_time_travel:
        _shown[name] = _newest(origin.root_uri)
    return _make(rows, name, is_global=is_global)


def shown_view(key: str, rows: DataFrame, again: Rows, *, is_global: bool) -> str:
    """Make a view of rows that are asked for again each time it is used; return its name.

    The same ``key`` has one view.
    """
    name = _PREFIX + hashlib.sha256(key.encode()).hexdigest()[:20]
    _shown[name] = again
    return _make(rows, name, is_global=is_global)


def refresh_path_view(spark: SparkSession, parts: Sequence[str]) -> None:
    """Let a view of this name show its table as it is now; other names are left alone."""
    again = _shown.get(parts[-1])
    if again is not None:
        _make(again(spark), parts[-1], is_global=_GLOBAL in parts[:-1])


def _newest(root_uri: str) -> Rows:
    return lambda spark: table_rows(spark, open_log(spark, root_uri).snapshot(), time_travel=False)


def _make(rows: DataFrame, name: str, *, is_global: bool) -> str:
    if is_global:
        rows.createOrReplaceGlobalTempView(name)
        return f"{_GLOBAL}.{name}"
    rows.createOrReplaceTempView(name)
    return name
