"""The rows of a table version as a DataFrame: exactly its files, under its schema.

Reads no data and runs no job; deletion vectors are read when the frame is made. Columns have
their logical names and current types, even where the files have other names (column mapping) or
narrower types (type widening). Everything is nullable.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from puredelta.errors import ErrorCode, InvalidRequestError
from puredelta.log.files.file_table import FileTable
from puredelta.log.replay.snapshot import Snapshot
from puredelta.log.vectors.read import read_positions
from puredelta.protocol.features.column_mapping import physical_name, physical_schema
from puredelta.protocol.features.properties import ColumnMappingMode
from puredelta.protocol.schema.char_varchar import Limits
from puredelta.protocol.schema.types import VOID, StructField, StructType
from puredelta.protocol.table.row_tracking import RowTrackingColumns
from puredelta.protocol.table.table_config import TableConfig
from puredelta.spark.data_files.data_io import DataIo, data_io
from puredelta.spark.data_files.data_paths import DataPaths
from puredelta.spark.scan.arrow_scan import arrow_scan, pruning_arrow_scan
from puredelta.spark.scan.bitmaps import rows_by_file, rows_outside
from puredelta.spark.scan.connect_scan import connect_scan
from puredelta.spark.scan.data_file import DataFile, ReadLayout
from puredelta.spark.scan.native_scan import native_scan, skipping_scan
from puredelta.spark.scan.skippable_files import SkippableFiles, data_files, is_for_spark
from puredelta.spark.session.helper_columns import (
    BASE_ROW_ID,
    DEFAULT_COMMIT_VERSION,
    FILE_ORDINAL,
    ROW_INDEX,
    require_no_helper_names,
)
from puredelta.spark.session.session import is_connect
from puredelta.spark.session.types import (
    as_nullable,
    holds_struct,
    quoted,
    to_spark,
    without_table_metadata,
)
from puredelta.spark.values.char_varchar import padded, read_limits
from puredelta.store.base import Store
from puredelta.store.registry import open_store

TABLE_OPTION = "puredelta.table"
VERSION_OPTION = "puredelta.version"
TIME_TRAVEL_OPTION = "puredelta.timeTravel"
"""Reader options that say what a relation reads. Spark compares them: two scans of the same
files are the same to its cache only if they mean the same version for the same reason."""
TABLE_OPTIONS = frozenset({"puredelta.table", "puredelta.version", "puredelta.timetravel"})
"""Their names, as Spark compares them: a relation that has them reads a version of a table."""
METADATA = "_metadata"
"""Spark's hidden column of a row of files: a struct of what is known of its file."""
_FILE_METADATA = (
    "file_path",
    "file_name",
    "file_size",
    "file_block_start",
    "file_block_length",
    "file_modification_time",
    "row_index",
)
_POSITION = (FILE_ORDINAL, ROW_INDEX)
_SKIPPABLE_MIN = 2
"""Asking costs a query a few milliseconds, about as much as opening a file."""
_NO_FILE_MAY_BE_MISSING = {"ignoreMissingFiles": "false", "ignoreCorruptFiles": "false"}
"""A user may choose to read past lost files, but rows that are to be rewritten must be there."""


