"""What a table holds, told by none of the engines that are measured.

The JSON commits of the log are replayed from version 0: files added and removed, deletion
vectors read as the protocol lays them down. Nothing else of the format is understood, so
nothing else may have happened to the table.
"""

from __future__ import annotations

import base64
import functools
import json
import os
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyroaring import BitMap64

from benchmarks.rows import PART, Totals, total

_Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_B85 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
_TO_B85 = str.maketrans(_Z85, _B85)
_MAGIC = 1681511377
_ENCODED_UUID = 20


@dataclass(frozen=True, slots=True)
class ActiveFile:
    """A file of the newest version."""

    path: Path
    add: Mapping[str, Any]

    @property
    def deletion_vector(self) -> Mapping[str, Any] | None:
        found: Mapping[str, Any] | None = self.add.get("deletionVector")
        return found


def active_files(table: Path) -> list[ActiveFile]:
    """Replay the commits of a table."""
    active: dict[tuple[str, str], ActiveFile] = {}
    for commit in sorted((table / "_delta_log").glob("*.json")):
        for line in commit.read_text().splitlines():
            action = json.loads(line)
            if (removed := action.get("remove")) is not None:
                active.pop(_identity(removed), None)
            if (added := action.get("add")) is not None:
                active[_identity(added)] = ActiveFile(table / unquote(added["path"]), added)
    return list(active.values())


def _identity(action: Mapping[str, Any]) -> tuple[str, str]:
    vector = action.get("deletionVector")
    return unquote(action["path"]), json.dumps(vector, sort_keys=True) if vector else ""


def table_totals(table: Path, columns: tuple[str, ...]) -> Totals:
    """Add up every row that the newest version of a table has."""
    result = Totals()
    for file in active_files(table):
        found = os.stat(file.path)  # noqa: PTH116 - its identity as well as its size
        identity = (found.st_dev, found.st_ino, found.st_mtime_ns, found.st_size)
        part = (file.add.get("partitionValues") or {}).get(PART)
        result += _file_totals(identity, str(file.path), columns, part)
        if file.deletion_vector is not None:
            deleted = deleted_rows(table, file.deletion_vector)
            result -= total(_read(str(file.path), columns, part).take(pa.array(deleted)), columns)
    return result


@functools.lru_cache(maxsize=100_000)
def _file_totals(
    identity: tuple[int, ...],  # noqa: ARG001 - a file that is linked elsewhere is the same file
    path: str,
    columns: tuple[str, ...],
    part: str | None,
) -> Totals:
    return total(_read(path, columns, part), columns)


def _read(path: str, columns: tuple[str, ...], part: str | None) -> pa.Table:
    stored = [name for name in columns if name != PART]
    with pq.ParquetFile(path) as file:
        table = file.read(columns=stored)
    if PART in columns:
        values = pa.array(np.full(table.num_rows, int(part or 0), np.int32))
        table = table.append_column(PART, values)
    return table


def deleted_rows(table: Path, vector: Mapping[str, Any]) -> list[int]:
    """Read a deletion vector: the positions of deleted rows."""
    kind, where = vector["storageType"], vector["pathOrInlineDv"]
    if kind == "i":
        return _positions(_decode(where))
    if kind == "u":
        name = uuid.UUID(bytes=_decode(where[-_ENCODED_UUID:]))
        path = table / where[:-_ENCODED_UUID] / f"deletion_vector_{name}.bin"
    else:
        path = Path(unquote(where.removeprefix("file://").removeprefix("file:")))
    content = path.read_bytes()
    start = int(vector.get("offset") or 0)
    size = int.from_bytes(content[start : start + 4], "big")
    return _positions(content[start + 4 : start + 4 + size])


def _decode(text: str) -> bytes:
    """Decode Z85, which is Python's base 85 in another alphabet."""
    return base64.b85decode(text.translate(_TO_B85))


def _positions(data: bytes) -> list[int]:
    if int.from_bytes(data[:4], "little") != _MAGIC:
        raise ValueError(f"no deletion vector: it begins with {data[:4]!r}")
    return list(BitMap64.deserialize(data[4:]))
