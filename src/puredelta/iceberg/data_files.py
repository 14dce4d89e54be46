"""Data files of a Delta table, and their deletion vectors, as entries of Iceberg's manifests.

Partition values come from the log, bounds and counts from the statistics of the log. Statistics
that are missing or that prove nothing are left out; a missing number of rows is read from the
footer of the file, because Iceberg requires it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timezone
from decimal import Decimal
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyiceberg.manifest import PartitionFieldSummary

from puredelta.errors import Message, UnsupportedError
from puredelta.iceberg.avro import (
    ABSENT,
    PRESENT,
    Entries,
    FieldBytes,
    Numbers,
    fixed,
    joined,
    mapping,
    offsets_of,
    sized,
    summary,
    texts,
    value_encoder,
    varint,
    varints,
)
from puredelta.iceberg.schema import IcebergLayout
from puredelta.iceberg.storage import iceberg_location, puffin_file
from puredelta.log.files.deletion_vectors import read_blobs
from puredelta.log.files.file_table import FileTable
from puredelta.log.files.parquet_footer import map_footers, read_end_of
from puredelta.log.files.stats_columns import NOTHING_PARSED
from puredelta.log.files.stats_json import StatisticsColumn
from puredelta.protocol.actions.actions import Add
from puredelta.protocol.actions.paths import absolute_uris
from puredelta.protocol.schema.partition_values import parse_partition_value, partition_identity
from puredelta.protocol.schema.traversal import find_fields, struct_fields
from puredelta.protocol.schema.types import DataType, DecimalType, PrimitiveType, StructType
from puredelta.protocol.table.table_config import TableConfig
from puredelta.store.base import FileEnd, Store

_EPOCH_DAY = 719_163
"""The ordinal of 1970-01-01."""
_DAY_MICROS = 86_400_000_000
_SLICE_FILES = 50_000
"""How many files are encoded at once, which bounds the memory."""
_SIGN = 0x80
PUFFIN_VECTORS_MAX = 100
"""The vectors of one Puffin file: when one of them goes, the others are written again."""
_DATA_CONTENT, _DELETES_CONTENT = b"\x00", b"\x02"
_PARQUET, _PUFFIN = b"\x0ePARQUET", b"\x0cPUFFIN"
"""The kinds of content and the formats of files, as Avro has them."""
_Bounds: TypeAlias = "pa.Array | None"


def data_files(
    files: FileTable, config: TableConfig, layout: IcebergLayout, store: Store, entries_max: int
) -> Iterator[Entries]:
    """Yield the entries of the files, in their order, at most ``entries_max`` at once.

    Raises:
        UnsupportedError: a partition value is no value of Iceberg
            (DELTA_UNIVERSAL_FORMAT_VIOLATION).
        CorruptTableError: the footer of a file is needed and cannot be read.
    """
    size = max(entries_max, _SLICE_FILES // entries_max * entries_max)
    for start in range(0, len(files), size):
        some = FileTable(files.rows.slice(start, size))
        encoded = _encoded(some, config, layout, store)
        for place in range(0, len(some), entries_max):
            yield encoded.entries(place, min(place + entries_max, len(some)))


@dataclass(frozen=True, slots=True)
class _EncodedFiles:
    """The entries of many files."""

    records: pa.Array
    rows: Numbers
    places: Sequence[Numbers]
    partitions: Sequence[_PartitionColumn]

    def entries(self, start: int, end: int) -> Entries:
        return Entries(
            records=self.records.slice(start, end - start),
            rows=self.rows[start:end],
            places=[one[start:end] for one in self.places],
            summaries=[one.summary(start, end) for one in self.partitions],
        )


def _encoded(
    files: FileTable, config: TableConfig, layout: IcebergLayout, store: Store
) -> _EncodedFiles:
    num_files = len(files)
    rows = np.array(_row_counts(files, store), np.int64)
    counts = varints(rows)
    paths = sized(pa.array(file_locations(files, store.root_uri), pa.large_string()), _DATA_CONTENT)
    partitions = _partitions(files, config, layout)
    head = joined([paths, _PARQUET, *(one.encoded for one in partitions)], num_files)
    sizes = varints(files.rows["size_bytes"].to_numpy())
    nulls, low, high = _statistics(files, config, layout, rows)
    values = [_with_key(number, counts, pc.is_valid(one)) for number, one in nulls.items()]
    null_counts = [
        _with_key(number, varints(pc.fill_null(one, 0).to_numpy()), pc.is_valid(one))
        for number, one in nulls.items()
    ]
    columns: list[FieldBytes] = [
        *(head, counts, sizes),
        ABSENT,  # the sizes of columns
        *mapping(values, num_files),
        *mapping(null_counts, num_files),
        ABSENT,  # the numbers of NaN
        *mapping(low, num_files),
        *mapping(high, num_files),
        ABSENT * 4,  # key, places to split, ids of equality, order
    ]
    return _EncodedFiles(
        records=joined(columns, num_files),
        rows=rows,
        places=[pc.binary_length(head).to_numpy()],
        partitions=partitions,
    )


def vector_entries(
    files: FileTable,
    config: TableConfig,
    layout: IcebergLayout,
    store: Store,
    write: Callable[[bytes], str],
) -> Iterator[Entries]:
    """Yield the entries of the files' deletion vectors, which ``write`` puts into Puffin files.

    All of a Puffin file's vectors are in one snapshot: pyiceberg reads the whole file.

    Raises:
        CorruptTableError: a vector cannot be read.
    """
    for start in range(0, len(files), PUFFIN_VECTORS_MAX):
        some = FileTable(files.rows.slice(start, PUFFIN_VECTORS_MAX))
        blobs = read_blobs(some, store.root_uri, open_at=store.at)
        locations = file_locations(some, store.root_uri)
        rows = some.deleted_counts().to_numpy()
        vectors = [(path, rows[n], blobs[n]) for n, path in enumerate(locations)]
        content, offsets = puffin_file(vectors)
        partitions = _partitions(some, config, layout)
        path = sized(pa.array([write(content)], pa.large_string()), _DELETES_CONTENT)[0].as_py()
        head = joined([path, _PUFFIN, *(one.encoded for one in partitions)], len(some))
        size = varint(len(content))
        # No statistics, key, places to split, ids of equality, order and id of a row.
        body = joined([head, varints(rows), size, ABSENT * 11], len(some))
        lengths = np.array([len(data) for _, _, data in vectors], np.int64)
        records = joined(
            [
                body,
                *(PRESENT, sized(pa.array(locations, pa.large_string()))),
                *(PRESENT, varints(np.array(offsets, np.int64))),
                *(PRESENT, varints(lengths)),
            ],
            len(some),
        )
        places = [pc.binary_length(one).to_numpy() for one in (head, body)]
        yield _EncodedFiles(records, rows, places, partitions).entries(0, len(some))


def _with_key(number: int, values: pa.Array, valid: pa.Array) -> pa.Array:
    key, nothing = (pa.scalar(one, pa.large_binary()) for one in (varint(number), b""))
    found = pc.binary_join_element_wise(key, values, nothing)
    return found if pc.all(valid, min_count=0).as_py() else pc.if_else(valid, found, None)


def file_locations(files: FileTable, root_uri: str) -> list[str]:
    """Return the location of each file as Iceberg's metadata names it."""
    paths = absolute_uris(root_uri, files.rows["path"].to_pylist())
    return [iceberg_location(uri) for uri in paths]


