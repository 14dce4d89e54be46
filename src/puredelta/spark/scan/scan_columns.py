"""Columns of a scan: those in the files, those of the table, and partition values.

Spark evaluates the rows on the driver, so a condition means there what it means in a query,
with any function that it calls.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from puredelta.errors import InvalidRequestError, Message
from puredelta.log.files.file_table import FileTable
from puredelta.protocol.features.column_mapping import physical_name, physical_schema
from puredelta.protocol.features.properties import ColumnMappingMode
from puredelta.protocol.schema.char_varchar import Limits
from puredelta.protocol.schema.types import VOID, StructField, StructType
from puredelta.protocol.table.row_tracking import RowTrackingColumns
from puredelta.protocol.table.table_config import TableConfig
from puredelta.spark.session.names import (
    BASE_ROW_ID,
    DEFAULT_COMMIT_VERSION,
    FILE_ORDINAL,
    FILE_PATH,
    FILE_SIZE,
    FILE_TIME,
    METADATA,
    require_no_helper_names,
)
from puredelta.spark.session.session import arrow_rows, is_connect
from puredelta.spark.session.types import (
    as_nullable,
    holds_struct,
    quoted,
    require_known_spatial_types,
    to_spark,
    without_table_metadata,
)
from puredelta.spark.values.char_varchar import padded, read_limits

FILE_FIELDS = T.StructType(
    [
        T.StructField("file_path", T.StringType()),
        T.StructField("file_name", T.StringType()),
        T.StructField("file_size", T.LongType()),
        T.StructField("file_block_start", T.LongType()),
        T.StructField("file_block_length", T.LongType()),
        T.StructField("file_modification_time", T.TimestampType()),
        T.StructField("row_index", T.LongType()),
    ]
)
"""What Spark knows in `METADATA` of a row in a Parquet file."""
PARQUET_ROW_INDEX = "_tmp_metadata_row_index"
"""Under this name Spark's Parquet reader gives the physical row of its file as a column (long).

It fills ``_metadata.row_index`` so. A column is read only if a query needs it, but the struct
``_metadata`` of a plan is made for every row.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanColumns:
    """The columns read from files, and the columns made from them."""

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
    bounds_tell_nan: bool = False
    """Whether conditions on floating-point numbers may reach the files (`_unpushed_text`)."""
    gap_columns: frozenset[tuple[str, ...]] = frozenset()
    """Dates and timestamps of which conditions may not (`puredelta.log.skipping.calendar_gap`)."""
    keeps_conditions: bool = False
    """Whether Spark hands no condition to the files: where it finds their columns by id."""
    misses_no_file: bool = False
    """Whether a lost file is an error, whatever the session says."""

    @classmethod
    def of(
        cls, config: TableConfig, fields: Sequence[StructField], padded: Mapping[str, Limits]
    ) -> ScanColumns:
        """Return what is read for some columns of a table; ``padded`` has those with a char(n)."""
        require_known_spatial_types(StructType(tuple(fields)))
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

    def only(self, names: frozenset[str]) -> ScanColumns:
        """Return the same columns, of which those that are not in ``names`` are all NULL."""
        pairs = [(f.name, s) for f, s in zip(self.wanted.fields, self.sources, strict=True)]
        kept = {source for name, source in pairs if name in names and source is not None}
        if not kept:  # rows without any column could not be counted
            stored = [*self.partition_schema.names, *self.data_schema.names]
            kept = set(stored[:1])

        def some(schema: T.StructType) -> T.StructType:
            return T.StructType([f for f in schema.fields if f.name in kept])

        return dataclasses.replace(
            self,
            data_schema=some(self.data_schema),
            partition_schema=some(self.partition_schema),
            sources=tuple(source if source in kept else None for source in self.sources),
            required=self.required & kept,
        )

    def with_row_ids(self, tracked: RowTrackingColumns) -> ScanColumns:
        """Return them with the columns of which ids and commit versions of rows are made."""
        return self._with(
            {tracked.row_id: T.LongType(), tracked.row_commit_version: T.LongType()},
            {BASE_ROW_ID: T.LongType(), DEFAULT_COMMIT_VERSION: T.LongType()},
        )

    def with_file_fields(self) -> ScanColumns:
        """Return them with the other columns that `metadata_text` is made of."""
        return self._with(
            {PARQUET_ROW_INDEX: T.LongType()},
            {FILE_PATH: T.StringType(), FILE_SIZE: T.LongType(), FILE_TIME: T.LongType()},
        )

    def _with(
        self, in_files: Mapping[str, T.DataType], per_file: Mapping[str, T.DataType]
    ) -> ScanColumns:
        return dataclasses.replace(
            self,
            data_schema=_extended(self.data_schema, in_files),
            partition_schema=_extended(self.partition_schema, per_file),
        )

    def select(self, rows: DataFrame, *helpers: str) -> DataFrame:
        """Make the columns asked for out of what was read, and keep these helper columns."""
        read = [*self.data_schema.names, *self.partition_schema.names]
        simple = not self.is_mapped and None not in self.sources
        kept = self._unpushed()
        is_inside = any(len(path) > 1 for path in kept)
        if any(f.metadata for f in self.wanted.fields) or not simple or is_inside:
            return rows.select(*self._columns(kept), *helpers)
        is_same = self.wanted.names == read and not kept
        if is_same and not is_connect(rows.sparkSession) and read == rows.columns:
            return rows  # a client would have to ask for the columns
        # A Column costs many round trips to the JVM, an expression one.
        texts = [
            _unpushed_text(field) if (field.name,) in kept else quoted(field.name)
            for field in self.wanted.fields
        ]
        return rows.selectExpr(*texts, *map(quoted, helpers))

    def _unpushed(self) -> frozenset[tuple[str, ...]]:
        """Return the columns in files, also those in structs, that conditions must not reach."""
        if self.keeps_conditions:
            return frozenset()
        stored = frozenset(self.data_schema.names)
        shown = zip(self.sources, self.wanted.fields, strict=True)
        leaves = [leaf for source, f in shown if source in stored for leaf in _leaves(f)]
        floats = frozenset() if self.bounds_tell_nan else _of_types(leaves, _FLOATING)
        return floats | self.gap_columns.intersection(path for path, _ in leaves)

    def _columns(self, kept: frozenset[tuple[str, ...]]) -> Iterator[Column]:
        """A flat column is a plain alias, so that filters reach Parquet through it; in one that
        holds structs the nested names change by a cast, position by position.

        Filters do not reach Parquet through those in ``kept``, nor through a cast.
        """
        for source, field in zip(self.sources, self.wanted.fields, strict=True):
            if source is None:
                yield F.lit(None).cast(field.dataType).alias(field.name, metadata=field.metadata)
                continue
            column = F.col(quoted(source))
            if self.is_mapped and holds_struct(field.dataType):
                column = column.cast(as_nullable(field.dataType))
            else:
                column = _unpushed(column, field.dataType, (field.name,), kept)
            column = padded(self.padded.get(field.name), column, field.dataType)
            if field.metadata:
                yield column.alias(field.name, metadata=field.metadata)
            else:
                yield column.alias(field.name)


