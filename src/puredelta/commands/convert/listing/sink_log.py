"""The log that Spark's streaming file sink keeps in ``_spark_metadata``.

A streaming query that was stopped half-way leaves files its log does not know; they are no
data (C-21). The log is one text file per batch, and every so often one that repeats all
before it (``9.compact``).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

from puredelta.errors import CorruptTableError, ErrorCode
from puredelta.protocol.actions.paths import decode_path, relative_path
from puredelta.store.base import Store, StoredFile

SINK_LOG_DIRECTORY = "_spark_metadata"

_BATCH = re.compile(r"(\d+)(\.compact)?")
_VERSION = "v1"


def read_sink_log(store: Store) -> list[StoredFile] | None:
    """Return the committed files of a streaming sink; ``None`` where no log is kept.

    Sizes and times are those the log gives.

    Raises:
        CorruptTableError: the log has a gap, another version or a file outside of the
            directory.
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
    """Return the batches that together hold the state, oldest first: the newest compacted
    one and all after it.
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
        f"The streaming sink's log {store.root_uri}/{SINK_LOG_DIRECTORY} cannot be used: {problem}."
        " To convert all files that lie in the directory, set "
        "spark.databricks.delta.convert.useMetadataLog to false.",
        code=ErrorCode.LOG_CORRUPTED,
        path=store.root_uri,
    )
