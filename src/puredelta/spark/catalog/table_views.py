"""Temporary views of Delta tables.

A view of SQL text that names a path refers to such a temporary view instead. The temporary view is
updated to the newest version before any text that may use it is analyzed. Classic sessions only.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import TypeAlias

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from puredelta.log.files.clock import random_id
from puredelta.spark.jvm.expressions import Expression
from puredelta.spark.jvm.frames import analyzed_plan, logical_plan
from puredelta.spark.jvm.plans import Plan
from puredelta.spark.scan.table_rows import PlanOrigin, find_origin, table_rows
from puredelta.spark.session.names import quote_name
from puredelta.spark.session.read_settings import CASE_SENSITIVE
from puredelta.spark.session.session import is_connect, settings_of
from puredelta.spark.session.storage import open_log

_PREFIX = "__puredelta_shown_"
_GLOBAL = "global_temp"

Rows: TypeAlias = Callable[[SparkSession], DataFrame]

_shown: dict[str, Rows] = {}
"""What the views show that are brought up to date, by the last part of the name.

One entry, and one view in each session, per table that a view names: kept, because no event tells
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


_GLOBAL_PARTS = 2
_WRAPPERS = frozenset({"View", "SubqueryAlias"})
_OPERATORS = _WRAPPERS | {"Project", "Filter"}


class Shown(Enum):
    """The rows and columns of its table that a view shows."""

    COLUMNS = auto()
    """All rows, and columns of the table under their own names."""
    COMPUTED = auto()
    """All rows, and columns that are renamed or computed."""
    FILTERED = auto()
    """Some rows, chosen by a condition."""


@dataclass(frozen=True, slots=True)
class ViewOrigin:
    """The table below a temporary view."""

    table: PlanOrigin
    columns: tuple[str, ...]
    """Of the view."""
    shown: Shown
    ignores_case: bool = False
    """Whether names that differ in case are the same, as the session says."""

    def has_columns(self, names: Iterable[str]) -> bool:
        """Return whether it shows columns of these names, in any order."""
        in_case = str.lower if self.ignores_case else str
        return set(map(in_case, self.columns)) == set(map(in_case, names))

    @property
    def root_uri(self) -> str:
        """Where the table is."""
        return self.table.root_uri


def find_view_origin(spark: SparkSession, parts: Sequence[str]) -> ViewOrigin | None:
    """Return the table whose rows a temporary view shows; None if there is no such view,
    or it shows something else, such as a limit, a join, a union or an aggregate.

    The view must have been made from a frame of this library, such as
    ``puredelta.read(...).createOrReplaceTempView(...)``. Runs no job. Classic sessions only.
    """
    rows = _view_rows(spark, parts)
    if rows is None:
        return None
    ignores_case = settings_of(spark).get(CASE_SENSITIVE, "false").lower() != "true"
    found = _shown_table(analyzed_plan(rows), ignores_case=ignores_case)
    if found is None:
        return None
    table, shown = found
    columns = tuple(rows.columns)
    return ViewOrigin(table=table, columns=columns, shown=shown, ignores_case=ignores_case)


def find_inserted_table(spark: SparkSession, parts: Sequence[str]) -> PlanOrigin | None:
    """Return the table of a temporary view made from a frame that is the table; None otherwise.

    Spark inserts into such a view of files, and refuses a view of SQL text. Over Connect the rows
    of a table are no relation, so Spark refuses these, too: None.
    """
    rows = None if is_connect(spark) else _view_rows(spark, parts)
    if rows is None:
        return None
    plan = analyzed_plan(rows)
    while (table := find_origin(plan)) is None:
        children = plan.children()
        if plan.kind not in _WRAPPERS or len(children) != 1:
            return None
        (plan,) = children
    return table


def leaves_of_view(spark: SparkSession, parts: Sequence[str]) -> Sequence[Plan] | None:
    """Return what a view reads; None over Connect, where no client sees that."""
    if is_connect(spark):
        return None
    return tuple(analyzed_plan(spark.table(quote_name(parts))).leaves)


def _view_rows(spark: SparkSession, parts: Sequence[str]) -> DataFrame | None:
    """Return the rows of a temporary view, which may be a global one."""
    if len(parts) != 1 and (len(parts) != _GLOBAL_PARTS or parts[0].lower() != _GLOBAL):
        return None
    name = quote_name(parts)
    try:
        if not spark.catalog.getTable(name).isTemporary:
            return None
    except AnalysisException:
        return None
    return spark.table(name)


def _shown_table(plan: Plan, *, ignores_case: bool) -> tuple[PlanOrigin, Shown] | None:
    """Return the table below nothing but projections and conditions, and judge these."""
    shown = Shown.COLUMNS
    while (table := find_origin(plan)) is None:
        children, kind = plan.children(), plan.kind
        if len(children) != 1 or kind not in _OPERATORS:
            return None
        if kind == "Filter":
            shown = Shown.FILTERED
        elif kind == "Project" and shown is Shown.COLUMNS:
            columns = (_is_plain(one, ignores_case=ignores_case) for one in plan.projections())
            shown = Shown.COLUMNS if all(columns) else Shown.COMPUTED
        (plan,) = children
    return table, shown


def _is_plain(column: Expression, *, ignores_case: bool) -> bool:
    """Tell a column of the child under its own name, which may have other case.

    A view of SQL text wraps each in a cast to the type it has already.
    """
    name = column.name()
    while (kind := column.kind) in {"Alias", "Cast"}:
        child = column.child()
        if kind == "Cast" and not column.has_type_of(child):
            return False
        column = child
    if kind != "AttributeReference":
        return False
    found = column.name()
    return found == name or (ignores_case and found.lower() == name.lower())
