"""Write logs by hand: commits, compaction files and checkpoints of every kind.

Actions are the JSON objects of the protocol, so that these tests do not depend on the
encoder or the checkpoint writer of the library.
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from puredelta.protocol.actions.log_paths import (
    SIDECAR_DIRECTORY,
    classic_checkpoint_name,
    commit_name,
    log_path,
)
from puredelta.store.base import Store

Json = Mapping[str, Any]

SCHEMA = {
    "type": "struct",
    "fields": [
        {"name": "id", "type": "long", "nullable": True, "metadata": {}},
        {"name": "p", "type": "string", "nullable": True, "metadata": {}},
    ],
}
PROTOCOL = {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}
METADATA = {
    "metaData": {
        "id": "table-1",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps(SCHEMA),
        "partitionColumns": ["p"],
        "configuration": {},
        "createdTime": 1,
    }
}
UUID = "3a0d65cd-4056-49b8-937b-95f9e3ee90e5"


def compacted_name(low: int, high: int) -> str:
    """Return the name of the log compaction file of ``low`` to ``high``, both included."""
    return f"{low:020d}.{high:020d}.compacted.json"


def multi_part_checkpoint_name(version: int, part: int, parts: int) -> str:
    """Return the name of part ``part`` (from 1) of a checkpoint in ``parts`` files."""
    return f"{version:020d}.checkpoint.{part:010d}.{parts:010d}.parquet"


def features(*names: str) -> Json:
    """Return a protocol action that lists these features for readers and writers."""
    return {
        "protocol": {
            "minReaderVersion": 3,
            "minWriterVersion": 7,
            "readerFeatures": list(names),
            "writerFeatures": list(names),
        }
    }


def metadata(**configuration: str) -> Json:
    """Return the metadata action with table properties; ``__`` in a name stands for ``.``."""
    named = {k.replace("__", "."): v for k, v in configuration.items()}
    return {"metaData": {**METADATA["metaData"], "configuration": named}}


def vector(name: str, *, cardinality: int = 1, offset: int | None = 1) -> Json:
    return {
        "storageType": "u",
        "pathOrInlineDv": name,
        "sizeInBytes": 40,
        "cardinality": cardinality,
        **({} if offset is None else {"offset": offset}),
    }


def add(path: str, *, dv: str | None = None, rows: int | None = None, **more: Any) -> Json:
    body: dict[str, Any] = {
        "path": path,
        "partitionValues": {"p": "x"},
        "size": 10,
        "modificationTime": 5,
        "dataChange": True,
        **more,
    }
    if dv is not None:
        body["deletionVector"] = vector(dv)
    if rows is not None:
        body["stats"] = json.dumps({"numRecords": rows})
    return {"add": body}


def remove(path: str, *, dv: str | None = None, **more: Any) -> Json:
    body: dict[str, Any] = {"path": path, "deletionTimestamp": 7, "dataChange": True, **more}
    if dv is not None:
        body["deletionVector"] = vector(dv)
    return {"remove": body}


def lines(actions: Sequence[Json]) -> bytes:
    return b"".join(json.dumps(action).encode() + b"\n" for action in actions)


def write_commit(store: Store, version: int, *actions: Json) -> None:
    store.put(log_path(commit_name(version)), lines(actions))


def write_compacted(store: Store, low: int, high: int, *actions: Json) -> None:
    store.put(log_path(compacted_name(low, high)), lines(actions))


def write_table(store: Store, *commits: Sequence[Json]) -> None:
    """Write consecutive commits from version 0, the first one with protocol and metadata."""
    for version, actions in enumerate(commits):
        head = (PROTOCOL, METADATA) if version == 0 else ()
        write_commit(store, version, *head, *actions)


_TEXTS = pa.map_(pa.string(), pa.string())
_VECTOR = pa.struct(
    [
        ("storageType", pa.string()),
        ("pathOrInlineDv", pa.string()),
        ("offset", pa.int32()),
        ("sizeInBytes", pa.int32()),
        ("cardinality", pa.int64()),
    ]
)
CHECKPOINT_TYPES: Mapping[str, list[tuple[str, pa.DataType]]] = {
    "txn": [("appId", pa.string()), ("version", pa.int64()), ("lastUpdated", pa.int64())],
    "add": [
        ("path", pa.string()),
        ("partitionValues", _TEXTS),
        ("size", pa.int64()),
        ("modificationTime", pa.int64()),
        ("dataChange", pa.bool_()),
        ("tags", _TEXTS),
        ("deletionVector", _VECTOR),
        ("stats", pa.string()),
    ],
    "remove": [
        ("path", pa.string()),
        ("deletionTimestamp", pa.int64()),
        ("dataChange", pa.bool_()),
        ("deletionVector", _VECTOR),
    ],
    "metaData": [
        ("id", pa.string()),
        ("format", pa.struct([("provider", pa.string()), ("options", _TEXTS)])),
        ("schemaString", pa.string()),
        ("partitionColumns", pa.list_(pa.string())),
        ("configuration", _TEXTS),
        ("createdTime", pa.int64()),
    ],
    "protocol": [
        ("minReaderVersion", pa.int32()),
        ("minWriterVersion", pa.int32()),
        ("readerFeatures", pa.list_(pa.string())),
        ("writerFeatures", pa.list_(pa.string())),
    ],
    "domainMetadata": [
        ("domain", pa.string()),
        ("configuration", pa.string()),
        ("removed", pa.bool_()),
    ],
    "checkpointMetadata": [("version", pa.int64()), ("tags", _TEXTS)],
    "sidecar": [
        ("path", pa.string()),
        ("sizeInBytes", pa.int64()),
        ("modificationTime", pa.int64()),
        ("tags", _TEXTS),
    ],
}


def _arrow(value: Any, kind: pa.DataType) -> Any:
    if value is None:
        return None
    if pa.types.is_map(kind):
        return list(value.items())
    if pa.types.is_struct(kind):
        return {f.name: _arrow(value.get(f.name), f.type) for f in kind}
    return value


def checkpoint_bytes(
    actions: Sequence[Json],
    *,
    types: Mapping[str, list[tuple[str, pa.DataType]]] = CHECKPOINT_TYPES,
) -> bytes:
    """Write actions as Parquet rows, one struct column per kind of action in ``types``."""
    columns = {}
    for kind, fields in types.items():
        struct = pa.struct(fields)
        columns[kind] = pa.array([_arrow(a.get(kind), struct) for a in actions], struct)
    sink = io.BytesIO()
    pq.write_table(pa.table(columns), sink)
    return sink.getvalue()


def write_checkpoint(store: Store, version: int, *actions: Json) -> None:
    store.put(log_path(classic_checkpoint_name(version)), checkpoint_bytes(actions))


def write_parts(
    store: Store, version: int, parts: Sequence[Sequence[Json]], *, skip: int | None = None
) -> None:
    """Write a multi-part checkpoint, without part ``skip`` (from 1) if given."""
    for number, actions in enumerate(parts, start=1):
        if number != skip:
            name = multi_part_checkpoint_name(version, number, len(parts))
            store.put(log_path(name), checkpoint_bytes(actions))


def write_v2_checkpoint(
    store: Store, version: int, top: Sequence[Json], *sidecars: Sequence[Json], form: str = "json"
) -> None:
    """Write a UUID-named checkpoint whose sidecars hold file actions."""
    refs: list[Json] = [{"checkpointMetadata": {"version": version}}, *top]
    for number, actions in enumerate(sidecars):
        name = f"{version}-{number}.parquet"
        types = {kind: CHECKPOINT_TYPES[kind] for kind in ("add", "remove")}
        content = checkpoint_bytes(actions, types=types)
        store.put(f"{SIDECAR_DIRECTORY}/{name}", content)
        refs.append({"sidecar": {"path": name, "sizeInBytes": len(content), "modificationTime": 1}})
    path = log_path(f"{version:020d}.checkpoint.{UUID}.{form}")
    store.put(path, lines(refs) if form == "json" else checkpoint_bytes(refs))
