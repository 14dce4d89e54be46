"""Content that is too long for memory, put part by part where the store can."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Protocol, runtime_checkable

from puredelta.store.base import PutOutcome, Store

SHORT_BYTES_MAX = 8 * 1024 * 1024
"""Shorter content is put whole."""


@runtime_checkable
class TakesParts(Protocol):
    """A store that needs no more than one part of a new file in memory."""

    def put_parts_if_absent(self, path: str, parts: Iterable[bytes]) -> PutOutcome:
        """Create the file as `Store.put_if_absent` does, from its parts in order."""


def put_parts_if_absent(store: Store, path: str, parts: Iterable[bytes]) -> PutOutcome:
    """Create a file atomically and durably unless it exists.

    Storage that takes a new object in one request gets it whole.
    """
    remaining = iter(parts)
    first: list[bytes] = []
    length = 0
    for part in remaining:
        first.append(part)
        length += len(part)
        if length > SHORT_BYTES_MAX and isinstance(store, TakesParts):
            return store.put_parts_if_absent(path, itertools.chain(first, remaining))
    return store.put_if_absent(path, b"".join(first))
