"""A replay of a log as the protocol words it, without a line of the library: slow, and strict."""

from __future__ import annotations

import io
import json
import posixpath
import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import unquote

import pyarrow.parquet as pq

_COMMIT = re.compile(r"_delta_log/([0-9]{20})\.json")
_CHECKPOINT = re.compile(r"_delta_log/([0-9]{20})\.checkpoint\.(.+)")
_PARTS = re.compile(r"([0-9]{10})\.([0-9]{10})\.parquet")


class UnclearError(Exception):
    """The log is not what a strict reader takes."""


def replayed(files: Mapping[str, bytes]) -> set[tuple[str, str]]:
    """Return path and deletion vector of every active file.

    Raises:
        UnclearError: anything is unusual; the library may read the log or refuse it.
    """
    commits = {int(m[1]): name for name in files if (m := _COMMIT.fullmatch(name))}
    checkpoints = [m for name in files if (m := _CHECKPOINT.fullmatch(name))]
    if not commits or len({int(m[1]) for m in checkpoints}) > 1:
        raise UnclearError
    if any(name.endswith(".compacted.json") for name in files):
        raise UnclearError  # it may contradict the commits, and either may be read
    after = int(checkpoints[0][1]) if checkpoints else -1
    last = max(commits)
    if last <= after or any(v not in commits for v in range(after + 1, last + 1)):
        raise UnclearError
    active: dict[tuple[str, str], bool] = {}
    for action in _checkpoint(files, [m[0] for m in checkpoints]):
        _apply(active, action)
    for version in range(after + 1, last + 1):
        for action in _lines(files[commits[version]]):
            _apply(active, action)
    return {key for key, is_active in active.items() if is_active}


def _lines(content: bytes) -> Iterator[Mapping[str, Any]]:
    for line in content.split(b"\n"):
        if line.strip():
            try:
                action = json.loads(line, object_pairs_hook=_once)
            except (ValueError, RecursionError) as error:
                raise UnclearError from error
            if not isinstance(action, dict) or len(action) != 1:
                raise UnclearError
            yield action


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(dict(pairs)) < len(pairs):
        raise ValueError
    return dict(pairs)


def _checkpoint(files: Mapping[str, bytes], names: list[str]) -> Iterator[Mapping[str, Any]]:
    whole = [name for name in names if "checkpoint.00" not in name]
    parts = [m for name in names if (m := _PARTS.search(name))]
    numbers, totals = {m[1] for m in parts}, {int(m[2]) for m in parts}
    in_parts = not whole and len(numbers) == len(names) and totals == {len(names)}
    if names and not (len(whole) == len(names) == 1) and not in_parts:
        raise UnclearError
    for name in sorted(names):
        for action in _rows(files[name], name):
            yield action
            for kind, body in action.items():
                if kind == "sidecar" and isinstance(body, dict):
                    path = f"_delta_log/_sidecars/{body.get('path')}"
                    if path not in files:
                        raise UnclearError
                    yield from _rows(files[path], path)


def _rows(content: bytes, name: str) -> Iterator[Mapping[str, Any]]:
    if name.endswith(".json"):
        yield from _lines(content)
        return
    try:
        rows = pq.read_table(io.BytesIO(content)).to_pylist()
    except Exception as error:
        raise UnclearError from error
    for row in rows:
        kinds = {kind: body for kind, body in row.items() if body is not None}
        if len(kinds) != 1:
            raise UnclearError
        yield kinds


def _apply(active: dict[tuple[str, str], bool], action: Mapping[str, Any]) -> None:
    ((kind, body),) = action.items()
    if kind not in {"add", "remove"}:
        return
    if not isinstance(body, dict) or not isinstance(body.get("path"), str):
        raise UnclearError
    active[key_of(body["path"], body.get("deletionVector"))] = kind == "add"


def key_of(path: str, vector: Mapping[str, Any] | None) -> tuple[str, str]:
    """Return what identifies a file: its path in one spelling, and its vector."""
    clean = unquote(path, errors="surrogateescape")
    if ":" in path or path.startswith("/"):
        clean = re.sub(r"^file:/+", "/", clean)
    if vector is None or vector.get("storageType") is None:
        return posixpath.normpath(clean), ""
    fields = (vector.get(name) for name in ("storageType", "pathOrInlineDv", "offset"))
    return posixpath.normpath(clean), json.dumps(list(fields))
