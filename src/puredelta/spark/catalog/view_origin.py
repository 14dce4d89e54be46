"""Which Delta table a temporary view shows, column for column (M-31)."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from puredelta.spark.jvm.expressions import Expression
from puredelta.spark.jvm.frames import analyzed_plan
from puredelta.spark.jvm.plans import Plan
from puredelta.spark.scan.table_rows import PlanOrigin, find_origin, find_origins
from puredelta.spark.session.session import is_connect
from puredelta.spark.session.types import quoted

_WRAPPERS = frozenset({"View", "SubqueryAlias"})


@dataclass(frozen=True, slots=True)
class ViewOrigin:
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


def find_view_origin(spark: SparkSession, view: str) -> ViewOrigin | None:
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
    plan = analyzed_plan(rows)
    tables = {origin for _, origin in find_origins(plan)}
    if len({table.root_uri for table in tables}) != 1:
        return None
    return ViewOrigin(
        table=min(tables, key=lambda table: not table.is_time_travel),
        columns=tuple(rows.columns),
        is_plain=_is_plain(plan),
    )


def _is_plain(plan: Plan) -> bool:
    """Return whether nothing but wrappers lies above the scan."""
    while find_origin(plan) is None:
        children = plan.children()
        if len(children) != 1 or not _is_wrapper(plan):
            return False
        (plan,) = children
    return True


def _is_wrapper(plan: Plan) -> bool:
    kind = plan.kind
    if kind != "Project":
        return kind in _WRAPPERS
    return all(_is_plain_column(column) for column in plan.projections())


def _is_plain_column(column: Expression) -> bool:
    """Tell a column of the child under its own name.

    A view of SQL text wraps each in a cast to the type it has already.
    """
    name = column.name()
    while (kind := column.kind) in {"Alias", "Cast"}:
        child = column.child()
        if kind == "Cast" and not column.has_type_of(child):
            return False
        column = child
    return kind == "AttributeReference" and column.name() == name
