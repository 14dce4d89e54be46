"""Whether a frame is nothing but a scan of Parquet files, told from its analyzed plan.

Such a frame gives the same rows whenever the same files are read, so nobody needs to keep a
copy. A plan is accepted for what it is known to be; whatever is unknown is `Refused`. Runs
nothing. Classic sessions only: Spark Connect shows no plans.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from puredelta.spark.catalyst import Catalyst
from puredelta.spark.catalyst_tree import Node, class_name
from puredelta.spark.data_file import DataFile
from puredelta.spark.native_scan import jackson
from puredelta.spark.rewriting import Refused
from puredelta.spark.scan import TABLE_OPTIONS
from puredelta.spark.session import is_connect

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


@dataclass(frozen=True, slots=True, kw_only=True)
class PlainScan:
    """The rows of a frame: all of its files, without partition values."""

    files: tuple[DataFile, ...]
    """As the relation lists them: sizes and times are those of when it was made."""
    fields: tuple[T.StructField, ...]
    """Per column of the frame the column of the files it shows, as the relation declares it."""
    is_table: bool
    """Whether the files are those of a version of a Delta table: nobody writes to them."""


def plain_scan(spark: SparkSession, rows: DataFrame) -> PlainScan | Refused:
    """Return what a frame scans, if it does nothing else."""
    if is_connect(spark):
        return Refused(reason="Spark Connect shows no plans")
    catalyst = Catalyst(spark)
    if not rows.sparkSession._jsparkSession.equals(catalyst.session):  # noqa: SLF001
        return Refused(reason="the frame is of another session")
    plan = catalyst.analyzed(rows)
    node = _relation_below(plan)
    if isinstance(node, Refused):
        return node
    relation = node.relation()
    if (reason := _unusual_relation(relation)) is not None:
        return Refused(reason=reason)
    options = {name.lower() for name in relation.options().keySet().mkString("\n").split("\n")}
    options -= {"", *_OPTIONS}
    if options - TABLE_OPTIONS:
        return Refused(reason=f"reader options {sorted(options - TABLE_OPTIONS)}")
    if _is_cached(catalyst, plan):
        return Refused(reason="its rows are cached")
    nodes: list[Node] = json.loads(plan.toJSON())
    names = column_names(nodes)
    if isinstance(names, Refused):
        return names
    fields = declared_fields(json.loads(relation.dataSchema().json()), names)
    if isinstance(fields, Refused):
        return fields
    files = _files(catalyst, relation.location().allFiles())
    if isinstance(files, Refused):
        return files
    return PlainScan(files=files, fields=fields, is_table=bool(options))


def _relation_below(plan: Any) -> Any:
    """Return the scan below a short chain of operators that could be harmless, or `Refused`."""
    for _ in range(_DEPTH_MAX):
        kind = str(plan.getClass().getName())
        if kind == _RELATION:
            return plan
        name = kind.rsplit(".", 1)[-1]
        if name != "Project" and name not in _WRAPPERS:
            return Refused(reason=f"the plan has a {name}")
        plan = plan.child()
    return Refused(reason="the plan is deep")


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


def _is_cached(catalyst: Catalyst, plan: Any) -> bool:
    """Tell whether Spark would answer from its cache, for any part of the plan."""
    if catalyst.session.sharedState().cacheManager().isEmpty():
        return False
    # Not the frame's own execution: what it found in the cache would stay with it.
    execution = catalyst.rows(plan)._jdf.queryExecution()  # noqa: SLF001
    return "InMemoryRelation" in execution.withCachedData().toString()


def column_names(nodes: Sequence[Node]) -> tuple[str, ...] | Refused:
    """Return for each column of a plan the relation's column it shows. Pure.

    ``nodes`` are the JSON of a chain of operators from the top to its relation.
    """
    relation = nodes[-1]
    if relation.get("isStreaming"):
        return Refused(reason="it is a stream")
    shown = {_expr_id(tree[0]): str(tree[0]["name"]) for tree in relation["output"]}
    output = [_expr_id(tree[0]) for tree in relation["output"]]
    for node in reversed(nodes[:-1]):
        if class_name(node) != "Project":
            continue
        found = dict[int, str]()
        for tree in node["projectList"]:
            below = _plain_attribute(tree)
            if below is None or below not in shown:
                return Refused(reason=f"column {tree[0].get('name')} is computed")
            found[_expr_id(tree[0])] = shown[below]
        output = [_expr_id(tree[0]) for tree in node["projectList"]]
        shown = found
    return tuple(shown[column] for column in output)


def _plain_attribute(tree: Sequence[Node]) -> int | None:
    """Return the id of the attribute that an expression passes on as it is."""
    kinds = [class_name(node) for node in tree]
    if kinds[-1] != "AttributeReference" or kinds[:-1] not in ([], ["Alias"], ["Alias", "Cast"]):
        return None
    # The text of a view is cast to the types it had, which are the same nearly always.
    same = "Cast" not in kinds or tree[1]["dataType"] == tree[2]["dataType"]
    return _expr_id(tree[-1]) if same else None


def _expr_id(node: Node) -> int:
    return int(node["exprId"]["id"])


def declared_fields(
    schema: Mapping[str, Any], names: Sequence[str]
) -> tuple[T.StructField, ...] | Refused:
    """Return the columns of a relation by name, if files alone tell what they hold. Pure."""
    declared = {field["name"]: field for field in schema["fields"]}
    for name in names:
        if name not in declared:
            return Refused(reason=f"column {name} is in no file")
        text = json.dumps(declared[name])
        if any(mark in text for mark in _UNUSUAL):
            return Refused(reason=f"column {name} is of a special kind")
    wanted = {name: T.StructField.fromJson(declared[name]) for name in names}
    return tuple(T.StructField(name, wanted[name].dataType) for name in names)


def _files(catalyst: Catalyst, listed: Any) -> tuple[DataFile, ...] | Refused:
    if (count := int(listed.size())) > FILES_MAX:
        return Refused(reason=f"it has {count} files")
    mapper, _ = jackson(catalyst.jvm)
    statuses = catalyst.jvm.scala.jdk.javaapi.CollectionConverters.asJava(listed)
    return listed_files(json.loads(mapper.writeValueAsString(statuses)))


def listed_files(statuses: Collection[Mapping[str, Any]]) -> tuple[DataFile, ...] | Refused:
    """Return the files of a listing, Hadoop's ``FileStatus`` as JSON. Pure."""
    files = []
    for status in statuses:
        uri = str(status["path"]["uri"])
        if not uri.startswith(_LOCAL):
            return Refused(reason=f"{uri} is on no local file system")
        path = unquote(uri.removeprefix(_LOCAL))
        if "\N{REPLACEMENT CHARACTER}" in path:
            return Refused(reason=f"the name of {uri} is no text")
        files.append(
            DataFile(
                uri=_LOCAL + path.lstrip("/"),
                size_bytes=int(status["length"]),
                modified_ms=int(status["modification_time"]),
            )
        )
    return tuple(files)
