"""A DataFrame over an explicit list of Parquet files that Spark's Python workers read by Arrow.

For storage of which Spark itself has no file system. Rows are the same as those of
`puredelta.spark.scan.native_scan`, with two differences: there is no ``_metadata``, and filters
above the scan leave out no row group and no partition; the log has left files out before.

Parts of files are the rows of a small frame of the driver's. Spark cuts such a frame into as many
tasks as there are cores, in order and without a shuffle, so parts are brought together to about
as many bytes per row.
"""

from __future__ import annotations

import math
import pickle
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from puredelta.protocol.values.partition_values import parse_partition_value
from puredelta.protocol.values.timestamps import parse_time_zone
from puredelta.spark.data_files.data_paths import DataPaths, unreachable
from puredelta.spark.data_files.worker_code import streamed
from puredelta.spark.scan.data_file import DataFile, ReadLayout, require_readable, with_required
from puredelta.spark.session.arrow_types import arrow_schema
from puredelta.spark.session.types import from_spark, struct_as_nullable
from puredelta.worker.files import DataPath
from puredelta.worker.scan.scan_rows import (
    FILE_PARTS,
    SCAN_LAYOUTS,
    FilePart,
    ScanLayout,
    read_parts,
)

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

    Raises:
        UnsupportedError: a file no worker can reach, or a type that Arrow lacks.
        CorruptTableError: a partition value is not of its column's type.
    """
    require_readable(files)
    data, partitions = struct_as_nullable(layout.data_schema), layout.partition_schema
    constants = from_spark(partitions)
    wanted = ScanLayout(
        data=arrow_schema(from_spark(data)),
        constants=arrow_schema(constants),
        row_index=row_index,
        by_field_id=layout.by_field_id,
        case_sensitive=_setting(spark, "spark.sql.caseSensitive"),
        skips_missing=_skips_missing(spark, layout),
    )
    numbered = [T.StructField(row_index, T.LongType())] if row_index is not None else []
    plain = T.StructType([*data.fields, *_plain(partitions), *numbered])
    schema = with_required(plain, layout.required)
    zone = parse_time_zone(str(spark.conf.get("spark.sql.session.timeZone")))
    places = [(f.name, f.type) for f in constants.fields]
    parts = [
        FILE_PARTS.encode(
            FilePart(
                path=path,
                start=start,
                stop=stop,
                size=file.size_bytes,
                constants=tuple(
                    parse_partition_value(file.partition_values.get(name), kind, zone)
                    for name, kind in places
                ),
            )
        )
        for file, path, start, stop in _cut(files, paths)
    ]
    return streamed(_part_rows(spark, parts), read_parts, SCAN_LAYOUTS.encode(wanted), schema)


def _plain(schema: T.StructType) -> list[T.StructField]:
    return [T.StructField(f.name, f.dataType) for f in schema.fields]


def _cut(
    files: Sequence[DataFile], paths: DataPaths
) -> Iterator[tuple[DataFile, DataPath, int, int]]:
    """Yield the parts of files, none of them larger than a task should read."""
    for file in files:
        path = paths.find(file.uri, file.size_bytes)
        if path is None:
            raise unreachable(file.uri)
        for start in range(0, file.size_bytes, _PART_BYTES):
            yield file, path, start, min(start + _PART_BYTES, file.size_bytes)


def _part_rows(spark: SparkSession, parts: Sequence[tuple[Any, ...]]) -> DataFrame:
    """Return a frame whose rows are lists of parts, each of about as many bytes."""
    costs = [stop - start + _FILE_BYTES for _, start, stop, _, _ in parts]
    total = sum(costs)
    num_rows = min(len(parts), max(_TASKS_MIN, math.ceil(total / _PART_BYTES)))
    lists: list[list[Any]] = [[] for _ in range(num_rows)]
    before = 0
    for part, cost in zip(parts, costs, strict=True):
        lists[(2 * before + cost) * num_rows // (2 * total)].append(part)
        before += cost
    packed = [pickle.dumps(some) for some in lists if some]
    return spark.createDataFrame(pa.table({"parts": pa.array(packed, pa.binary())}))


_TASKS_MIN = 64
"""Rows of the frame at least, if there are as many parts: a cluster may have as many cores."""


def _skips_missing(spark: SparkSession, layout: ReadLayout) -> bool:
    given = layout.options.get(_IGNORES_MISSING)
    if given is not None:
        return given == "true"
    return _setting(spark, f"spark.sql.files.{_IGNORES_MISSING}")


def _setting(spark: SparkSession, key: str) -> bool:
    return str(spark.conf.get(key)).lower() == "true"
