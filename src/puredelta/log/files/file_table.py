"""The files of a table as Arrow rows, and the tombstones that remove them.

Two shapes: active files (`FileTable`) and tombstones (a table of `TOMBSTONE_SCHEMA`). Both
keep the log's own form, unparsed: percent-encoded paths, partition values as text,
statistics as JSON text.

Partition values are not looked up by Arrow's ``map_lookup``, which reads the maps one by one:
0.3 seconds for a million of them.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from operator import attrgetter
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from puredelta.errors import CorruptTableError, Message
from puredelta.log.files.row_counts import LEADING_NUM_RECORDS, num_records, physical_rows
from puredelta.protocol.actions.action_keys import ACTION_KEYS, VECTOR_KEYS, wire_names
from puredelta.protocol.actions.actions import (
    VECTOR_SEPARATOR,
    Add,
    DeletionVectorDescriptor,
    FileAction,
    FileActionKey,
    Remove,
)
from puredelta.protocol.actions.paths import canonical_path
from puredelta.protocol.table.partitioning import Partitioning, PartitionKey


def map_texts(maps: pa.ChunkedArray, name: str) -> pa.ChunkedArray:
    """Return the first value of a key in every map; null where the map or the key is not there.

    >>> maps = pa.array([[("a", "1"), ("b", "2")], [("b", None)]], pa.map_("string", "string"))
    >>> map_texts(pa.chunked_array([maps]), "b").to_pylist()
    ['2', None]
    """
    return pa.chunked_array(
        [_texts(chunk, name) for chunk in maps.chunks], type=maps.type.item_type
    )


def _texts(maps: pa.MapArray, name: str) -> pa.Array:
    if not len(maps) or maps.null_count:
        return pc.map_lookup(maps, name, "first")
    ends = maps.offsets.to_numpy()
    begin, length = int(ends[0]), int(ends[-1] - ends[0])
    found = pc.equal(maps.keys.slice(begin, length), name)
    places = np.flatnonzero(found.to_numpy(zero_copy_only=False))
    if not len(places):
        return pa.nulls(len(maps), maps.type.item_type)
    places += begin
    # There are as many positions as maps, and each is inside its map: one for every map.
    if len(places) != len(maps) or np.any(places < ends[:-1]) or np.any(places >= ends[1:]):
        return pc.map_lookup(maps, name, "first")
    items = maps.items.slice(begin, length)
    return items if length == len(places) else items.filter(found)


TEXT_MAP = pa.map_(pa.string(), pa.string())
DELETION_VECTOR_TYPE = pa.struct(
    [
        ("storage_type", pa.string()),
        ("path_or_inline", pa.string()),
        ("offset", pa.int32()),
        ("size_bytes", pa.int32()),
        ("cardinality", pa.int64()),
        ("max_row_index", pa.int64()),
    ]
)
FILE_SCHEMA = pa.schema(
    [
        ("path", pa.string()),
        ("partition_values", TEXT_MAP),
        ("size_bytes", pa.int64()),
        ("modified_ms", pa.int64()),
        ("data_change", pa.bool_()),
        ("stats", pa.string()),
        ("tags", TEXT_MAP),
        ("deletion_vector", DELETION_VECTOR_TYPE),
        ("base_row_id", pa.int64()),
        ("default_row_commit_version", pa.int64()),
        ("clustering_provider", pa.string()),
    ]
)
"""One row per active file. Columns are those of `puredelta.protocol.actions.actions.Add`."""

TOMBSTONE_SCHEMA = pa.schema(
    [
        ("path", pa.string()),
        ("deleted_ms", pa.int64()),
        ("data_change", pa.bool_()),
        ("extended_file_metadata", pa.bool_()),
        ("partition_values", TEXT_MAP),
        ("size_bytes", pa.int64()),
        ("deletion_vector", DELETION_VECTOR_TYPE),
        ("base_row_id", pa.int64()),
        ("default_row_commit_version", pa.int64()),
    ]
)
"""One row per removed file: what a checkpoint keeps of a `Remove` (no stats, no tags, X-35)."""

FILE_WIRE_NAMES = wire_names(FILE_SCHEMA.names, ACTION_KEYS[Add][1])
"""Column of `FILE_SCHEMA` to the name checkpoints give it."""

TOMBSTONE_WIRE_NAMES = wire_names(TOMBSTONE_SCHEMA.names, ACTION_KEYS[Remove][1])
"""Column of `TOMBSTONE_SCHEMA` to the name checkpoints give it."""

DELETION_VECTOR_WIRE_NAMES = wire_names([field.name for field in DELETION_VECTOR_TYPE], VECTOR_KEYS)
"""Field of `DELETION_VECTOR_TYPE` to the name checkpoints give it."""

# Paths that `canonical_path` may change: absolute ones, escapes, empty or dotted segments.
_NOT_CANONICAL = r"^$|^/|[%:]|//|/$|(^|/)\.{1,2}(/|$)"
_ANY_NAME = "x"


_TAKEN = 1 << 18
"""Rows that are picked at a time in another order."""


@dataclass(frozen=True, slots=True)
class FileTable:
    """The active files of a table, or some of them. ``rows`` has `FILE_SCHEMA`.

    The order of rows is that of the log: checkpoint first, then commit by commit.
    """

    rows: pa.Table

    def __len__(self) -> int:
        return int(self.rows.num_rows)

    @classmethod
    def of(cls, adds: Iterable[Add]) -> FileTable:
        """Build the table of these actions, in their order."""
        return cls(_table(list(adds), FILE_SCHEMA))

    def adds(self) -> Iterator[Add]:
        """Yield the rows as actions."""
        for row in _rows(self.rows):
            yield Add(**row)

    def select(self, mask: pa.Array | pa.ChunkedArray) -> FileTable:
        """Keep the rows where ``mask`` is true; null counts as false."""
        if pc.all(mask, skip_nulls=False).as_py():
            return self
        flags = mask.combine_chunks() if isinstance(mask, pa.ChunkedArray) else mask
        return FileTable(self.rows.filter(flags))

    def take(self, indices: pa.Array | Sequence[int]) -> FileTable:
        """Pick rows by position, in the order given."""
        picked = indices if isinstance(indices, pa.Array) else pa.array(indices, pa.int64())
        if self.rows["stats"].num_chunks > 1:
            # Arrow would first copy all chunks of every column to one, which holds 2 GB at most.
            places = picked.to_numpy()
            if len(places) > _TAKEN and not np.all(places[1:] > places[:-1]):
                firsts = range(0, len(places), _TAKEN)
                parts = [self.take(pa.array(places[n : n + _TAKEN])).rows for n in firsts]
                return FileTable(pa.concat_tables(parts))
            chosen = np.zeros(len(self), np.bool_)
            chosen[places] = True
            some = self.select(pa.array(chosen))
            if np.all(places[1:] > places[:-1]):
                return some
            ranks = np.searchsorted(np.flatnonzero(chosen), places)
            return FileTable(some.rows.take(pa.array(ranks)))
        return FileTable(self.rows.take(picked))

    @property
    def total_size_bytes(self) -> int:
        """The sum of the file sizes."""
        return int(pc.sum(self.rows["size_bytes"]).as_py() or 0)

    def num_partitions(self, partitioning: Partitioning) -> int:
        """Return how many partitions the files are in; 0 for a table without partitions."""
        return len(set(self.partition_keys(partitioning))) if partitioning.columns else 0

    def partition_keys(self, partitioning: Partitioning) -> list[PartitionKey]:
        """Return the key of each file's partition; every text of a column is parsed once."""
        columns: list[list[Hashable]] = []
        for column in partitioning.columns:
            texts = self.partition_texts(column.physical_name)
            encoded = pc.dictionary_encode(texts).combine_chunks()
            # One more than the dictionary has: what a NULL, the index -1, is.
            known = [*map(column.identity, encoded.dictionary.to_pylist()), None]
            places = pc.fill_null(encoded.indices, -1).to_pylist()
            columns.append([known[place] for place in places])
        return list(zip(*columns, strict=True)) if columns else [()] * len(self)

    def partition_texts(self, name: str) -> pa.ChunkedArray:
        """Return each file's value of a partition column by its physical name, as its text."""
        return map_texts(self.rows["partition_values"], name)

    def record_counts(self) -> pa.ChunkedArray:
        """Return ``numRecords`` per file (int64): physical rows, null where unknown."""
        return _record_counts(self.rows["stats"])

    def deleted_counts(self) -> pa.ChunkedArray:
        """Return how many rows each file's deletion vector deletes (int64), 0 without one."""
        cardinality = pc.struct_field(self.rows["deletion_vector"], "cardinality")
        return pc.fill_null(cardinality, 0)

    def num_records(self) -> int | None:
        """Return how many rows the files hold for a reader, None where a file does not say."""
        counts = self.record_counts()
        if counts.null_count:
            return None
        physical = pc.sum(counts).as_py() or 0
        return int(physical - (pc.sum(self.deleted_counts()).as_py() or 0))


