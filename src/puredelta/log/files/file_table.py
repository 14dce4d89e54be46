"""The files of a table as Arrow rows: 20,000 files are columns here, not 20,000 objects.

Two shapes: active files (`FileTable`) and tombstones (a table of `TOMBSTONE_SCHEMA`). Both
keep what the log says, unparsed: percent-encoded paths, partition values as text,
statistics as JSON text.
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

from puredelta.errors import CorruptTableError, ErrorCode
from puredelta.log.files.map_texts import map_texts
from puredelta.log.files.row_counts import LEADING_NUM_RECORDS, num_records
from puredelta.protocol.actions.action_keys import ACTION_KEYS, VECTOR_KEYS, wire_names
from puredelta.protocol.actions.actions import Add, DeletionVectorDescriptor, FileAction, Remove
from puredelta.protocol.actions.file_action_key import VECTOR_SEPARATOR, FileActionKey
from puredelta.protocol.actions.paths import canonical_path
from puredelta.protocol.table.partitioning import Partitioning, PartitionKey

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
            # Arrow would first copy all chunks of every column to one.
            places = picked.to_numpy()
            if np.all(places[1:] > places[:-1]):
                chosen = np.zeros(len(self), np.bool_)
                chosen[places] = True
                return self.select(pa.array(chosen))
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
    keys = (FileActionKey(canonical_path(p), None) for p in paths.filter(free).to_pylist())
    return _replaced(paths, free, pa.array([key.encoded for key in keys], pa.string()))


def _record_counts(stats: pa.ChunkedArray) -> pa.ChunkedArray:
    leading = pc.struct_field(pc.extract_regex(stats, LEADING_NUM_RECORDS), "rows")
    counts = pc.cast(leading, pa.int64())
    unread = pc.and_(pc.is_null(counts), pc.is_valid(stats))
    if not pc.any(unread).as_py():
        return counts
    parsed = [num_records(text) for text in stats.filter(unread).to_pylist()]
    return _replaced(counts, unread, pa.array(parsed, pa.int64()))


def _replaced(column: pa.ChunkedArray, mask: pa.ChunkedArray, values: pa.Array) -> pa.ChunkedArray:
    """Put ``values``, in order, where ``mask`` is true; chunked masks are not Arrow's to take."""
    position = pc.subtract(pc.cumulative_sum(pc.cast(mask, pa.int64())), 1)
    scattered = pa.chunked_array([values]).take(pc.if_else(mask, position, None))
    return pc.if_else(mask, scattered, column)


def _table(actions: Sequence[FileAction], schema: pa.Schema) -> pa.Table:
    if not actions:
        return _empty(schema)
    return pa.table([_column(actions, field) for field in schema], schema=schema)


@cache
def _empty(schema: pa.Schema) -> pa.Table:
    """Return no rows. Most commits add or remove nothing, and each column takes its time."""
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
            f"The log holds file actions whose {field.name!r} is not a value of its type: {error}.",
            code=ErrorCode.LOG_CORRUPTED,
            column=field.name,
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
