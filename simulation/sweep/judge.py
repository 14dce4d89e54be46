"""What a table must be after a fault: as before or as after, and free of rubbish soon."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO
from urllib.parse import unquote

import pyarrow.parquet as pq

from puredelta.log.maintenance.garbage import referenced_files
from puredelta.log.replay.snapshot import Snapshot
from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.actions.actions import Add
from puredelta.protocol.actions.deletion_vector import decode_block, vector_path, vector_range
from puredelta.protocol.features.column_mapping import physical_name
from puredelta.protocol.table.table_config import TableConfig
from puredelta.store.base import Store
from puredelta.store.registry import has_scheme

_COMMIT = re.compile(r"\d+\.json")


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """A table, or that there is none."""

    version: int
    """-1 for none."""
    rows: Mapping[tuple[int, str], int]
    """How often each row is there."""
    commits: Mapping[str, bytes]
    """The commit files, by name."""
    features: frozenset[str] = frozenset()
    """The features of which the table says that it supports them."""


def state_of(store: Store) -> State:
    """Read a table without Spark: each file that the newest version names is opened.

    Raises:
        OSError: a file is gone.
    """
    log = TableLog(store)
    commits = {
        file.name: store.read(file.path)
        for file in store.list_from("_delta_log", "0")
        if _COMMIT.fullmatch(file.name)
    }
    if not log.exists():
        return State(version=-1, rows={}, commits=commits)
    snapshot = log.snapshot()
    rows: Counter[tuple[int, str]] = Counter()
    for add in snapshot.files.adds():
        rows.update(_rows_of(store, add, snapshot.config))
    features = snapshot.config.supported_features
    return State(version=snapshot.version, rows=rows, commits=commits, features=features)


def _rows_of(store: Store, add: Add, config: TableConfig) -> list[tuple[int, str]]:
    with _opened(store, unquote(add.path)) as file:
        table = pq.ParquetFile(file).read()
    stored = {f.name: physical_name(f, config.column_mapping) for f in config.schema.fields}
    ids, v = table[stored.get("id", "id")].to_pylist(), stored.get("v", "v")
    value = add.partition_values.get(v)
    values = table[v].to_pylist() if v in table.column_names else [value] * len(ids)
    hidden: set[int] = set()
    if (vector := add.deletion_vector) is not None:
        with _opened(store, str(vector_path(vector))) as file:
            content = file.read()
        start, length = vector_range(vector)
        hidden = set(decode_block(content[start : start + length], vector).tolist())
    return [row for n, row in enumerate(zip(ids, values, strict=True)) if n not in hidden]


def _opened(store: Store, path: str) -> BinaryIO:
    """Open a file below the table, or one that the log names by its whole URI."""
    if not has_scheme(path):
        return store.open(path)
    directory, _, name = path.rpartition("/")
    return store.at(directory).open(name)


def rubbish(store: Store, snapshot: Snapshot) -> list[str]:
    """Return what lies below a table and belongs to nothing, its log left out."""
    needed = referenced_files(snapshot, removed_since_ms=int(time.time() * 1000) + 1_000)
    return [
        file.path
        for file in sorted(store.walk(""), key=lambda file: file.path)
        if not file.name.endswith(".crc")
        and file.path not in needed
        and not file.path.startswith("_delta_log/")
    ]


def broken_rules(
    before: State, after: State, now: State, *, failed: BaseException | None, known: bool
) -> list[str]:
    """Return what is wrong with a table after a fault.

    ``failed`` is what the command raised; ``known`` whether that means that nothing was committed.
    """
    found: list[str] = []
    for name, content in before.commits.items():
        if name in now.commits and now.commits[name] != content:
            found.append(f"commit {name} was changed")
    if now.version < before.version:
        found.append(f"version {before.version} is gone: {now.version}")
    if failed is None and now.version < after.version:
        found.append(f"acknowledged, and the table is at {now.version}, not {after.version}")
    if failed is None and now.rows != after.rows:
        found.append(_difference("acknowledged, and rows are others", after, now))
    if failed is None and now.features != after.features:
        found.append(f"acknowledged, and the features are {sorted(now.features)}")
    if failed is not None and known and now.rows != before.rows:
        found.append(_difference(f"failed ({failed!r:.200}), and rows changed", before, now))
    if now.rows not in (before.rows, after.rows):
        found.append(_difference("neither old nor new", after, now))
    return found


def _difference(what: str, expected: State, now: State) -> str:
    missing = Counter(expected.rows) - Counter(now.rows)
    more: Any = Counter(now.rows) - Counter(expected.rows)
    return f"{what}: {sum(missing.values())} rows missing, {sum(more.values())} too many"
