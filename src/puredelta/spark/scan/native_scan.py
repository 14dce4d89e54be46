"""A DataFrame over an explicit list of Parquet files: one native scan, nothing listed, no job.

Classic sessions only. Spark's own ``HadoopFsRelation`` is built through Py4J, so that the
vectorised reader, filter pushdown, column and partition pruning, dynamic partition pruning
and ``_metadata`` all work, and partition values come from the log, never from a path.

How: ``InMemoryFileIndex`` groups files by parent directory and parses partition values once,
when it is made. Each file status first carries a virtual path ``<root>/<column>=<value>/<n>``;
after that parsing the same objects are given their real paths. One Jackson call makes all
statuses and a second one renames them, so 20,000 files cost two round trips.

Each rule keeps rows from being lost silently:

- The virtual root names the whole file list by a digest. Spark holds two indexes equal when
  their roots are equal; a shared root would let exchange reuse or the cache answer with
  another scan's files.
- The index drops hidden and empty files; `require_readable` refuses them before.
- The cache of statuses is private. The session's own evicts large entries at once (the
  virtual root would be listed) and keeps small ones for ever.
- A column is nullable unless the caller promises otherwise: one that an older file lacks reads
  as NULL.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from py4j.java_gateway import get_method
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from puredelta.errors import CorruptTableError, ErrorCode
from puredelta.spark.scan.data_file import DataFile, require_readable
from puredelta.spark.scan.partition_directory import spark_parses, virtual_directory
from puredelta.spark.session.jvm import java_class, scala_seq
from puredelta.spark.session.types import quoted, struct_as_nullable

_DATASOURCES = "org.apache.spark.sql.execution.datasources"
_BLOCK_SIZE_BYTES = 128 * 1024 * 1024
_UNBOUNDED = (1 << 63) - 1


def native_scan(
    spark: SparkSession,
    files: Sequence[DataFile],
    *,
    data_schema: T.StructType,
    partition_schema: T.StructType,
    options: Mapping[str, str] | None = None,
    by_field_id: bool = False,
    required: Collection[str] = (),
) -> DataFrame:
    """Return the rows of exactly ``files``: the data columns, then the partition columns.

    Data columns are found by name (case ignored unless the session minds it), or by their
    metadata ``parquet.field.id`` with ``by_field_id``. ``_metadata`` stays reachable.
    ``required`` names columns that are NOT NULL: every row of every file has a value.

    Raises:
        UnsupportedError: Spark cannot read one of the files (`require_readable`).
        CorruptTableError: a partition value is not of its column's type.
    """
    require_readable(files)
    jvm: Any = spark._jvm  # noqa: SLF001 - the Py4J edge
    session: Any = spark._jsparkSession  # noqa: SLF001
    reader = _session_by_field_id(session) if by_field_id else session
    data = _with_required(struct_as_nullable(data_schema), required)
    partitions = _with_required(
        T.StructType([_as_spark_parses(f) for f in partition_schema.fields]), required
    )
    # Without partition columns the virtual directories must not be searched for any.
    layout = {} if partitions.fields else {"recursiveFileLookup": "true"}
    java_options = jvm.PythonUtils.toScalaMap({**(options or {}), **layout})
    relation = java_class(jvm, f"{_DATASOURCES}.HadoopFsRelation")(
        _file_index(jvm, reader, files, data=data, partitions=partitions, options=java_options),
        _java_type(jvm, partitions),
        _java_type(jvm, data),
        java_class(jvm, "scala.Option").empty(),
        java_class(jvm, f"{_DATASOURCES}.parquet.ParquetFileFormat")(),
        java_options,
        reader,
    )
    rows = DataFrame(session.baseRelationToDataFrame(relation), spark)
    if [f.dataType for f in partitions] == [f.dataType for f in partition_schema]:
        return rows
    return rows.select(
        *(F.col(quoted(name)) for name in data.names),
        # By name: a cast to the type itself loses the collation on PySpark 4.0.0.
        *(
            F.col(quoted(f.name)).cast(f.dataType.simpleString()).alias(f.name)
            for f in partition_schema.fields
        ),
    )


def _with_required(schema: T.StructType, required: Collection[str]) -> T.StructType:
    return T.StructType(
        [
            T.StructField(f.name, f.dataType, f.name not in required, f.metadata)
            for f in schema.fields
        ]
    )


def _as_spark_parses(field: T.StructField) -> T.StructField:
    kept = field.dataType if spark_parses(field.dataType) else T.StringType()
    return T.StructField(field.name, kept)


def _session_by_field_id(session: Any) -> Any:
    """Return a session for the relation alone, so that the user's settings stay untouched.

    Spark finds columns by id but pushes filters down by *name*: where a file's names are
    not the physical names, row groups are skipped on the wrong column. Pushdown is off.
    """
    clone = session.cloneSession()
    settings = clone.conf()
    settings.set("spark.sql.parquet.fieldId.read.enabled", "true")
    settings.set("spark.sql.parquet.fieldId.read.ignoreMissing", "false")
    settings.set("spark.sql.parquet.filterPushdown", "false")
    return clone


def _java_type(jvm: Any, schema: T.StructType) -> Any:
    return java_class(jvm, "org.apache.spark.sql.types.DataType").fromJson(schema.json())


def _file_index(
    jvm: Any,
    session: Any,
    files: Sequence[DataFile],
    *,
    data: T.StructType,
    partitions: T.StructType,
    options: Any,
) -> Any:
    directories = _directories(files, partitions.fields)
    real = json.dumps({str(n): {"path": file.uri} for n, file in enumerate(files)})
    root = _virtual_root(files, directories, real)
    mapper, map_type = _jackson(jvm)
    statuses = mapper.readValue(_virtual_statuses(files, directories, root=root), map_type)
    leaves = java_class(jvm, "java.util.Arrays").copyOf(
        get_method(statuses, "values")().toArray(),
        len(files),
        java_class(jvm, "java.lang.Class").forName("[Lorg.apache.hadoop.fs.FileStatus;"),
    )
    cache = java_class(jvm, f"{_DATASOURCES}.SharedInMemoryCache")(_UNBOUNDED, -1)
    cache = cache.createForNewClient()
    root_path = java_class(jvm, "org.apache.hadoop.fs.Path")(root)
    cache.putLeafFiles(root_path, leaves)
    option = java_class(jvm, "scala.Option")
    none = option.empty()
    every_column = T.StructType([*data.fields, *partitions.fields])
    index = java_class(jvm, f"{_DATASOURCES}.InMemoryFileIndex")(
        session,
        scala_seq(jvm, [root_path]),
        options,
        option.apply(_java_type(jvm, every_column)),
        cache,
        none,
        none,
    )
    try:
        index.partitionSpec()  # lazy: must parse the virtual directories before they go
    except (Py4JError, PySparkException) as malformed:
        raise CorruptTableError(
            "A partition value in the log is not of its column's type "
            f"({', '.join(f'{f.name} {f.dataType.simpleString()}' for f in partitions.fields)}): "
            f"{malformed}",
            code=ErrorCode.FAILED_CAST_PARTITION_VALUE,
        ) from malformed
    mapper.readerForUpdating(statuses).forType(map_type).readValue(real)
    return index


def _directories(files: Sequence[DataFile], fields: Sequence[T.StructField]) -> list[str]:
    names = [f.name for f in fields]
    spelled: dict[tuple[str | None, ...], str] = {}
    directories = []
    for file in files:
        key = tuple(file.partition_values.get(name) for name in names)
        directory = spelled.get(key)
        if directory is None:
            directory = spelled[key] = virtual_directory(file.partition_values, fields)
        directories.append(directory)
    return directories


def _virtual_root(files: Sequence[DataFile], directories: Sequence[str], real: str) -> str:
    digest = hashlib.sha256(real.encode())
    digest.update(
        json.dumps([directories, [(f.size_bytes, f.modified_ms) for f in files]]).encode()
    )
    return f"file:/puredelta-virtual/{digest.hexdigest()}"


def _virtual_statuses(files: Sequence[DataFile], directories: Sequence[str], *, root: str) -> str:
    return json.dumps(
        {
            str(n): {
                "path": f"{root}{directory}/{n}",
                "length": file.size_bytes,
                "isdir": False,
                "modification_time": file.modified_ms,
                "blocksize": _BLOCK_SIZE_BYTES,
            }
            for n, (file, directory) in enumerate(zip(files, directories, strict=True))
        }
    )


def _jackson(jvm: Any) -> tuple[Any, Any]:
    """Return a JSON mapper that sets the fields of Java objects, and the type of our map."""
    mapper = java_class(jvm, "com.fasterxml.jackson.databind.ObjectMapper")()
    accessor = java_class(jvm, "com.fasterxml.jackson.annotation.PropertyAccessor")
    visibility = java_class(jvm, "com.fasterxml.jackson.annotation.JsonAutoDetect$Visibility")
    mapper.setVisibility(accessor.ALL, visibility.NONE)
    mapper.setVisibility(accessor.FIELD, visibility.ANY)
    mapper.setVisibility(accessor.CREATOR, visibility.ANY)
    of_name = java_class(jvm, "java.lang.Class").forName
    map_type = mapper.getTypeFactory().constructMapType(
        of_name("java.util.LinkedHashMap"),
        of_name("java.lang.String"),
        of_name("org.apache.hadoop.fs.FileStatus"),
    )
    return mapper, map_type
