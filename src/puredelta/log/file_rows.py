"""The rows of one data file in Arrow, under the schema of its table: no Spark.

A file has physical names, may lack columns, may be narrower than the table, and holds rows
that a deletion vector hides. What comes out has the logical schema, partition columns
included.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timezone
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from typing_extensions import assert_never

from puredelta.log.deletion_vectors import read_positions
from puredelta.log.file_table import FileTable
from puredelta.log.snapshot import Snapshot
from puredelta.protocol.actions import Add
from puredelta.protocol.column_mapping import physical_name
from puredelta.protocol.deletion_vector import Positions
from puredelta.protocol.partition_values import parse_partition_value
from puredelta.protocol.paths import absolute_uri
from puredelta.protocol.properties import ColumnMappingMode
from puredelta.protocol.types import (
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    PrimitiveType,
    StructField,
    StructType,
)
from puredelta.store.registry import open_store

BATCH_ROWS = 65_536


@dataclass(frozen=True, slots=True, kw_only=True)
class FileRows:
    """One file of a version, with all it takes to read it elsewhere."""

    uri: str
    """Absolute and decoded."""
    partition_values: Mapping[str, str | None]
    """By physical name."""
    deleted: Positions | None


def list_files(snapshot: Snapshot) -> tuple[FileRows, ...]:
    """Return the files of a version; reads their deletion vectors."""
    return _file_rows(snapshot.files, snapshot.root_uri)


def rows_of_adds(adds: Iterable[Add], root_uri: str) -> tuple[FileRows, ...]:
    """Return files of the table at ``root_uri``; reads their deletion vectors."""
    return _file_rows(FileTable.of(adds), root_uri)


def _file_rows(files: FileTable, root_uri: str) -> tuple[FileRows, ...]:
    deleted = read_positions(files, root_uri)
    return tuple(
        FileRows(
            uri=absolute_uri(root_uri, add.path),
            partition_values=dict(add.partition_values),
            deleted=deleted.get(n),
        )
        for n, add in enumerate(files.adds())
    )


def read_batches(
    file: FileRows,
    schema: StructType,
    wanted: pa.Schema,
    *,
    partition_columns: Sequence[str],
    mode: ColumnMappingMode,
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a file as batches of ``wanted``, whose fields are those of ``schema``.

    Files are found by name: column mapping ``id`` is not for here. A partition column of type
    ``timestamp`` is taken to be in UTC where its text names no zone.
    """
    directory, _, name = file.uri.rpartition("/")
    kinds = list(zip(schema.fields, wanted, strict=True))
    names = {physical_name(f, mode) for f in schema.fields if f.name not in partition_columns}
    hidden = np.zeros(0, np.uint64) if file.deleted is None else file.deleted
    first = 0
    with open_store(directory).open(name) as opened:
        parquet = pq.ParquetFile(opened, coerce_int96_timestamp_unit="us")
        present = [n for n in parquet.schema_arrow.names if n in names]
        for batch in parquet.iter_batches(BATCH_ROWS, columns=present):
            live = _live(batch, first, hidden)
            first += batch.num_rows
            if live.num_rows:
                columns = [
                    _partition_column(file, field, to.type, live.num_rows, mode)
                    if field.name in partition_columns
                    else _child(live, field, to.type, mode)
                    for field, to in kinds
                ]
                yield pa.RecordBatch.from_arrays(columns, schema=wanted)


def _live(batch: pa.RecordBatch, first: int, hidden: Positions) -> pa.RecordBatch:
    """Leave out the rows that a deletion vector hides; ``first`` is the batch's first row."""
    low, high = np.searchsorted(hidden, [first, first + batch.num_rows])
    if low == high:
        return batch
    kept = np.ones(batch.num_rows, bool)
    kept[(hidden[low:high] - np.uint64(first)).astype(np.int64)] = False
    return batch.filter(pa.array(kept))


def _partition_column(
    file: FileRows, field: StructField, to: pa.DataType, num_rows: int, mode: ColumnMappingMode
) -> pa.Array:
    text = file.partition_values.get(physical_name(field, mode))
    value = parse_partition_value(text, field.type, timezone.utc)
    return pa.nulls(num_rows, to) if value is None else pa.repeat(pa.scalar(value, to), num_rows)


def _child(parent: Any, field: StructField, to: pa.DataType, mode: ColumnMappingMode) -> pa.Array:
    """Return a column of a batch or a struct under its logical type; NULL if it is missing."""
    kind = parent.schema if isinstance(parent, pa.RecordBatch) else parent.type
    index = kind.get_field_index(physical_name(field, mode))
    if index < 0:
        return pa.nulls(len(parent), to)
    child = parent.column(index) if isinstance(parent, pa.RecordBatch) else parent.flatten()[index]
    return _conformed(child, field.type, to, mode)


def _conformed(
    array: pa.Array, kind: DataType, to: pa.DataType, mode: ColumnMappingMode
) -> pa.Array:
    """Return values as the table has them: names at every level, types, what is missing."""
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
    """Return a list or map array whose values begin with its first entry."""
    return array if array.offset == 0 else array.take(pa.array(np.arange(len(array))))


def _offsets(array: pa.Array) -> pa.Array:
    """Return the offsets, NULL where the list or map itself is."""
    if not array.null_count:
        return array.offsets
    starts = pc.if_else(array.is_null(), pa.scalar(None, pa.int32()), array.offsets[:-1])
    return pa.concat_arrays([starts, array.offsets[-1:]])
