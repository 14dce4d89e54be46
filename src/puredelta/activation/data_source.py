"""Format ``delta`` for sessions that nobody activated, and for streams: a Python data source.

Spark finds it by itself where the package is installed (the top-level module
``pyspark_puredelta``). Rows come through Python workers: slower than the native scan of an
activated session, with every column read. What it cannot do right it refuses, and says what
does it.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Sequence
from typing import Any, NoReturn

import pyarrow as pa
from pyspark.sql import types as T
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from typing_extensions import assert_never

from puredelta.activation.stream_source import DeltaStreamReader, StreamStart
from puredelta.commands.read import parse_version
from puredelta.errors import ErrorCode, InvalidRequestError, UnsupportedError
from puredelta.log.file_rows import FileRows, list_files, read_batches
from puredelta.log.snapshot import Snapshot
from puredelta.log.stream_files import StreamRules
from puredelta.log.table_log import TableLog
from puredelta.protocol.properties import ColumnMappingMode
from puredelta.protocol.table_config import TableConfig
from puredelta.protocol.types import (
    TIMESTAMP,
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    PrimitiveType,
    StructType,
)
from puredelta.spark.types import as_nullable, to_spark, without_table_metadata
from puredelta.sql.lexer import keywords

_ACTIVATE = "Call puredelta.activate(spark) first."
_PLAIN = keywords(
    "string long integer short byte float double boolean binary date timestamp timestamp_ntz void"
)
_CHANGES = ("readChangeFeed", "readChangeData")


class DeltaSource(DataSource):
    """Reads a table at a path; ``versionAsOf`` and ``timestampAsOf`` choose its state."""

    @classmethod
    def name(cls) -> str:
        """Return the format's name."""
        return "delta"

    def schema(self) -> T.StructType:
        """Return the table's columns, all of them nullable."""
        return _spark_schema(_snapshot(self.options).config)

    def reader(self, schema: T.StructType) -> DeltaReader:
        """Return what reads the table.

        Raises:
            UnsupportedError: the table needs what only an activated session has.
            InvalidRequestError: the table has other columns by now, or a schema was given.
        """
        snapshot = _snapshot(self.options)
        _require_readable(snapshot.config)
        if schema != _spark_schema(snapshot.config):
            raise InvalidRequestError(
                "Delta does not support specifying the schema at read time, and the table's own "
                f"is not (or no longer) {schema.simpleString()}. Load the table again.",
                code=ErrorCode.UNSUPPORTED_SCHEMA_DURING_READ,
            )
        return DeltaReader(snapshot)

    def writer(self, schema: T.StructType, overwrite: bool) -> NoReturn:  # noqa: ARG002, FBT001
        """Refuse: a write is a commit, and the options of one do not come here."""
        raise _unsupported("Writing")

    def streamReader(self, schema: T.StructType) -> DeltaStreamReader:  # noqa: ARG002, N802
        """Return what reads the table's commits as they come.

        Raises:
            UnsupportedError: the table needs what only an activated session has.
            InvalidRequestError: a version or time is chosen, which a stream cannot have.
        """
        for name in ("versionAsOf", "timestampAsOf"):
            if self.options.get(name) is not None:
                raise InvalidRequestError(
                    f"Cannot time travel streams ({name}). Use startingVersion or "
                    "startingTimestamp.",
                    code=ErrorCode.UNSUPPORTED_TIME_TRAVEL_VIEWS,
                )
        snapshot = _snapshot(self.options)
        _require_readable(snapshot.config)
        starting_at = self.options.get("startingTimestamp")
        return DeltaStreamReader(
            snapshot,
            _FileReader(snapshot.config),
            start=StreamStart(
                version=self.options.get("startingVersion"),
                timestamp_ms=None
                if starting_at is None
                else _moment_ms(str(starting_at), option="startingTimestamp"),
            ),
            rules=StreamRules(
                ignore_deletes=self._flag("ignoreDeletes"),
                ignore_changes=self._flag("ignoreChanges"),
                skip_change_commits=self._flag("skipChangeCommits"),
            ),
        )

    def streamWriter(self, schema: T.StructType, overwrite: bool) -> NoReturn:  # noqa: ARG002, FBT001, N802
        """Refuse: an activated session writes streams by other means."""
        raise UnsupportedError(
            "writeStream with format 'delta' is not possible in a session that is not activated. "
            "Call puredelta.activate(spark) first, or write with foreachBatch and "
            "puredelta.write or a MERGE, with txnAppId and txnVersion to be safe against "
            "repetition.",
            code=ErrorCode.OPERATION_NOT_ALLOWED,
        )

    def _flag(self, name: str) -> bool:
        return str(self.options.get(name)).lower() == "true"