def _row_counts(files: FileTable, store: Store) -> list[int]:
    counts: list[Any] = files.record_counts().to_pylist()
    unknown = [place for place, count in enumerate(counts) if count is None]
    if unknown:
        adds = list(files.take(unknown).adds())

        def read_end(file: Add, num_bytes: int) -> FileEnd:
            return read_end_of(file, store, num_bytes)

        def num_rows(_file: Add, footer: pq.FileMetaData) -> int:
            return int(footer.num_rows)

        found = map_footers(adds, num_rows, read_end=read_end, name=lambda file: file.path)
        for place, count in zip(unknown, found, strict=True):
            counts[place] = count
    return counts


# --- partition values -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _PartitionColumn:
    """The values of one column that partitions the table."""

    summarize: Callable[[Iterable[Any]], PartitionFieldSummary]
    values: Sequence[Any]
    """The different values, NULL last."""
    indices: Numbers
    """The place of each file's value."""
    encoded: pa.Array
    """The field of each file."""

    def summary(self, start: int, end: int) -> PartitionFieldSummary:
        """Return what the values of some files have in common."""
        some, firsts = np.unique(self.indices[start:end], return_index=True)
        return self.summarize(self.values[place] for place in some[np.argsort(firsts)].tolist())


def _partitions(
    files: FileTable, config: TableConfig, layout: IcebergLayout
) -> list[_PartitionColumn]:
    columns = []
    for one, name, shown in zip(
        config.partition_schema.fields,
        config.physical_partition_columns,
        layout.partition_fields,
        strict=True,
    ):
        encoded_texts = pc.dictionary_encode(files.partition_texts(name)).combine_chunks()
        values = [
            partition_value(t, one.type, one.name) for t in encoded_texts.dictionary.to_pylist()
        ]
        encode, summarize = value_encoder(shown.field_type), partial(summary, shown.field_type)
        fields = [ABSENT if v is None else PRESENT + encode(v) for v in values]
        indices = pc.fill_null(encoded_texts.indices, len(values)).to_numpy().astype(np.int64)
        encoded = pa.array([*fields, ABSENT], pa.large_binary()).take(pa.array(indices))
        columns.append(_PartitionColumn(summarize, [*values, None], indices, encoded))
    return columns


