"""The rows of a table as a user holds them: frames whose plan says which table they come from.

The origin of a plan is a tag on the root of the scan. Spark carries tags along when it rewrites a
plan and never compares them, so a view or a cached frame made of the rows can be traced to
its table, whatever the scan is made of. Spark Connect shows no plans, so none has an origin.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass

from pyspark.sql import DataFrame, SparkSession

from puredelta.log.replay.snapshot import Snapshot
from puredelta.spark.jvm.frames import logical_plan
from puredelta.spark.jvm.plans import Plan
from puredelta.spark.scan.scan import scan
from puredelta.spark.session.session import is_connect

_TAG = "puredelta.origin"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanOrigin:
    """The table that a part of a plan reads, all of its rows and columns."""

    root_uri: str
    version: int
    is_time_travel: bool
    """Whether the user asked for this very version, by number or time."""


def table_rows(spark: SparkSession, snapshot: Snapshot, *, time_travel: bool) -> DataFrame:
    """Return the rows of a snapshot; their plan says that this table is its origin.

    ``time_travel`` tells that the user chose the version. Runs no job; errors as `scan`.
    """
    rows = scan(spark, snapshot, time_travel=time_travel)
    if not is_connect(spark):
        set_origin(logical_plan(rows), snapshot, time_travel=time_travel)
    return rows


def set_origin(plan: Plan, snapshot: Snapshot, *, time_travel: bool = False) -> None:
    """Note on a plan of all rows of a snapshot which table they come from."""
    origin = PlanOrigin(
        root_uri=snapshot.root_uri, version=snapshot.version, is_time_travel=time_travel
    )
    plan.set_tag(_TAG, json.dumps(asdict(origin)))


def find_origin(plan: Plan) -> PlanOrigin | None:
    """Return the table that the root of a plan reads as it is."""
    text = plan.find_tag(_TAG)
    return None if text is None else PlanOrigin(**json.loads(text))


def find_origins(plan: Plan) -> Iterator[tuple[Plan, PlanOrigin]]:
    """Yield the parts of a plan, its subqueries included, that read a table, and which."""
    origin = find_origin(plan)
    if origin is not None:
        yield plan, origin
        return
    for child in (*plan.children(), *plan.subqueries()):
        yield from find_origins(child)
