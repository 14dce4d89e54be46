"""The rows of a table as a Python data source has them: what Spark expects, file by file.

Everything here goes to workers or is asked before any row is read.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql import types as T
from pyspark.sql.pandas.types import to_arrow_schema

from puredelta.errors import ErrorCode, UnsupportedError
from puredelta.log.changes.file_rows import ReadableFile, read_batches
from puredelta.protocol.features.column_mapping import physical_name
from puredelta.protocol.features.properties import ColumnMappingMode
from puredelta.protocol.schema.traversal import primitive_names
from puredelta.protocol.schema.types import PRIMITIVE_NAMES, TIMESTAMP, StructType
from puredelta.protocol.table.change_data import change_schema, require_no_change_columns
from puredelta.protocol.table.table_config import TableConfig
from puredelta.spark.session.types import as_nullable, to_spark, without_table_metadata
from puredelta.store.registry import Storage

ACTIVATE = "Call puredelta.activate(spark) first."
"""The next step, in every error of the data source."""


class SourceRows:
    """Reads any file of a table as the columns of the table, or of its change data feed."""

    def __init__(
        self, config: TableConfig, *, changes: bool = False, storage: Storage | None = None
    ) -> None:
        """``storage`` says how files are reached, by default as the environment does."""
        self._storage = Storage() if storage is None else storage
        if changes:
            require_no_change_columns(config.schema.names, was_enabled=False)
        self._schema = change_schema(config.schema) if changes else config.schema
        self._mode: ColumnMappingMode = config.column_mapping

    @property
    def spark_schema(self) -> T.StructType:
        """The columns, all of them nullable."""
        return without_table_metadata(_nullable(self._schema))

    def __call__(self, file: ReadableFile) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a file."""
        by_log = [
            field.name
            for field in self._schema.fields
            if physical_name(field, self._mode) in file.partition_values
        ]
        return read_batches(
            file,
            self._schema,
            _arrow_schema(_nullable(self._schema)),
            partition_columns=by_log,
            mode=self._mode,
            open_at=self._storage.open,
        )


def require_plain(config: TableConfig) -> None:
    """Refuse tables whose rows would not be what Spark itself reads.

    Raises:
        UnsupportedError: names what only an activated session reads.
    """
    odd = sorted({name for _, name in primitive_names(config.schema)} - PRIMITIVE_NAMES)
    if config.column_mapping is ColumnMappingMode.ID:
        raise not_activated("Reading a table with column mapping mode id")
    if odd:
        raise not_activated(f"Reading a column of type {odd[0]}")
    if config.padded_columns:
        raise not_activated("Reading columns of type char(n)")
    if any(field.type == TIMESTAMP for field in config.partition_schema.fields):
        raise not_activated("Reading a table that is partitioned by a timestamp")


def not_activated(what: str) -> UnsupportedError:
    """Build the error for what the data source does not do."""
    return UnsupportedError(
        f"{what} with format 'delta' is not possible in a session that is not activated. "
        f"{ACTIVATE}",
        code=ErrorCode.OPERATION_NOT_ALLOWED,
    )


def _nullable(schema: StructType) -> T.StructType:
    nullable = as_nullable(without_table_metadata(to_spark(schema)))
    assert isinstance(nullable, T.StructType)  # noqa: S101 - of a struct
    return nullable


def _arrow_schema(schema: T.StructType) -> pa.Schema:
    """Return the Arrow schema that Spark expects of the batches, to the letter."""
    convert: Any = to_arrow_schema
    try:
        return convert(schema, timezone="UTC")
    except TypeError:  # before PySpark 4.1
        return convert(schema)
