"""Valid logs of every form, as a dictionary from path to content: what mutations begin with."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping, Sequence
from functools import cache
from random import Random
from typing import Any

import numpy as np

from puredelta.log.replay.checkpoint_read import checkpoint_hint_checksum
from puredelta.protocol.actions.deletion_vector import vector_path
from tests.deletion_vectors import encode_file, encode_inline
from tests.faults import MemoryStore
from tests.log.log_files import (
    METADATA,
    Json,
    add,
    features,
    remove,
    write_checkpoint,
    write_commit,
    write_compacted,
    write_parts,
    write_v2_checkpoint,
)

ROOT = "memory:/table"
FORMS = ("commits", "compacted", "classic", "parts", "json", "parquet")

_VECTORS = [np.array([1, 3], np.uint64), np.arange(70_000, dtype=np.uint64)]
_CONTENT, _STORED = encode_file(_VECTORS, uuid.UUID(int=7))
_INLINE = encode_inline(np.array([0, 2], np.uint64))

SCHEMA = {
    "type": "struct",
    "fields": [
        {"name": "id", "type": "long", "nullable": True, "metadata": {}},
        {"name": "d", "type": "decimal(10,2)", "nullable": True, "metadata": {"comment": "é"}},
        {
            "name": "s",
            "type": {
                "type": "struct",
                "fields": [
                    {
                        "name": "a",
                        "type": {"type": "array", "elementType": "date", "containsNull": True},
                        "nullable": True,
                        "metadata": {},
                    },
                    {
                        "name": "m",
                        "type": {
                            "type": "map",
                            "keyType": "string",
                            "valueType": "timestamp",
                            "valueContainsNull": True,
                        },
                        "nullable": False,
                        "metadata": {},
                    },
                ],
            },
            "nullable": True,
            "metadata": {},
        },
        {"name": "p", "type": "string", "nullable": True, "metadata": {}},
    ],
}


def _metadata() -> Json:
    body = {**METADATA["metaData"], "schemaString": json.dumps(SCHEMA)}
    return {"metaData": {**body, "configuration": {"delta.checkpointInterval": "5"}}}


def _stats(low: int) -> str:
    bounds = {"id": low, "d": low + 0.5}
    counts = {"id": 0, "d": 1, "s": {"a": 2}}
    high = {"id": low + 9, "d": low + 9.5}
    return json.dumps(
        {"numRecords": 70_000, "minValues": bounds, "maxValues": high, "nullCount": counts}
    )


def _vector_of(descriptor: Any) -> Json:
    body = {
        "storageType": descriptor.storage_type,
        "pathOrInlineDv": descriptor.path_or_inline,
        "sizeInBytes": descriptor.size_bytes,
        "cardinality": descriptor.cardinality,
    }
    return body if descriptor.offset is None else {**body, "offset": descriptor.offset}


def _commits() -> list[list[Json]]:
    def file(path: str, low: int, **more: Any) -> Json:
        return add(path, stats=_stats(low), **more)

    info = {"commitInfo": {"timestamp": 1, "operation": "WRITE", "operationParameters": {}}}
    domain = {"domainMetadata": {"domain": "user.x", "configuration": "{}", "removed": False}}
    inline, stored, large = map(_vector_of, (_INLINE, *_STORED))
    marked = file("f1", 10, deletionVector=inline)
    return [
        [features("deletionVectors", "v2Checkpoint"), _metadata(), info, file("f0", 0)],
        [info, file("f1", 10), file("p=a%20b/f2", 20, partitionValues={"p": "a b"})],
        [remove("f1"), marked, {"txn": {"appId": "a", "version": 3, "lastUpdated": 4}}],
        [file("f3", 30, deletionVector=stored), file("f4", 40, deletionVector=large), domain],
        [remove("f0"), file("f0", 50, tags={"k": "v"}), file("../out/f5", 60)],
        [remove("f3", deletionVector=stored), file("file:/elsewhere/f6", 70)],
    ]


@cache
def valid_log(form: str) -> Mapping[str, bytes]:
    """Return the files of a log of six versions; but for the first form with older ones in it."""
    commits = _commits()
    store = MemoryStore(ROOT)
    for version, actions in enumerate(commits):
        write_commit(store, version, *actions)
    store.put(str(vector_path(_STORED[0])), _CONTENT)
    state = _net(commits[:4])
    files = [a for a in state if "add" in a or "remove" in a]
    rest = [a for a in state if a not in files]
    match form:
        case "compacted":
            write_compacted(store, 1, 4, *_net(commits[1:5]))
        case "classic":
            write_checkpoint(store, 3, *state)
        case "parts":
            write_parts(store, 3, [state[::2], state[1::2]])
        case "json" | "parquet":
            write_v2_checkpoint(store, 3, rest, files[::2], files[1::2], form=form)
        case _:
            pass
    if form not in {"commits", "compacted"}:
        for version in range(3):
            store.delete(f"_delta_log/{version:020d}.json")
        hint: dict[str, Any] = {"version": 3, "size": len(state)}
        hint["checksum"] = checkpoint_hint_checksum(hint)
        store.put("_delta_log/_last_checkpoint", json.dumps(hint).encode())
    return dict(store.files)


def _net(commits: Sequence[Sequence[Json]]) -> list[Json]:
    """Return the latest action on each thing."""
    latest: dict[object, Json] = {}
    for action in (a for commit in commits for a in commit if "commitInfo" not in a):
        ((kind, body),) = action.items()
        vector = body.get("deletionVector", {})
        name = body.get("path") or body.get("appId") or body.get("domain")
        key = ("file" if kind in {"add", "remove"} else kind, name, json.dumps(vector))
        latest[key] = action
    return list(latest.values())


def any_log(random: Random) -> dict[str, bytes]:
    """Return one of the valid logs."""
    return dict(valid_log(random.choice(FORMS)))