def partition_value(text: str | None, kind: DataType, column: str) -> Any:
    """Return a partition value of the log as Iceberg has it: days and microseconds are numbers.

    Raises:
        UnsupportedError: the text is no value of the type, or a time without a zone
            (DELTA_UNIVERSAL_FORMAT_VIOLATION).

    >>> partition_value("1970-01-03", PrimitiveType("date"), "day")
    2
    """
    found: Any = partition_identity(text, kind)
    if found is None:
        return None
    is_text = isinstance(found, tuple) and found[0] == "text"
    name = kind.name if isinstance(kind, PrimitiveType) else ""
    if is_text or (name == "timestamp" and not found[0]):
        raise UnsupportedError(
            Message.UNIVERSAL_FORMAT_VIOLATION_PARTITION,
            format="iceberg",
            column=column,
            value=text,
        )
    match name:
        case "date":
            return found[1] - _EPOCH_DAY
        case "timestamp" | "timestamp_ntz":
            time = found[2]
            micros = (time.days * 86_400 + time.seconds) * 1_000_000 + time.microseconds
            return (found[1] - _EPOCH_DAY) * _DAY_MICROS + micros
        case "float" | "double":
            return parse_partition_value(text, kind, timezone.utc)  # with the sign of a zero
        case _:
            return found


# --- statistics -----------------------------------------------------------------------------


def _statistics(
    files: FileTable, config: TableConfig, layout: IcebergLayout, rows: Numbers
) -> tuple[dict[int, pa.Array], list[pa.Array], list[pa.Array]]:
    """Return the NULL counts by field id, and the entries of lower and upper bounds."""
    leaves = _leaves(config, layout)
    kinds = {path: kind for path, (kind, _) in leaves.items()}
    parsed = NOTHING_PARSED.parsed(files, kinds).of(kinds)
    is_exact = pc.equal(files.deleted_counts(), 0).combine_chunks()
    nulls, lows, highs = {}, [], []
    for path, (kind, number) in leaves.items():
        column = parsed.leaves[path]
        nulls[number] = _null_counts(column, pa.array(rows), is_exact)
        if column.low is not None and column.high is not None:
            lows.append(_bounds(column.low, kind, number, zero=-0.0))
            highs.append(_bounds(column.high, kind, number, zero=0.0))
    some = {number: counts for number, counts in nulls.items() if counts.null_count < len(counts)}
    return some, _not_empty(lows), _not_empty(highs)


