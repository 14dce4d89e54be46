"""Which Delta table a temporary view shows, column for column (M-31)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from puredelta.spark.catalyst import Catalyst
from puredelta.spark.scan import TABLE_OPTION
from puredelta.spark.session import is_connect
from puredelta.spark.types import quoted

_WRAPPERS = frozenset({"View", "SubqueryAlias", "Project"})


@dataclass(frozen=True, slots=True)
class ViewedTable:
    """The table below a temporary view."""

    root_uri: str
    columns: tuple[str, ...]
    """Of the view."""
    is_plain: bool
    """Whether the view does nothing but choose columns of the table, under their own names."""


def find_viewed_table(spark: SparkSession, view: str) -> ViewedTable | None:
    """Return the table whose rows a temporary view shows; None if there is no such view,
    or it shows something else.

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
    roots = {_root(leaf) for leaf in catalyst.items(plan.collectLeaves())} - {None}
    if len(roots) != 1:
        return None
    (root,) = roots
    plain = all(_is_wrapper(catalyst, node) for node in _inner_nodes(catalyst, plan))
    return ViewedTable(root_uri=str(root), columns=tuple(rows.columns), is_plain=plain)


def _root(leaf: Any) -> str | None:
    """Return the table a leaf of a plan reads, if it is one of our scans."""
    if leaf.getClass().getSimpleName() != "LogicalRelation":
        return None
    relation = leaf.relation()
    if relation.getClass().getSimpleName() != "HadoopFsRelation":
        return None
    option = relation.options().get(TABLE_OPTION)
    return str(option.get()) if option.isDefined() else None


def _inner_nodes(catalyst: Catalyst, plan: Any) -> Iterator[Any]:
    if children := catalyst.items(plan.children()):
        yield plan
        for child in children:
            yield from _inner_nodes(catalyst, child)


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