class DeltaReader(DataSourceReader):
    """Reads the files of one version, a task each."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._files = list_files(snapshot)
        self._read = _FileReader(snapshot.config)

    def partitions(self) -> Sequence[InputPartition]:
        """Return one partition per file."""
        return [InputPartition(file) for file in self._files]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a file; a table without files has one partition without one."""
        return iter(()) if partition.value is None else self._read(partition.value)


class _FileReader:
    """Reads any file of a table as the table's columns; goes to workers."""

    def __init__(self, config: TableConfig) -> None:
        self._schema: StructType = config.schema
        self._partition_columns: tuple[str, ...] = config.partition_columns
        self._mode: ColumnMappingMode = config.column_mapping

    def __call__(self, file: FileRows) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a file."""
        return read_batches(
            file,
            self._schema,
            _arrow_schema(_nullable(self._schema)),
            partition_columns=self._partition_columns,
            mode=self._mode,
        )


def _snapshot(options: Any) -> Snapshot:
    """Return the state of the table that the options name."""
    path = options.get("path")
    if path is None:
        raise InvalidRequestError(
            "'path' is not specified: name the table's directory in load(path). Tables of the "
            f"catalog are read by activated sessions only. {_ACTIVATE}",
            code=ErrorCode.OPERATION_NOT_ALLOWED,
        )
    if any(str(options.get(name)).lower() == "true" for name in _CHANGES):
        raise _unsupported("Reading the change data feed")
    version, timestamp = options.get("versionAsOf"), options.get("timestampAsOf")
    if version is not None and timestamp is not None:
        raise InvalidRequestError(
            "Please either provide 'timestampAsOf' or 'versionAsOf' for time travel, not both.",
            code=ErrorCode.ONE_OF_IN_TIME_TRAVEL,
        )
    log = TableLog.open(str(path))
    if timestamp is not None:
        return log.snapshot(timestamp_ms=_moment_ms(str(timestamp)))
    return log.snapshot(version=None if version is None else parse_version(version))


def _moment_ms(text: str, *, option: str = "timestampAsOf") -> int:
    """Return milliseconds since 1970; a worker does not know the session's time zone."""
    try:
        moment = dt.datetime.fromisoformat(text.strip().replace("Z", "+00:00"))
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None:
        raise InvalidRequestError(
            f"{option} is {text!r}: without activation it must be an ISO 8601 timestamp with "
            f"its offset, such as 2025-01-31T12:00:00+00:00. {_ACTIVATE}",
            code=ErrorCode.TIMESTAMP_INVALID,
            timestamp=text,
        )
    return int(moment.timestamp() * 1000)


def _spark_schema(config: TableConfig) -> T.StructType:
    return without_table_metadata(_nullable(config.schema))


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


def _require_readable(config: TableConfig) -> None:
    """Refuse tables whose rows would not be what Spark itself reads."""
    odd = sorted(set(_type_names(config.schema)) - _PLAIN)
    if config.column_mapping is ColumnMappingMode.ID:
        raise _unsupported("Reading a table with column mapping mode id")
    if odd:
        raise _unsupported(f"Reading a column of type {odd[0]}")
    if config.padded_columns:
        raise _unsupported("Reading columns of type char(n)")
    if any(field.type == TIMESTAMP for field in config.partition_schema.fields):
        raise _unsupported("Reading a table that is partitioned by a timestamp")


def _type_names(kind: DataType) -> Iterator[str]:
    match kind:
        case PrimitiveType(name):
            yield name
        case DecimalType():
            return
        case StructType(fields):
            for field in fields:
                yield from _type_names(field.type)
        case ArrayType(element):
            yield from _type_names(element)
        case MapType(key, value):
            yield from _type_names(key)
            yield from _type_names(value)
        case _:
            assert_never(kind)


def _unsupported(what: str) -> UnsupportedError:
    return UnsupportedError(
        f"{what} with format 'delta' is not possible in a session that is not activated. "
        f"{_ACTIVATE}",
        code=ErrorCode.OPERATION_NOT_ALLOWED,
    )
