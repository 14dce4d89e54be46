"""Reads of a table by the rows that are written to it.

The frame is changed to show the version that the write starts from, and in a classic session it
reports the conditions of its reads. A Connect client sees only its own messages: a frame of this
library carries its table and version in its options. The server is asked which tables names and
SQL text read: two requests, and only for rows with names or text in them. Runs no job.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any
from urllib.parse import unquote

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from puredelta.log.replay.snapshot import Snapshot
from puredelta.protocol.actions.paths import absolute_uri, short_uri
from puredelta.protocol.schema.predicates import And, Predicate, Side
from puredelta.spark.connect.messages import every_message, kind_of, plan_of
from puredelta.spark.jvm.analyzer import expression_trees, folded, reads_clock
from puredelta.spark.jvm.expressions import Expression
from puredelta.spark.jvm.frames import analyzed_plan, frame_of
from puredelta.spark.jvm.plans import Plan, collected_metrics, empty_relation
from puredelta.spark.resolve.predicate_from_json import SideColumn, predicate_of
from puredelta.spark.scan.scan import TABLE_OPTION, TIME_TRAVEL_OPTION, VERSION_OPTION
from puredelta.spark.scan.table_rows import (
    PlanOrigin,
    find_origin,
    scanned_table,
    with_newer_scans,
    with_version,
)
from puredelta.spark.session.session import is_connect
from puredelta.spark.values.row_errors import decode_row_error

_SCAN = "spark.connect.Read.DataSource"
_OF_SERVER = frozenset({"spark.connect.Read.NamedTable", "spark.connect.SQL"})
_FILE_SCHEME = re.compile("^file:/+")


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectReads:
    """The reads of a table by rows."""

    reads_table: bool
    is_current: bool
    """Whether they certainly read it as the version in question has it."""


def connect_reads(
    rows: DataFrame, snapshot: Snapshot, *, is_table: Callable[[str], bool]
) -> ConnectReads:
    """Return how the rows read a table, beside versions that were asked for."""
    versions, num_travelled, asks_server = set[int](), 0, False
    for message in every_message(plan_of(rows)):
        kind = kind_of(message)
        asks_server = asks_server or kind in _OF_SERVER
        if kind == _SCAN and TABLE_OPTION in message.options:
            options = message.options
            if not is_table(options[TABLE_OPTION]):
                continue
            if options[TIME_TRAVEL_OPTION] == "true":
                num_travelled += 1
            else:
                versions.add(int(options[VERSION_OPTION]))
    is_current = versions <= {snapshot.version}
    if asks_server and not versions and _num_scans(rows, snapshot) > num_travelled:
        return ConnectReads(reads_table=True, is_current=_shows_all_files(rows, snapshot))
    return ConnectReads(reads_table=bool(versions), is_current=is_current)


def read_tables(rows: DataFrame) -> Iterator[PlanOrigin]:
    """Yield the tables that rows of a Connect session read, as far as the client sees."""
    for message in every_message(plan_of(rows)):
        if kind_of(message) == _SCAN and TABLE_OPTION in message.options:
            yield PlanOrigin(
                root_uri=message.options[TABLE_OPTION],
                version=int(message.options[VERSION_OPTION]),
                is_time_travel=message.options[TIME_TRAVEL_OPTION] == "true",
            )


def _num_scans(rows: DataFrame, snapshot: Snapshot) -> int:
    """Return how many scans, those of subqueries included, begin with a file of the table.

    Raises:
        DeltaError: the optimizer has computed a row that raises it.
    """
    frame: Any = rows
    try:
        explained: str = frame._explain_string(mode="formatted")  # noqa: SLF001 - public: prints
    except PySparkException as failure:
        if (row_error := decode_row_error(failure)) is not None:
            raise row_error from failure
        raise
    return explained.count(f"[{short_uri(snapshot.root_uri)}/")


def _shows_all_files(rows: DataFrame, snapshot: Snapshot) -> bool:
    """Return whether the rows are read from just the files of the version, none of which has a
    deletion vector: those do not show in the names of files.
    """
    vectors = snapshot.files.rows["deletion_vector"]
    root = f"{short_uri(snapshot.root_uri)}/"
    paths = (short_uri(unquote(_FILE_SCHEME.sub("file:/", path))) for path in rows.inputFiles())
    found = {path for path in paths if path.startswith(root)}
    wanted = {
        absolute_uri(snapshot.root_uri, path) for path in snapshot.files.rows["path"].to_pylist()
    }
    return vectors.null_count == len(vectors) and found == wanted


_KEEP_ROWS = frozenset({"Filter", "Project", "SubqueryAlias", "View", "ResolvedHint", "Sort"})
"""Operators that hand on rows one by one: a condition above them holds below, too, unless values
are random or depend on a row's place among the others."""