def tombstone_table(removes: Iterable[Remove]) -> pa.Table:
    """Build the table (`TOMBSTONE_SCHEMA`) of these actions, in their order."""
    return _table(list(removes), TOMBSTONE_SCHEMA)


def file_keys(rows: pa.Table) -> pa.ChunkedArray:
    """Return the encoded `FileActionKey` of every row of a file or tombstone table."""
    paths = _canonical_paths(rows["path"])
    vectors = rows["deletion_vector"]
    if vectors.null_count == len(vectors):
        return paths
    offset = pc.cast(pc.struct_field(vectors, "offset"), pa.string())
    vector_id = pc.binary_join_element_wise(
        VECTOR_SEPARATOR,
        pc.struct_field(vectors, "storage_type"),
        pc.struct_field(vectors, "path_or_inline"),
        pc.fill_null(pc.binary_join_element_wise("@", offset, ""), ""),
        "",
    )
    return pc.binary_join_element_wise(paths, pc.fill_null(vector_id, ""), "")


def _canonical_paths(paths: pa.ChunkedArray) -> pa.ChunkedArray:
    free = pc.match_substring_regex(paths, _NOT_CANONICAL)
    if not pc.any(free).as_py():
        return paths
    odd = paths.filter(free).combine_chunks()
    directories = pc.replace_substring_regex(odd, r"[^/]*$", "").dictionary_encode()
    names = pc.replace_substring_regex(odd, r"(?s)^.*/", "")
    is_odd_name = pc.any(pc.match_substring_regex(names, _NOT_CANONICAL)).as_py()
    if is_odd_name or pc.any(pc.ends_with(directories.dictionary, "://")).as_py():
        return _replaced(paths, free, _canonical(odd, ""))
    # Files of one partition, or of one other table, have their directory's spelling in common.
    shared = _canonical(directories.dictionary, _ANY_NAME).take(directories.indices)
    return _replaced(paths, free, pc.binary_join_element_wise(shared, names, ""))


