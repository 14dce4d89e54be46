"""A DataFrame over Parquet files that Spark's Python workers read by Arrow.

For storage without a file system in Spark. Rows are the same as those of
`puredelta.spark.scan.native_scan`, but there is no ``_metadata``. `pruning_arrow_scan` reads the
columns, files and row groups that a query needs; `arrow_scan` reads everything.

A condition that Arrow cannot express is left out: Spark tests all conditions once more.

Parts of files are the rows of a small frame on the driver. Spark cuts such a frame into as many
tasks as there are cores, in order and without a shuffle, so parts are grouped to about the same
number of bytes per row.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import logging
import math
import pickle
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from puredelta.log.files.value_order import (
    ARROW_COMPARISONS,
    compares_as_stored,
    order_type,
    stored_type,
)
from puredelta.protocol.schema.partition_values import parse_partition_value
from puredelta.protocol.schema.predicates import (
    And,
    Compare,
    CompareOp,
    Const,
    IsNull,
    Not,
    OneOf,
    Or,
    Predicate,
    Ref,
    StartsWith,
)
from puredelta.protocol.schema.timestamps import parse_time_zone
from puredelta.protocol.schema.types import BINARY, STRING, DataType
from puredelta.spark.jvm.expressions import Nodes
from puredelta.spark.jvm.gateway import JVM_ERRORS
from puredelta.spark.jvm.worker_relation import WorkerRead, WorkerRelation, worker_rows
from puredelta.spark.scan.data_file import DataFile, ReadLayout, require_readable, with_required
from puredelta.spark.scan.skippable_files import SkippableFiles
from puredelta.spark.session.data_access import (
    DataPaths,
    streamed,
    unreachable,
    worker_function,
    workers_python,
)
from puredelta.spark.session.delta_conf import STATS_SKIPPING
from puredelta.spark.session.names import FILE_ORDINAL
from puredelta.spark.session.read_settings import ReadSettings
from puredelta.spark.session.session import arrow_rows, settings_of
from puredelta.spark.session.types import arrow_schema, from_spark, struct_as_nullable
from puredelta.worker.expressions import Call, Constant, Expression, InputColumn, all_of, any_of
from puredelta.worker.read_rows import FIELD_ID
from puredelta.worker.row_groups import IS_IN
from puredelta.worker.scan_rows import (
    FILE_PARTS,
    SCAN_LAYOUTS,
    FilePart,
    ScanLayout,
    read_parts,
)
from puredelta.worker.wire import LIMITS

_LISTED_MAX = 100


def row_group_condition(predicate: Predicate, stored: Mapping[str, str]) -> Expression | None:
    """Return what must hold of a row group that is read; ``None``: all of them are.

    ``stored`` has the names of columns in the scan, by their logical names.
    """
    match predicate:
        case And(parts):
            known = [row_group_condition(part, stored) for part in parts]
            some = tuple(part for part in known if part is not None)
            return all_of(some) if some else None
        case Or(parts):
            known = [row_group_condition(part, stored) for part in parts]
            every = tuple(part for part in known if part is not None)
            return any_of(every) if len(every) == len(known) else None
        case IsNull(ref):
            return _of("is_null", ref, stored)
        case Not(IsNull(ref)):
            return _of("is_valid", ref, stored)
        case Ref():
            return _compared(CompareOp.EQUAL, predicate, True, stored)  # noqa: FBT003
        case Compare(op, Ref() as ref, Const(value)):
            return _compared(op, ref, value, stored)
        case StartsWith(ref, prefix) if ref.type == STRING:
            return _of("starts_with", ref, stored, prefix)
        case OneOf(ref, values):
            return _listed(ref, [value for value in values if value is not None], stored)
        case _:
            return None


def _compared(op: CompareOp, ref: Ref, value: Any, stored: Mapping[str, str]) -> Expression | None:
    if value is None:
        return _of("is_null", ref, stored) if op is CompareOp.NULL_SAFE_EQUAL else None
    if not _is_exact(ref.type, value):
        return None
    kind = CompareOp.EQUAL if op is CompareOp.NULL_SAFE_EQUAL else op
    return _of(ARROW_COMPARISONS[kind], ref, stored, value)


def _listed(ref: Ref, values: list[Any], stored: Mapping[str, str]) -> Expression | None:
    if not values or not all(_is_exact(ref.type, value) for value in values):
        return None
    if len(values) <= _LISTED_MAX:
        return _of(IS_IN, ref, stored, *values)
    ends = (
        _of("greater_equal", ref, stored, min(values)),
        _of("less_equal", ref, stored, max(values)),
    )
    some = tuple(end for end in ends if end is not None)
    return all_of(some) if some else None


def _of(function: str, ref: Ref, stored: Mapping[str, str], *values: Any) -> Expression | None:
    kind = None if ref.type is None else stored_type(ref.type)
    if len(ref.path) != 1 or ref.path[0] not in stored or (values and kind is None):
        return None
    constants = (Constant(value, kind) for value in values)
    return Call(function, (InputColumn("target", stored[ref.path[0]]), *constants))


def _is_exact(kind: DataType | None, value: Any) -> bool:
    """Return whether workers compare a constant with values of a type as Spark does."""
    is_compared = kind is not None and kind != BINARY and order_type(kind) is not None
    return is_compared and compares_as_stored(value, kind)


logger = logging.getLogger(__name__)

_PART_BYTES = 128 * 1024 * 1024
_FILE_BYTES = 4 * 1024 * 1024
"""What to open a file costs, in bytes that could be read meanwhile; Spark counts alike."""
_IGNORES_MISSING = "ignoreMissingFiles"


def arrow_scan(
    spark: SparkSession,
    files: Sequence[DataFile],
    layout: ReadLayout,
    *,
    paths: DataPaths,
    row_index: str | None = None,
) -> DataFrame:
    """Return the rows of exactly ``files``: the data columns, then the partition columns.

    Then a column of that name with the place of each row in its file, if one is wanted. Runs no
    job.
    """
    require_readable(files)
    columns = _Columns.of(spark, layout, row_index)
    parts = [FILE_PARTS.encode(part) for file in files for part in _parts(file, columns, paths)]
    wanted = SCAN_LAYOUTS.encode(columns.layout)
    return streamed(_part_rows(spark, parts), read_parts, wanted, columns.schema)


def pruning_arrow_scan(
    spark: SparkSession,
    files: SkippableFiles,
    layout: ReadLayout,
    *,
    paths: DataPaths,
    row_index: str | None = None,
) -> DataFrame:
    """Return the same for files of which a query reads those that it needs, and its columns only.

    Classic sessions only. Raises as `arrow_scan`.
    """
    columns = _Columns.of(spark, layout, row_index)
    every = files.every_file()
    parts = {_key(file): _parts(file, columns, paths) for file in every}

    def read(names: frozenset[str], conditions: Nodes | None) -> WorkerRead:
        some, condition = None, None
        if conditions is not None:
            settings = settings_of(spark)
            by_statistics = STATS_SKIPPING.flag(settings)
            try:
                predicate = files.predicate(conditions)
                some = files.files_for(predicate, by_statistics=by_statistics)
                if by_statistics and ReadSettings.parse(settings).skips_row_groups:
                    condition = row_group_condition(predicate, files.stored_names())
            except Exception:  # doubt skips no file
                logger.warning("All files are read: choosing some failed", exc_info=True)
        chosen = every if some is None else some
        needed = columns.some(names).where(condition)
        wanted = [needed.of_part(part) for file in chosen for part in parts[_key(file)]]
        cores = spark.sparkContext.defaultParallelism
        digest = hashlib.sha256(repr([_key(file) for file in chosen]).encode()).hexdigest()
        return WorkerRead(
            columns=needed.schema,
            description=f"{len(chosen)} of {len(every)} files by Arrow in Python workers"
            + ("" if condition is None else ", without row groups that conditions exclude"),
            parts=_packed([FILE_PARTS.encode(part) for part in wanted], cores),
            size_bytes=sum(file.size_bytes for file in chosen),
            function=worker_function(read_parts, SCAN_LAYOUTS.encode(needed.layout)),
            identity=f"{digest} {needed.schema.json()} {condition!r}",
        )

    relation = WorkerRelation(
        name=files.root_uri,
        identity=f"{files.identity} {sorted(layout.options.items())} {columns.schema.json()}",
        columns=columns.schema,
        size_bytes=files.size_bytes,
        read=read,
        python=workers_python(spark),
    )
    try:
        return worker_rows(spark, relation)
    except JVM_ERRORS:
        logger.warning("Queries read all columns: this Spark cannot be asked", exc_info=True)
        return arrow_scan(spark, every, layout, paths=paths, row_index=row_index)


def _key(file: DataFile) -> tuple[str, str | None]:
    return file.uri, file.partition_values.get(FILE_ORDINAL)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Columns:
    """The columns of a scan, for Spark and for workers."""

    schema: T.StructType
    """As Spark has them: the data columns, the constants, the place of the row."""
    layout: ScanLayout
    types: tuple[tuple[str, DataType], ...]
    """The constants, by name."""
    places: tuple[int, ...]
    """Of the constants in a `FilePart` of all columns."""
    zone: dt.tzinfo

    @classmethod
    def of(cls, spark: SparkSession, layout: ReadLayout, row_index: str | None) -> _Columns:
        data, partitions = struct_as_nullable(layout.data_schema), layout.partition_schema
        constants = from_spark(partitions)
        reading = ReadSettings.parse(settings_of(spark))
        wanted = ScanLayout(
            data=arrow_schema(from_spark(data)),
            constants=arrow_schema(constants),
            row_index=row_index,
            by_field_id=layout.by_field_id,
            case_sensitive=reading.case_sensitive,
            skips_missing=_skips_missing(reading, layout),
            limits=replace(LIMITS, only_spark=reading.only_spark),
        )
        numbered = [T.StructField(row_index, T.LongType())] if row_index is not None else []
        plain = [T.StructField(f.name, f.dataType) for f in (*data.fields, *partitions.fields)]
        return cls(
            schema=with_required(T.StructType([*plain, *numbered]), layout.required),
            layout=wanted,
            types=tuple((f.name, f.type) for f in constants.fields),
            places=tuple(range(len(constants.fields))),
            zone=parse_time_zone(str(spark.conf.get("spark.sql.session.timeZone"))),
        )

    def some(self, names: frozenset[str]) -> _Columns:
        """Return the columns of some names, in this order; if there are none, one of NULLs."""
        layout = self.layout
        data = [n for n, field in enumerate(layout.data) if field.name in names]
        places = [n for n, (name, _) in enumerate(self.types) if name in names]
        row_index = layout.row_index if layout.row_index in names else None
        fields = [layout.data.field(n) for n in data]
        schema = [field for field in self.schema.fields if field.name in names]
        if not schema:  # a batch without columns has no rows
            first = self.schema.fields[0]
            schema = [T.StructField(first.name, first.dataType)]
            if len(layout.data):
                fields = [pa.field("", layout.data.field(0).type, metadata=_IN_NO_FILE)]
            elif self.types:
                places = [0]
            else:
                row_index = layout.row_index
        return replace(
            self,
            schema=T.StructType(schema),
            layout=replace(
                layout,
                data=pa.schema(fields),
                constants=pa.schema([layout.constants.field(n) for n in places]),
                row_index=row_index,
            ),
            places=tuple(places),
        )

    def where(self, condition: Expression | None) -> _Columns:
        """Return the columns without row groups of which a condition is not true."""
        return replace(self, layout=replace(self.layout, condition=condition))

    def of_part(self, part: FilePart) -> FilePart:
        """Return a part of all columns as a part of these."""
        return replace(part, constants=tuple(part.constants[n] for n in self.places))


_IN_NO_FILE = {FIELD_ID: b"-1"}


def _parts(file: DataFile, columns: _Columns, paths: DataPaths) -> list[FilePart]:
    """Return the parts of a file, none of them larger than a task should read."""
    path = paths.find(file.uri, file.size_bytes)
    if path is None:
        raise unreachable(file.uri)
    values = tuple(
        parse_partition_value(file.partition_values.get(name), kind, columns.zone)
        for name, kind in columns.types
    )
    size = file.size_bytes
    return [
        FilePart(
            path=path,
            start=start,
            stop=min(start + _PART_BYTES, size),
            size=size,
            constants=values,
        )
        for start in range(0, size, _PART_BYTES)
    ]


def _part_rows(spark: SparkSession, parts: Sequence[tuple[Any, ...]]) -> DataFrame:
    """Return a frame whose rows are lists of parts, each of about as many bytes."""
    packed = _packed(parts, _TASKS_MIN)
    return arrow_rows(spark, pa.table({"parts": pa.array(packed, pa.binary())}))


def _packed(parts: Sequence[tuple[Any, ...]], lists_min: int) -> list[bytes]:
    """Return pickled lists of parts, each of about as many bytes."""
    costs = [stop - start + _FILE_BYTES for _, start, stop, _, _ in parts]
    total = sum(costs)
    num_rows = min(len(parts), max(lists_min, math.ceil(total / _PART_BYTES)))
    lists: list[list[Any]] = [[] for _ in range(num_rows)]
    before = 0
    for part, cost in zip(parts, costs, strict=True):
        lists[(2 * before + cost) * num_rows // (2 * total)].append(part)
        before += cost
    return [pickle.dumps(some) for some in lists if some]


_TASKS_MIN = 64
"""Rows of the frame at least, if there are as many parts: a cluster may have as many cores."""


def _skips_missing(reading: ReadSettings, layout: ReadLayout) -> bool:
    given = layout.options.get(_IGNORES_MISSING)
    return reading.ignores_missing if given is None else given == "true"
