"""The first rows of a version, read by Arrow in this process: no Spark, and few files."""

from __future__ import annotations

from itertools import chain, islice

import pyarrow as pa
from typing_extensions import assert_never

from puredelta.errors import ErrorCode, UnsupportedError
from puredelta.log.changes.file_rows import list_files, read_batches
from puredelta.log.files.stored_types import stored_type
from puredelta.log.replay.snapshot import Snapshot
from puredelta.protocol.schema.types import (
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    PrimitiveType,
    StructType,
    is_spatial,
)

_BATCH_ROWS_MAX = 4_096


def first_rows(snapshot: Snapshot, limit: int) -> pa.Table:
    """Return at most ``limit`` rows of a version, in the order of its files.

    Rows that deletion vectors delete are left out, columns have their names and types of now.

    Raises:
        UnsupportedError: a column has a type that Arrow does not know.
        CorruptTableError: a deletion vector is damaged.
        FileNotFoundError: a data file is gone.
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
    """Return the Arrow types of a table's columns.

    Raises:
        UnsupportedError: a column has a type that Arrow does not know.
    """
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
                    f"Column {column!r} has a type that only Spark reads: {data_type}. Read the "
                    "table with puredelta.read(spark, path).",
                    code=ErrorCode.UNSUPPORTED_FEATURES_FOR_READ,
                    column=column,
                )
            return stored
        case _:
            assert_never(data_type)
