"""The storage interface of the log: a few methods, one of them atomic.

A store is rooted at one table. Every path in its methods is relative to that root,
uses ``/`` and is *decoded*: a real file name, never percent-encoded.
"""

from __future__ import annotations

import itertools
import re
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import BinaryIO, NamedTuple, Protocol, runtime_checkable

_TEMPORARY = re.compile(r"\.[0-9a-f]{32}\.tmp")


def temporary_name() -> str:
    """Return a name for a file that is being written, before the file gets its own name."""
    return f".{uuid.uuid4().hex}.tmp"


def is_temporary(path: str) -> bool:
    """Return whether a file has a temporary name: its writer is at work, or was killed.

    >>> is_temporary("p=1/.0123456789abcdef0123456789abcdef.tmp"), is_temporary("a.tmp")
    (True, False)
    """
    return _TEMPORARY.fullmatch(path.rpartition("/")[2]) is not None


class PutOutcome(Enum):
    """The two answers a conditional put may give; anything else is raised."""

    CREATED = "created"
    ALREADY_EXISTS = "already exists"


class NameRule(Enum):
    """The names that a file system takes for one file."""

    EXACT = "those that are spelled alike"
    FOLDED = "those that differ only in case or in the form of Unicode, too"


class StorageError(OSError):
    """The store failed or did not answer; a write may or may not have landed."""


class UnknownOutcomeError(StorageError):
    """A write that was not answered: the store may still carry it out, after this error."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredFile:
    """One file of a listing. ``path`` is relative to the store's root."""

    path: str
    size_bytes: int
    modified_ms: int

    @property
    def directory(self) -> str:
        """The path without its last segment, ``""`` for a file in the root."""
        return self.path.rpartition("/")[0]

    @property
    def name(self) -> str:
        """The last segment of the path."""
        return self.path.rpartition("/")[2]


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredDirectory:
    """A directory that `Store.inventory` found; object stores have none."""

    path: str
    modified_ms: int
    is_empty: bool
    """Whether it contained nothing when it was listed."""


class FileEnd(NamedTuple):
    """The last bytes of a file, and the size of the whole file."""

    content: bytes
    size_bytes: int


class Directories(Protocol):
    """The directories of a bucket: empty objects of Hadoop whose names end with a slash.

    obstore lists these objects without the slash, and can neither name nor remove them.
    """

    def remove(self, location: str, *, recursive: bool = True) -> bool:
        """Remove a directory and everything in it, or only one that is empty; say if it did.

        A missing directory is no error, nor is one that is not empty.
        """


class Store(Protocol):
    """One table's storage.

    ``put_if_absent`` is the whole concurrency contract. For one path at most one
    caller ever receives ``CREATED``, and no reader ever sees part of the content. A
    store that cannot promise that must not implement this protocol.

    A missing file raises ``FileNotFoundError``, a forbidden one ``PermissionError``, every
    other failure `StorageError`.
    """

    @property
    def root_uri(self) -> str:
        """The table root as an absolute, *decoded* URI without a trailing slash, as Hadoop
        takes it (``file:/data/my table``).
        """

    def at(self, uri: str) -> Store:
        """Return the store of another directory, reached with the settings of this one.

        ``uri`` is absolute and decoded, as a log names files outside of the table.

        Raises:
            UnsupportedError: see `puredelta.store.registry.Storage.open`.
        """

    def name_rule(self) -> NameRule:
        """Return how names are compared here, and make sure that `put_if_absent` can be atomic.

        Two files of no content are made in the root and removed again, once per root and process.

        Raises:
            UnsupportedError: it cannot (UNSUPPORTED_STORAGE).
        """

    def flush(self, paths: Sequence[str]) -> None:
        """Make files that others have written survive a power cut, with their directories."""

    def list_from(self, directory: str, start: str = "") -> Iterator[StoredFile]:
        """Yield the files directly in ``directory`` whose name is >= ``start``, sorted by name.

        A directory that does not exist yields nothing. Names that begin with ``.`` are
        unfinished temporaries and stay hidden.
        """

    def walk(self, directory: str) -> Iterator[StoredFile]:
        """Yield every file below ``directory``, hidden ones included, in no fixed order."""

    def inventory(
        self, directory: str, *, is_wanted: Callable[[str], bool]
    ) -> Iterator[StoredFile | StoredDirectory]:
        """Yield the files and directories below a directory, each directory before its content.

        ``is_wanted`` is called with each path; an unwanted directory is skipped with everything
        below it. Links are skipped, too: what they point to may belong to another table.
        """

    def read(self, path: str) -> bytes:
        """Return the whole content."""

    def read_ahead(self, files: Sequence[StoredFile]) -> Store:
        """Return this store, with files on their way that will be read soon.

        Where a request takes long they are read side by side. A failure is raised where the file
        is read.
        """

    def open(self, path: str) -> BinaryIO:
        """Open for reading, seekable: for Parquet, where only some bytes are needed."""

    def read_end(self, path: str, num_bytes: int) -> FileEnd:
        """Return the last bytes of a file, all of them if it is shorter, in one request."""

    def put_if_absent(self, path: str, content: bytes) -> PutOutcome:
        """Create the file atomically and durably unless it exists."""

    def put(self, path: str, content: bytes) -> None:
        """Create or replace the file atomically: readers see the old or the new content."""

    def move(self, path: str, new_path: str) -> None:
        """Rename a file; no other file has the new name."""

    def delete(self, path: str) -> None:
        """Remove the file; a missing file is no error."""

    def delete_tree(self, directory: str) -> None:
        """Remove a directory and everything in it; a missing directory is no error."""

    def delete_directory(self, directory: str) -> bool:
        """Remove a directory if it is empty; return whether this call removed it."""

    def exists(self, path: str) -> bool:
        """Return whether a file or directory exists."""


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