def _not_empty(bounds: Sequence[_Bounds]) -> list[pa.Array]:
    return [one for one in bounds if one is not None and one.null_count < len(one)]


def _leaves(
    config: TableConfig, layout: IcebergLayout
) -> Mapping[tuple[str, ...], tuple[DataType, int]]:
    """Return type and field id of each leaf with statistics, by its path in files."""
    found = {}
    for path, one in struct_fields(config.schema):
        if path[0] in config.partition_columns or isinstance(one.type, StructType):
            continue
        if isinstance(one.type, PrimitiveType | DecimalType) and find_fields(config.schema, path):
            physical = config.physical_path(path)
            found[physical] = (one.type, layout.ids[physical])
    return found


def _null_counts(column: StatisticsColumn, rows: pa.Array, is_exact: pa.Array) -> pa.Array:
    """Return the counts that are true of the whole file: those of deleted rows may be missing."""
    counts = column.null_count
    of_all = pc.or_(pc.equal(counts, 0), pc.equal(counts, rows))
    return pc.if_else(pc.or_(is_exact, of_all), counts, None)


_WIDTHS = {"byte": "<i4", "short": "<i4", "integer": "<i4", "long": "<i8", "float": "<f4",
           "double": "<f8", "date": "<i4", "timestamp": "<i8", "timestamp_ntz": "<i8"}  # fmt: skip


def _bounds(bounds: pa.Array, kind: DataType, number: int, *, zero: float) -> _Bounds:
    """Return bounds as Iceberg writes them, after the id; NULL where there is none of the type.

    Both zeros are equal, so the outer one is written.
    """
    key = varint(number)
    if isinstance(kind, DecimalType):
        return _decimals(bounds, kind, key)
    name = kind.name if isinstance(kind, PrimitiveType) else ""
    if name not in _WIDTHS:
        return sized(bounds, key)
    valid = pc.is_valid(bounds).to_numpy(zero_copy_only=False)
    if pa.types.is_date32(bounds.type):
        bounds = bounds.cast(pa.int32())
    values = pc.fill_null(bounds, 0).to_numpy()
    width = np.dtype(_WIDTHS[name])
    if width.kind == "f":
        valid = valid & ~np.isnan(values)
        values = np.where(values == 0, zero, values)
        with np.errstate(over="ignore"):
            packed = values.astype(width)
        valid &= np.isinf(packed) == np.isinf(values)
    else:
        limits = np.iinfo(width)
        valid = valid & (values >= limits.min) & (values <= limits.max)
        packed = values.astype(width)
    return fixed(key + varint(width.itemsize), packed, valid)


def _decimals(bounds: pa.Array, kind: DecimalType, key: bytes) -> pa.Array:
    """Return decimals without their point, big-endian, in as few bytes as can be."""
    end = bounds.offset + len(bounds)
    words = np.frombuffer(bounds.buffers()[1], np.uint8, count=16 * end)
    content = words.reshape(-1, 16)[bounds.offset :, ::-1]
    sign = np.where(content[:, :1] & _SIGN, 0xFF, 0).astype(np.uint8)
    # A leading byte says nothing if it and the first bit after it are the sign.
    is_sign = (content[:, :-1] == sign) & ((content[:, 1:] ^ sign) & _SIGN == 0)
    firsts = np.cumprod(is_sign, axis=1).sum(axis=1)
    shown = np.arange(16) >= firsts[:, None]
    digits = texts(offsets_of(16 - firsts), content[shown])
    # JSON may have more digits than the type.
    wide = bounds.cast(pa.decimal256(76, kind.scale))
    limit = Decimal(10 ** (kind.precision - kind.scale))
    above, below = (pa.scalar(one, wide.type) for one in (-limit, limit))
    valid = pc.and_(pc.greater(wide, above), pc.less(wide, below))
    return sized(pc.if_else(valid, digits, None), key)
