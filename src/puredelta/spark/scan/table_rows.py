"""The rows of a table as a user holds them: frames whose plan says which table they come from.

The origin of a plan is a tag on the root of the scan. Spark carries tags along when it rewrites a
plan and never compares them, so a view or a cached frame made of the rows can be traced to
its table, whatever the scan is made of. Spark Connect shows no plans, so none has an origin.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from puredelta.log.replay.snapshot import Snapshot
from puredelta.protocol.schema.types import PrimitiveType, StructField
from puredelta.spark.connect.messages import (
    RELATION,
    Message,
    copy_of,
    every_message,
    kind_of,
    plan_of,
    with_plan,
)
from puredelta.spark.jvm.expressions import aliased
from puredelta.spark.jvm.file_index import SCAN_CLASS, relation_of
from puredelta.spark.jvm.frames import analyzed_plan, logical_plan
from puredelta.spark.jvm.plans import Plan, projected
from puredelta.spark.scan.late_scan import late_scan_of, put_relation
from puredelta.spark.scan.scan import TABLE_OPTION, TIME_TRAVEL_OPTION, VERSION_OPTION, scan
from puredelta.spark.session.data_access import DataIo, data_io
from puredelta.spark.session.session import is_connect
from puredelta.spark.session.types import quoted

_TAG = "puredelta.origin"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanOrigin:
    """The table that a part of a plan reads: all rows and columns of the part with the tag."""

    root_uri: str
    version: int
    is_time_travel: bool
    """Whether the user asked for this very version, by number or time."""


def table_rows(
    spark: SparkSession, snapshot: Snapshot, *, time_travel: bool, where: str | None = None
) -> DataFrame:
    """Return the rows of a snapshot; their plan says that this table is its origin.

    ``time_travel`` tells that the user chose the version. ``where`` is a condition on the rows
    as SQL text. Runs no job; errors as `scan`.
    """
    rows = scan(spark, snapshot, time_travel=time_travel)
    if not is_connect(spark):
        set_origin(logical_plan(rows), snapshot, time_travel=time_travel)
    return rows if where is None else rows.where(where)


def named_rows(
    spark: SparkSession, snapshot: Snapshot, names: frozenset[str], *, time_travel: bool
) -> DataFrame | None:
    """Return the rows with the columns that a query may name, in lower case; None for all columns.

    Only where rows come by Arrow and plans cannot ask for columns: over Connect. Errors as `scan`.
    """
    if not is_connect(spark) or data_io(spark, [snapshot.root_uri]) is not DataIo.ARROW:
        return None
    fields = snapshot.config.schema.fields
    in_doubt = not all(map(str.isascii, names))  # Java and Python may know other pairs of letters
    wanted = [
        f.name for f in fields if f.name.lower() in names or (in_doubt and not f.name.isascii())
    ]
    if len(wanted) == len(fields) or not fields:
        return None
    columns = wanted or [_narrowest(fields, snapshot.config.metadata.partition_columns)]
    return scan(spark, snapshot, columns=columns, time_travel=time_travel)


def _narrowest(fields: Sequence[StructField], partition_columns: Sequence[str]) -> str:
    """Return the column that costs least to read."""
    if partition_columns:
        return partition_columns[0]
    narrow = [f.name for f in fields if isinstance(f.type, PrimitiveType)]
    return narrow[0] if narrow else fields[0].name


def set_origin(plan: Plan, snapshot: Snapshot, *, time_travel: bool = False) -> None:
    """Note on a plan of all rows of a snapshot which table they come from."""
    origin = PlanOrigin(
        root_uri=snapshot.address, version=snapshot.version, is_time_travel=time_travel
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


def scanned_table(leaf: Plan) -> PlanOrigin | None:
    """Return the table that a plan with nothing below reads files of, if it does."""
    if leaf.class_name != SCAN_CLASS:
        return None
    options = relation_of(leaf).options
    root_uri = options.get(TABLE_OPTION)
    if root_uri is None:
        return None
    return PlanOrigin(
        root_uri=root_uri,
        version=int(options.get(VERSION_OPTION, -1)),
        is_time_travel=options.get(TIME_TRAVEL_OPTION.lower()) == "true",
    )


def with_version(
    spark: SparkSession, plan: Plan, parts: Sequence[Plan], snapshot: Snapshot
) -> Plan | None:
    """Return a plan that reads a version of a table in the place of the parts that show another.

    None if that version has no column of the name and type of one that a part has.
    """
    replaced: list[tuple[Plan, Plan]] = []
    for part in parts:
        new = _with_columns_of(part, analyzed_plan(table_rows(spark, snapshot, time_travel=False)))
        if new is None:
            return None
        replaced.append((part, new))
    return plan.with_replaced(replaced)


def with_newer_scans(
    rows: DataFrame, snapshot: Snapshot, *, is_stale: Callable[[Message], bool]
) -> DataFrame | None:
    """Return rows of a client that read a version of a table in the place of stale scans.

    ``is_stale`` judges the reader options of a scan. None as for `with_version`; the same frame if
    nothing is stale.
    """
    plan = copy_of(plan_of(rows))
    relations = [part for part in every_message(plan) if kind_of(part) == RELATION]
    marks = [part for part in relations if late_scan_of(part) is not None]
    stale = [mark for mark in marks if is_stale(mark.read.data_source.options)]
    if not stale:
        return rows
    fresh = table_rows(rows.sparkSession, snapshot, time_travel=False)
    present = _shown(plan_of(fresh))
    for mark in stale:
        shown = _shown(mark)
        if any(present.get(name) != kind for name, kind in shown.items()):
            return None
        same = fresh if list(shown) == list(present) else fresh.select(*map(quoted, shown))
        put_relation(mark, plan_of(same))
    return with_plan(rows, plan, keep=fresh)


def _shown(mark: Message) -> dict[str, T.DataType]:
    """Return the columns of a scan of a client, by name."""
    found = late_scan_of(mark)
    return {} if found is None else {f.name: f.dataType for f in found.shown.fields}


def _with_columns_of(known: Plan, plan: Plan) -> Plan | None:
    """Return a plan under the very columns of another; None if it lacks some of them."""
    present = {column.name(): column for column in plan.output()}
    columns = []
    for wanted in known.output():
        name = wanted.name()
        column = present.get(name)
        if column is None or not column.has_type_of(wanted):
            return None
        columns.append(aliased(column, name, like=wanted))
    return projected(columns, plan)
