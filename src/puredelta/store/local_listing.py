"""Directories of a mounted file system as the log sees them: files, their sizes and times."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from puredelta.store.base import StoredDirectory, StoredFile
from puredelta.store.in_order import walk_in_order


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
