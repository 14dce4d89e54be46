"""Directories of Parquet files for conversions, and what a conversion made of them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq


def write(root: Path, path: str, columns: Mapping[str, Any] | pa.Table, **options: Any) -> Path:
    """Write one Parquet file with pyarrow, directories included."""
    target = root / path
    target.parent.mkdir(parents=True, exist_ok=True)
    table = columns if isinstance(columns, pa.Table) else pa.table(dict(columns))
    pq.write_table(table, target, **options)
    return target


def first_commit(root: Path) -> dict[str, list[dict[str, Any]]]:
    """Return the actions of version 0 by kind."""
    actions: dict[str, list[dict[str, Any]]] = {}
    log = root / "_delta_log" / f"{0:020d}.json"
    for line in log.read_text(encoding="utf-8").splitlines():
        for kind, action in json.loads(line).items():
            actions.setdefault(kind, []).append(action)
    return actions


def adds(root: Path) -> dict[str, dict[str, Any]]:
    """Return the added files by path, statistics parsed."""
    found = first_commit(root).get("add", [])
    return {a["path"]: {**a, "stats": json.loads(a.get("stats") or "null")} for a in found}


def schema(root: Path) -> dict[str, Any]:
    """Return name and type of each column."""
    text = first_commit(root)["metaData"][0]["schemaString"]
    return {f["name"]: f["type"] for f in json.loads(text)["fields"]}


def contents(root: Path) -> dict[str, tuple[int, int]]:
    """Return size and time of every file that is not in the log."""
    return {
        str(p.relative_to(root)): (p.stat().st_size, p.stat().st_mtime_ns)
        for p in root.rglob("*")
        if p.is_file() and "_delta_log" not in p.parts
    }
