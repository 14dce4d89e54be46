"""Batches of rows that are bounded by the bytes of their decoded values, inside a Spark worker.

A footer says how many bytes of encoded values a column has. A dictionary makes any number of them:
65,536 rows of one text of 30 KB are a file of 0.4 MB, and 2 GB when they are decoded. So columns
with dictionaries are read as dictionaries and indices, which is faster, too, and decoded for as
many rows as a batch may have.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

_HARMLESS_BYTES = 256 * 1024 * 1024
"""Rows times encoded bytes of a row group: its columns are planned above this product."""
_DICTIONARY_BYTES = 1280 * 1024
"""The size of a dictionary at which most writers give it up, and some room."""
_OPEN_BYTES = 2 * 1024 * 1024
"""Of a column while it is decoded: a dictionary and a page of 1 MB, as most writers make them."""
_SHORT_BYTES = 64
"""The size of a short value: texts up to it make no batch large."""
_LARGE_COLUMN_BYTES = 8 * 1024 * 1024
"""Of a batch: above this size allocators take a block from the system, and may keep it."""
_UNSURE_ROWS = 8_192
"""Rows of a batch where a dictionary was given up, or values are stored by their difference."""
_VALUE_BYTES = {
    **dict.fromkeys(("INT32", "FLOAT"), 4),
    **dict.fromkeys(("INT64", "INT96", "DOUBLE"), 8),
    "FIXED_LEN_BYTE_ARRAY": 16,
}
"""Of decoded values, which are a few bits each where they are in a dictionary; decimals have 16."""
_DICTIONARIES = frozenset({"PLAIN_DICTIONARY", "RLE_DICTIONARY"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoding:
    """The way to decode some columns of some row groups."""

    batch_rows: int
    dictionaries: tuple[str, ...] = ()
    """Paths of the leaf columns that are read as dictionaries."""


def plan_decoding(
    group: pq.RowGroupMetaData,
    leaves: Sequence[int],
    *,
    batch_rows: int,
    batch_bytes: int,
    as_dictionaries: bool = True,
) -> Decoding:
    """Choose how to decode leaf columns of a row group. The footer has to be sound.

    ``as_dictionaries``: columns may be read as dictionaries.
    """
    stored = 0
    unsure = False
    dictionaries: list[str] = []
    for leaf in leaves:
        chunk = group.column(leaf)
        size, values = chunk.total_uncompressed_size, max(1, chunk.num_values)
        encodings = set(chunk.encodings)
        if chunk.physical_type == "BYTE_ARRAY" and encodings & _DICTIONARIES:
            is_whole = size <= _DICTIONARY_BYTES + values * math.log2(values + 1) / 8
            if is_whole and as_dictionaries:
                dictionaries.append(chunk.path_in_schema)
                continue
            unsure |= is_whole or size / values > _SHORT_BYTES
        unsure |= "DELTA_BYTE_ARRAY" in encodings
        stored += max(size, values * _VALUE_BYTES.get(chunk.physical_type, 0))
    rows = min(batch_rows, batch_bytes * group.num_rows // stored) if stored else batch_rows
    return Decoding(
        batch_rows=max(1, min(rows, _UNSURE_ROWS) if unsure else rows),
        dictionaries=tuple(dictionaries),
    )


def open_bytes(footer: pq.FileMetaData, enough: int) -> int:
    """Return about how many bytes the open pages of all columns take, in the largest row group.

    The columns of a row group are decoded side by side: each has a dictionary and a page open. The
    footer has to be sound. Chunks are looked at only where there may be more than ``enough``.
    """
    most: int = footer.num_columns * _OPEN_BYTES
    if most <= enough:
        return most
    found = 0
    for group in map(footer.row_group, range(footer.num_row_groups)):
        found = max(found, sum(map(_open_bytes, map(group.column, range(group.num_columns)))))
    return found


def _open_bytes(chunk: pq.ColumnChunkMetaData) -> int:
    return min(_OPEN_BYTES, int(chunk.total_uncompressed_size))


def is_harmless(footer: pq.FileMetaData, groups: Sequence[int]) -> bool:
    """Return whether no batch of some row groups can be large, whatever its dictionaries hold."""
    described = (footer.row_group(group) for group in groups)
    return all(one.num_rows * one.total_byte_size <= _HARMLESS_BYTES for one in described)


def decoded_batches(batch: pa.RecordBatch, batch_bytes: int) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a batch without dictionaries, no more than ``batch_bytes`` at a time.

    One row is never divided.
    """
    schema = pa.schema([field.with_type(_decoded(field.type)) for field in batch.schema])
    for part in _parts(batch, batch_bytes):
        # A slice of lists would be cast with the values of the rows around it.
        rows = part if part is batch else part.take(np.arange(part.num_rows))
        yield rows.cast(schema)


def _parts(batch: pa.RecordBatch, batch_bytes: int) -> Iterator[pa.RecordBatch]:
    if batch.num_rows > 1 and _text_bytes(batch) > batch_bytes:
        half = batch.num_rows // 2
        yield from _parts(batch.slice(0, half), batch_bytes)
        yield from _parts(batch.slice(half), batch_bytes)
    else:
        yield batch


def has_dictionaries(schema: pa.Schema) -> bool:
    """Return whether values of a schema are dictionaries, those within columns, too."""
    return any(map(_has_dictionary, schema.types))


def _has_dictionary(kind: pa.DataType) -> bool:
    if not kind.num_fields:
        return bool(pa.types.is_dictionary(kind))
    return any(_has_dictionary(kind.field(n).type) for n in range(kind.num_fields))


def has_large_column(rows: pa.RecordBatch) -> bool:
    """Return whether a column is so large that an allocator may keep the blocks it outgrew.

    A column grows by doubling. The blocks before the last one are free, and of a size that no
    later column asks for.
    """
    return any(column.nbytes >= _LARGE_COLUMN_BYTES for column in rows.columns)


def _decoded(kind: pa.DataType) -> pa.DataType:
    """Return a type with the values of dictionaries in their place."""
    if pa.types.is_dictionary(kind):
        return kind.value_type
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_decoded(field.type)) for field in kind])
    if pa.types.is_map(kind):
        key, item = kind.key_field, kind.item_field
        return pa.map_(key.with_type(_decoded(key.type)), item.with_type(_decoded(item.type)))
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_decoded(kind.value_type)))
    return kind


def _text_bytes(batch: pa.RecordBatch) -> int:
    """Return the bytes of the values of dictionaries, decoded."""
    return sum(map(_bytes_of, batch.columns))


def _bytes_of(column: pa.Array) -> int:
    kind = column.type
    if pa.types.is_dictionary(kind):
        lengths = pc.binary_length(column.dictionary)
        longest = pc.max(lengths).as_py() or 0
        if longest <= _SHORT_BYTES:
            return int(longest * len(column))
        return int(pc.sum(lengths.cast(pa.int64()).take(column.indices)).as_py() or 0)
    if pa.types.is_struct(kind):
        return sum(map(_bytes_of, column.flatten()))
    if pa.types.is_map(kind):
        return _bytes_of(entries_of(column))
    if pa.types.is_list(kind):
        return _bytes_of(column.flatten())
    return 0


def entries_of(
    column: pa.Array | pa.ChunkedArray, *, names: tuple[str, str] = ("key", "value")
) -> pa.Array | pa.ChunkedArray:
    """Return the entries of maps, which Arrow flattens for lists alone, as structs."""
    fields = (column.type.key_field, column.type.item_field)
    entries = [field.with_name(name) for field, name in zip(fields, names, strict=True)]
    return pc.list_flatten(column.cast(pa.list_(pa.struct(entries))))