IsTable = Callable[[str], bool]
"""Tells whether the root of a table is that of the table that is written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundRows:
    """Rows as one version of a table gives them."""

    rows: DataFrame
    reads: tuple[Predicate | None, ...] = ()
    """Per place where they read the table, what is true of all rows they need; None: any row."""


class Stale(Enum):
    """Why rows that read an older version of a table cannot be had from another one."""

    COLUMNS = "the table has other columns"
    UNREACHABLE = "the frame cannot be changed"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """A part of a plan that reads the table."""

    part: Plan
    version: int
    conditions: tuple[Expression, ...]
    """All are true of the rows that what is above gets to see."""
    is_whole: bool
    """Whether the part shows all rows and columns, so that another version can take its place."""


def bind_rows(
    rows: DataFrame,
    snapshot: Snapshot,
    *,
    is_table: IsTable,
    time_zone: str,
    only_subqueries: bool = False,
) -> BoundRows | Stale:
    """Return rows as a version of a table gives them, wherever they read that table.

    What the user reads by version or time stays as it is, and is not mentioned.
    ``only_subqueries`` is for rows that are made of this version anyway, and of subqueries.
    """
    if is_connect(rows.sparkSession):
        if only_subqueries:
            return BoundRows(rows=rows, reads=(None,))
        return _bind_of_client(rows, snapshot, is_table=is_table)
    plan = analyzed_plan(rows)
    roots = plan.every_subquery() if only_subqueries else (plan, *plan.every_subquery())
    leaves = (leaf for root in roots for leaf in root.leaves)
    if not any(_reads(scanned_table(leaf), is_table) for leaf in leaves):
        return BoundRows(rows=rows)
    places = tuple(place for root in roots for place in _places(root, is_table, ()))
    reads = tuple(_read_predicate(place, time_zone) for place in places)
    stale = [place for place in places if place.version != snapshot.version]
    if not stale:
        return BoundRows(rows=rows, reads=reads)
    if not all(place.is_whole for place in stale):
        return Stale.UNREACHABLE
    renewed = with_version(rows.sparkSession, plan, [place.part for place in stale], snapshot)
    if renewed is None:
        return Stale.COLUMNS
    return BoundRows(rows=frame_of(rows.sparkSession, renewed), reads=reads)


def _bind_of_client(rows: DataFrame, snapshot: Snapshot, *, is_table: IsTable) -> BoundRows | Stale:
    def is_stale(options: Mapping[str, str]) -> bool:
        return (
            is_table(options[TABLE_OPTION])
            and options[TIME_TRAVEL_OPTION] != "true"
            and options[VERSION_OPTION] != str(snapshot.version)
        )

    renewed = with_newer_scans(rows, snapshot, is_stale=is_stale)
    if renewed is None:
        return Stale.COLUMNS
    found = connect_reads(renewed, snapshot, is_table=is_table)
    if found.reads_table and not found.is_current:
        return Stale.UNREACHABLE
    return BoundRows(rows=renewed, reads=(None,) if found.reads_table else ())


def _reads(origin: PlanOrigin | None, is_table: IsTable) -> bool:
    return origin is not None and not origin.is_time_travel and is_table(origin.root_uri)


def _places(plan: Plan, is_table: IsTable, conditions: tuple[Expression, ...]) -> Iterator[_Place]:
    shown = find_origin(plan)
    children = plan.children()
    origin = scanned_table(plan) if shown is None and not children else shown
    if origin is not None:
        if _reads(origin, is_table):
            yield _Place(
                part=plan,
                version=origin.version,
                conditions=conditions,
                is_whole=shown is not None,
            )
        return
    kind = plan.kind
    if kind not in _KEEP_ROWS or not plan.is_deterministic():
        conditions = ()
    elif kind == "Filter":
        conditions = (*conditions, plan.condition())
    for child in children:
        yield from _places(child, is_table, conditions)


def _read_predicate(place: _Place, time_zone: str) -> Predicate | None:
    """Return what the conditions say of the table's columns, which may be less than they do."""
    output = place.part.output()
    asked = collected_metrics(place.conditions, empty_relation(output))
    if not place.conditions or reads_clock(asked):  # the job reads it later
        return None
    columns = {
        column.expr_id(): SideColumn(Side.TARGET, column.name(), column.type()) for column in output
    }
    trees = expression_trees(folded(asked))
    return And(tuple(predicate_of(tree, columns, time_zone=time_zone) for tree in trees))
