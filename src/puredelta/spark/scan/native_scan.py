"""A DataFrame over Parquet files by one native scan: no listing and no job.

The directories are virtual: `puredelta.spark.scan.native_scan` shows them to Spark for the time
it takes to parse them.

Classic sessions only. The relation is Spark's own ``HadoopFsRelation``, so that the vectorised
reader, filter pushdown, column and partition pruning, dynamic partition pruning and
``_metadata`` all work, and partition values come from the log, never from a path. Spark's file
index first sees a virtual path ``<root>/<column>=<value>/<n>`` of each file, from which it parses
partition values, and then the real one (`puredelta.spark.jvm.file_index`).

Each rule keeps rows from being lost silently:

- The virtual root names the whole file list by a digest. Spark holds two indexes equal when
  their roots are equal; a shared root would let exchange reuse or the cache answer with
  another scan's files.
- The index drops hidden and empty files; `require_readable` refuses them before.
- A column is nullable unless the caller promises otherwise: one that an older file lacks reads
  as NULL.
"""

from __future__ import annotations

import decimal
import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from puredelta.errors import CorruptTableError, Message
from puredelta.protocol.schema.partition_values import HIVE_NULL, escape_partition_text
from puredelta.spark.jvm.expressions import Nodes
from puredelta.spark.jvm.file_index import (
    FileRelation,
    FilesOnDemand,
    ListedFiles,
    PartitionValueError,
    relation_rows,
)
from puredelta.spark.scan.data_file import DataFile, ReadLayout, require_readable, with_required
from puredelta.spark.scan.skippable_files import SkippableFiles
from puredelta.spark.session.delta_conf import BOUNDS_TELL_NAN, STATS_SKIPPING
from puredelta.spark.session.session import settings_of
from puredelta.spark.session.types import quoted, struct_as_nullable


def spark_parses(data_type: T.DataType) -> bool:
    """Return whether Spark turns partition text of this type into the right value.

    It does not unescape binary, and knows no collation; such a column is carried as plain
    text and cast on top of the scan.
    """
    return not (
        isinstance(data_type, T.BinaryType)
        or (isinstance(data_type, T.StringType) and data_type != T.StringType())
    )


def virtual_directory(values: Mapping[str, str | None], fields: Iterable[T.StructField]) -> str:
    """Return ``/a=1/b=x%3Ay`` for the values of one file, ``""`` without partition columns.

    A value that is missing, ``None`` or ``""`` is NULL in a column of any type (X-82).

    >>> virtual_directory({"p": "a b"}, T.StructType().add("p", "string").add("q", "integer"))
    '/p=a%20b/q=__HIVE_DEFAULT_PARTITION__'
    """
    return "".join(f"/{_escape(f.name)}={_text(values, f)}" for f in fields)


def _text(values: Mapping[str, str | None], field: T.StructField) -> str:
    value = values.get(field.name)
    if value is None or value == "":
        return HIVE_NULL
    if value == HIVE_NULL:
        return f"%5F{HIVE_NULL[1:]}"  # a string that merely looks like Hive's NULL
    if isinstance(field.dataType, T.DecimalType):
        return _in_scale(value, field.name, field.dataType)
    return _escape(value)


def _in_scale(value: str, column: str, data_type: T.DecimalType) -> str:
    """Spell a decimal with all digits of its scale.

    Spark keeps the scale of the text, and its reader then copies the unscaled number.
    """
    try:
        step = decimal.Decimal(1).scaleb(-data_type.scale)
        fitting = decimal.Context(prec=data_type.precision, traps=[decimal.InvalidOperation])
        number = decimal.Decimal(value)
        if number.is_nan():
            raise decimal.InvalidOperation(value)  # noqa: TRY301 - one error for all bad text
        return f"{number.quantize(step, context=fitting):f}"
    except decimal.InvalidOperation as malformed:
        raise CorruptTableError(
            Message.FAILED_CAST_PARTITION_VALUE_DECIMAL,
            data_type=data_type.simpleString(),
            column=column,
            value=value,
        ) from malformed


def _escape(text: str) -> str:
    """Escape what Hive does, and blanks, too."""
    return escape_partition_text(text).replace(" ", "%20")


_VIRTUAL = "file:/puredelta-virtual"
_BLOCK_SIZE_BYTES = 128 * 1024 * 1024
_BY_FIELD_ID: Mapping[str, str] = {
    "spark.sql.parquet.fieldId.read.enabled": "true",
    "spark.sql.parquet.fieldId.read.ignoreMissing": "false",
    # Spark finds columns by id but pushes filters down by *name*: where a file's names are not
    # the physical names, row groups are skipped on the wrong column.
    "spark.sql.parquet.filterPushdown": "false",
}


