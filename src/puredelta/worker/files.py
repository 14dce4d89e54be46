"""Data files as a worker reaches them: on a file system it sees, or as objects of a store.

Paths travel as plain values (`DataPath`). A store's client is made in the worker, once per process
and configuration, and never travels. An object is written at once or not at all: what is encoded
waits in memory, and on the worker's disk where it is large, until it is whole.

Only a worker that meets an object needs obstore.
"""

from __future__ import annotations

import importlib
import os
import pickle
import sys
import tempfile
import time
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from types import ModuleType
from typing import IO, Any, TypeAlias, TypeVar

T = TypeVar("T")

StoreFields: TypeAlias = tuple[str, bytes]
"""The URL of a store, and the other arguments of obstore's ``from_url``, pickled. They may hold
secrets: no text is made of them."""
ObjectFields: TypeAlias = tuple[StoreFields, str, int]
"""A store, a name in it, and the size of the object; `UNKNOWN_SIZE` where the log says nothing."""
DataPath: TypeAlias = str | ObjectFields
"""A file or a directory: a path of a file system, or an object, or the beginning of its name."""

UNKNOWN_SIZE = -1
_KILOBYTE = 1024
_MEGABYTE = 1024 * _KILOBYTE
_TAIL_BYTES = 64 * _KILOBYTE
"""Read at first from an object's end: nearly all footers, and small files as a whole."""
_REQUEST_BYTES = 8 * _MEGABYTE
"""Of what is read at once; larger ranges are read by several requests at the same time."""
_GAP_BYTES = 1 * _MEGABYTE
"""Ranges that lie closer together are read as one: another request takes longer."""
_MEMORY_BYTES = 64 * _MEGABYTE
"""Of a new object before it is written to the worker's disk."""
_PART_BYTES = 16 * _MEGABYTE
"""Of an upload; an object of less is one request. Stores take up to 10,000 parts."""
_AHEAD = 16
"""How many objects are opened before they are needed."""
_KEPT = "puredelta_worker_stores"
"""A module of this name keeps what outlives the code of a task: clients, and what is on its way."""
_CLIENTS_MAX = 16


def label(path: DataPath) -> str:
    """Return how errors name a file.

    >>> label((("s3://bucket", b""), "t/part-0.parquet", UNKNOWN_SIZE))
    's3://bucket/t/part-0.parquet'
    """
    return path if isinstance(path, str) else f"{path[0][0].rstrip('/')}/{path[1]}"


def joined(directory: DataPath, *names: str) -> DataPath:
    """Return the path of something in a directory; empty names are left out."""
    if isinstance(directory, str):
        return os.path.join(directory, *(name for name in names if name))  # noqa: PTH118
    store, prefix, _ = directory
    return store, "/".join(name for name in (prefix, *names) if name), UNKNOWN_SIZE


def make_directory(path: DataPath) -> None:
    """Make a directory and those above it; a store has none."""
    if isinstance(path, str):
        os.makedirs(path, exist_ok=True)  # noqa: PTH103


def client_of(fields: StoreFields) -> Any:
    """Return the client of a store, the same one for all tasks of this process."""
    clients = _kept("clients")
    if fields not in clients:
        while len(clients) >= _CLIENTS_MAX:
            clients.pop(next(iter(clients)))
        url, arguments = fields
        stores = _obstore("obstore.store")
        clients[fields] = stores.from_url(url, **pickle.loads(arguments))  # noqa: S301 - our own
    return clients[fields]


def _kept(name: str) -> dict[Any, Any]:
    """Return a dictionary of this process: code is unpacked anew for every task."""
    module = sys.modules.setdefault(_KEPT, ModuleType(_KEPT)).__dict__
    found: dict[Any, Any] = module.setdefault(name, {})
    return found


def _obstore(name: str = "obstore") -> Any:
    """Import obstore where an object is met: tables on file systems need none.

    Raises:
        ModuleNotFoundError: this worker has no obstore.
    """
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as missing:
        raise ModuleNotFoundError(
            "Tables on object stores take obstore on every worker, and this one lacks it. Install "
            "obstore there (pip install obstore)."
        ) from missing


@contextmanager
def _errors_of_system(path: DataPath) -> Iterator[None]:
    """Raise errors of a store as those of the system, without what obstore prints for debugging.

    That may name headers and signatures.
    """
    try:
        yield
    except (OSError, _obstore("obstore.exceptions").BaseError) as failure:
        raise _of_system(failure, path) from None


