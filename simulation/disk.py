"""The disk that all writers share: files with times, and what a power cut leaves of them.

Names in a directory become durable when somebody flushes it, all up to then and in order, as
file systems with a journal do. What is not flushed when the power goes is undone, from some
point of the order on.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random

from puredelta.store.base import StoredFile


@dataclass(frozen=True, slots=True)
class _Content:
    """A file's bytes, and when they were written."""

    content: bytes
    modified_ms: int


class Disk:
    """Files by path. What happens here happens at once, to all who look."""

    def __init__(self, *, clock: Callable[[], int]) -> None:
        self._clock = clock
        self._files: dict[str, _Content] = {}
        self._names: defaultdict[str, list[str]] = defaultdict(list)
        self._journals: defaultdict[str, list[tuple[str, _Content | None]]] = defaultdict(list)

    def exists(self, path: str) -> bool:
        """Tell whether there is a file of this name, or one below it."""
        return path in self._files or any(f.startswith(f"{path}/") for f in self._files)

    def read(self, path: str) -> bytes:
        """Return a file's content."""
        try:
            return self._files[path].content
        except KeyError:
            raise FileNotFoundError(path) from None

    def list_from(self, directory: str, start: str = "") -> Iterator[StoredFile]:
        """Yield the files directly in a directory, by name."""
        names = self._names[directory]
        prefix = f"{directory}/" if directory else ""
        for name in names[bisect_left(names, start) :]:
            yield self._described(f"{prefix}{name}")

    def walk(self) -> Iterator[StoredFile]:
        """Yield all files."""
        return map(self._described, sorted(self._files))

    def write(self, path: str, content: bytes) -> None:
        """Create or replace a file."""
        self._journal(path)
        self._set(path, _Content(content, self._clock()))

    def create(self, path: str, content: bytes) -> bool:
        """Create a file unless there is one of the name; tell whether it was created."""
        if path in self._files:
            return False
        self.write(path, content)
        return True

    def delete(self, path: str) -> None:
        """Remove a file; one that is not there is no error."""
        if path in self._files:
            self._journal(path)
            self._set(path, None)

    def flush(self, path: str) -> None:
        """Make all names of the directory durable that a file is in."""
        self._journals[_directory(path)].clear()

    def cut_power(self, random: Random) -> list[str]:
        """Undo part of what is not durable; return the paths of it, newest first."""
        undone: list[str] = []
        for journal in self._journals.values():
            kept = random.randint(0, len(journal))
            for path, before in reversed(journal[kept:]):
                self._set(path, before)
                undone.append(path)
            journal.clear()
        return undone

    def _journal(self, path: str) -> None:
        self._journals[_directory(path)].append((path, self._files.get(path)))

    def _set(self, path: str, content: _Content | None) -> None:
        directory, _, name = path.rpartition("/")
        names = self._names[directory]
        if content is None:
            del self._files[path]
            del names[bisect_left(names, name)]
            return
        if path not in self._files:
            insort(names, name)
        self._files[path] = content

    def _described(self, path: str) -> StoredFile:
        file = self._files[path]
        return StoredFile(path=path, size_bytes=len(file.content), modified_ms=file.modified_ms)


def _directory(path: str) -> str:
    return path.rpartition("/")[0]