def scan(
    spark: SparkSession,
    snapshot: Snapshot,
    files: FileTable | None = None,
    *,
    columns: Sequence[str] | None = None,
    with_position: bool = False,
    time_travel: bool = False,
) -> DataFrame:
    """Return the rows of ``files``, by default all files of the snapshot.

    ``columns`` are top-level columns by their exact logical names, in the order wanted; only
    they are read. ``with_position`` adds `FILE_ORDINAL` (int, index into ``files``) and
    `ROW_INDEX` (long, physical row in its file, deleted rows counted). Rows that a deletion
    vector deletes are left out. On classic sessions ``_metadata`` stays reachable.
    ``time_travel`` tells that the user chose the version. On classic sessions a query over all
    files reads those that its conditions can reach, unless positions are asked for.

    Raises:
        InvalidRequestError: the table has no columns, or not the one asked for.
        UnsupportedError: Spark cannot read a file, or this kind of session the table.
        CorruptTableError: a deletion vector or a partition value is damaged.

    Examples:
        >>> scan(spark, log.snapshot(), columns=["id"]).count()  # doctest: +SKIP
        1200
    """
    chosen = snapshot.files if files is None else files
    config = snapshot.config
    read = _ScanColumns.of(config, _fields(config.schema, columns), read_limits(spark, config))
    deleted = read_positions(chosen, snapshot.root_uri, open_at=snapshot.open_at)
    read_files: Sequence[DataFile] | SkippableFiles
    may_skip = files is None and not with_position and not is_connect(spark)
    if may_skip and (
        len(chosen) >= _SKIPPABLE_MIN or not is_for_spark(spark, chosen, snapshot.root_uri)
    ):
        read_files = SkippableFiles.of(snapshot, numbered=list(deleted))
    else:
        ordinals = range(len(chosen)) if with_position else deleted
        read_files = data_files(chosen, snapshot.root_uri, {n: n for n in ordinals})
    rows = _read(
        spark,
        read_files,
        read,
        has_ordinal=with_position or bool(deleted),
        options={
            **_table_options(snapshot, time_travel=time_travel),
            **_strictness(strict=with_position),
        },
        open_at=snapshot.open_at,
    )
    if deleted:  # without deletion vectors a table stays one pure scan
        rows = rows_outside(rows, rows_by_file(deleted))
    return read.select(rows, *(_POSITION if with_position else ()))


def scan_with_metadata(
    spark: SparkSession, snapshot: Snapshot, tracked: RowTrackingColumns, *, time_travel: bool
) -> DataFrame:
    """Return all rows of a table that tracks them, and `METADATA` as the last column.

    It has what Spark says of files, and what delta-spark adds: ``row_id``, ``base_row_id``,
    ``default_row_commit_version`` and ``row_commit_version``. Classic sessions, and files that
    Spark itself reads; else as `scan`.
    """
    config, files = snapshot.config, snapshot.files
    read = _ScanColumns.of(config, _fields(config.schema, None), read_limits(spark, config))
    deleted = read_positions(files, snapshot.root_uri, open_at=snapshot.open_at)
    read_files: Sequence[DataFile] | SkippableFiles
    if len(files) >= _SKIPPABLE_MIN:
        read_files = SkippableFiles.of(snapshot, numbered=list(deleted), with_row_ids=True)
    else:
        ordinals = {n: n for n in deleted}
        read_files = data_files(files, snapshot.root_uri, ordinals, with_row_ids=True)
    rows = _read(
        spark,
        read_files,
        read.with_row_ids(tracked),
        has_ordinal=bool(deleted),
        options=_table_options(snapshot, time_travel=time_travel),
        open_at=snapshot.open_at,
    )
    if deleted:
        rows = rows_outside(rows, rows_by_file(deleted))
    return read.select(rows.withColumn(METADATA, F.expr(_metadata_text(tracked))), METADATA)


def _metadata_text(tracked: RowTrackingColumns) -> str:
    base, version = BASE_ROW_ID, DEFAULT_COMMIT_VERSION
    row_id, row_version = quoted(tracked.row_id), quoted(tracked.row_commit_version)
    added = {
        "row_id": f"coalesce({row_id}, {base} + {METADATA}.row_index)",
        "base_row_id": base,
        "default_row_commit_version": version,
        "row_commit_version": f"coalesce({row_version}, {version})",
    }
    fields = {name: f"{METADATA}.{name}" for name in _FILE_METADATA} | added
    pairs = ", ".join(f"'{name}', {text}" for name, text in fields.items())
    return f"named_struct({pairs})"