def native_scan(spark: SparkSession, files: Sequence[DataFile], layout: ReadLayout) -> DataFrame:
    """Return the rows of exactly ``files``: the data columns, then the partition columns.

    ``_metadata`` stays reachable.
    """
    require_readable(files)
    return _rows(spark, layout, lambda partitions: _listed(files, partitions))


def skipping_scan(spark: SparkSession, files: SkippableFiles, layout: ReadLayout) -> DataFrame:
    """Return the same for files of which a query reads those that it needs."""

    def on_demand(partitions: Sequence[T.StructField]) -> FilesOnDemand:
        def list_some(conditions: Nodes) -> ListedFiles | None:
            settings = settings_of(spark)
            some = files.files_for(
                files.predicate(conditions),
                by_statistics=STATS_SKIPPING.flag(settings),
                bounds_tell_nan=BOUNDS_TELL_NAN.read(settings),
            )
            return None if some is None else _listed(some, partitions)

        return FilesOnDemand(
            root=f"{_VIRTUAL}/{len(files)}-files/{files.identity}",
            size_bytes=files.size_bytes,
            list_all=lambda: _listed(files.every_file(), partitions),
            list_some=list_some,
            list_places=lambda places: _listed(files.files_at(places), partitions),
            known=files,
            # Spark's own word on such a value is due now, not when a query is planned.
            at_once=files.has_odd_partition_values,
        )

    return _rows(spark, layout, on_demand)


def _rows(
    spark: SparkSession,
    layout: ReadLayout,
    shown: Callable[[Sequence[T.StructField]], ListedFiles | FilesOnDemand],
) -> DataFrame:
    """Return the rows of files that are shown to Spark with these partition columns."""
    wanted = layout.partition_schema.fields
    data = with_required(struct_as_nullable(layout.data_schema), layout.required)
    partitions = with_required(T.StructType([_as_spark_parses(f) for f in wanted]), layout.required)
    # Without partition columns the virtual directories must not be searched for any.
    search = {} if partitions.fields else {"recursiveFileLookup": "true"}
    relation = FileRelation(
        files=shown(partitions.fields),
        data=data,
        partitions=partitions,
        options={**layout.options, **search},
        settings=_BY_FIELD_ID if layout.by_field_id else {},
    )
    try:
        rows = relation_rows(spark, relation)
    except PartitionValueError as malformed:
        types = ", ".join(f"{f.name} {f.dataType.simpleString()}" for f in partitions.fields)
        raise CorruptTableError(
            Message.FAILED_CAST_PARTITION_VALUE_SCAN, types=types, malformed=malformed
        ) from malformed
    if [f.dataType for f in partitions] == [f.dataType for f in wanted]:
        return rows
    return rows.select(
        *(F.col(quoted(name)) for name in data.names),
        # By name: a cast to the type itself loses the collation on PySpark 4.0.0.
        *(F.col(quoted(f.name)).cast(f.dataType.simpleString()).alias(f.name) for f in wanted),
    )


def _as_spark_parses(field: T.StructField) -> T.StructField:
    kept = field.dataType if spark_parses(field.dataType) else T.StringType()
    return T.StructField(field.name, kept)


def _listed(files: Sequence[DataFile], partitions: Sequence[T.StructField]) -> ListedFiles:
    directories = _directories(files, partitions)
    real = json.dumps({str(n): {"path": file.uri} for n, file in enumerate(files)})
    root = _virtual_root(files, directories, real)
    return ListedFiles(
        count=len(files),
        root=root,
        virtual=_virtual_statuses(files, directories, root=root),
        real=real,
    )


def _directories(files: Sequence[DataFile], fields: Sequence[T.StructField]) -> list[str]:
    names = [f.name for f in fields]
    known: dict[tuple[str | None, ...], str] = {}
    directories = []
    for file in files:
        key = tuple(file.partition_values.get(name) for name in names)
        directory = known.get(key)
        if directory is None:
            directory = known[key] = virtual_directory(file.partition_values, fields)
        directories.append(directory)
    return directories


def _virtual_root(files: Sequence[DataFile], directories: Sequence[str], real: str) -> str:
    digest = hashlib.sha256(real.encode())
    digest.update(
        json.dumps([directories, [(f.size_bytes, f.modified_ms) for f in files]]).encode()
    )
    return f"{_VIRTUAL}/{digest.hexdigest()}"


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