_FLOATING = (T.FloatType, T.DoubleType)
_DAYS = (T.DateType, T.TimestampType)


def _unpushed_text(field: T.StructField) -> str:
    """Return a column as SQL, so that Spark pushes no condition on it into files.

    The value stays what it is. Bounds and dictionaries of Parquet files tell less of
    floating-point numbers than Spark believes: Arrow leaves NaN out of its bounds, and to a
    dictionary or to bounds -0.0 is not 0.0. So Spark would skip rows of which a condition is true.
    Of some days Spark asks the files for others (`puredelta.log.skipping.calendar_gap`).
    """
    name = quoted(field.name)
    function = "nanvl" if isinstance(field.dataType, _FLOATING) else "greatest"
    return f"{function}({name}, {name}) AS {name}"


def _unpushed(
    column: Column, data_type: T.DataType, path: tuple[str, ...], kept: frozenset[tuple[str, ...]]
) -> Column:
    """Return the same of a column, or of those inside of a struct; others keep their filters."""
    if path in kept:
        same = F.nanvl if isinstance(data_type, _FLOATING) else F.greatest
        return same(column, column)
    if isinstance(data_type, T.StructType):
        for field in data_type.fields:
            inner = (*path, field.name)
            if any(other[: len(inner)] == inner for other in kept):
                value = _unpushed(column.getField(field.name), field.dataType, inner, kept)
                column = column.withField(quoted(field.name), value)
    return column


def days_in(schema: T.StructType) -> frozenset[tuple[str, ...]]:
    """Return the dates and timestamps of a schema by their paths, through structs only."""
    return _of_types([leaf for field in schema.fields for leaf in _leaves(field)], _DAYS)


def _of_types(
    leaves: Iterable[tuple[tuple[str, ...], T.DataType]], types: tuple[type[T.DataType], ...]
) -> frozenset[tuple[str, ...]]:
    return frozenset(path for path, data_type in leaves if isinstance(data_type, types))


def _leaves(field: T.StructField) -> Iterator[tuple[tuple[str, ...], T.DataType]]:
    """Yield a column, or those that are reached through structs; Spark pushes no others."""
    if not isinstance(field.dataType, T.StructType):
        yield (field.name,), field.dataType
        return
    for inner in field.dataType.fields:
        for path, data_type in _leaves(inner):
            yield (field.name, *path), data_type


