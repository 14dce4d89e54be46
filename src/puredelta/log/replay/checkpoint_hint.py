"""``_last_checkpoint``: where a listing of the log may start (section "Last Checkpoint File").

It is only a hint: readers list the log and decide by the files that are there (X-36).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from puredelta.protocol.actions.log_paths import LAST_CHECKPOINT, VERSION_MAX, log_path
from puredelta.store.base import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointHint:
    """What ``_last_checkpoint`` says of the newest checkpoint."""

    version: int
    num_actions: int | None = None
    """``size``; None where no checksum vouches for it: writers do not count alike."""
    num_files: int | None = None
    """``numOfAddFiles``."""


def read_checkpoint_hint(store: Store) -> CheckpointHint | None:
    """Return what ``_last_checkpoint`` says; None if it is missing or unusable.

    A wrong checksum, broken JSON or an unreadable file all mean "list everything" (X-36).
    """
    try:
        pairs = json.loads(store.read(log_path(LAST_CHECKPOINT)), object_pairs_hook=_unique_keys)
        if not isinstance(pairs, dict):
            return None
        checksum = pairs.get("checksum")
        if checksum is not None and checksum != checkpoint_hint_checksum(pairs):
            return None
    except (OSError, ValueError, RecursionError):
        return None
    version = _whole_number(pairs, "version")
    if version is None or version > VERSION_MAX:
        return None
    return CheckpointHint(
        version=version,
        num_actions=None if checksum is None else _whole_number(pairs, "size"),
        num_files=_whole_number(pairs, "numOfAddFiles"),
    )


def _whole_number(content: Mapping[str, Any], key: str) -> int | None:
    value = content.get(key)
    if not isinstance(value, int) or isinstance(value, bool):
        return None
    return value if value >= 0 else None


def checkpoint_hint_checksum(content: Mapping[str, Any]) -> str:
    """Return the MD5 of the canonical form without ``checksum`` (section "JSON checksum")."""
    leaves = sorted(
        (path.encode(), f"{path}={value}")
        for key, child in content.items()
        if key != "checksum"
        for path, value in _canonical_leaves(_canonical_text(key), child)
    )
    joined = ",".join(leaf for _, leaf in leaves)
    return hashlib.md5(joined.encode(), usedforsecurity=False).hexdigest()


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) != len(pairs):
        raise ValueError("a JSON object names a key twice")
    return content


def _canonical_leaves(path: str, value: object) -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping):
        for key, child in value.items():
            yield from _canonical_leaves(f"{path}+{_canonical_text(key)}", child)
    elif isinstance(value, list):
        for index, child in enumerate(value):
            yield from _canonical_leaves(f"{path}+{index}", child)
    else:
        yield path, _canonical_text(value) if isinstance(value, str) else json.dumps(value)


def _canonical_text(text: str) -> str:
    return f'"{quote(text, safe="-._~")}"'
