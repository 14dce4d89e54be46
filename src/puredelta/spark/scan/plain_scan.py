"""Frames that are a plain scan of Parquet files, recognised by their analyzed plan.

Such a frame gives the same rows whenever the same files are read, so it needs no copy. Only plans
of a known form are accepted; any other is `NotApplicable`. Runs nothing. Classic sessions only:
Spark Connect shows no plans.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from puredelta.spark.jvm.cache import FrameCache
from puredelta.spark.jvm.expressions import Expression, expr_ids, name_of
from puredelta.spark.jvm.file_index import SCAN_CLASS, ScannedRelation, relation_of
from puredelta.spark.jvm.frames import analyzed_plan, is_of_session
from puredelta.spark.jvm.plans import Plan
from puredelta.spark.scan.data_file import DataFile
from puredelta.spark.scan.scan import TABLE_OPTIONS
from puredelta.spark.session.session import NotApplicable, is_connect

FILES_MAX = 1_000
"""Each of them is opened by the driver."""
_DEPTH_MAX = 12
_WRAPPERS = frozenset({"SubqueryAlias", "View", "ResolvedHint"})
"""Operators that leave rows and columns alone."""
_OPTIONS = frozenset({"path", "paths", "recursivefilelookup", "ignoredpathsegmentregex"})
"""Reader options that say which files are read, not how."""
_UNUSUAL = (
    "parquet.field.id",
    "__CHAR_VARCHAR",
    "EXISTS_DEFAULT",
    "__metadata_col",
    '"udt"',
    '"void"',
)
"""In the JSON of a column whose values do not follow from the files alone."""
_LOCAL = "file:/"
_SAME_VALUE = re.compile(r"(?:nanvl|greatest)\((?P<column>.+), (?P=column)\)")
"""What a scan of a table makes of some columns (`puredelta.spark.scan.scan_columns`)."""
_FILE = re.compile(
    r"\w+\{path=(?P<uri>.*); isDirectory=false; length=(?P<length>\d+); replication=\d+;"
    r" blocksize=\d+; modification_time=(?P<time>\d+); .*\}",
    re.DOTALL,
)
"""Hadoop's ``FileStatus.toString``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlainScan:
    """The rows of a frame: all of its files, without partition values."""

    files: tuple[DataFile, ...]
    """As the relation lists them: sizes and times are those of when it was made."""
    fields: tuple[T.StructField, ...]
    """Per column of the frame the column of the files it shows, as the relation declares it."""
    is_table: bool
    """Whether the files are those of a version of a Delta table, which never change."""


def plain_scan(spark: SparkSession, rows: DataFrame) -> PlainScan | NotApplicable:
    """Return what a frame scans, if it does nothing else."""
    if is_connect(spark):
        return NotApplicable(reason="Spark Connect shows no plans")
    if not is_of_session(rows, spark):
        return NotApplicable(reason="the frame is of another session")
    plan = analyzed_plan(rows)
    chain = _chain(plan)
    if isinstance(chain, NotApplicable):
        return chain
    relation = relation_of(chain.scan)
    options = relation.options.keys() - _OPTIONS
    if (reason := relation.unlike_parquet_files() or _unusual_options(options)) is not None:
        return NotApplicable(reason=reason)
    if FrameCache(spark).serves(plan):
        return NotApplicable(reason="its rows are cached")
    fields = _fields(relation, chain)
    files = _files(relation)
    if isinstance(fields, NotApplicable):
        return fields
    if isinstance(files, NotApplicable):
        return files
    return PlainScan(files=files, fields=fields, is_table=bool(options))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Chain:
    """A scan, and the projections above it from the top."""

    scan: Plan
    projections: tuple[Plan, ...]


def _chain(plan: Plan) -> _Chain | NotApplicable:
    """Follow a plan down to its scan, if all above that could be harmless."""
    projections: list[Plan] = []
    top = plan
    for _ in range(_DEPTH_MAX):
        name = plan.class_name
        if name == SCAN_CLASS:
            return _Chain(scan=top.leaves[0], projections=tuple(projections))
        kind = name.rsplit(".", 1)[-1]
        if kind == "Project":
            projections.append(plan)
        elif kind not in _WRAPPERS:
            return NotApplicable(reason=f"the plan has a {kind}")
        plan = plan.child()
    return NotApplicable(reason="the plan is deep")


def _unusual_options(options: AbstractSet[str]) -> str | None:
    unknown = sorted(options - TABLE_OPTIONS)
    return f"reader options {unknown}" if unknown else None


