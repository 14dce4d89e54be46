"""Stores for tests: one in memory, and one that breaks the n-th operation on purpose."""

from __future__ import annotations

import io
import itertools
import threading
from collections.abc import Callable, Iterator, Sequence
from enum import Enum
from typing import BinaryIO, TypeVar

from puredelta.store.base import (
    FileEnd,
    NameRule,
    PutOutcome,
    StorageError,
    Store,
    StoredDirectory,
    StoredFile,
)
from puredelta.store.registry import open_store

T = TypeVar("T")


class MemoryStore:
    """A table's storage in a dictionary from path to content, with a clock of its own.

    ``files`` and ``modified_ms`` may be edited by a test: times are what the listing shows.
    """

    def __init__(self, root_uri: str = "memory:/table") -> None:
        self.root_uri = root_uri
        self.files: dict[str, bytes] = {}
        self.modified_ms: dict[str, int] = {}
        self._ticks = itertools.count(1_700_000_000_000, 1000)
        self._lock = threading.Lock()
        self.flushed: list[str] = []

    def at(self, uri: str) -> Store:
        return open_store(uri)

    def name_rule(self) -> NameRule:
        return NameRule.EXACT

    def flush(self, paths: Sequence[str]) -> None:
        self.flushed += paths

    def list_from(self, directory: str, start: str = "") -> Iterator[StoredFile]:
        for path in sorted(self.files):
            parent, _, name = path.rpartition("/")
            if parent == directory.strip("/") and name >= start and not name.startswith("."):
                yield self._stored(path)

    def walk(self, directory: str) -> Iterator[StoredFile]:
        prefix = _below(directory)
        for path in list(self.files):
            if path.startswith(prefix):
                yield self._stored(path)

    def inventory(
        self, directory: str, *, is_wanted: Callable[[str], bool]
    ) -> Iterator[StoredFile | StoredDirectory]:
        for file in self.walk(directory):
            parts = file.path.split("/")
            above = _below(directory).count("/")
            if all(is_wanted("/".join(parts[:n])) for n in range(above + 1, len(parts) + 1)):
                yield file

    def read(self, path: str) -> bytes:
        try:
            return self.files[path]
        except KeyError:
            raise FileNotFoundError(path) from None

    def read_ahead(self, files: Sequence[StoredFile]) -> Store:  # noqa: ARG002
        return self

    def open(self, path: str) -> BinaryIO:
        return io.BytesIO(self.read(path))

    def read_end(self, path: str, num_bytes: int) -> FileEnd:
        content = self.read(path)
        return FileEnd(content[max(0, len(content) - num_bytes) :], len(content))

    def put_if_absent(self, path: str, content: bytes) -> PutOutcome:
        with self._lock:
            if path in self.files:
                return PutOutcome.ALREADY_EXISTS
            self._set(path, content)
            return PutOutcome.CREATED

    def put(self, path: str, content: bytes) -> None:
        with self._lock:
            self._set(path, content)

    def move(self, path: str, new_path: str) -> None:
        with self._lock:
            if path not in self.files:
                raise FileNotFoundError(path)
            self.files[new_path] = self.files.pop(path)
            self.modified_ms[new_path] = self.modified_ms.pop(path, 1_700_000_000_000)

    def delete(self, path: str) -> None:
        with self._lock:
            self.files.pop(path, None)
            self.modified_ms.pop(path, None)

    def delete_tree(self, directory: str) -> None:
        for file in list(self.walk(directory)):
            self.delete(file.path)

    def delete_directory(self, directory: str) -> bool:  # noqa: ARG002 - keys have none
        return False

    def exists(self, path: str) -> bool:
        return path in self.files or any(f.startswith(_below(path)) for f in list(self.files))

    def _set(self, path: str, content: bytes) -> None:
        self.files[path] = bytes(content)
        self.modified_ms[path] = next(self._ticks)

    def _stored(self, path: str) -> StoredFile:
        return StoredFile(
            path=path,
            size_bytes=len(self.files[path]),
            modified_ms=self.modified_ms.get(path, 1_700_000_000_000),
        )


def _below(directory: str) -> str:
    stripped = directory.strip("/")
    return f"{stripped}/" if stripped else ""


class Fault(Enum):
    """Where the n-th operation goes wrong."""

    BEFORE = "nothing happened"
    AFTER = "it happened, the answer was lost"
    RETRIED = "it happened, the answer was lost, the client below retried"


