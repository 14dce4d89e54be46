"""Calls of a POSIX file system that `puredelta.store.local` is made of."""

from __future__ import annotations

import contextlib
import errno
import os
import unicodedata
import uuid
from pathlib import Path

from puredelta.errors import ErrorCode, UnsupportedError
from puredelta.store.base import FileEnd, NameRule, PutOutcome, StorageError

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
                f"The file system of {target.parent} has no hard links, so a commit cannot be "
                "made atomic there. If it is a mounted bucket or share (s3fs, gcsfuse, /dbfs, "
                "SMB), name the store itself: s3a://bucket/path, gs://bucket/path or "
                "abfss://container@account.dfs.core.windows.net/path. Else put the table on a "
                "file system that has them (ext4, XFS, APFS, NTFS, NFS).",
                code=ErrorCode.UNSUPPORTED_STORAGE,
                path=str(target),
            ) from error
        raise
    return PutOutcome.CREATED


def make_directories(directory: Path) -> None:
    """Make a directory and those above it that are missing, durably.

    Raises:
        StorageError: one of them is a file.
    """
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


def read_file_end(path: str, num_bytes: int) -> FileEnd:
    """Return the last bytes of a file, unbuffered because files are many."""
    descriptor = os.open(path, _READ_AS_IT_IS)
    try:
        size = os.lseek(descriptor, 0, os.SEEK_END)
        os.lseek(descriptor, max(0, size - num_bytes), os.SEEK_SET)
        content = os.read(descriptor, num_bytes)
        while len(content) < min(size, num_bytes):
            more = os.read(descriptor, num_bytes - len(content))
            if not more:
                raise StorageError(f"{path} was cut short while it was read")
            content += more
        return FileEnd(content, size)
    finally:
        os.close(descriptor)
