"""Undo of a conversion: the log is removed and the old catalog entry is restored.

The conversion must be the table's only version. First a second version is written that requires of
writers a feature that no client has. No other writer can commit after it, so the checks
stay true while the log is removed (decision 0038). If the call is interrupted, a second call
completes it.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import SparkSession

from puredelta.commands.command import engine_info
from puredelta.commands.convert.entry import ENTRY_TAG
from puredelta.commands.convert.target import CatalogName, parse_source
from puredelta.errors import (
    CatalogError,
    ConcurrentWriteException,
    InvalidRequestError,
    Message,
    TableNotFoundError,
    UnsupportedError,
)
from puredelta.log.files.clock import wall_clock
from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.actions.action_json import encode_action, parse_action
from puredelta.protocol.actions.actions import CommitInfo, DeletionVectorDescriptor, Protocol
from puredelta.protocol.actions.deletion_vector import vector_path
from puredelta.protocol.actions.log_paths import (
    LAST_CHECKPOINT,
    LOG_DIRECTORY,
    SIDECAR_DIRECTORY,
    commit_name,
    log_path,
)
from puredelta.protocol.features.protocol_versions import supported_features
from puredelta.spark.catalog.catalog_entries import EntryName, entry_formats, entry_name, is_taken
from puredelta.spark.jvm.catalog import StoredEntry
from puredelta.spark.jvm.gateway import JVM_ERRORS
from puredelta.spark.session.names import FORMAT, parse_name, quote_name
from puredelta.spark.session.session import SessionInfo
from puredelta.spark.session.storage import open_log
from puredelta.store.base import PutOutcome

_FENCE = "puredelta.undoConvert"
_FIRST = log_path(commit_name(0))
_FENCE_PATH = log_path(commit_name(1))
_CONVERT = "CONVERT"
_WRITER = 7


@dataclass(frozen=True, slots=True, kw_only=True)
class UndoResult:
    """The result of an undone conversion."""

    location: str
    """The location of the Parquet files: an absolute, decoded URI."""
    name: str | None
    """The whole name of the catalog table whose entry was restored, if there was one."""


def undo_convert(spark: SparkSession, identifier: str) -> UndoResult:
    """Turn a converted table back into Parquet files, if no other version was written since.

    ``identifier`` is ``delta.`/path` `` or the name of a table of the session catalog. The data
    files are not touched; the log is removed. The catalog entry of a table is restored to its
    state before the conversion. If a call is interrupted, the next one finishes it.

    Examples:
        >>> undo_convert(spark, "sales.events")  # doctest: +SKIP
        UndoResult(location='file:/data/events', name='`spark_catalog`.`sales`.`events`')

    Raises:
        InvalidRequestError: the table has more than one version, or its first is no conversion;
            the name is not the one that was converted.
        ConcurrentWriteException: another writer commits meanwhile; nothing was changed.
        TableNotFoundError: there is no such table.
        CatalogError: the catalog refuses to restore the entry; nothing was changed.
        UnsupportedError: the entry is to be restored over Spark Connect; nothing was changed.
    """
    found = _find(spark, identifier)
    log = open_log(spark, found.location)
    if not log.exists():
        raise TableNotFoundError(Message.MISSING_DELTA_TABLE_UNDO, table=identifier)
    name = None
    if log.store.exists(_FIRST):
        info = _conversion(log)
        entry = _entry_to_restore(spark, found, info)
        _raise_fence(spark, log)
        _remove_vectors(log)
        if entry is not None:
            _restore(spark, log, entry, info)
            name = quote_name(_name_of(entry).parts)
    elif not _is_fenced(log):
        raise _not_undoable(log.root_uri, "its first version is gone")
    _remove_log(log)
    return UndoResult(location=log.root_uri, name=name)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    location: str
    entry: StoredEntry | None


def _find(spark: SparkSession, identifier: str) -> _Found:
    source = parse_source(identifier)
    if not isinstance(source, CatalogName):
        return _Found(location=source.location, entry=None)
    name = entry_name(spark, source.parts)
    if name is None or not is_taken(spark, name):
        raise TableNotFoundError(
            Message.TABLE_OR_VIEW_NOT_FOUND_UNDO, table=quote_name(source.parts)
        )
    entry = entry_formats(spark).read_entry(spark, name.database, name.name)
    return _Found(location=entry.location, entry=entry)


def _conversion(log: TableLog) -> CommitInfo:
    """Return the record of the first version, if it is a conversion and the only version."""
    latest = log.latest_version()
    if latest != 0 and not (latest == 1 and _is_fenced(log)):
        raise _not_undoable(log.root_uri, f"it has been written since: its version is {latest}")
    lines = log.store.read(_FIRST).decode().splitlines()
    infos = (action for line in lines if isinstance(action := parse_action(line), CommitInfo))
    info = next(infos, None)
    if info is None or info.operation != _CONVERT:
        raise _not_undoable(log.root_uri, "its first version is no CONVERT")
    return info


def _not_undoable(root_uri: str, reason: str) -> InvalidRequestError:
    return InvalidRequestError(
        Message.OPERATION_NOT_ALLOWED_DETAIL_UNDO, path=root_uri, reason=reason
    )


# --- the catalog's entry ---------------------------------------------------------------------


def _entry_to_restore(spark: SparkSession, found: _Found, info: CommitInfo) -> StoredEntry | None:
    """Return the entry that the conversion changed, None if it is not a Delta table's now."""
    text = (info.tags or {}).get(ENTRY_TAG)
    entry = found.entry
    if entry is None and text is not None:
        entry = _recorded_entry(spark, found.location, info)
    if entry is None or (entry.provider or "").lower() != FORMAT:
        return None
    if text is None:
        raise _not_undoable(
            found.location,
            f"{_name_of(entry)} was given to it later. Drop that entry first, then undo the "
            f"conversion of delta.`{found.location}`",
        )
    return entry


