"""Data files of a Delta table as entries of Iceberg's manifests.

Partition values come from the log, bounds and counts from the statistics of the log. Statistics
that are missing or that prove nothing are left out; a missing number of rows is read from the
footer of the file, because Iceberg requires it.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import timezone
from functools import partial
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyiceberg import types as I
from pyiceberg.conversions import to_bytes
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.typedef import Record

from puredelta.errors import Message, UnsupportedError
from puredelta.iceberg.schema import IcebergLayout
from puredelta.iceberg.storage import iceberg_location
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
_Bounds: TypeAlias = "list[bytes | None]"


def data_files(
    files: FileTable, config: TableConfig, layout: IcebergLayout, store: Store
) -> Iterator[DataFile]:
    """Yield the entry of each file, in their order.

    Raises:
        UnsupportedError: a partition value is no value of Iceberg
            (DELTA_UNIVERSAL_FORMAT_VIOLATION).
        CorruptTableError: the footer of a file is needed and cannot be read.
    """
    paths = file_locations(files, store.root_uri)
    rows = _row_counts(files, store)
    sizes = files.rows["size_bytes"].to_pylist()
    partitions = _partitions(files, config)
    statistics = _statistics(files, config, layout, rows)
    for path, count, size, values, (nulls, low, high) in zip(
        paths, rows, sizes, partitions, statistics, strict=True
    ):
        yield DataFile.from_args(
            content=DataFileContent.DATA,
            file_path=path,
            file_format=FileFormat.PARQUET,
            partition=Record(*values),
            record_count=count,
            file_size_in_bytes=size,
            column_sizes=None,
            value_counts=dict.fromkeys(nulls, count) or None,
            null_value_counts=nulls or None,
            nan_value_counts=None,
            lower_bounds=low or None,
            upper_bounds=high or None,
            key_metadata=None,
            split_offsets=None,
            equality_ids=None,
            sort_order_id=None,
        )


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


def _partitions(files: FileTable, config: TableConfig) -> list[tuple[Any, ...]]:
    columns = []
    for one, name in zip(
        config.partition_schema.fields, config.physical_partition_columns, strict=True
    ):
        encoded = pc.dictionary_encode(files.partition_texts(name)).combine_chunks()
        texts = encoded.dictionary.to_pylist()
        values = [*(partition_value(text, one.type, one.name) for text in texts), None]
        columns.append([values[place] for place in pc.fill_null(encoded.indices, -1).to_pylist()])
    return list(zip(*columns, strict=True)) if columns else [()] * len(files)


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
    files: FileTable, config: TableConfig, layout: IcebergLayout, rows: Sequence[int]
) -> Iterator[tuple[dict[int, int], dict[int, bytes], dict[int, bytes]]]:
    """Yield NULL counts, lower bounds and upper bounds of each file, by field id."""
    leaves = _leaves(config, layout)
    kinds = {path: kind for path, (kind, _) in leaves.items()}
    parsed = NOTHING_PARSED.parsed(files, kinds).of(kinds)
    is_exact = pc.equal(files.deleted_counts(), 0).to_pylist()
    columns = [
        (
            number,
            _null_counts(parsed.leaves[path], rows, is_exact),
            *_bounds(parsed.leaves[path], kind),
        )
        for path, (kind, number) in leaves.items()
    ]
    for place in range(len(files)):
        nulls, low, high = {}, {}, {}
        for number, null_counts, lows, highs in columns:
            if (count := null_counts[place]) is not None:
                nulls[number] = count
            if (bound := lows[place]) is not None:
                low[number] = bound
            if (bound := highs[place]) is not None:
                high[number] = bound
        yield nulls, low, high


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


def _null_counts(
    column: StatisticsColumn, rows: Sequence[int], is_exact: Sequence[bool]
) -> list[int | None]:
    """Return the counts that are true of the whole file: those of deleted rows may be missing."""
    return [
        count if count is not None and (exact or count in {0, total}) else None
        for count, total, exact in zip(column.null_count.to_pylist(), rows, is_exact, strict=True)
    ]


def _bounds(column: StatisticsColumn, kind: DataType) -> tuple[_Bounds, _Bounds]:
    if column.low is None or column.high is None:
        nothing: _Bounds = [None] * len(column.null_count)
        return nothing, nothing
    pack = _packer(kind)
    return (
        [_packed(pack, value, -0.0) for value in _plain(column.low)],
        [_packed(pack, value, 0.0) for value in _plain(column.high)],
    )


def _plain(bounds: pa.Array) -> list[Any]:
    """Return the values, days as numbers: Python has no years before 1."""
    if pa.types.is_date32(bounds.type):
        bounds = bounds.cast(pa.int32())
    return [value.as_py() for value in bounds]


def _packed(pack: Callable[[Any], bytes], value: Any, zero: float) -> bytes | None:
    """Return a bound as Iceberg writes it; both zeros are equal, so the outer one is written."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    try:
        return pack(zero if isinstance(value, float) and value == 0 else value)
    except (struct.error, OverflowError, ValueError, UnicodeEncodeError):
        return None  # no value of the type


_FORMATS = {"byte": "<i", "short": "<i", "integer": "<i", "long": "<q", "float": "<f",
            "double": "<d", "date": "<i", "timestamp": "<q", "timestamp_ntz": "<q"}  # fmt: skip


def _packer(kind: DataType) -> Callable[[Any], bytes]:
    match kind:
        case DecimalType(precision, scale):
            return partial(to_bytes, I.DecimalType(precision, scale))
        case PrimitiveType(name) if name in _FORMATS:
            return partial(struct.pack, _FORMATS[name])
        case _:
            return str.encode