def _extended(schema: T.StructType, added: Mapping[str, T.DataType]) -> T.StructType:
    return T.StructType([*schema.fields, *(T.StructField(*column) for column in added.items())])


def fields_of(schema: StructType, columns: Sequence[str] | None) -> Sequence[StructField]:
    """Return the columns of a table that are asked for, all of them for None.

    Raises:
        InvalidRequestError: the table has no columns, or not the one asked for.
    """
    require_no_helper_names(schema.names)
    if columns is None:
        if not schema.fields:
            raise InvalidRequestError(Message.READ_TABLE_WITHOUT_COLUMNS)
        return schema.fields
    by_name = {f.name: f for f in schema.fields}
    if unknown := [name for name in columns if name not in by_name]:
        raise InvalidRequestError(
            Message.COLUMN_NOT_FOUND_IN_SCHEMA_SCAN, names=list(schema.names), column=unknown[0]
        )
    return [by_name[name] for name in columns]


def row_id_text(tracked: RowTrackingColumns, row_index: str) -> str:
    """Return the id of a row as SQL; ``row_index`` is the column of its place in its file."""
    return f"coalesce({quoted(tracked.row_id)}, {BASE_ROW_ID} + {row_index})"


def commit_version_text(tracked: RowTrackingColumns) -> str:
    """Return the version that last changed a row, as SQL."""
    return f"coalesce({quoted(tracked.row_commit_version)}, {DEFAULT_COMMIT_VERSION})"


def client_metadata_text(tracked: RowTrackingColumns | None) -> str:
    """Return ``_metadata`` as SQL over columns of a scan, where Spark itself knows the file.

    Row ids are of the columns of `ScanColumns.with_row_ids`; None: the rows have none.
    """
    fields = {name: f"{METADATA}.{name}" for name in FILE_FIELDS.fieldNames()}
    if tracked is not None:
        fields |= _row_fields(tracked, f"{METADATA}.row_index")
    return _struct_text(fields)


def metadata_type(tracked: RowTrackingColumns | None) -> T.StructType:
    """Return the type of ``_metadata``, with the ids of rows if there are some."""
    more = [] if tracked is None else list(_row_fields(tracked, ""))
    return T.StructType(
        [*FILE_FIELDS.fields, *(T.StructField(name, T.LongType()) for name in more)]
    )


def _row_fields(tracked: RowTrackingColumns, row_index: str) -> dict[str, str]:
    return {
        "row_id": row_id_text(tracked, row_index),
        "base_row_id": BASE_ROW_ID,
        "default_row_commit_version": DEFAULT_COMMIT_VERSION,
        "row_commit_version": commit_version_text(tracked),
    }


def _struct_text(fields: Mapping[str, str]) -> str:
    pairs = ", ".join(f"'{name}', {text}" for name, text in fields.items())
    return f"named_struct({pairs})"


def metadata_text(tracked: RowTrackingColumns) -> str:
    """Return what `METADATA` is made of, as SQL over columns of a scan.

    They are those of `ScanColumns.with_row_ids` and `ScanColumns.with_file_fields`. Spark knows
    the block of a row only in ways that keep its filters from the files.
    """
    fields = {
        "file_path": FILE_PATH,
        "file_name": f"element_at(split({FILE_PATH}, '/'), -1)",
        "file_size": FILE_SIZE,
        "file_block_start": "CAST(NULL AS BIGINT)",
        "file_block_length": "CAST(NULL AS BIGINT)",
        "file_modification_time": f"timestamp_millis({FILE_TIME})",
        "row_index": PARQUET_ROW_INDEX,
        **_row_fields(tracked, PARQUET_ROW_INDEX),
    }
    return _struct_text(fields)


def partition_rows(spark: SparkSession, files: FileTable, config: TableConfig) -> DataFrame:
    """Return one row per file: `FILE_ORDINAL` and the table's partition columns, typed.

    Text becomes a value as Delta itself does it: by a cast in the session's time zone.
    """
    fields = to_spark(config.partition_schema).fields
    texts = {
        f"v{n}": _texts(files, name) for n, name in enumerate(config.physical_partition_columns)
    }
    limits = read_limits(spark, config)
    table = pa.table({FILE_ORDINAL: pa.array(range(len(files)), pa.int32()), **texts})
    return arrow_rows(spark, table).select(
        FILE_ORDINAL,
        *(
            padded(limits.get(f.name), F.col(f"v{n}").cast(f.dataType), f.dataType).alias(f.name)
            for n, f in enumerate(fields)
        ),
    )


def _texts(files: FileTable, name: str) -> pa.ChunkedArray:
    """Return the values of a partition column as the log spells them; empty text is NULL."""
    texts = files.partition_texts(name)
    return pc.if_else(pc.equal(texts, ""), None, texts)
