"""Parallel reads of files that are known in advance, and range reads of one object.

A caller announces the files it needs; they are fetched in parallel and then read in order. A
table's log is many such small files, all named by one listing.

Of one object Parquet readers ask for the ranges they want, so only its end is buffered: it holds
the footer, and it arrives with the object's size, which saves a request.
"""

from __future__ import annotations

import io
import itertools
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from puredelta.store.base import FileEnd, StoredFile

END_BYTES = 1 << 16


class RangedFile(io.RawIOBase):
    """Reads an object of which the end is known; ``read_range`` gets (start, length)."""

    def __init__(self, end: FileEnd, read_range: Callable[[int, int], bytes]) -> None:
        super().__init__()
        self._end, self._read_range = end, read_range
        self._end_start = end.size_bytes - len(end.content)
        self._position = 0

    def read(self, size: int | None = -1) -> bytes:
        """Return up to so many bytes, all that are left by default."""
        left = max(0, self._end.size_bytes - self._position)
        wanted = left if size is None or size < 0 else min(size, left)
        start, self._position = self._position, self._position + wanted
        if wanted == 0:
            return b""
        if start >= self._end_start:
            first = start - self._end_start
            return self._end.content[first : first + wanted]
        return self._read_range(start, wanted)

    def readall(self) -> bytes:
        """Return all that is left."""
        return self.read()

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        """Read into a buffer, as the standard library's readers do."""
        content = self.read(len(buffer))
        buffer[: len(content)] = content
        return len(content)

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go to a place; nothing is read."""
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._end.size_bytes}
        self._position = max(0, base[whence] + offset)
        return self._position

    def tell(self) -> int:
        """Return the place where the next read starts."""
        return self._position

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True


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
    if not chosen or (len(chosen) == 1 and total <= END_BYTES):
        return {}  # one small file takes a request whenever it is asked for
    readers = ThreadPoolExecutor(min(_READERS_MAX, len(chosen)), "puredelta-read")
    begun = {path: readers.submit(read, path) for path in chosen}
    readers.shutdown(wait=False)
    return begun


SLOW_READ_SECONDS = 0.000_1
"""A read that takes longer has waited for storage; a read from memory takes a tenth of this."""

_TRIED_READS = 8
"""Reads in the caller's thread before the choice; most of them decide, as one may be chance."""

_AHEAD_READS = 256
"""Reads in threads before the next measurement."""

_AHEAD_PER_THREAD = 4

FAR_READ_SECONDS = 0.01
"""A read that takes longer has crossed a network: the more are on their way the better."""
_FAR_TRIED = 2
_FAR_THREADS = 64
_FAR_AHEAD_READS = 4096

_LISTERS = 16
_WAITED_SLOW_S = 0.001

S = TypeVar("S")
R = TypeVar("R")


def read_in_order(
    sources: Iterable[S],
    read: Callable[[S], R],
    *,
    threads: int,
    clock: Callable[[], float] = time.perf_counter,
    slow_s: float = SLOW_READ_SECONDS,
) -> Iterator[tuple[S, R]]:
    """Yield every source with what ``read`` returned for it, in their order.

    Sources are taken lazily, a few per thread ahead of the caller, so memory does not grow
    with their number. The first exception of ``read`` is raised in the place of its source,
    and the rest is abandoned. Several threads may call ``read`` at once.
    """
    remaining = iter(sources)
    tried = slow = far = 0
    for source in remaining:
        started = clock()
        found = read(source)
        seconds = clock() - started
        slow += seconds > slow_s
        far += seconds >= FAR_READ_SECONDS
        yield source, found
        tried += 1
        if tried == far == _FAR_TRIED:
            some = itertools.islice(remaining, _FAR_AHEAD_READS)
            yield from _read_ahead(some, read, max(threads, _FAR_THREADS))
        elif tried == _TRIED_READS:
            if 2 * slow > tried:
                some = itertools.islice(remaining, _AHEAD_READS)
                yield from _read_ahead(some, read, threads)
        else:
            continue
        tried = slow = far = 0


def walk_in_order(
    root: S, list_directory: Callable[[S], tuple[Iterable[R], Iterable[S]]]
) -> Iterator[R]:
    """Yield the files of a tree of directories, level by level.

    ``list_directory`` returns files and directories of one of them. Where that waits for storage
    several are listed side by side.
    """
    level = [root]
    while level:
        below: list[S] = []
        listed = read_in_order(
            level, list_directory, threads=_LISTERS, clock=_waited, slow_s=_WAITED_SLOW_S
        )
        for _, (files, directories) in listed:
            below.extend(directories)
            yield from files
        level = below


def _waited() -> float:
    """Return a clock that stops while this thread computes."""
    return time.perf_counter() - time.thread_time()


def _read_ahead(
    sources: Iterable[S], read: Callable[[S], R], threads: int
) -> Iterator[tuple[S, R]]:
    running: deque[tuple[S, Future[R]]] = deque()
    pool = ThreadPoolExecutor(threads, thread_name_prefix="puredelta-read")
    try:
        for source in sources:
            running.append((source, pool.submit(read, source)))
            if len(running) > _AHEAD_PER_THREAD * threads:
                first, found = running.popleft()
                yield first, found.result()
        for first, found in running:
            yield first, found.result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
