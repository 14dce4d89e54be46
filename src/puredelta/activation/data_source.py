"""Format ``delta`` as a Python data source: sessions without activation, and streams.

Spark finds the source itself where the package is installed (the top-level module
``pyspark_puredelta``). Rows come through Python workers: slower than the native scan of an
activated session, with every column read. Unsupported requests are refused, with the alternative.

Its objects are sent to workers, or called before any row is read.

Offsets are those of `puredelta.log.changes.stream_offsets`, so that a native stream, or
delta-spark's, can continue from a checkpoint of this one, and the reverse.
"""

from __future__ import annotations

import datetime as dt
import importlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from importlib.util import find_spec
from typing import Any, NoReturn

import pyarrow as pa
from pyspark.sql import types as T
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
)
from pyspark.sql.pandas.types import to_arrow_schema

from puredelta.commands.changes import ChangeSettings, MappedSchema, bound_of, find_changes
from puredelta.commands.read_table import parse_version
from puredelta.errors import InvalidRequestError, Message, UnsupportedError
from puredelta.log.changes.file_rows import ReadableFile, list_files, read_batches, readable_files
from puredelta.log.changes.stream import StreamLog, batch_adds, batch_changes, feed_files
from puredelta.log.changes.stream_offsets import EVERYTHING, StreamOffset
from puredelta.log.changes.stream_options import StreamOptions
from puredelta.log.changes.stream_schema import StreamedTable
from puredelta.log.replay.snapshot import Snapshot
from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.features.column_mapping import physical_name
from puredelta.protocol.features.properties import ColumnMappingMode
from puredelta.protocol.schema.traversal import primitive_names
from puredelta.protocol.schema.types import PRIMITIVE_NAMES, TIMESTAMP, StructType
from puredelta.protocol.table.change_data import change_schema, require_no_change_columns
from puredelta.protocol.table.table_config import TableConfig
from puredelta.spark.session.types import as_nullable, to_spark, without_table_metadata
from puredelta.store.registry import NO_SESSION, Storage
from puredelta.store.web_hdfs import WebHdfs, current_user

ACTIVATE = "Call puredelta.activate(spark) first."
"""The next step, in every error of the data source."""


class SourceRows:
    """Reader of any file of a table, with the columns of the table or of its change data feed."""

    def __init__(
        self, config: TableConfig, *, changes: bool = False, storage: Storage = NO_SESSION
    ) -> None:
        if changes:
            require_no_change_columns(config.schema.names, was_enabled=False)
        self._schema = change_schema(config.schema) if changes else config.schema
        self._mode: ColumnMappingMode = config.column_mapping
        self.storage = storage

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
            replace(file, open_at=self.storage.open),
            self._schema,
            _arrow_schema(_nullable(self._schema)),
            partition_columns=by_log,
            mode=self._mode,
        )


