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
import re
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import ModuleType
from typing import IO, Any, TypeAlias, TypeVar

from puredelta.worker.renewed_keys import ask, next_renewal, now_ms, renewal_time

T = TypeVar("T")

StoreFields: TypeAlias = tuple[str, bytes]
"""The URL of a store, and the other arguments of obstore's ``from_url``, pickled. They may hold
secrets: no text is made of them."""
RENEWAL = "renewal"
"""Among them: when the keys expire (ms since 1970), and the `Grant` that gives newer ones."""
ObjectFields: TypeAlias = tuple[StoreFields, str, int]
"""A store, a name in it, and the size of the object; `UNKNOWN_SIZE` where the log says nothing."""
DataPath: TypeAlias = str | ObjectFields
"""A file or a directory: a path of a file system, or an object, or the beginning of its name."""

UNKNOWN_SIZE = -1
KILOBYTE = 1024
MEGABYTE = 1024 * KILOBYTE
_MEMORY_BYTES = 64 * MEGABYTE
"""Of a new object before it is written to the worker's disk."""
_PART_BYTES = 16 * MEGABYTE
"""Of an upload; an object of less is one request. Stores take up to 10,000 parts."""
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
    """Return the client of a store, the same one for all tasks of this process.

    It is made again with newer keys before those of the task expire, if the driver gives some.
    """
    clients = kept("clients")
    if fields not in clients:
        while len(clients) >= _CLIENTS_MAX:
            clients.pop(next(iter(clients)))
        url, packed = fields
        arguments = pickle.loads(packed)  # noqa: S301 - our own
        expires_ms, grant = arguments.pop(RENEWAL, (None, None))
        client = _made({"url": url, **arguments})
        clients[fields] = client, renewal_time(expires_ms, now_ms()), grant
    client, renews_ms, grant = clients[fields]
    if renews_ms is None or now_ms() < renews_ms:
        return client
    asked_ms = now_ms()
    arguments, expires_ms = ask(grant) or (None, None)
    client = client if arguments is None else _made(arguments)
    clients[fields] = client, next_renewal(expires_ms, asked_ms, now_ms()), grant
    return client


def _made(arguments: dict[str, Any]) -> Any:
    return obstore_module("obstore.store").from_url(**arguments)


def kept(name: str) -> dict[Any, Any]:
    """Return a dictionary of this process: code is unpacked again for every task."""
    module = sys.modules.setdefault(_KEPT, ModuleType(_KEPT)).__dict__
    found: dict[Any, Any] = module.setdefault(name, {})
    return found


def obstore_module(name: str = "obstore") -> Any:
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


_CODE = re.compile(r"<Code>(\w+)</Code>")
_ANSWER = ": <"
"""Where the answer of a store begins, which may repeat a token."""


@contextmanager
def errors_of_system(path: DataPath) -> Iterator[None]:
    """Raise errors of a store as those of the system, without what obstore prints for debugging.

    That may name headers and signatures.
    """
    try:
        yield
    except (OSError, obstore_module("obstore.exceptions").BaseError) as failure:
        raise _of_system(failure, path) from None


def _of_system(failure: Exception, path: DataPath) -> OSError:
    first = str(failure).partition("\n")[0]
    code = _CODE.search(first)
    reason = first.partition(_ANSWER)[0] or type(failure).__name__
    if code is not None:
        reason += f" ({code[1]})"
    text = f"{label(path)}: {type(failure).__name__}: {reason}"
    if isinstance(failure, FileNotFoundError):
        return FileNotFoundError(f"{label(path)}: there is no such file")
    if type(failure).__name__ in {"PermissionDeniedError", "UnauthenticatedError"}:
        return PermissionError(text)
    return OSError(text)


def _begin_flush(path: str) -> None:
    """Let the system write a file to its disk now, without waiting: the commit flushes it soon.

    `fsync` is left to the commit: its first call for a file takes an error of the disk away.
    """
    with suppress(OSError, AttributeError):  # no such call on this system
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(descriptor)


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

    @contextmanager
    def stream(self) -> Iterator[IO[bytes]]:
        """Open it to write bytes, once; what was written is whole when the context ends."""
        sink = self.sink()
        if isinstance(sink, str):
            with open(sink, "wb") as file:  # noqa: PTH123
                yield file
        else:
            yield sink

    def finish(self, size_bytes: int | None = None) -> tuple[int, int]:
        """Make the file visible as a whole; return its size and time (ms).

        ``size_bytes`` is how much was written, where that is known.

        Raises:
            OSError: the file is not as long, or the store refuses it.
        """
        if self._content is None or isinstance(self._path, str):
            written = os.stat(label(self._path))  # noqa: PTH116
            self._require(written.st_size, size_bytes)
            _begin_flush(label(self._path))
            return written.st_size, written.st_mtime_ns // 1_000_000
        size = self._content.seek(0, os.SEEK_END)
        self._require(size, size_bytes)
        self._content.seek(0)
        fields, key, _ = self._path
        with errors_of_system(self._path):
            obstore_module().put(
                client_of(fields),
                key,
                self._content,
                use_multipart=size > _PART_BYTES,
                chunk_size=_PART_BYTES,
            )
        self._content.close()
        return size, time.time_ns() // 1_000_000

    def _require(self, found: int, size_bytes: int | None) -> None:
        if size_bytes not in (None, found):
            raise OSError(f"{label(self._path)} has {found} bytes of {size_bytes} written")

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