def _table_options(snapshot: Snapshot, *, time_travel: bool) -> dict[str, str]:
    return {
        TABLE_OPTION: snapshot.root_uri,
        VERSION_OPTION: str(snapshot.version),
        TIME_TRAVEL_OPTION: str(time_travel).lower(),
    }


def scan_parquet(
    spark: SparkSession,
    files: Sequence[DataFile],
    *,
    schema: T.StructType,
    with_position: bool = False,
    open_at: Callable[[str], Store] = open_store,
) -> DataFrame:
    """Return the rows of any Parquet files, read by column name under ``schema``.

    For files that no log names, such as staged ones; their partition values are not looked
    at. ``with_position`` as in `scan`, the ordinal being the index into ``files``. ``open_at``
    opens a directory with the settings of the session.
    """
    read = _ScanColumns(
        data_schema=schema,
        partition_schema=T.StructType(),
        wanted=without_table_metadata(schema),
        sources=tuple(schema.names),
        is_mapped=False,
    )
    numbered = [
        dataclasses.replace(file, partition_values={FILE_ORDINAL: str(n)})
        for n, file in enumerate(files)
    ]
    rows = _read(
        spark,
        numbered,
        read,
        has_ordinal=with_position,
        options=_strictness(strict=True),
        open_at=open_at,
    )
    return read.select(rows, *(_POSITION if with_position else ()))


@dataclass(frozen=True, slots=True, kw_only=True)
class _ScanColumns:
    """What is read from the files, and what is made of it."""

    data_schema: T.StructType
    """Physical names."""
    partition_schema: T.StructType
    """Physical names, the keys of ``partitionValues``."""
    wanted: T.StructType
    """The columns asked for, as the user knows them."""
    sources: tuple[str | None, ...]
    """For each of them the physical name, ``None`` for one that is always NULL."""
    is_mapped: bool
    """Whether names inside of structs are physical, too."""
    required: frozenset[str] = frozenset()
    """Physical names of columns that are NOT NULL; a table cannot make one so later."""
    padded: Mapping[str, Limits] = dataclasses.field(default_factory=dict)
    """The columns with a ``char(n)``, which is read filled up with blanks (M-106)."""
    by_field_id: bool = False
    """Whether columns are found in files by their id, not by name."""

    @classmethod
    def of(
        cls, config: TableConfig, fields: Sequence[StructField], padded: Mapping[str, Limits]
    ) -> _ScanColumns:
        mode = config.column_mapping
        partitioned = frozenset(config.partition_columns)
        # Parquet has no type for a column that is always NULL (M-56).
        stored = [f for f in fields if f.type != VOID]
        data = StructType(tuple(f for f in stored if f.name not in partitioned))
        partitions = StructType(tuple(f for f in stored if f.name in partitioned))
        return cls(
            data_schema=to_spark(
                physical_schema(data, mode, field_ids=mode is ColumnMappingMode.ID)
            ),
            partition_schema=to_spark(physical_schema(partitions, mode)),
            wanted=without_table_metadata(to_spark(StructType(tuple(fields)))),
            sources=tuple(None if f.type == VOID else physical_name(f, mode) for f in fields),
            is_mapped=mode is not ColumnMappingMode.NONE,
            required=frozenset(physical_name(f, mode) for f in stored if not f.nullable),
            padded=padded,
            by_field_id=mode is ColumnMappingMode.ID,
        )

    def with_row_ids(self, tracked: RowTrackingColumns) -> _ScanColumns:
        """Return them with the columns of which ids and commit versions of rows are made."""

        def extended(schema: T.StructType, *names: str) -> T.StructType:
            return T.StructType(
                [*schema.fields, *(T.StructField(name, T.LongType()) for name in names)]
            )

        return dataclasses.replace(
            self,
            data_schema=extended(self.data_schema, tracked.row_id, tracked.row_commit_version),
            partition_schema=extended(self.partition_schema, BASE_ROW_ID, DEFAULT_COMMIT_VERSION),
        )

    def select(self, rows: DataFrame, *helpers: str) -> DataFrame:
        """Make the columns asked for out of what was read, and keep these helper columns."""
        read = [*self.data_schema.names, *self.partition_schema.names]
        simple = not self.is_mapped and None not in self.sources
        if any(f.metadata for f in self.wanted.fields) or not simple:
            return rows.select(*self._columns(), *helpers)
        if self.wanted.names == read == rows.columns:
            return rows
        # A Column costs many round trips to the JVM, an expression one.
        return rows.selectExpr(*map(quoted, [*self.wanted.names, *helpers]))

    def _columns(self) -> Iterator[Column]:
        """A flat column is a plain alias, so that filters reach Parquet through it; in one that
        holds structs the nested names change by a cast, position by position.
        """
        for source, field in zip(self.sources, self.wanted.fields, strict=True):
            column = F.lit(None) if source is None else F.col(quoted(source))
            if self.is_mapped and holds_struct(field.dataType):
                column = column.cast(as_nullable(field.dataType))
            column = padded(self.padded.get(field.name), column, field.dataType)
            if field.metadata:
                yield column.alias(field.name, metadata=field.metadata)
            else:
                yield column.alias(field.name)


