"""Which Delta table a temporary view shows, column for column (M-31)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from puredelta.spark.plans.catalyst import Catalyst
from puredelta.spark.scan.table_rows import PlanOrigin, find_shown_table, shown_tables
from puredelta.spark.session.session import is_connect
from puredelta.spark.session.types import quoted

_WRAPPERS = frozenset({"View", "SubqueryAlias", "Project"})


@dataclass(frozen=True, slots=True)
class ViewedTable:
    """The table below a temporary view."""

    table: PlanOrigin
    columns: tuple[str, ...]
    """Of the view."""
    is_plain: bool
    """Whether the view does nothing but choose columns of the table, under their own names."""

    @property
    def root_uri(self) -> str:
        """Where the table is."""
        return self.table.root_uri


def find_viewed_table(spark: SparkSession, view: str) -> ViewedTable | None:
    """Return the table whose rows a temporary view shows; None if there is no such view,
    or it shows something else, or several tables.

    The view must have been made from a frame of this library, such as
    ``puredelta.read(...).createOrReplaceTempView(...)``. Runs no job. A Connect session does
    not show its plans, so the answer there is always None.
    """
    if is_connect(spark):
        return None
    name = quoted(view)
    try:
        if not spark.catalog.getTable(name).isTemporary:
            return None
    except AnalysisException:
        return None
    rows = spark.table(name)
    catalyst = Catalyst(spark)
    plan = catalyst.analyzed(rows)
    tables = {shown for _, shown in shown_tables(catalyst, plan)}
    if len({shown.root_uri for shown in tables}) != 1:
        return None
    return ViewedTable(
        table=min(tables, key=lambda shown: not shown.is_time_travel),
        columns=tuple(rows.columns),
        is_plain=_is_plain(catalyst, plan),
    )


def _is_plain(catalyst: Catalyst, node: Any) -> bool:
    """Tell whether nothing but wrappers lies above the scan."""
    while find_shown_table(catalyst, node) is None:
        children = catalyst.items(node.children())
        if len(children) != 1 or not _is_wrapper(catalyst, node):
            return False
        (node,) = children
    return True


def _is_wrapper(catalyst: Catalyst, node: Any) -> bool:
    kind = node.getClass().getSimpleName()
    if kind not in _WRAPPERS:
        return False
    if kind != "Project":
        return True
    chosen = catalyst.items(node.projectList())
    return all(_is_plain_column(column) for column in chosen)


def _is_plain_column(column: Any) -> bool:
    """Tell a column of the child under its own name.

    A view of SQL text wraps each in a cast to the type it has already.
    """
    name = column.name()
    while (kind := column.getClass().getSimpleName()) in {"Alias", "Cast"}:
        if kind == "Cast" and not column.dataType().equals(column.child().dataType()):
            return False
        column = column.child()
    return bool(kind == "AttributeReference" and column.name() == name)