def _of_system(failure: Exception, path: DataPath) -> OSError:
    reason = str(failure).partition("\n")[0] or type(failure).__name__
    text = f"{label(path)}: {type(failure).__name__}: {reason}"
    if isinstance(failure, FileNotFoundError):
        return FileNotFoundError(f"{label(path)}: there is no such file")
    if type(failure).__name__ in {"PermissionDeniedError", "UnauthenticatedError"}:
        return PermissionError(text)
    return OSError(text)


class RangeFile:
    """An object as a seekable file: what `fetch` has brought, and a request for anything else.

    With its last bytes come its footer, and all of a small file. Not for several threads.
    """

    closed = False
    """What pyarrow looks at before every read."""

    def __init__(self, path: ObjectFields) -> None:
        """Raises OSError if the store refuses."""
        self.path = path
        self._position = 0
        self._starts: list[int] = []
        self._parts: list[memoryview] = []
        arriving: Future[_Tail] | None = _kept("arriving").pop(path, None)
        self.size, self._tail = _tail_of(path) if arriving is None else arriving.result()
        self._tail_at = self.size - len(self._tail)

    def fetch(self, ranges: Iterable[tuple[int, int]]) -> None:
        """Bring some ranges, given by start and end, in one go; forget those brought before."""
        wanted = [(start, end) for start, end in ranges if start < end and start < self._tail_at]
        spans = list(_spans(_merged(wanted)))
        self._parts = _get(self.path, spans)
        self._starts = [start for start, _ in spans]

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


def _tail_of(path: ObjectFields) -> _Tail:
    """Return the size of an object and its last bytes."""
    fields, key, size = path
    if size < 0:
        with _errors_of_system(path):
            size = _obstore().head(client_of(fields), key)["size"]
    (tail,) = _get(path, [(max(0, size - _TAIL_BYTES), size)])
    return size, tail


def _get(path: ObjectFields, spans: Sequence[tuple[int, int]]) -> list[memoryview]:
    """Return some ranges of an object, brought at the same time."""
    if all(start == end for start, end in spans):
        return [memoryview(b"") for _ in spans]
    fields, key, _ = path
    starts, ends = map(list, zip(*spans, strict=True))
    with _errors_of_system(path):
        found = _obstore().get_ranges(client_of(fields), key, starts=starts, ends=ends, coalesce=0)
    return [memoryview(one) for one in found]


def fetched_ahead(items: Sequence[T], path_of: Callable[[T], DataPath]) -> Iterator[T]:
    """Yield items in order, while the last bytes of the next ones' objects are on their way.

    So files that are opened one after the other wait for the store once, not once each.
    """
    if not any(isinstance(path_of(item), tuple) for item in items):
        yield from items
        return
    arriving = _kept("arriving")
    pool = ThreadPoolExecutor(_AHEAD, "puredelta-ahead")
    waiting: deque[T] = deque()
    try:
        for item in items:
            path = path_of(item)
            if isinstance(path, tuple):
                client_of(path[0])  # made by one thread
                arriving[path] = pool.submit(_tail_of, path)
            waiting.append(item)
            if len(waiting) > _AHEAD:
                yield waiting.popleft()
        yield from waiting
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
        arriving.clear()


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


class NewFile:
    """A file that is being written: `finish` it or `discard` it."""

    def __init__(self, path: DataPath) -> None:
        self._path = path
        self._content: IO[bytes] | None = None

    def sink(self) -> str | IO[bytes]:
        """Return what to write to: the path, or a file for the time being."""
        if isinstance(self._path, str):
            return self._path
        self._content = tempfile.SpooledTemporaryFile(max_size=_MEMORY_BYTES)  # noqa: SIM115
        return self._content

    def finish(self) -> tuple[int, int]:
        """Make the file visible as a whole; return its size and time (ms).

        Raises:
            OSError: the storage refused; nothing is there then.
        """
        if self._content is None or isinstance(self._path, str):
            written = os.stat(label(self._path))  # noqa: PTH116
            return written.st_size, written.st_mtime_ns // 1_000_000
        size = self._content.seek(0, os.SEEK_END)
        self._content.seek(0)
        fields, key, _ = self._path
        with _errors_of_system(self._path):
            _obstore().put(
                client_of(fields),
                key,
                self._content,
                use_multipart=size > _PART_BYTES,
                chunk_size=_PART_BYTES,
            )
        self._content.close()
        return size, time.time_ns() // 1_000_000

    def discard(self) -> None:
        """Remove what may be there; best effort: the job removes what no answer names."""
        if self._content is not None:
            self._content.close()
        if not isinstance(self._path, str):
            return
        try:
            os.remove(self._path)  # noqa: PTH107
        except OSError:
            return