def _fields(schema: StructType, columns: Sequence[str] | None) -> Sequence[StructField]:
    require_no_helper_names(schema.names)
    if columns is None:
        if not schema.fields:
            raise InvalidRequestError(
                "You are trying to read a Delta table that does not have any columns. "
                "Write some new data with the option `mergeSchema = true` to be able to read "
                "the table.",
                code=ErrorCode.READ_TABLE_WITHOUT_COLUMNS,
            )
        return schema.fields
    by_name = {f.name: f for f in schema.fields}
    if unknown := [name for name in columns if name not in by_name]:
        raise InvalidRequestError(
            f"The table has no column {unknown[0]!r}, only {list(schema.names)}.",
            code=ErrorCode.COLUMN_NOT_FOUND_IN_SCHEMA,
            column=unknown[0],
        )
    return [by_name[name] for name in columns]


def _read(
    spark: SparkSession,
    files: Sequence[DataFile] | SkippableFiles,
    read: _ScanColumns,
    *,
    has_ordinal: bool,
    options: Mapping[str, str],
    open_at: Callable[[str], Store],
) -> DataFrame:
    """Return physical columns, with `FILE_ORDINAL` and `ROW_INDEX` if they are needed."""
    ordinal = [T.StructField(FILE_ORDINAL, T.IntegerType())] if has_ordinal else []
    layout = ReadLayout(
        data_schema=read.data_schema,
        partition_schema=T.StructType([*read.partition_schema.fields, *ordinal]),
        options=options,
        by_field_id=read.by_field_id,
        required=read.required,
    )
    row_index = ROW_INDEX if has_ordinal else None
    if isinstance(files, SkippableFiles):
        if not files.is_for_spark(spark):
            paths = DataPaths(open_at)
            return pruning_arrow_scan(spark, files, layout, paths=paths, row_index=row_index)
        rows = skipping_scan(spark, files, layout)
    elif data_io(spark, (file.uri for file in files)) is DataIo.ARROW:
        return arrow_scan(spark, files, layout, paths=DataPaths(open_at), row_index=row_index)
    else:
        reader = connect_scan if is_connect(spark) else native_scan
        rows = reader(spark, files, layout)
    if not has_ordinal:
        return rows
    if not files and is_connect(spark):  # an empty relation there has no _metadata
        return rows.withColumn(ROW_INDEX, F.lit(0).cast("long"))
    return rows.withColumn(ROW_INDEX, F.col("_metadata.row_index"))


def _strictness(*, strict: bool) -> Mapping[str, str]:
    return _NO_FILE_MAY_BE_MISSING if strict else {}
