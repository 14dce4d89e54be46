"""The rows of one data file in Arrow, under the schema of its table: no Spark.

A file has physical names, may lack columns, may have narrower types than the table, and may have
rows that a deletion vector deletes. The rows that are read have the logical schema, partition
columns included. `ReadableFile` describes a file by what the log says, so that describing many
files is cheap; deletion vectors are read together with the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timezone
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from typing_extensions import assert_never

from puredelta.errors import CorruptTableError, Message
from puredelta.log.files.deletion_vectors import read_vector
from puredelta.log.replay.snapshot import Snapshot
from puredelta.protocol.actions.actions import Add, DeletionVectorDescriptor
from puredelta.protocol.actions.deletion_vector import RowIndexes
from puredelta.protocol.actions.paths import absolute_uri
from puredelta.protocol.features.column_mapping import physical_name
from puredelta.protocol.features.properties import ColumnMappingMode
from puredelta.protocol.schema.partition_values import parse_partition_value
from puredelta.protocol.schema.types import (
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    PrimitiveType,
    StructField,
    StructType,
)
from puredelta.store.base import Store
from puredelta.store.registry import open_store
from puredelta.worker.read_rows import counts_from_midnight
from puredelta.worker.sound_kinds import sound_parquet

BATCH_ROWS = 65_536


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadableFile:
    """One file of a version, with everything that reading it in another process takes."""

    uri: str
    """Absolute and decoded."""
    partition_values: Mapping[str, str | None]
    """By physical name."""
    root_uri: str
    """The root of the table, which paths of deletion vectors are relative to."""
    deleted: DeletionVectorDescriptor | None = None
    """Rows that are left out."""
    only: DeletionVectorDescriptor | None = None
    """The only rows that are read; None means all rows."""
    open_at: Callable[[str], Store] = field(default=open_store, repr=False)
    """Opens the directory that a file or a vector is in."""


def list_files(snapshot: Snapshot) -> tuple[ReadableFile, ...]:
    """Return the files of a version."""
    return readable_files(snapshot.files.adds(), snapshot.root_uri)


def readable_files(adds: Iterable[Add], root_uri: str) -> tuple[ReadableFile, ...]:
    """Return the files of some adds of the table at ``root_uri``."""
    return tuple(
        ReadableFile(
            uri=absolute_uri(root_uri, add.path),
            partition_values=dict(add.partition_values),
            root_uri=root_uri,
            deleted=add.deletion_vector,
        )
        for add in adds
    )


def read_batches(
    file: ReadableFile,
    schema: StructType,
    wanted: pa.Schema,
    *,
    partition_columns: Sequence[str],
    mode: ColumnMappingMode,
    batch_rows: int = BATCH_ROWS,
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a file as batches of ``wanted``, whose fields are those of ``schema``.

    Columns are found by name, not by field id. A partition value of type ``timestamp`` without a
    zone is in UTC.

    Raises:
        CorruptTableError: a deletion vector is missing or damaged, or the file is.
    """
    rows = _WantedRows.of(file)
    if rows.are_none:
        return
    read = _decoded(
        file, schema, wanted, partition_columns=partition_columns, mode=mode, batch_rows=batch_rows
    )
    first = 0
    try:
        for batch in read:
            # Rows are selected last: Arrow cannot do it with all types that files come in.
            live = rows.of_batch(batch, first)
            first += batch.num_rows
            if live.num_rows:
                yield live
    except (pa.ArrowException, OSError, UnicodeDecodeError) as failure:
        if isinstance(failure, FileNotFoundError | PermissionError):
            raise
        raise CorruptTableError(
            Message.FAILED_READ_FILE_FOOTER_CHANGES, failure=failure, file=file.uri
        ) from failure


def _decoded(
    file: ReadableFile,
    schema: StructType,
    wanted: pa.Schema,
    *,
    partition_columns: Sequence[str],
    mode: ColumnMappingMode,
    batch_rows: int,
) -> Iterator[pa.RecordBatch]:
    """Yield all rows of a file, the deleted ones, too."""
    directory, _, name = file.uri.rpartition("/")
    kinds = list(zip(schema.fields, wanted, strict=True))
    names = {physical_name(f, mode) for f in schema.fields if f.name not in partition_columns}
    with file.open_at(directory).open(name) as opened:
        parquet = sound_parquet(opened, coerce_int96_timestamp_unit="us")
        present = [n for n in parquet.schema_arrow.names if n in names]
        unsure = () if counts_from_midnight(parquet.metadata) else _int96_columns(parquet, present)
        for batch in parquet.iter_batches(batch_rows, columns=present):
            _require_sure_times(batch, unsure)
            columns = [
                _partition_column(file, field, to.type, batch.num_rows, mode)
                if field.name in partition_columns
                else _child(batch, field, to.type, mode)
                for field, to in kinds
            ]
            yield pa.RecordBatch.from_arrays(columns, schema=wanted)


def _int96_columns(parquet: pq.ParquetFile, names: Sequence[str]) -> list[str]:
    leaves = map(parquet.schema.column, range(len(parquet.schema)))
    roots = {leaf.path.split(".", 1)[0] for leaf in leaves if leaf.physical_type == "INT96"}
    return [name for name in names if name in roots]