def _fields(relation: ScannedRelation, chain: _Chain) -> tuple[T.StructField, ...] | NotApplicable:
    """Return the column of the files that each column of a plan over a scan shows."""
    columns = relation.data_columns()
    ids = expr_ids(chain.scan.output_texts())
    if ids is None or len(ids) != len(columns) + relation.num_partition_columns():
        return NotApplicable(reason="it shows more than its files have")
    projections = _passed_columns(chain.projections)
    if isinstance(projections, NotApplicable):
        return projections
    places = column_places(ids, projections)
    if isinstance(places, NotApplicable):
        return places
    if any(place >= len(columns) for place in places):
        return NotApplicable(reason="it has partition columns")
    return declared_fields(columns, places)


@dataclass(frozen=True, slots=True, kw_only=True)
class PassedColumn:
    """One column of a projection, which passes a column below it on or computes one."""

    expr_id: int
    below: int | None
    """The expression id of the column below; None for a computed one."""
    name: str = ""


def column_places(
    relation: Sequence[int], projections: Iterable[Sequence[PassedColumn]]
) -> tuple[int, ...] | NotApplicable:
    """Return for each column of a plan the place of the relation's column it shows. Pure.

    ``relation`` are the ids of the relation's columns, the projections above it from the top.
    """
    places = {expr_id: place for place, expr_id in enumerate(relation)}
    output = tuple(relation)
    computed: dict[int, str] = {}
    for projection in reversed(list(projections)):
        shown: dict[int, int] = {}
        for column in projection:
            if column.below is None:
                computed[column.expr_id] = column.name
            elif column.below in places:
                shown[column.expr_id] = places[column.below]
            elif column.below in computed:
                computed[column.expr_id] = computed[column.below]
            else:
                return NotApplicable(reason="it shows more than its files have")
        places, output = shown, tuple(column.expr_id for column in projection)
    if above := [computed[expr_id] for expr_id in output if expr_id in computed]:
        return NotApplicable(reason=f"column {above[0]} is computed")
    return tuple(places[expr_id] for expr_id in output)


def _passed_columns(projections: Iterable[Plan]) -> list[list[PassedColumn]] | NotApplicable:
    """Return the columns of each projection."""
    found = []
    for plan in projections:
        expressions, projection = plan.projections(), []
        output = zip(expressions.texts(), plan.output_texts(), strict=True)
        for n, (text, named) in enumerate(output):
            own = expr_ids([named])
            if own is None:
                return NotApplicable(reason=f"column {name_of(named)} is computed")
            below = own[0] if text == named else _id_below(expressions[n], text, named)
            projection.append(PassedColumn(expr_id=own[0], below=below, name=name_of(named)))
        found.append(projection)
    return found


def _id_below(expression: Expression, text: str, named: str) -> int | None:
    """Return the id of the attribute that an expression passes on as it is.

    ``text`` is what it prints, ``named`` what its attribute does.
    """
    if expression.kind != "Alias":
        return None
    child, below = expression.child(), text.removesuffix(f" AS {named}")
    kind = child.kind
    if kind in ("NaNvl", "Greatest") and (same := _SAME_VALUE.fullmatch(below)) is not None:
        child, below = child.children()[0], same["column"]
        kind = child.kind
    # The text of a view is cast to the types it had, which are the same nearly always.
    if kind == "Cast" and child.has_type_of(child.child()):
        child = child.child()
        below, kind = child.text(), child.kind
    ids = expr_ids([below]) if kind == "AttributeReference" else None
    return None if ids is None else ids[0]


def declared_fields(
    columns: Sequence[dict[str, Any]], places: Sequence[int]
) -> tuple[T.StructField, ...] | NotApplicable:
    """Return columns of a relation by place, if their values follow from the files alone. Pure."""
    wanted: dict[int, T.StructField] = {}
    for place in places:
        declared = columns[place]
        if any(mark in json.dumps(declared) for mark in _UNUSUAL):
            return NotApplicable(reason=f"column {declared['name']} is of a special kind")
        field = T.StructField.fromJson(declared)
        wanted[place] = T.StructField(field.name, field.dataType)
    return tuple(wanted[place] for place in places)


def _files(relation: ScannedRelation) -> tuple[DataFile, ...] | NotApplicable:
    statuses = relation.file_statuses(most=FILES_MAX)
    if isinstance(statuses, int):
        return NotApplicable(reason=f"it has {statuses} files")
    return listed_files(statuses)


def listed_files(statuses: Iterable[str]) -> tuple[DataFile, ...] | NotApplicable:
    """Return the files of a listing from what Hadoop's ``FileStatus`` prints. Pure."""
    files = []
    for status in statuses:
        found = _FILE.fullmatch(status)
        if found is None or not found["uri"].startswith(_LOCAL):
            return NotApplicable(reason=f"a file is on no local file system: {status}")
        path = found["uri"].removeprefix(_LOCAL).lstrip("/")
        files.append(
            DataFile(
                uri=_LOCAL + path,
                size_bytes=int(found["length"]),
                modified_ms=int(found["time"]),
            )
        )
    return tuple(files)