def _recorded_entry(spark: SparkSession, location: str, info: CommitInfo) -> StoredEntry | None:
    """Return the entry of the converted name, if it is still the table's."""
    recorded = str((info.operation_parameters or {}).get("catalogTable", ""))
    name = entry_name(spark, parse_name(recorded)) if recorded else None
    if name is None or not is_taken(spark, name):
        return None
    entry = entry_formats(spark).read_entry(spark, name.database, name.name)
    return entry if TableLog.open(location).is_at(entry.location) else None


def _restore(spark: SparkSession, log: TableLog, entry: StoredEntry, info: CommitInfo) -> None:
    try:
        text = (info.tags or {})[ENTRY_TAG]
        entry_formats(spark).restore_format(spark, entry.database, entry.name, text)
    except UnsupportedError:
        log.store.delete(_FENCE_PATH)
        raise
    except JVM_ERRORS as refused:
        log.store.delete(_FENCE_PATH)
        raise CatalogError(
            Message.CATALOG_ENTRY_NOT_UPDATED_UNDO,
            entry=_name_of(entry),
            refused=refused,
            name=str(_name_of(entry)),
            path=log.root_uri,
        ) from refused


def _name_of(entry: StoredEntry) -> EntryName:
    return EntryName(database=entry.database, name=entry.name)


# --- the log ---------------------------------------------------------------------------------


def _is_fenced(log: TableLog) -> bool:
    path = _FENCE_PATH
    return log.store.exists(path) and f'"{_FENCE}"' in log.store.read(path).decode()


def _raise_fence(spark: SparkSession, log: TableLog) -> None:
    """Write a version that refuses all other writers."""
    if _is_fenced(log):
        return
    snapshot = log.snapshot()
    now_ms = max(wall_clock(), snapshot.timestamp_ms + 1)
    info = CommitInfo(
        timestamp_ms=now_ms,
        operation="UNDO CONVERT",
        operation_parameters={},
        in_commit_timestamp_ms=None if snapshot.in_commit_timestamp_ms is None else now_ms,
        engine_info=engine_info(SessionInfo.of(spark).spark_version),
    )
    before = snapshot.config.protocol
    protocol = Protocol(
        min_reader_version=before.min_reader_version,
        min_writer_version=_WRITER,
        reader_features=before.reader_features,
        writer_features=supported_features(before) | {_FENCE},
    )
    content = "".join(f"{encode_action(action)}\n" for action in (info, protocol))
    if log.store.put_if_absent(_FENCE_PATH, content.encode()) is PutOutcome.ALREADY_EXISTS:
        raise ConcurrentWriteException(Message.CONCURRENT_WRITE_UNDO, path=log.root_uri)


def _remove_vectors(log: TableLog) -> None:
    """Remove the deletion vectors that were written for the deleted rows of an Iceberg table."""
    vectors = log.snapshot().files.rows["deletion_vector"].drop_null().to_pylist()
    paths = (vector_path(DeletionVectorDescriptor(**vector)) for vector in vectors)
    for path in {path for path in paths if path is not None}:
        log.store.delete(path)


def _remove_log(log: TableLog) -> None:
    """Remove the log, the fence last, so that no writer sees a table that is half removed."""
    commits = (_FIRST, _FENCE_PATH)
    found = [file.path for file in log.store.walk(LOG_DIRECTORY) if file.path not in commits]
    found.sort(key=lambda path: not path.endswith(LAST_CHECKPOINT))  # the hint for readers first
    for path in (*found, *commits):
        log.store.delete(path)
    for directory in (SIDECAR_DIRECTORY, LOG_DIRECTORY):
        log.store.delete_directory(directory)
