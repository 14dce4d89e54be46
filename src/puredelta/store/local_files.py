"""Local files that belong to no table, by decoded ``file:`` URI: commands read them in place."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from puredelta.store.base import FileEnd
from puredelta.store.file_system import read_file_end

_SCHEME = "file:"


@dataclass(frozen=True, slots=True, kw_only=True)
class FileStatus:
    """Size and time of a file: they change when the file is written or replaced."""

    size_bytes: int
    modified_ns: int

    @property
    def modified_ms(self) -> int:
        """The time as Hadoop and the log have it."""
        return self.modified_ns // 1_000_000


def local_path(uri: str) -> str | None:
    """Return the path of a ``file:`` URI, ``None`` for any other."""
    return uri.removeprefix(_SCHEME) if uri.startswith(f"{_SCHEME}/") else None


def file_status(uri: str) -> FileStatus | None:
    """Return size and time of a file; ``None`` if it cannot be reached or is no regular file."""
    path = local_path(uri)
    if path is None:
        return None
    try:
        found = os.stat(path)  # noqa: PTH116 - thousands of files, with any name
    except OSError:
        return None
    if not stat.S_ISREG(found.st_mode):
        return None
    return FileStatus(size_bytes=found.st_size, modified_ns=found.st_mtime_ns)


def open_file(uri: str) -> BinaryIO:
    """Open a file for reading.

    Raises:
        FileNotFoundError: there is no such local file.
    """
    return Path(_required_path(uri)).open("rb")


def read_end(uri: str, num_bytes: int) -> FileEnd:
    """Return the last bytes of a file.

    Raises:
        FileNotFoundError: there is no such local file.
    """
    return read_file_end(_required_path(uri), num_bytes)


def _required_path(uri: str) -> str:
    path = local_path(uri)
    if path is None:
        raise FileNotFoundError(f"{uri} is on no local file system")
    return path
