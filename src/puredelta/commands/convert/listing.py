"""Data files of a directory, of a catalog table, and of a streaming sink.

Only names, sizes and times are read. The result is ordered by path, so that two runs over the
same directory give the same table (W-28a).

The log of a streaming sink has one text file per batch, and at intervals one that repeats all
earlier ones (``9.compact``). Files that its log lacks, left by a query stopped in a batch, are no
data (C-21).

Directories below those that the catalog names are not listed (C-22). A partition without a
directory has no files; one outside of the table's directory cannot be part of a Delta table.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence, Sized
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from puredelta.commands.convert.partitions import PartitionDirectory
from puredelta.errors import (
    CorruptTableError,
    DeltaError,
    InvalidRequestError,
    Message,
    TableNotFoundError,
    UnsupportedError,
)
from puredelta.protocol.actions.paths import decode_path, relative_path
from puredelta.protocol.schema.partition_values import HIVE_NULL, partition_directory
from puredelta.spark.jvm.catalog import StoredPartition
from puredelta.store.base import Store, StoredFile

SINK_LOG_DIRECTORY = "_spark_metadata"

_BATCH = re.compile(r"(\d+)(\.compact)?")
_VERSION = "v1"


def read_sink_log(store: Store) -> list[StoredFile] | None:
    """Return the committed files of a streaming sink; ``None`` where it has no log.

    Sizes and times are those in the log.
    """
    batches = _current_batches([f.name for f in store.list_from(SINK_LOG_DIRECTORY)], store)
    if batches is None:
        return None
    files: dict[str, StoredFile] = {}
    for name in batches:
        for entry in _entries(store, name):
            file = _stored_file(store, entry)
            if entry.get("action") == "delete":
                files.pop(file.path, None)
            else:
                files[file.path] = file
    return list(files.values())


def _current_batches(names: Iterable[str], store: Store) -> list[str] | None:
    """Return the batches of the current state, oldest first: the newest compacted one and all
    after it.
    """
    found = {int(m[1]): name for name in names if (m := _BATCH.fullmatch(name))}
    if not found:
        return None
    latest = max(found)
    compacted = [batch for batch, name in found.items() if name.endswith(".compact")]
    wanted = range(max(compacted, default=0), latest + 1)
    missing = [batch for batch in wanted if batch not in found]
    if missing:
        raise _broken(store, f"batch {missing[0]} of 0 to {latest} is missing")
    return [found[batch] for batch in wanted]


def _entries(store: Store, name: str) -> list[dict[str, Any]]:
    version, *lines = store.read(f"{SINK_LOG_DIRECTORY}/{name}").decode().splitlines() or [""]
    if version != _VERSION:
        raise _broken(store, f"batch {name} has version {version!r}, only {_VERSION!r} is known")
    try:
        return [json.loads(line) for line in lines if line]
    except ValueError as error:
        raise _broken(store, f"batch {name} is not JSON ({error})") from error


def _stored_file(store: Store, entry: dict[str, Any]) -> StoredFile:
    try:
        path = relative_path(store.root_uri, decode_path(entry["path"]))
        size_bytes, modified_ms = int(entry["size"]), int(entry["modificationTime"])
    except (KeyError, TypeError, ValueError) as error:
        raise _broken(store, f"an entry lacks {error}: {entry}") from error
    if path is None:
        raise _broken(store, f"the file {entry['path']} lies outside of it")
    return StoredFile(path=path, size_bytes=size_bytes, modified_ms=modified_ms)


def _broken(store: Store, problem: str) -> CorruptTableError:
    return CorruptTableError(
        Message.LOG_CORRUPTED_SINK_LOG,
        sink_log_directory=SINK_LOG_DIRECTORY,
        problem=problem,
        path=store.root_uri,
    )


_HIDDEN = ("_", ".")
_SURROGATE = re.compile("[\ud800-\udfff]")
"""A byte of a file name that is not valid UTF-8."""


def list_data_files(store: Store, *, use_metadata_log: bool = True) -> tuple[StoredFile, ...]:
    """Return the data files below the root of ``store``, ordered by path (C-20, C-23, C-24).

    The log of a Spark streaming sink, where there is one, lists the committed files
    and replaces the listing. Otherwise every visible file counts, whatever its suffix.
    """
    files = read_sink_log(store) if use_metadata_log else None
    if files is None:
        files = [f for f in store.walk("") if is_visible(f.path)]
    require_files(store, files)
    _require_texts(store, files)
    return tuple(sorted(files, key=lambda f: f.path))


def _require_texts(store: Store, files: Iterable[StoredFile]) -> None:
    """Refuse names that are not UTF-8: neither Spark nor the log can name such a file.

    Raises:
        UnsupportedError: there is one (UNSUPPORTED_DATA_FILE).
    """
    for file in files:
        if not file.path.isascii() and _SURROGATE.search(file.path) is not None:
            raise UnsupportedError(
                Message.UNSUPPORTED_DATA_FILE_ENCODING, file_path=file.path, path=store.root_uri
            )


def require_files(store: Store, files: Sized) -> None:
    """Refuse a location without data files.

    Raises:
        TableNotFoundError: the directory does not exist.
        InvalidRequestError: it is a file, or holds no data file (DELTA_EMPTY_DIRECTORY).
    """
    if not files:
        raise _without_files(store)


def is_visible(path: str) -> bool:
    """Return whether a file counts: names that begin with ``_`` or ``.`` are hidden, and so is
    everything in directories of such names, except partition directories (C-23).

    >>> is_visible("_year=2024/part-0"), is_visible("_temporary/part-0"), is_visible("_SUCCESS")
    (True, False, False)
    """
    directory, _, name = path.rpartition("/")
    return not name.startswith(_HIDDEN) and _is_visible_directory(directory)


@lru_cache(maxsize=16)
def _is_visible_directory(directory: str) -> bool:
    return not any(
        segment.startswith(_HIDDEN) and "=" not in segment for segment in directory.split("/")
    )


def _without_files(store: Store) -> InvalidRequestError | TableNotFoundError:
    root = store.root_uri
    if not store.exists(""):
        return TableNotFoundError(Message.PATH_DOES_NOT_EXIST_CONVERT, path=root)
    return InvalidRequestError(Message.EMPTY_DIRECTORY, directory=root)


_THREADS = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogFiles:
    """The files of a catalog table, and its partitions in the catalog."""

    files: tuple[StoredFile, ...]
    """Ordered by path."""
    directories: Mapping[str, PartitionDirectory]


def list_table_files(store: Store) -> CatalogFiles:
    """Return the files directly in the directory of a table without partitions."""
    files = _visible(store, "")
    require_files(store, files)
    nothing = PartitionDirectory(levels=(), file_uri=store.root_uri)
    return CatalogFiles(files=tuple(files), directories={"": nothing})


def list_partition_files(
    store: Store, table: str, partitions: Iterable[StoredPartition], columns: Sequence[str]
) -> CatalogFiles:
    """Return the files directly in the directories of a table's partitions.

    Raises:
        InvalidRequestError: the catalog has no partitions (DELTA_CONVERSION_NO_PARTITION_FOUND),
            one outside of the table's directory, or two in one directory.
    """
    directories: dict[str, PartitionDirectory] = {}
    for partition in partitions:
        levels = _levels(partition, columns)
        path = _directory(store, table, partition, levels)
        if path in directories:
            raise _shared(store, table, path)
        uri = f"{store.root_uri}/{path}"
        directories[path] = PartitionDirectory(levels=levels, file_uri=uri)
    if not directories:
        raise InvalidRequestError(Message.CONVERSION_NO_PARTITION_FOUND, table=table)
    with ThreadPoolExecutor(max_workers=_THREADS) as threads:
        listed = threads.map(lambda path: _visible(store, path), directories)
        files = [file for found in listed for file in found]
    require_files(store, files)
    return CatalogFiles(files=tuple(sorted(files, key=lambda f: f.path)), directories=directories)


def _visible(store: Store, directory: str) -> list[StoredFile]:
    found = store.list_from(directory)
    return [file for file in found if not file.name.startswith(_HIDDEN)]


def _levels(
    partition: StoredPartition, columns: Sequence[str]
) -> tuple[tuple[str, str | None], ...]:
    by_name = {name.lower(): text for name, text in partition.values.items()}
    texts = [(name, by_name.get(name.lower())) for name in columns]
    return tuple((name, None if text in (HIVE_NULL, "") else text) for name, text in texts)


def _directory(
    store: Store,
    table: str,
    partition: StoredPartition,
    levels: tuple[tuple[str, str | None], ...],
) -> str:
    """Return the path of a partition's directory, relative to that of the table."""
    usual = partition_directory(levels)
    if partition.location is None:
        return usual
    uri = decode_path(partition.location)
    # The table's own directory has no path below itself, but a file in it has one.
    below = relative_path(store.root_uri, f"{uri.rstrip('/')}/file")
    if below is None:
        raise InvalidRequestError(
            Message.OPERATION_NOT_ALLOWED_DETAIL_OUTSIDE,
            root_uri=store.root_uri,
            table=table,
            partition=usual,
            location=uri,
        )
    return below.rpartition("/")[0]


def _shared(store: Store, table: str, path: str) -> DeltaError:
    return InvalidRequestError(
        Message.OPERATION_NOT_ALLOWED_DETAIL_SHARED_DIRECTORY,
        root_uri=store.root_uri,
        path=path,
        table=table,
        location=f"{store.root_uri}/{path}",
    )