class FailAt:
    """Break the n-th operation (from 1) of the wrapped store.

    ``only`` restricts the count to some operations, by method name; ``error`` is what is
    raised. Drive it with ``for nth in itertools.count(1)`` until ``tripped`` stays False.
    """

    def __init__(
        self,
        inner: Store,
        nth: int,
        fault: Fault = Fault.BEFORE,
        *,
        only: frozenset[str] | None = None,
        error: Callable[[str], OSError] = StorageError,
    ) -> None:
        self._inner, self._nth, self._fault = inner, nth, fault
        self._only, self._error = only, error
        self.calls = 0

    @property
    def root_uri(self) -> str:
        return self._inner.root_uri

    @property
    def tripped(self) -> bool:
        return self.calls >= self._nth

    def at(self, uri: str) -> Store:
        return self._inner.at(uri)

    def name_rule(self) -> NameRule:
        return self._run("name_rule", self._inner.name_rule)

    def flush(self, paths: Sequence[str]) -> None:
        self._run("flush", lambda: self._inner.flush(paths))

    def list_from(self, directory: str, start: str = "") -> Iterator[StoredFile]:
        files = self._run("list_from", lambda: list(self._inner.list_from(directory, start)))
        return iter(files)

    def walk(self, directory: str) -> Iterator[StoredFile]:
        return iter(self._run("walk", lambda: list(self._inner.walk(directory))))

    def inventory(
        self, directory: str, *, is_wanted: Callable[[str], bool]
    ) -> Iterator[StoredFile | StoredDirectory]:
        found = self._run(
            "inventory", lambda: list(self._inner.inventory(directory, is_wanted=is_wanted))
        )
        return iter(found)

    def delete_directory(self, directory: str) -> bool:
        return self._run("delete_directory", lambda: self._inner.delete_directory(directory))

    def read(self, path: str) -> bytes:
        return self._run("read", lambda: self._inner.read(path))

    def read_ahead(self, files: Sequence[StoredFile]) -> Store:  # noqa: ARG002
        return self

    def open(self, path: str) -> BinaryIO:
        return self._run("open", lambda: self._inner.open(path))

    def read_end(self, path: str, num_bytes: int) -> FileEnd:
        return self._run("read_end", lambda: self._inner.read_end(path, num_bytes))

    def put_if_absent(self, path: str, content: bytes) -> PutOutcome:
        return self._run("put_if_absent", lambda: self._inner.put_if_absent(path, content))

    def put(self, path: str, content: bytes) -> None:
        self._run("put", lambda: self._inner.put(path, content))

    def move(self, path: str, new_path: str) -> None:
        self._run("move", lambda: self._inner.move(path, new_path))

    def delete(self, path: str) -> None:
        self._run("delete", lambda: self._inner.delete(path))

    def delete_tree(self, directory: str) -> None:
        self._run("delete_tree", lambda: self._inner.delete_tree(directory))

    def exists(self, path: str) -> bool:
        return self._run("exists", lambda: self._inner.exists(path))

    def _run(self, name: str, operation: Callable[[], T]) -> T:
        if self._only is not None and name not in self._only:
            return operation()
        self.calls += 1
        if self.calls != self._nth:
            return operation()
        if self._fault is Fault.BEFORE:
            raise self._error(self._fault.value)
        answer = operation()
        if self._fault is Fault.AFTER:
            raise self._error(self._fault.value)
        del answer
        return operation()


class Meddling(FailAt):
    """Call a function around each operation of the wrapped store, with the operation's name.

    What the function raises comes out of the operation; what it does, a rival does between.
    """

    def __init__(
        self,
        inner: Store,
        *,
        before: Callable[[str], None] = lambda _: None,
        after: Callable[[str], None] = lambda _: None,
    ) -> None:
        super().__init__(inner, 0)
        self._before, self._after = before, after

    def _run(self, name: str, operation: Callable[[], T]) -> T:
        self._before(name)
        answer = operation()
        self._after(name)
        return answer


def at_first(name: str, action: Callable[[], object]) -> Callable[[str], None]:
    """Return a function that runs ``action`` at the first operation of a name."""
    due = [action]

    def run(operation: str) -> None:
        if operation == name and due:
            due.pop()()

    return run
