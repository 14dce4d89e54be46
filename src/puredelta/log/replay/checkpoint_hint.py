"""``_last_checkpoint``: where a listing of the log may start (section "Last Checkpoint File").

It is only a hint: readers list the log and decide by the files that are there (X-36).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote

from puredelta.protocol.actions.log_paths import LAST_CHECKPOINT, VERSION_MAX, log_path
from puredelta.store.base import Store


def read_checkpoint_hint(store: Store) -> int | None:
    """Return the version that ``_last_checkpoint`` names; None if it is missing or unusable.

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
    version = pairs.get("version")
    if not isinstance(version, int) or isinstance(version, bool):
        return None
    return version if 0 <= version <= VERSION_MAX else None


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
