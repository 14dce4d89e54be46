"""Objects of a store as workers read them: by ranges, few and large, and ahead of their readers."""

from __future__ import annotations

import os
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeAlias, TypeVar

from puredelta.worker.files import (
    KILOBYTE,
    MEGABYTE,
    DataPath,
    ObjectFields,
    client_of,
    errors_of_system,
    kept,
    obstore_module,
)

T = TypeVar("T")

_TAIL_BYTES = 64 * KILOBYTE
"""Read at first from an object's end: nearly all footers, and small files as a whole."""
_REQUEST_BYTES = 8 * MEGABYTE
"""Of what is read at once; larger ranges are read by several requests at the same time."""
_GAP_BYTES = 1 * MEGABYTE
"""Ranges that lie closer together are read as one: another request takes longer."""
_AHEAD_BYTES = 4 * MEGABYTE
"""Of each of these what is brought at most, beside its end."""
_AHEAD = 16
"""How many objects are opened before they are needed."""
_RANGES_AHEAD = 8
"""The same where more of them is brought than their ends."""
_WHOLE_BYTES = 16 * MEGABYTE
"""An object of no more is brought as a whole where all of it is copied: one wait, not four."""
_WHOLE_AHEAD = 1


class RangeFile:
    """An object as a seekable file: what `fetch` has brought, and a request for anything else.

    With its last bytes come its footer, and all of a small file. Not for several threads.
    """

    closed = False
    """What pyarrow looks at before every read."""

    def __init__(self, path: ObjectFields, brought: _Brought | None = None) -> None:
        """``brought`` is there already. Raises OSError if the store refuses."""
        if brought is None:
            arriving: Future[_Brought] | None = kept("arriving").pop(path, None)
            brought = (_tail_of(path), [], []) if arriving is None else arriving.result()
        self.path = path
        self._position = 0
        (self.size, self._tail), self._starts, self._parts = brought
        self._tail_at = self.size - len(self._tail)

    @property
    def brought(self) -> _Brought:
        """What is there of the object."""
        return (self.size, self._tail), self._starts, self._parts

    def fetch(self, ranges: Iterable[tuple[int, int]]) -> None:
        """Bring some ranges, given by start and end, in one go; forget those brought before."""
        wanted = [(start, end) for start, end in ranges if start < end and start < self._tail_at]
        if self._parts and all(self._has(start, min(end, self._tail_at)) for start, end in wanted):
            return
        spans = list(_spans(_merged(wanted)))
        self._parts = _get(self.path, spans)
        self._starts = [start for start, _ in spans]

    def _has(self, start: int, end: int) -> bool:
        at = start
        while at < end:
            place = bisect_right(self._starts, at) - 1
            if place < 0 or at - self._starts[place] >= len(self._parts[place]):
                return False
            at = self._starts[place] + len(self._parts[place])
        return True

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes; fewer at the end."""
        left = max(0, self.size - self._position)
        size = left if size < 0 else min(size, left)
        start = self._position
        self._position += size
        return self.between(start, start + size)

    def between(self, start: int, end: int) -> bytes:
        """Return the bytes between two places."""
        if start >= self._tail_at:
            return bytes(self._tail[start - self._tail_at : end - self._tail_at])
        found: list[memoryview] = []
        at = start
        while at < end:
            place = bisect_right(self._starts, at) - 1
            part = self._parts[place] if place >= 0 else memoryview(b"")
            offset = at - self._starts[place] if place >= 0 else 0
            if offset >= len(part):
                return bytes(_get(self.path, [(start, end)])[0])
            found.append(part[offset : offset + end - at])
            at += len(found[-1])
        return b"".join(found)

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Go to a place."""
        self._position = offset + (0, self._position, self.size)[whence]
        return self._position

    def tell(self) -> int:
        """Return the place."""
        return self._position

    def readable(self) -> bool:
        """Say that it can be read."""
        return True

    def seekable(self) -> bool:
        """Say that it can be read from any place."""
        return True

    def writable(self) -> bool:
        """Say that it cannot be written."""
        return False

    def close(self) -> None:
        """Forget what was brought."""
        self.closed = True
        self._starts, self._parts = [], []


