"""A table as values of JSON, and the first rows of a version."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping
from itertools import chain, islice
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
from typing_extensions import assert_never

from puredelta.errors import Message, UnsupportedError
from puredelta.log.changes.file_rows import list_files, read_batches
from puredelta.log.files.value_order import stored_type
from puredelta.log.replay.history import HistoryEntry
from puredelta.log.replay.snapshot import Snapshot
from puredelta.protocol.actions.actions import CommitInfo
from puredelta.protocol.actions.paths import decode_path, short_uri
from puredelta.protocol.schema.schema_json import simple_string
from puredelta.protocol.schema.types import (
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    PrimitiveType,
    StructType,
    is_spatial,
)
from puredelta.protocol.table.clustering import clustering_columns

Row: TypeAlias = dict[str, Any]


def time_text(time_ms: int) -> str:
    """Return a moment as ISO 8601 in UTC, to the millisecond.

    >>> time_text(1_700_000_000_123)
    '2023-11-14T22:13:20.123Z'
    """
    try:
        moment = dt.datetime.fromtimestamp(time_ms // 1000, tz=dt.timezone.utc)
    except (OverflowError, ValueError, OSError):
        return f"{time_ms} ms"
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{time_ms % 1000:03d}Z"


def history_row(entry: HistoryEntry) -> Row:
    """Return a commit under the names of DESCRIBE HISTORY."""
    info = entry.commit_info or CommitInfo()
    return {
        "version": entry.version,
        "timestamp": time_text(entry.timestamp_ms),
        "operation": info.operation,
        "operationParameters": dict(info.operation_parameters),
        "operationMetrics": _counts(info.operation_metrics),
        "readVersion": info.read_version,
        "isolationLevel": info.isolation_level,
        "isBlindAppend": info.is_blind_append,
        "userMetadata": info.user_metadata,
        "engineInfo": info.engine_info,
    }


def detail_row(snapshot: Snapshot) -> Row:
    """Return a version under the names of DESCRIBE DETAIL, with its rows and columns."""
    metadata, protocol = snapshot.metadata, snapshot.protocol
    created_ms = metadata.created_ms
    return {
        "format": "delta",
        "id": metadata.id,
        "name": metadata.name,
        "description": metadata.description,
        "location": short_uri(snapshot.root_uri),
        "version": snapshot.version,
        "createdAt": None if created_ms is None else time_text(created_ms),
        "lastModified": time_text(snapshot.timestamp_ms),
        "partitionColumns": list(metadata.partition_columns),
        "clusteringColumns": [
            ".".join(path) for path in clustering_columns(snapshot.config, snapshot.domain_metadata)
        ],
        "numFiles": len(snapshot.files),
        "sizeInBytes": snapshot.files.total_size_bytes,
        "numRows": snapshot.files.num_records(),
        "columns": {f.name: simple_string(f.type) for f in snapshot.config.schema.fields},
        "properties": dict(metadata.configuration),
        "minReaderVersion": protocol.min_reader_version,
        "minWriterVersion": protocol.min_writer_version,
        "tableFeatures": sorted(snapshot.config.supported_features),
    }


def file_rows(snapshot: Snapshot, *, limit: int | None = None) -> Iterator[Row]:
    """Yield the active files, the largest first, at most ``limit``."""
    sizes = snapshot.files.rows["size_bytes"]
    order = pc.sort_indices(pa.table({"size": sizes}), [("size", "descending")])
    chosen = snapshot.files.take(order.slice(0, limit))
    counts = chosen.record_counts().to_pylist()
    deleted = chosen.deleted_counts().to_pylist()
    for add, rows, gone in zip(chosen.adds(), counts, deleted, strict=True):
        yield {
            "path": decode_path(add.path),
            "sizeInBytes": add.size_bytes,
            "numRows": None if rows is None else rows - gone,
            "numDeletedRows": gone,
            "partitionValues": dict(add.partition_values),
            "modified": time_text(add.modified_ms),
        }


def _counts(metrics: Mapping[str, str] | None) -> dict[str, int | str]:
    """Return numeric metrics as numbers."""
    found: dict[str, int | str] = {}
    for name, value in (metrics or {}).items():
        text = str(value)
        found[name] = int(text) if text.isascii() and text.isdigit() else text
    return found


_BATCH_ROWS_MAX = 4_096


def first_rows(snapshot: Snapshot, limit: int) -> pa.Table:
    """Return at most ``limit`` rows of a version, in the order of its files.

    Deleted rows are left out; columns have their present names and types.
    """
    config = snapshot.config
    wanted = arrow_schema(config.schema)
    batches = chain.from_iterable(
        read_batches(
            file,
            config.schema,
            wanted,
            partition_columns=config.partition_columns,
            mode=config.column_mapping,
            batch_rows=max(1, min(limit, _BATCH_ROWS_MAX)),
        )
        for file in list_files(snapshot)
    )
    found: list[pa.RecordBatch] = []
    missing = limit
    while missing > 0 and (batch := next(islice(batches, 1), None)) is not None:
        found.append(batch.slice(0, missing))
        missing -= found[-1].num_rows
    return pa.Table.from_batches(found, schema=wanted)


def arrow_schema(schema: StructType) -> pa.Schema:
    """Return the Arrow types of a table's columns."""
    return pa.schema([pa.field(f.name, _arrow_type(f.type, f.name)) for f in schema.fields])


def _arrow_type(data_type: DataType, column: str) -> pa.DataType:
    match data_type:
        case StructType(fields):
            return pa.struct([pa.field(f.name, _arrow_type(f.type, column)) for f in fields])
        case ArrayType(element):
            return pa.list_(_arrow_type(element, column))
        case MapType(key, value):
            return pa.map_(_arrow_type(key, column), _arrow_type(value, column))
        case PrimitiveType() if is_spatial(data_type):
            return pa.binary()  # well-known binary
        case PrimitiveType() | DecimalType():
            stored = stored_type(data_type)
            if stored is None:
                raise UnsupportedError(
                    Message.UNSUPPORTED_FEATURES_FOR_READ_COLUMN, data_type=data_type, column=column
                )
            return stored
        case _:
            assert_never(data_type)
