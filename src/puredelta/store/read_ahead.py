"""Several small files read side by side: one round trip instead of one each.

A table's log is many small files whose names one listing gives. Whoever is about to read them says
so, and then reads them one after the other, as from a disk.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor

from puredelta.store.base import StoredFile

_READERS_MAX = 16
_BYTES_MAX = 64 << 20
"""How much is held at most; files beyond that are read when they are asked for."""

ReadFiles = Mapping[str, "Future[bytes]"]


def begin_reading(files: Iterable[StoredFile], read: Callable[[str], bytes]) -> ReadFiles:
    """Begin to read files, as far as they fit, and return their contents to come, by path."""
    chosen = []
    total = 0
    for file in files:
        total += file.size_bytes
        if total > _BYTES_MAX:
            break
        chosen.append(file.path)
    if len(chosen) < 2:  # noqa: PLR2004 - one file alone is read when it is asked for
        return {}
    readers = ThreadPoolExecutor(min(_READERS_MAX, len(chosen)), "puredelta-read")
    begun = {path: readers.submit(read, path) for path in chosen}
    readers.shutdown(wait=False)
    return begun
