"""Preview of a conversion, without writing anything.

The preview is planned like the conversion, up to the commit: the same footers are read, and each
obstacle to the conversion is reported as a problem.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import types as T

from puredelta.commands.command import command_on
from puredelta.commands.convert.conversion_plan import ConversionPlan, ConvertSettings
from puredelta.commands.convert.partitions import InferredColumn, infer_partitions
from puredelta.commands.convert.plan import (
    inferred_target,
    list_files,
    plan_conversion,
)
from puredelta.commands.convert.target import AlreadyDelta, ConversionTarget, find_target
from puredelta.errors import DeltaError
from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.actions.action_json import encode_action
from puredelta.protocol.actions.actions import Action
from puredelta.protocol.schema.schema_json import simple_string
from puredelta.protocol.schema.traversal import struct_fields
from puredelta.protocol.schema.types import (
    BINARY,
    BOOLEAN,
    DecimalType,
    PrimitiveType,
    StructType,
)
from puredelta.protocol.table.partitioning import Partitioning
from puredelta.protocol.table.stats import LeafPath, indexed_leaves
from puredelta.protocol.table.table_config import TableConfig
from puredelta.spark.session.session import SessionInfo
from puredelta.spark.session.storage import open_log
from puredelta.store.base import StoredFile

_NOT_INDEXED = "beyond the columns that the table's properties ask statistics of"
_UNORDERED = (BINARY, BOOLEAN, PrimitiveType("void"))
_NO_STATISTICS = "none were asked for"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversionPreview:
    """The future result of CONVERT for a directory or a catalog table."""

    location: str
    """An absolute, decoded URI."""
    name: str | None = None
    """The whole name of a table of the catalog."""
    already_delta: bool = False
    """Whether there is nothing to convert."""
    num_files: int = 0
    num_bytes: int = 0
    num_rows: int | None = None
    """None where no footer is read."""
    num_partitions: int = 0
    schema: StructType | None = field(default=None, repr=False)
    """The columns of the table, including partition columns."""
    partition_columns: tuple[str, ...] = ()
    inferred: tuple[InferredColumn, ...] = ()
    """For a directory without given partition columns: those its names suggest, with reasons."""
    missing_statistics: Mapping[str, str] = field(default_factory=dict)
    """Columns without bounds in some file, with the reason."""
    commit_bytes: int = 0
    """The size of version 0."""
    problems: tuple[str, ...] = ()
    """Obstacles to the conversion; empty if there are none."""

    def lines(self) -> tuple[tuple[str, str], ...]:
        """Return the preview as pairs of a subject and a text."""
        columns = () if self.schema is None else self.schema.fields
        return (
            ("location", self.location),
            *((("table", self.name),) if self.name else ()),
            ("already delta", str(self.already_delta).lower()),
            ("files", str(self.num_files)),
            ("bytes", str(self.num_bytes)),
            ("rows", "not read" if self.num_rows is None else str(self.num_rows)),
            ("partitions", str(self.num_partitions)),
            ("partitioned by", ", ".join(self.partition_columns)),
            *(
                (f"inferred partition column {c.name}", f"{simple_string(c.type)}: {c.reason}")
                for c in self.inferred
            ),
            *((f"column {f.name}", simple_string(f.type)) for f in columns),
            *((f"no bounds of {name}", why) for name, why in self.missing_statistics.items()),
            ("bytes of the commit", str(self.commit_bytes)),
            *(("problem", text) for text in self.problems),
        )


def preview_convert(
    spark: SparkSession,
    identifier: str,
    partition_schema: T.StructType | str | None = None,
    *,
    collect_stats: bool = True,
) -> ConversionPreview:
    """Return the future result of CONVERT TO DELTA, and write nothing.

    Takes the arguments of a conversion. Obstacles to it are among the ``problems``.

    Examples:
        >>> preview_convert(spark, "parquet.`/data/events`", "infer").lines()  # doctest: +SKIP
        (('location', 'file:/data/events'), ..., ('files', '365'), ...)
    """
    target = find_target(spark, identifier, partition_schema)
    log = open_log(spark, target.location)
    if isinstance(target, AlreadyDelta):
        return ConversionPreview(location=log.root_uri, name=target.name, already_delta=True)
    if log.exists():
        return ConversionPreview(location=log.root_uri, name=target.full_name, already_delta=True)
    try:
        command = command_on(spark, log, None, target.capability)
        plan = plan_conversion(
            command, inferred_target(command, target), collect_stats=collect_stats
        )
    except DeltaError as problem:
        return _stopped(spark, log, target, problem)
    return _preview(log, target, plan, time_zone=command.session.time_zone)


def _stopped(
    spark: SparkSession, log: TableLog, target: ConversionTarget, problem: DeltaError
) -> ConversionPreview:
    """Return the known facts about files that cannot be converted as requested."""
    problems = [str(problem)]
    inferred: tuple[InferredColumn, ...] = ()
    files: tuple[StoredFile, ...] = ()
    try:
        settings = ConvertSettings.parse(SessionInfo.of(spark).settings)
        if target.iceberg is None:
            files, _ = list_files(spark, log.store, target, settings)
        if files and target.entry is None and not target.partitions.fields:
            inferred = infer_partitions((file.path for file in files), log.root_uri)
    except DeltaError as another:
        problems.append(str(another))
    return ConversionPreview(
        location=log.root_uri,
        name=target.full_name,
        num_files=len(files),
        num_bytes=sum(file.size_bytes for file in files),
        inferred=inferred,
        problems=tuple(dict.fromkeys(problems)),
    )


def _preview(
    log: TableLog, target: ConversionTarget, plan: ConversionPlan, *, time_zone: str
) -> ConversionPreview:
    config = plan.config
    rows, missing = _statistics(plan)
    inferred: tuple[InferredColumn, ...] = ()
    if target.infers:
        inferred = infer_partitions((file.path for file in plan.listed), log.root_uri)
    head: tuple[Action, ...] = (config.metadata, config.protocol)
    partitioning = Partitioning.of(config, time_zone)
    partitions = {partitioning.key(add.partition_values) for add in plan.files.adds()}
    return ConversionPreview(
        location=log.root_uri,
        name=target.full_name,
        num_files=plan.files.num_files,
        num_bytes=plan.files.size_bytes,
        num_rows=rows,
        num_partitions=len(partitions),
        schema=config.schema,
        partition_columns=config.partition_columns,
        inferred=inferred,
        missing_statistics=missing,
        commit_bytes=plan.files.commit_bytes
        + sum(len(encode_action(action).encode()) + 1 for action in head),
    )


def _statistics(plan: ConversionPlan) -> tuple[int | None, Mapping[str, str]]:
    """Return the rows of all files, and the columns that lack bounds."""
    leaves = _bounded_leaves(plan.config)
    if not plan.collects_stats:
        return None, {".".join(leaf): _NO_STATISTICS for leaf in leaves}
    indexed = set(indexed_leaves(plan.config))
    rows, without = 0, dict.fromkeys(leaves, 0)
    for add in plan.files.adds():
        stats = json.loads(add.stats or "{}")
        rows += stats.get("numRecords", 0) - len(plan.deleted.get(add.path, ()))
        for leaf in leaves:
            without[leaf] += 0 if _is_bounded(stats, leaf) else 1
    return rows, {
        ".".join(leaf): _reason(count, plan.files.num_files, is_indexed=leaf in indexed)
        for leaf, count in without.items()
        if count
    }


def _bounded_leaves(config: TableConfig) -> tuple[LeafPath, ...]:
    """Return the columns with ordered values, also in structs."""
    return tuple(
        path
        for path, found in struct_fields(config.data_schema)
        if isinstance(found.type, PrimitiveType | DecimalType) and found.type not in _UNORDERED
    )


def _is_bounded(stats: Mapping[str, Any], leaf: LeafPath) -> bool:
    """Return whether a file has bounds of a column, or no value of it."""
    rows = stats.get("numRecords", 0)
    bounds = [_at(stats.get(kind), leaf) is not None for kind in ("minValues", "maxValues")]
    return rows == 0 or all(bounds) or _at(stats.get("nullCount"), leaf) == rows


def _at(values: Any, leaf: LeafPath) -> Any:
    for name in leaf:
        values = values.get(name) if isinstance(values, dict) else None
    return values


def _reason(count: int, total: int, *, is_indexed: bool) -> str:
    if not is_indexed:
        return _NOT_INDEXED
    return f"the footers of {count} of {total} files hold none that can be trusted"