def _canonical(paths: pa.Array, name: str) -> pa.Array:
    """Return the keys of paths with a name after them, but without the name."""
    keys = (FileActionKey(canonical_path(p + name), None).encoded for p in paths.to_pylist())
    return pa.array([key[: len(key) - len(name)] for key in keys], pa.string())


def _record_counts(stats: pa.ChunkedArray) -> pa.ChunkedArray:
    leading = pc.struct_field(pc.extract_regex(stats, LEADING_NUM_RECORDS), "rows")
    counts = pc.cast(leading, pa.int64())
    unread = pc.and_(pc.is_null(counts), pc.is_valid(stats))
    if not pc.any(unread).as_py():
        return counts
    parsed = [num_records(text) for text in stats.filter(unread).to_pylist()]
    return _replaced(counts, unread, pa.array(parsed, pa.int64()))


def _replaced(column: pa.ChunkedArray, mask: pa.ChunkedArray, values: pa.Array) -> pa.ChunkedArray:
    """Put ``values``, in order, where ``mask`` is true; Arrow's function takes no chunked mask."""
    position = pc.subtract(pc.cumulative_sum(pc.cast(mask, pa.int64())), 1)
    scattered = pa.chunked_array([values]).take(pc.if_else(mask, position, None))
    return pc.if_else(mask, scattered, column)


def _table(actions: Sequence[FileAction], schema: pa.Schema) -> pa.Table:
    if not actions:
        return _empty(schema)
    return pa.table([_column(actions, field) for field in schema], schema=schema)


@cache
def _empty(schema: pa.Schema) -> pa.Table:
    """Return a table without rows: building each column of nothing would cost time."""
    return schema.empty_table()


def _column(actions: Sequence[FileAction], field: pa.Field) -> pa.Array:
    values: list[Any] = list(map(attrgetter(field.name), actions))
    if pa.types.is_map(field.type):
        values = [None if v is None else list(v.items()) for v in values]
    elif field.type == DELETION_VECTOR_TYPE:
        values = [None if v is None else _vector_row(v) for v in values]
    try:
        return pa.array(values, type=field.type)
    except (UnicodeEncodeError, OverflowError, pa.ArrowInvalid) as error:
        raise CorruptTableError(
            Message.LOG_CORRUPTED_ACTION_COLUMN, error=error, column=field.name
        ) from error


def _vector_row(vector: DeletionVectorDescriptor) -> dict[str, Any]:
    return {field.name: getattr(vector, field.name) for field in DELETION_VECTOR_TYPE}


def _rows(table: pa.Table) -> Iterator[dict[str, Any]]:
    """Yield rows as keyword arguments of their action."""
    names = table.column_names
    columns = [_values(table[name]) for name in names]
    for row in zip(*columns, strict=True):
        yield dict(zip(names, row, strict=True))


def _values(column: pa.ChunkedArray) -> list[Any]:
    values: list[Any] = column.to_pylist()
    if pa.types.is_map(column.type):
        return [None if v is None else dict(v) for v in values]
    if column.type == DELETION_VECTOR_TYPE:
        return [None if v is None else DeletionVectorDescriptor(**v) for v in values]
    return values


def remove_file(file: Add, *, deleted_ms: int | None = None, data_change: bool = True) -> Remove:
    """Return the tombstone of an active file (X-13, X-14).

    It has everything that a later reader may need: size, partition values, deletion vector and
    row ids. Of the statistics it has the row count alone, as in delta-spark, because bounds of
    removed rows are useless.

    Without ``deleted_ms`` it gets its time when it is committed: retention begins then.
    ``data_change=False`` promises that the same commit adds all rows of the file elsewhere.
    """
    rows = physical_rows(file)
    return Remove(
        path=file.path,
        deleted_ms=deleted_ms,
        data_change=data_change,
        extended_file_metadata=True,
        partition_values=file.partition_values,
        size_bytes=file.size_bytes,
        stats=None if rows is None else f'{{"numRecords":{rows}}}',
        tags=file.tags,
        deletion_vector=file.deletion_vector,
        base_row_id=file.base_row_id,
        default_row_commit_version=file.default_row_commit_version,
    )