_Tail: TypeAlias = tuple[int, memoryview]
_Brought: TypeAlias = tuple[_Tail, list[int], list[memoryview]]
"""The end of an object; where other parts of it begin, and they themselves."""


def _tail_of(path: ObjectFields, whole_max: int = 0) -> _Tail:
    """Return the size of an object and its last bytes; all of them up to ``whole_max``."""
    fields, key, size = path
    if size < 0:
        with errors_of_system(path):
            size = obstore_module().head(client_of(fields), key)["size"]
    if _TAIL_BYTES < size <= whole_max:
        return size, memoryview(b"".join(_get(path, list(_spans([(0, size)])))))
    (tail,) = _get(path, [(max(0, size - _TAIL_BYTES), size)])
    return size, tail


def _get(path: ObjectFields, spans: Sequence[tuple[int, int]]) -> list[memoryview]:
    """Return some ranges of an object, brought at the same time."""
    if all(start == end for start, end in spans):
        return [memoryview(b"") for _ in spans]
    fields, key, _ = path
    starts, ends = map(list, zip(*spans, strict=True))
    with errors_of_system(path):
        found = obstore_module().get_ranges(
            client_of(fields), key, starts=starts, ends=ends, coalesce=0
        )
    return [memoryview(one) for one in found]


def fetched_ahead(
    items: Sequence[T],
    path_of: Callable[[T], DataPath],
    ranges_of: Callable[[RangeFile], Iterable[tuple[int, int]]] | None = None,
    *,
    whole: bool = False,
) -> Generator[T, None, None]:
    """Yield items in order, while the last bytes of the next ones' objects are on their way.

    So files that are opened one after the other wait for the store once, not once each.
    ``ranges_of`` says of an object whose end is there what else will be read; where that is
    little, it comes ahead, too. It is called by several threads. With ``whole`` the next object
    comes as a whole, unless it is large.
    """
    if not any(isinstance(path_of(item), tuple) for item in items):
        yield from items
        return
    arriving = kept("arriving")
    ahead = _AHEAD if ranges_of is None else _RANGES_AHEAD
    ahead, whole_max = (_WHOLE_AHEAD, _WHOLE_BYTES) if whole else (ahead, 0)
    pool = ThreadPoolExecutor(ahead, "puredelta-ahead")
    waiting: deque[T] = deque()
    try:
        for item in items:
            path = path_of(item)
            if isinstance(path, tuple):
                client_of(path[0])  # made by one thread
                arriving[path] = pool.submit(_bring, path, ranges_of, whole_max)
            waiting.append(item)
            if len(waiting) > ahead:
                yield waiting.popleft()
        yield from waiting
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
        arriving.clear()


def _bring(
    path: ObjectFields,
    ranges_of: Callable[[RangeFile], Iterable[tuple[int, int]]] | None,
    whole_max: int,
) -> _Brought:
    brought: _Brought = _tail_of(path, whole_max), [], []
    if ranges_of is None:
        return brought
    try:
        ranges = list(ranges_of(RangeFile(path, brought)))
    except Exception:  # noqa: BLE001 - the reader of the file reports the error
        return brought
    if sum(end - start for start, end in _merged(ranges)) > _AHEAD_BYTES:
        return brought
    file = RangeFile(path, brought)
    file.fetch(ranges)
    return file.brought


def _merged(ranges: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for start, end in sorted(ranges):
        if merged and start - merged[-1][1] <= _GAP_BYTES:
            merged[-1] = merged[-1][0], max(end, merged[-1][1])
        else:
            merged.append((start, end))
    return merged


def _spans(ranges: Iterable[tuple[int, int]]) -> Iterable[tuple[int, int]]:
    return (
        (at, min(at + _REQUEST_BYTES, end))
        for start, end in ranges
        for at in range(start, end, _REQUEST_BYTES)
    )