def _require_sure_times(batch: pa.RecordBatch, columns: Iterable[str]) -> None:
    """Refuse times that Arrow may have read 584 years late; see `counts_from_midnight`.

    Those between 1677 and 1970 are read as times between 2262 and 2554.
    """
    for name in columns:
        column = batch.column(name)
        is_late = pa.types.is_nested(column.type)
        if not is_late:
            micros = column.cast(pa.timestamp("us")).cast(pa.int64())
            late = pc.and_(pc.greater(micros, _LATE_US[0]), pc.less(micros, _LATE_US[1]))
            is_late = bool(pc.any(late).as_py())
        if is_late:
            raise pa.ArrowInvalid(
                f"column {name} has INT96 timestamps of a writer that Arrow may read otherwise "
                "than Spark does; read the table through Spark, or rewrite the file with it"
            )


_LATE_US = (((1 << 63) - 1) // 1_000, ((1 << 64) - 1) // 1_000)


def _read_vector(vector: DeletionVectorDescriptor, file: ReadableFile) -> RowIndexes:
    return read_vector(vector, file.root_uri, store=file.open_at(file.root_uri))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _WantedRows:
    """Which rows of a file are read, by sorted physical positions; None stands for no limit."""

    deleted: RowIndexes | None
    only: RowIndexes | None

    @classmethod
    def of(cls, file: ReadableFile) -> _WantedRows:
        deleted = None if file.deleted is None else _read_vector(file.deleted, file)
        if file.only is None:
            return cls(deleted=deleted, only=None)
        only = _read_vector(file.only, file)
        if deleted is not None:
            only = np.setdiff1d(only, deleted, assume_unique=True)
        return cls(deleted=None, only=only)

    @property
    def are_none(self) -> bool:
        return self.only is not None and not len(self.only)

    def of_batch(self, batch: pa.RecordBatch, first: int) -> pa.RecordBatch:
        """Return the rows to read of a batch whose first row is at position ``first``."""
        if self.only is not None:
            return batch.take(pa.array(_inside(self.only, first, batch.num_rows)))
        out = () if self.deleted is None else _inside(self.deleted, first, batch.num_rows)
        if not len(out):
            return batch
        kept = np.ones(batch.num_rows, bool)
        kept[out] = False
        return batch.filter(pa.array(kept))


def _inside(positions: RowIndexes, first: int, num_rows: int) -> npt.NDArray[np.int64]:
    """Return the positions within some consecutive rows, counted from the first of them."""
    low, high = np.searchsorted(positions, [first, first + num_rows])
    inside: npt.NDArray[np.int64] = positions[low:high].astype(np.int64) - first
    return inside


def _partition_column(
    file: ReadableFile, field: StructField, to: pa.DataType, num_rows: int, mode: ColumnMappingMode
) -> pa.Array:
    text = file.partition_values.get(physical_name(field, mode))
    value = parse_partition_value(text, field.type, timezone.utc)
    return pa.nulls(num_rows, to) if value is None else pa.repeat(pa.scalar(value, to), num_rows)


def _child(parent: Any, field: StructField, to: pa.DataType, mode: ColumnMappingMode) -> pa.Array:
    """Return a column of a batch or a struct in its logical type; NULL if it is missing."""
    kind = parent.schema if isinstance(parent, pa.RecordBatch) else parent.type
    index = kind.get_field_index(physical_name(field, mode))
    if index < 0:
        return pa.nulls(len(parent), to)
    child = parent.column(index) if isinstance(parent, pa.RecordBatch) else parent.flatten()[index]
    return _conformed(child, field.type, to, mode)


def _conformed(
    array: pa.Array, kind: DataType, to: pa.DataType, mode: ColumnMappingMode
) -> pa.Array:
    """Return values with the names and types of the table, at every level."""
    match kind:
        case PrimitiveType() | DecimalType():
            return array if array.type == to else pc.cast(array, to, safe=False)
        case StructType(fields):
            children = [
                _child(array, f, inner.type, mode)
                for f, inner in zip(fields, _inner_fields(to), strict=True)
            ]
            return pa.StructArray.from_arrays(
                children, fields=_inner_fields(to), mask=array.is_null()
            )
        case ArrayType(element):
            whole = _unsliced(array)
            values = _conformed(whole.values, element, to.value_type, mode)
            return pa.ListArray.from_arrays(_offsets(whole), values).cast(to)
        case MapType(key, value):
            whole = _unsliced(array)
            keys = _conformed(whole.keys, key, to.key_type, mode)
            items = _conformed(whole.items, value, to.item_type, mode)
            return pa.MapArray.from_arrays(_offsets(whole), keys, items).cast(to)
        case _:
            assert_never(kind)


def _inner_fields(struct: pa.DataType) -> list[pa.Field]:
    return [struct.field(n) for n in range(struct.num_fields)]


def _unsliced(array: pa.Array) -> pa.Array:
    """Return the list or map array without an offset, so that its values begin with entry 0."""
    return array if array.offset == 0 else array.take(pa.array(np.arange(len(array))))


def _offsets(array: pa.Array) -> pa.Array:
    """Return the offsets, NULL where the list or map itself is NULL."""
    if not array.null_count:
        return array.offsets
    starts = pc.if_else(array.is_null(), pa.scalar(None, pa.int32()), array.offsets[:-1])
    return pa.concat_arrays([starts, array.offsets[-1:]])
