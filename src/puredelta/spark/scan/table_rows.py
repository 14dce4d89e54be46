"""The rows of a table as a user holds them: frames whose plan says which table it shows.

The mark is a tag on the root of the scan's plan. Spark carries tags along when it rewrites a
plan and never compares them, so a view or a cached frame made of the rows can be traced to
its table, whatever the scan is made of. Spark Connect shows no plans: there is no mark.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from puredelta.log.replay.snapshot import Snapshot
from puredelta.spark.plans.catalyst import Catalyst
from puredelta.spark.scan.scan import scan
from puredelta.spark.session.session import is_connect

_TAG = "puredelta.shown"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanOrigin:
    """The table that a part of a plan reads, all of its rows and columns."""

    root_uri: str
    version: int
    is_time_travel: bool
    """Whether the user asked for this very version, by number or time."""


def table_rows(spark: SparkSession, snapshot: Snapshot, *, time_travel: bool) -> DataFrame:
    """Return the rows of a snapshot, marked with the table they come from.

    ``time_travel`` tells that the user chose the version. Runs no job; errors as `scan`.
    """
    rows = scan(spark, snapshot, time_travel=time_travel)
    if not is_connect(spark):
        catalyst = Catalyst(spark)
        marked(catalyst, catalyst.logical(rows), snapshot, time_travel=time_travel)
    return rows


def marked(catalyst: Catalyst, plan: Any, snapshot: Snapshot, *, time_travel: bool = False) -> Any:
    """Mark a plan of all rows of a snapshot with the table they come from, and return it."""
    shown = PlanOrigin(
        root_uri=snapshot.root_uri, version=snapshot.version, is_time_travel=time_travel
    )
    plan.setTagValue(catalyst.tag(_TAG), json.dumps(asdict(shown)))
    return plan


def find_shown_table(catalyst: Catalyst, node: Any) -> PlanOrigin | None:
    """Return the table that a node of a plan shows as it is."""
    value = node.getTagValue(catalyst.tag(_TAG))
    return PlanOrigin(**json.loads(value.get())) if value.isDefined() else None


def shown_tables(catalyst: Catalyst, plan: Any) -> Iterator[tuple[Any, PlanOrigin]]:
    """Yield the nodes of a plan, its subqueries included, that show a table, and which."""
    shown = find_shown_table(catalyst, plan)
    if shown is not None:
        yield plan, shown
        return
    for child in (*catalyst.items(plan.children()), *catalyst.items(plan.subqueries())):
        yield from shown_tables(catalyst, child)
