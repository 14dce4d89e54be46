"""Writes into one table, in their order: each is tried, executed and compared."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True)
class Write:
    name: str
    rows: list[tuple[int, str]]
    mode: str
    options: Mapping[str, str] = field(default_factory=dict)
    inserted: int
    deleted: int | None
    has_preview: bool = False


WRITES = [
    Write(name="append", rows=[(5, "a")], mode="append", inserted=1, deleted=0),
    Write(
        name="replaced rows",
        rows=[(1, "c"), (2, "c")],
        mode="overwrite",
        options={"replaceWhere": "id <= 3"},
        inserted=2,
        deleted=3,
        has_preview=True,
    ),
    Write(
        name="replaced partition",
        rows=[(7, "b"), (8, "b"), (9, "b")],
        mode="overwrite",
        options={"replaceWhere": "part = 'b'"},
        inserted=3,
        deleted=1,
    ),
    Write(
        name="dynamic partitions",
        rows=[(10, "c")],
        mode="overwrite",
        options={"partitionOverwriteMode": "dynamic"},
        inserted=1,
        deleted=2,
    ),
    Write(name="overwrite", rows=[(1, "a")], mode="overwrite", inserted=1, deleted=5),
]
