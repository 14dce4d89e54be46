"""Calls of a POSIX file system that `puredelta.store.local` is made of."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import unicodedata
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from puredelta.errors import Message, UnsupportedError
from puredelta.store.base import (
    FileEnd,
    NameRule,
    PutOutcome,
    StorageError,
    StoredDirectory,
    StoredFile,
)
from puredelta.store.read_ahead import walk_in_order

TRIAL_PREFIX = ".puredelta-trial-"
"""Of files that find out what a file system can do; a killed process leaves some."""
_NO_HARD_LINKS = frozenset({errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS})
_READ_AS_IT_IS = os.O_RDONLY | getattr(os, "O_BINARY", 0)
_NO_DIRECTORY_FSYNC = frozenset({errno.EINVAL, errno.ENOTSUP, errno.EBADF})


def link_new(temporary: Path, target: Path) -> PutOutcome:
    """Give a finished file its name, unless the name is taken.

    Raises:
        UnsupportedError: the file system has no hard links (UNSUPPORTED_STORAGE).
    """
    try:
        os.link(temporary, target)
    except OSError as error:
        # NFS repeats a link whose answer was lost and then reports that the name exists.
        # As open(2) says, the link count of the temporary file tells whether it worked.
        if temporary.stat().st_nlink > 1:
            return PutOutcome.CREATED
        if isinstance(error, FileExistsError):
            return PutOutcome.ALREADY_EXISTS
        if error.errno in _NO_HARD_LINKS:
            raise UnsupportedError(
                Message.UNSUPPORTED_STORAGE_HARD_LINKS, parent=target.parent, path=str(target)
            ) from error
        raise
    return PutOutcome.CREATED


def make_directories(directory: Path) -> None:
    """Make a directory and those above it that are missing, durably."""
    missing = []
    while not directory.is_dir():
        missing.append(directory)
        if directory.parent == directory:
            break
        directory = directory.parent
    for new in reversed(missing):
        _make_directory(new)
        flush_directory(new.parent)


def _make_directory(directory: Path) -> None:
    try:
        directory.mkdir(exist_ok=True)
    except FileExistsError as error:
        reason = "Parent path is not a directory"
        raise StorageError(errno.ENOTDIR, reason, str(directory)) from error


def find_name_rule(root: Path) -> NameRule:
    """Make a file and a link to it, look for the file under other spellings, and remove both."""
    make_directories(root)
    trial = root / f"{TRIAL_PREFIX}{uuid.uuid4().hex}-\u00e9"
    link = trial.with_name(f"{trial.name}-link")
    try:
        trial.touch(exist_ok=False)
        link_new(trial, link)
        others = (trial.name.upper(), unicodedata.normalize("NFD", trial.name))
        is_folded = any(trial.with_name(name).exists() for name in others)
    finally:
        for made in (link, trial):
            with contextlib.suppress(OSError):
                made.unlink()
    return NameRule.FOLDED if is_folded else NameRule.EXACT


def flush_file(file: Path) -> None:
    """Flush what any process has written to a file."""
    descriptor = os.open(file, os.O_RDWR if os.name == "nt" else os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def flush_directory(directory: Path) -> None:
    """Make a new name survive a power cut, where the file system can promise that."""
    if os.name == "nt":
        return
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in _NO_DIRECTORY_FSYNC:
            raise
    finally:
        os.close(descriptor)


def _read_after_seek(descriptor: int, num_bytes: int, at: int) -> bytes:
    os.lseek(descriptor, at, os.SEEK_SET)
    return os.read(descriptor, num_bytes)


_read_at: Callable[[int, int, int], bytes] = getattr(os, "pread", _read_after_seek)
"""Takes a descriptor, a number of bytes and their place; one system call where there is one."""


def read_file_end(path: str, num_bytes: int) -> FileEnd:
    """Return the last bytes of a file, unbuffered because files are many."""
    descriptor = os.open(path, _READ_AS_IT_IS)
    try:
        size = os.lseek(descriptor, 0, os.SEEK_END)
        wanted = min(size, num_bytes)
        content = _read_at(descriptor, wanted, size - wanted)
        while len(content) < wanted:
            more = _read_at(descriptor, wanted - len(content), size - wanted + len(content))
            if not more:
                raise StorageError(f"{path} was cut short while it was read")
            content += more
        return FileEnd(content, size)
    finally:
        os.close(descriptor)


class _Place(NamedTuple):
    """A directory on the way down from where a walk began."""

    path: str
    """As the walk names it."""
    real: str
    """With all links resolved."""
    above: frozenset[str] = frozenset()
    """What lies above it, resolved."""


def walk(root: str, directory: str) -> Iterator[StoredFile]:
    """Yield every file below a directory of a root, which ends with a slash."""
    real = os.path.realpath(root + directory)
    return walk_in_order(_Place(directory, real), lambda place: _list_all(root, place))


def _list_all(root: str, place: _Place) -> tuple[list[StoredFile], list[_Place]]:
    """List one directory, unless it is a link to one that leads to it."""
    files: list[StoredFile] = []
    below: list[_Place] = []
    if place.real in place.above:
        return files, below
    entries = entries_of(Path(root + place.path))
    entries.reverse()
    while entries:
        # An entry keeps its status, so that a million of them would need a gigabyte.
        entry = entries.pop()
        if entry.is_dir():
            real = f"{place.real}/{entry.name}"
            if entry.is_symlink():
                real = os.path.realpath(entry.path)
            path = joined(place.path, entry.name)
            below.append(_Place(path, real, place.above | {place.real}))
        elif (file := stored_file(place.path, entry)) is not None:
            files.append(file)
    return files, below


def joined(directory: str, name: str) -> str:
    """Return the path of what is in a directory, relative as that is."""
    stripped = directory.strip("/")
    return f"{stripped}/{name}" if stripped else name


def entries_of(absolute: Path) -> list[os.DirEntry[str]]:
    """Return what is in a directory by name; nothing if it is missing."""
    try:
        with os.scandir(absolute) as found:
            return sorted(found, key=lambda e: e.name)
    except (FileNotFoundError, NotADirectoryError):
        return []


def stored_directory(path: str, entry: os.DirEntry[str]) -> StoredDirectory | None:
    """Describe a directory; one that was removed since the listing is None."""
    try:
        modified_ms = entry.stat(follow_symlinks=False).st_mtime_ns // 1_000_000
        with os.scandir(entry.path) as inside:
            is_empty = next(inside, None) is None
    except FileNotFoundError:
        return None
    return StoredDirectory(path=path, modified_ms=modified_ms, is_empty=is_empty)


def stored_file(directory: str, entry: os.DirEntry[str]) -> StoredFile | None:
    """Describe a regular file; directories, and files deleted since the listing, are None."""
    try:
        status = entry.stat()
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(status.st_mode):
        return None
    return StoredFile(
        path=joined(directory, entry.name),
        size_bytes=status.st_size,
        modified_ms=status.st_mtime_ns // 1_000_000,
    )
