"""A table with Parquet files on disk, made without Spark."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.actions.actions import Add
from puredelta.protocol.actions.paths import encode_path
from puredelta.store.local import LocalStore
from tests.log.tables import WRITE, create_table, remove, transact


def write_file(root: Path, name: str, ids: Sequence[int]) -> Add:
    """Write rows and return the action that adds them."""
    file = root / name
    file.parent.mkdir(parents=True, exist_ok=True)
    columns = {"id": pa.array(ids, pa.int64()), "part": pa.array([1] * len(ids), pa.int32())}
    pq.write_table(pa.table(columns), file)
    stats = {
        "numRecords": len(ids),
        "minValues": {"id": min(ids), "part": 1},
        "maxValues": {"id": max(ids), "part": 1},
        "nullCount": {"id": 0, "part": 0, "sub": len(ids)},
    }
    return Add(
        path=encode_path(name),
        partition_values={},
        size_bytes=file.stat().st_size,
        modified_ms=1,
        data_change=True,
        stats=json.dumps(stats),
    )


def make_table(root: Path, *files: Sequence[int], **properties: str) -> TableLog:
    """Make a table with a file for each list of ids, named ``f0.parquet`` and so on."""
    adds = [write_file(root, f"f{n}.parquet", ids) for n, ids in enumerate(files)]
    return create_table(LocalStore(str(root)), *adds, **properties)


def append(log: TableLog, root: Path, name: str, ids: Sequence[int], **rest: object) -> None:
    """Commit one more file."""
    transact(log).commit([write_file(root, name, ids)], WRITE, **rest)


def take_away(log: TableLog, name: str) -> None:
    """Commit the removal of a file."""
    transact(log).commit([remove(encode_path(name))], WRITE)
