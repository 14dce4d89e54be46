"""Format ``delta`` for sessions that nobody activated, and for streams: a Python data source.

Spark finds it by itself where the package is installed (the top-level module
``pyspark_puredelta``). Rows come through Python workers: slower than the native scan of an
activated session, with every column read. What it cannot do right it refuses, and says what
does it.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NoReturn

import pyarrow as pa
from pyspark.sql import types as T
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from puredelta.activation.source.source_rows import (
    ACTIVATE,
    SourceRows,
    not_activated,
    require_plain,
)
from puredelta.activation.source.stream_source import DeltaStreamReader, stream_reader
from puredelta.commands.read.changes import ChangeSettings, MappedSchema, bound_of, find_changes
from puredelta.commands.read.read_table import parse_version
from puredelta.errors import ErrorCode, InvalidRequestError, UnsupportedError
from puredelta.log.changes.file_rows import ReadableFile, list_files
from puredelta.log.changes.stream_changes import feed_files
from puredelta.log.changes.stream_options import StreamOptions
from puredelta.log.changes.stream_schema import StreamedTable
from puredelta.log.replay.snapshot import Snapshot
from puredelta.log.replay.table_log import TableLog
from puredelta.store.registry import NO_SESSION, Storage
from puredelta.store.web_hdfs.file_systems import WebHdfs, current_user

_CHANGES = ("readChangeFeed", "readChangeData")
_TIME_TRAVEL = ("versionAsOf", "timestampAsOf")

STORAGE_OPTION = "puredelta.storage.secret"
"""Of a stream: what `Storage.packed` gives. Spark shows no option with such a name."""


class DeltaSource(DataSource):
    """Reads a table at a path; ``versionAsOf`` and ``timestampAsOf`` choose its state."""

    @classmethod
    def name(cls) -> str:
        """Return the format's name."""
        return "delta"

    def schema(self) -> T.StructType:
        """Return the table's columns, or those of its change data feed, all of them nullable."""
        return self._rows(self._snapshot()).spark_schema

    def reader(self, schema: T.StructType) -> DeltaReader:
        """Return what reads the table, or what changed in it.

        Raises:
            UnsupportedError: the table needs what only an activated session has.
            InvalidRequestError: the table has other columns by now, a schema was given, or the
                range of changes cannot be read (see `find_changes`).
        """
        snapshot = self._snapshot()
        rows = self._required_rows(snapshot, schema)
        files = self._changed_files() if self._reads_changes else list_files(snapshot)
        return DeltaReader(files, rows)

    def writer(self, schema: T.StructType, overwrite: bool) -> NoReturn:  # noqa: ARG002
        """Refuse: a write is a commit, and the options of one do not come here."""
        raise not_activated("Writing")

    def streamReader(self, schema: T.StructType) -> DeltaStreamReader:
        """Return what reads the table's commits, or what they changed, as they come.

        Raises:
            UnsupportedError: the table needs what only an activated session has.
            InvalidRequestError: a version or time is chosen, which a stream cannot have, or a
                schema was given.
            UnsupportedError: a log of schemas is asked for.
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
        raise UnsupportedError(
            "writeStream with format 'delta' is not possible in a session that is not activated. "
            "Call puredelta.activate(spark) first, or write with foreachBatch and "
            "puredelta.write or a MERGE, with txnAppId and txnVersion to be safe against "
            "repetition.",
            code=ErrorCode.OPERATION_NOT_ALLOWED,
        )

    @property
    def _reads_changes(self) -> bool:
        return any(self._flag(name) for name in _CHANGES)

    def _flag(self, name: str) -> bool:
        return str(self.options.get(name)).lower() == "true"

    def _rows(self, snapshot: Snapshot) -> SourceRows:
        return SourceRows(snapshot.config, changes=self._reads_changes, storage=self._storage)

    @property
    def _storage(self) -> Storage:
        """How tables are reached: by options, which an activated session gives, and by the
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
                "Delta does not support specifying the schema at read time, and the table's own "
                f"is not (or no longer) {schema.simpleString()}. Load the table again.",
                code=ErrorCode.UNSUPPORTED_SCHEMA_DURING_READ,
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
        # Under the newest columns, which are those that `schema` promised.
        settings = ChangeSettings(mapped_schema=MappedSchema.LATEST)
        found = find_changes(log, start, end, settings)
        return tuple(feed_files(found.files, log.root_uri))

    def _snapshot(self) -> Snapshot:
        """Return the state of the table that the options name."""
        version, timestamp = (self.options.get(name) for name in _TIME_TRAVEL)
        if self._reads_changes and (version, timestamp) != (None, None):
            raise InvalidRequestError(
                "Cannot time travel views, subqueries, streams or change data feed queries. With "
                "readChangeFeed use startingVersion or startingTimestamp.",
                code=ErrorCode.UNSUPPORTED_TIME_TRAVEL_VIEWS,
            )
        if version is not None and timestamp is not None:
            raise InvalidRequestError(
                "Please either provide 'timestampAsOf' or 'versionAsOf' for time travel, not both.",
                code=ErrorCode.ONE_OF_IN_TIME_TRAVEL,
            )
        log = TableLog.open(_path(self.options), storage=self._storage)
        if timestamp is not None:
            return log.snapshot(timestamp_ms=_moment_ms(str(timestamp)))
        return log.snapshot(version=None if version is None else parse_version(version))


class DeltaReader(DataSourceReader):
    """Reads files, a task each."""

    def __init__(self, files: Sequence[ReadableFile], rows: SourceRows) -> None:
        self._files = files
        self._rows = rows

    def partitions(self) -> Sequence[InputPartition]:
        """Return one partition per file."""
        return [InputPartition(file) for file in self._files]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a file; a table without files has one partition without one."""
        return iter(()) if partition.value is None else self._rows(partition.value)


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


def _path(options: Any) -> str:
    path = options.get("path")
    if path is None:
        raise InvalidRequestError(
            "'path' is not specified: name the table's directory in load(path). Tables of the "
            f"catalog are read by activated sessions only. {ACTIVATE}",
            code=ErrorCode.OPERATION_NOT_ALLOWED,
        )
    return str(path)


def _moment_ms(text: str, *, option: str = "timestampAsOf") -> int:
    """Return milliseconds since 1970; a worker does not know the session's time zone."""
    try:
        moment = dt.datetime.fromisoformat(text.strip().replace("Z", "+00:00"))
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None:
        raise InvalidRequestError(
            f"{option} is {text!r}: without activation it must be an ISO 8601 timestamp with "
            f"its offset, such as 2025-01-31T12:00:00+00:00. {ACTIVATE}",
            code=ErrorCode.TIMESTAMP_INVALID,
            timestamp=text,
        )
    return int(moment.timestamp() * 1000)
