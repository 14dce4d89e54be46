"""Whether a frame is nothing but a scan of Parquet files, told from its analyzed plan.

Such a frame gives the same rows whenever the same files are read, so nobody needs to keep a
copy. A plan is accepted for what it is known to be; whatever is unknown is `NotApplicable`. Runs
nothing. Classic sessions only: Spark Connect shows no plans.

Ids and files are taken from text that Spark makes of whole lists: a call per element, or
the JSON of a plan, would cost as much as a small job.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from puredelta.spark.plans.attribute_text import expr_ids, name_of, texts
from puredelta.spark.plans.catalyst import Catalyst
from puredelta.spark.scan.data_file import DataFile
from puredelta.spark.scan.scan import TABLE_OPTIONS
from puredelta.spark.session.fallback import NotApplicable
from puredelta.spark.session.session import is_connect

FILES_MAX = 1_000
"""Each of them is opened by the driver."""
_DEPTH_MAX = 12
_DATASOURCES = "org.apache.spark.sql.execution.datasources."
_RELATION = f"{_DATASOURCES}LogicalRelation"
_WRAPPERS = frozenset({"SubqueryAlias", "View", "ResolvedHint"})
"""Operators that leave rows and columns alone."""
_OPTIONS = frozenset({"path", "paths", "recursivefilelookup"})
"""Reader options that say which files are read, not how."""
_UNUSUAL = (
    "parquet.field.id",
    "__CHAR_VARCHAR",
    "EXISTS_DEFAULT",
    "__metadata_col",
    '"udt"',
    '"void"',
)
"""In the JSON of a column that files alone do not tell."""
_LOCAL = "file:/"
"""Between the elements of a list that becomes text."""
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
    """Whether the files are those of a version of a Delta table: nobody writes to them."""


def plain_scan(spark: SparkSession, rows: DataFrame) -> PlainScan | NotApplicable:
    """Return what a frame scans, if it does nothing else."""
    if is_connect(spark):
        return NotApplicable(reason="Spark Connect shows no plans")
    catalyst = Catalyst(spark)
    if not rows.sparkSession._jsparkSession.equals(catalyst.session):  # noqa: SLF001
        return NotApplicable(reason="the frame is of another session")
    plan = catalyst.analyzed(rows)
    chain = _chain(plan)
    if isinstance(chain, NotApplicable):
        return chain
    relation = chain.scan.relation()
    options = {name.lower() for name in texts(relation.options().keySet().toSeq())} - _OPTIONS
    if (reason := _unusual_relation(relation) or _unusual_options(options)) is not None:
        return NotApplicable(reason=reason)
    if _is_cached(catalyst, plan):
        return NotApplicable(reason="its rows are cached")
    fields = _fields(relation, chain)
    files = _files(relation.location().allFiles())
    if isinstance(fields, NotApplicable):
        return fields
    if isinstance(files, NotApplicable):
        return files
    return PlainScan(files=files, fields=fields, is_table=bool(options))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Chain:
    """A scan, and the projections above it from the top."""

    scan: Any
    projections: tuple[Any, ...]


def _chain(plan: Any) -> _Chain | NotApplicable:
    """Follow a plan down to its scan, if all above that could be harmless."""
    projections: list[Any] = []
    for _ in range(_DEPTH_MAX):
        kind = str(plan.getClass().getName())
        if kind == _RELATION:
            return _Chain(scan=plan, projections=tuple(projections))
        name = kind.rsplit(".", 1)[-1]
        if name == "Project":
            projections.append(plan)
        elif name not in _WRAPPERS:
            return NotApplicable(reason=f"the plan has a {name}")
        plan = plan.child()
    return NotApplicable(reason="the plan is deep")


def _unusual_relation(relation: Any) -> str | None:
    kind = str(relation.getClass().getName())
    if kind != f"{_DATASOURCES}HadoopFsRelation":
        return f"it reads a {kind.rsplit('.', 1)[-1]}"
    kind = str(relation.fileFormat().getClass().getName())
    if kind != f"{_DATASOURCES}parquet.ParquetFileFormat":
        return f"its files are of the kind {kind.rsplit('.', 1)[-1]}"
    kind = str(relation.location().getClass().getName())
    if kind != f"{_DATASOURCES}InMemoryFileIndex":
        return f"its files are listed by {kind.rsplit('.', 1)[-1]}"
    if relation.partitionSchema().length():
        return "it has partition columns"
    return "it has buckets" if relation.bucketSpec().isDefined() else None


def _unusual_options(options: AbstractSet[str]) -> str | None:
    unknown = sorted(options - TABLE_OPTIONS)
    return f"reader options {unknown}" if unknown else None


def _is_cached(catalyst: Catalyst, plan: Any) -> bool:
    """Tell whether Spark would answer from its cache, for any part of the plan."""
    if catalyst.session.sharedState().cacheManager().isEmpty():
        return False
    # Not the frame's own execution: what it found in the cache would stay with it.
    execution = catalyst.rows(plan)._jdf.queryExecution()  # noqa: SLF001
    return "InMemoryRelation" in execution.withCachedData().toString()


def _fields(relation: Any, chain: _Chain) -> tuple[T.StructField, ...] | NotApplicable:
    """Return the column of the files that each column of a plan over a scan shows."""
    schema = json.loads(relation.dataSchema().json())
    ids = expr_ids(texts(chain.scan.output()))
    if ids is None or len(ids) != len(schema["fields"]):
        return NotApplicable(reason="it shows more than its files have")
    projections = _shown(chain.projections)
    if isinstance(projections, NotApplicable):
        return projections
    places = shown_places(ids, projections)
    return places if isinstance(places, NotApplicable) else declared_fields(schema, places)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """One column of a projection."""

    expr_id: int
    of: int
    """The attribute below that it passes on."""


def shown_places(
    relation: Sequence[int], projections: Iterable[Sequence[Shown]]
) -> tuple[int, ...] | NotApplicable:
    """Return for each column of a plan the place of the relation's column it shows. Pure.

    ``relation`` are the ids of the relation's columns, the projections above it from the top.
    """
    places = {expr_id: place for place, expr_id in enumerate(relation)}
    output = tuple(relation)
    for projection in reversed(list(projections)):
        if any(column.of not in places for column in projection):
            return NotApplicable(reason="it shows more than its files have")
        places = {column.expr_id: places[column.of] for column in projection}
        output = tuple(column.expr_id for column in projection)
    return tuple(places[expr_id] for expr_id in output)


def _shown(projections: Iterable[Any]) -> list[list[Shown]] | NotApplicable:
    """Return the columns of each projection."""
    found = []
    for plan in projections:
        expressions, projection = plan.projectList(), []
        output = zip(texts(expressions), texts(plan.output()), strict=True)
        for n, (text, named) in enumerate(output):
            ids = _passed_on(expressions, n, text, named)
            if ids is None:
                return NotApplicable(reason=f"column {name_of(named)} is computed")
            projection.append(Shown(expr_id=ids[0], of=ids[1]))
        found.append(projection)
    return found


def _passed_on(expressions: Any, n: int, text: str, named: str) -> list[int] | None:
    """Return the id of the n-th expression and of the attribute that it passes on as it is.

    ``text`` is what it prints, ``named`` what its attribute does: the same if that is all.
    """
    if text == named:
        return expr_ids([named, named])
    expression = expressions.apply(n)
    if _class_name(expression) != "Alias":
        return None
    child, below = expression.child(), text.removesuffix(f" AS {named}")
    kind = _class_name(child)
    # The text of a view is cast to the types it had, which are the same nearly always.
    if kind == "Cast" and child.dataType().equals(child.child().dataType()):
        child = child.child()
        below, kind = str(child.toString()), _class_name(child)
    return expr_ids([named, below]) if kind == "AttributeReference" else None


def _class_name(node: Any) -> str:
    return str(node.getClass().getName()).rsplit(".", 1)[-1]


def declared_fields(
    schema: Mapping[str, Any], places: Sequence[int]
) -> tuple[T.StructField, ...] | NotApplicable:
    """Return the columns of a relation by place, if files alone tell what they hold. Pure."""
    wanted: dict[int, T.StructField] = {}
    for place in places:
        declared = schema["fields"][place]
        if any(mark in json.dumps(declared) for mark in _UNUSUAL):
            return NotApplicable(reason=f"column {declared['name']} is of a special kind")
        field = T.StructField.fromJson(declared)
        wanted[place] = T.StructField(field.name, field.dataType)
    return tuple(wanted[place] for place in places)


def _files(listed: Any) -> tuple[DataFile, ...] | NotApplicable:
    if (count := int(listed.size())) > FILES_MAX:
        return NotApplicable(reason=f"it has {count} files")
    return listed_files(texts(listed))


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