def require_plain(config: TableConfig) -> None:
    """Refuse tables whose rows would differ from those that Spark itself reads.

    Raises:
        UnsupportedError: names the feature that needs an activated session.
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
    """Build the error for an unsupported request to the data source."""
    return UnsupportedError(
        Message.OPERATION_NOT_ALLOWED_NOT_ACTIVATED, what=what, activate=ACTIVATE
    )


def _nullable(schema: StructType) -> T.StructType:
    nullable = as_nullable(without_table_metadata(to_spark(schema)))
    assert isinstance(nullable, T.StructType)  # noqa: S101 - of a struct
    return nullable


def _arrow_schema(schema: T.StructType) -> pa.Schema:
    """Return the exact Arrow schema that Spark expects of the batches."""
    convert: Any = to_arrow_schema
    try:
        return convert(schema, timezone="UTC")
    except TypeError:  # before PySpark 4.1
        return convert(schema)


Offset = dict[str, Any]

_MODULE = "pyspark.sql.streaming.datasource"
_LIMITS: Any = importlib.import_module(_MODULE) if find_spec(_MODULE) is not None else None
"""Since PySpark 4.2 a source may be asked for limited batches."""


class DeltaStreamReader(DataSourceStreamReader):
    """Reader of the files of the commits between two offsets, one task per file."""

    def __init__(self, table: StreamedTable, options: StreamOptions, rows: SourceRows) -> None:
        self._table = table
        self._options = options
        self._rows = rows
        self._opened: StreamLog | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Leave out cached state: workers get this object with every file."""
        return {**vars(self), "_opened": None}

    @property
    def _stream(self) -> StreamLog:
        stream = self._opened
        if stream is None:
            log = TableLog.open(self._table.root_uri, storage=self._rows.storage)
            streamed = self._options.streamed(self._table)
            stream = self._opened = StreamLog(log, streamed, self._options.settings)
        return stream

    def initialOffset(self) -> Offset:
        """Return the offset before the first row; errors as `StreamStart.first_version`."""
        return self._stream.beginning().values()

    def latestOffset(self) -> Offset:  # type: ignore[override]
        """Return the offset after the newest commit; before PySpark 4.2 sources have no limits."""
        return self._stream.newest().values()

    def partitions(self, start: Mapping[str, Any], end: Mapping[str, Any]) -> Sequence[Any]:
        """Return one partition per file added between two offsets; see `StreamLog`.

        Raises:
            InvalidRequestError: rows were removed, the columns have changed, the change data
                feed was off, or the checkpoint is that of another table.
        """
        stream = self._stream
        batch = stream.batch(stream.offset(start), stream.offset(end))
        files: Sequence[ReadableFile]
        if self._options.reads_changes:
            changes = batch_changes(batch, stream.log)
            files = tuple(feed_files(changes, stream.log.root_uri))
        else:
            files = readable_files(batch_adds(batch), stream.log.root_uri)
        return [InputPartition(file) for file in files]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a file."""
        return self._rows(partition.value)


if _LIMITS is not None:

    class LimitedStreamReader(DeltaStreamReader, _LIMITS.SupportsTriggerAvailableNow):  # type: ignore[misc]
        """A stream reader with limits of batches, and queries that end at the newest commit."""

        def __init__(self, table: StreamedTable, options: StreamOptions, rows: SourceRows) -> None:
            super().__init__(table, options, rows)
            self._bound: StreamOffset | None = None
            self._is_bounded = False

        def getDefaultReadLimit(self) -> Any:
            """Return the limit from the options; a limit of files replaces both limits."""
            limits = self._options.limits
            if limits.max_files is not None:
                return _LIMITS.ReadMaxFiles(limits.max_files)
            return _LIMITS.ReadMaxBytes(limits.max_bytes)

        def latestOffset(self, start: Offset, limit: Any) -> Offset:  # type: ignore[override]
            """Return the end of the next batch, ``start`` if there is nothing new.

            Raises:
                InvalidRequestError: rows were removed, the columns have changed, or the change
                    data feed was off.
            """
            stream, everything = self._stream, isinstance(limit, _LIMITS.ReadAllAvailable)
            begin = stream.offset(start)
            if self._is_bounded and self._bound is None:
                self._bound = stream.latest(begin) or begin
            found = stream.latest(
                begin, EVERYTHING if everything else self._options.limits, self._bound
            )
            return start if found is None or found is begin else found.values()

        def prepareForTriggerAvailableNow(self) -> None:
            """Fix the end of the query at its first request."""
            self._is_bounded, self._bound = True, None


def stream_reader(
    table: StreamedTable, options: StreamOptions, rows: SourceRows
) -> DeltaStreamReader:
    """Return the best reader that this PySpark supports."""
    if _LIMITS is None:
        return DeltaStreamReader(table, options, rows)
    return LimitedStreamReader(table, options, rows)


_CHANGES = ("readChangeFeed", "readChangeData")
_TIME_TRAVEL = ("versionAsOf", "timestampAsOf")

STORAGE_OPTION = "puredelta.storage.secret"
"""For streams: the value of `Storage.packed`. Spark hides options with such a name."""


class DeltaSource(DataSource):
    """Source of a table at a path; ``versionAsOf`` and ``timestampAsOf`` choose its version."""

    @classmethod
    def name(cls) -> str:
        """Return the format's name."""
        return "delta"

    def schema(self) -> T.StructType:
        """Return the table's columns, or those of its change data feed, all of them nullable."""
        return self._rows(self._snapshot()).spark_schema

    def reader(self, schema: T.StructType) -> DeltaReader:
        """Return a reader of the table, or of its changes.

        Raises:
            UnsupportedError: the table needs a feature of activated sessions.
            InvalidRequestError: the table has other columns by now, a schema was given, or the
                range of changes cannot be read (see `find_changes`).
        """
        snapshot = self._snapshot()
        rows = self._required_rows(snapshot, schema)
        files = self._changed_files() if self._reads_changes else list_files(snapshot)
        return DeltaReader(files, rows)

    def writer(self, schema: T.StructType, overwrite: bool) -> NoReturn:  # noqa: ARG002
        """Refuse: a write is a commit, and its options do not reach this source."""
        raise not_activated("Writing")

    def streamReader(self, schema: T.StructType) -> DeltaStreamReader:
        """Return a reader of the table's commits, or of their changes, as they arrive.

        Raises:
            UnsupportedError: the table needs a feature of activated sessions.
            InvalidRequestError: a version or time is chosen, which a stream cannot have, or a
                schema was given.
            UnsupportedError: a schema log is requested.
        """
        options = StreamOptions.parse(
            lambda name: _text(self.options.get(name)),
            lambda text: _moment_ms(text, option="startingTimestamp"),
        )
        options.require_untracked()
        snapshot = self._snapshot()
        rows = self._required_rows(snapshot, schema)
        table = StreamedTable.of(snapshot)
        options.streamed(table)
        return stream_reader(table, options, rows)

    def streamWriter(self, schema: T.StructType, overwrite: bool) -> NoReturn:  # noqa: ARG002
        """Refuse: an activated session writes streams by other means."""
        raise UnsupportedError(Message.OPERATION_NOT_ALLOWED_STREAM_NOT_ACTIVATED)

    @property
    def _reads_changes(self) -> bool:
        return any(self._flag(name) for name in _CHANGES)

    def _flag(self, name: str) -> bool:
        return str(self.options.get(name)).lower() == "true"

    def _rows(self, snapshot: Snapshot) -> SourceRows:
        return SourceRows(snapshot.config, changes=self._reads_changes, storage=self._storage)

    @property
    def _storage(self) -> Storage:
        """The access to tables: by options, which an activated session passes, and by the
        environment of this process. HDFS is read over HTTP.
        """
        given = {k: v for k, v in self.options.items() if k.startswith(("fs.", "dfs."))}
        known = NO_SESSION.with_packed(self.options.get(STORAGE_OPTION)).with_options(given)
        web = WebHdfs(settings=dict(known.settings), user=current_user())
        return replace(known, file_systems=web)

    def _required_rows(self, snapshot: Snapshot, schema: T.StructType) -> SourceRows:
        require_plain(snapshot.config)
        rows = self._rows(snapshot)
        if schema != rows.spark_schema:
            raise InvalidRequestError(
                Message.UNSUPPORTED_SCHEMA_DURING_READ_OTHER, schema=schema.simpleString()
            )
        return rows

    def _changed_files(self) -> tuple[ReadableFile, ...]:
        log = TableLog.open(_path(self.options), storage=self._storage)
        start, end = (
            bound_of(
                self.options.get(f"{which}Version"),
                self.options.get(f"{which}Timestamp"),
                lambda text: _moment_ms(str(text), option="a bound of the changes"),
                which=which,
            )
            for which in ("starting", "ending")
        )
        # Under the newest columns, which `schema` has returned.
        settings = ChangeSettings(mapped_schema=MappedSchema.LATEST)
        found = find_changes(log, start, end, settings)
        return tuple(feed_files(found.files, log.root_uri))

    def _snapshot(self) -> Snapshot:
        """Return the version of the table selected by the options."""
        version, timestamp = (self.options.get(name) for name in _TIME_TRAVEL)
        if self._reads_changes and (version, timestamp) != (None, None):
            raise InvalidRequestError(Message.UNSUPPORTED_TIME_TRAVEL_VIEWS_CHANGES)
        if version is not None and timestamp is not None:
            raise InvalidRequestError(Message.ONE_OF_IN_TIME_TRAVEL_OPTIONS)
        log = TableLog.open(_path(self.options), storage=self._storage)
        if timestamp is not None:
            return log.snapshot(timestamp_ms=_moment_ms(str(timestamp)))
        return log.snapshot(version=None if version is None else parse_version(version))


class DeltaReader(DataSourceReader):
    """Reader of files, one task each."""

    def __init__(self, files: Sequence[ReadableFile], rows: SourceRows) -> None:
        self._files = files
        self._rows = rows

    def partitions(self) -> Sequence[InputPartition]:
        """Return one partition per file."""
        return [InputPartition(file) for file in self._files]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a file; a table without files has one partition without a file."""
        return iter(()) if partition.value is None else self._rows(partition.value)


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


def _path(options: Any) -> str:
    path = options.get("path")
    if path is None:
        raise InvalidRequestError(Message.OPERATION_NOT_ALLOWED_NO_PATH_TO_LOAD, activate=ACTIVATE)
    return str(path)


def _moment_ms(text: str, *, option: str = "timestampAsOf") -> int:
    """Return milliseconds since 1970; a worker does not know the session's time zone."""
    try:
        moment = dt.datetime.fromisoformat(text.strip().replace("Z", "+00:00"))
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None:
        raise InvalidRequestError(
            Message.TIMESTAMP_INVALID_NOT_ACTIVATED,
            option=option,
            activate=ACTIVATE,
            timestamp=text,
        )
    return int(moment.timestamp() * 1000)
