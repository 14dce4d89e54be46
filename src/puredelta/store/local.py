"""A table on a file system that the driver mounts: POSIX calls, no Hadoop, no Spark.

The one atomic step is ``link(2)``: a finished, flushed temporary file gets its final name
only if nothing has that name yet (X-01, X-02). ``O_EXCL`` would be exclusive too, but
readers would see the file while it grows.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import BinaryIO

from puredelta.errors import Message, UnsupportedError
from puredelta.store.base import (
    FileEnd,
    NameRule,
    PutOutcome,
    StorageError,
    Store,
    StoredDirectory,
    StoredFile,
    temporary_name,
)
from puredelta.store.file_system import (
    entries_of,
    find_name_rule,
    flush_directory,
    flush_file,
    joined,
    link_new,
    make_directories,
    read_file_end,
    stored_directory,
    stored_file,
    walk,
)

_NOT_EMPTY = frozenset({errno.ENOTEMPTY, errno.EEXIST})
_FLUSHERS_MAX = 16
_name_rules: dict[str, NameRule] = {}
"""By root, for the length of the process."""


class LocalStore:
    """The `puredelta.store.base.Store` of one directory. Nothing is created before a put."""

    def __init__(
        self, root: str | os.PathLike[str], *, open_at: Callable[[str], Store] | None = None
    ) -> None:
        self._open_at = open_at
        self._root = Path(os.path.abspath(root))  # noqa: PTH100 - symbolic links stay as they are
        self._root_uri = "file:" + self._root.as_posix().rstrip("/")
        self._prefix = os.path.join(self._root, "")  # noqa: PTH118 - with the slash

    @property
    def root_uri(self) -> str:
        """``file:/absolute/path``, decoded."""
        return self._root_uri

    def at(self, uri: str) -> Store:
        """Open another directory; without a session's settings only a local one can be."""
        if self._open_at is not None:
            return self._open_at(uri)
        if "://" in uri:
            raise UnsupportedError(Message.UNSUPPORTED_STORAGE_HDFS_NODE, path=uri)
        return LocalStore(uri.removeprefix("file:"))

    def name_rule(self) -> NameRule:
        """Link a file in the root, and look for it under other spellings."""
        rule = _name_rules.get(self._root_uri)
        if rule is None:
            with _translated():
                rule = _name_rules[self._root_uri] = find_name_rule(self._root)
        return rule

    def flush(self, paths: Sequence[str]) -> None:
        """Flush side by side, so that the file system brings the work together."""
        files = [self._path(path) for path in paths]
        directories = {
            parent
            for directory in {file.parent for file in files}
            for parent in (directory, *directory.parents)
            if parent.is_relative_to(self._root)
        }
        with _translated(), ThreadPoolExecutor(_FLUSHERS_MAX, "puredelta-flush") as flushers:
            for _ in flushers.map(flush_file, files):
                pass
            for _ in flushers.map(flush_directory, directories):
                pass

    def list_from(self, directory: str, start: str = "") -> Iterator[StoredFile]:
        """Yield the files of one directory in name order; a missing directory has none."""
        with _translated():
            try:
                with os.scandir(self._path(directory)) as entries:
                    # A status costs a system call, so only files in the range get one.
                    wanted = [e for e in entries if e.name >= start and not e.name.startswith(".")]
            except (FileNotFoundError, NotADirectoryError):
                return
            files = [file for e in wanted if (file := stored_file(directory, e)) is not None]
        yield from sorted(files, key=lambda file: file.path)

    def walk(self, directory: str) -> Iterator[StoredFile]:
        """Yield every file below a directory, links followed, a cycle of links entered once."""
        with _translated():
            self._file_name(directory)  # it lies below the root
            yield from walk(self._prefix, directory.strip("/"))

    def inventory(
        self, directory: str, *, is_wanted: Callable[[str], bool]
    ) -> Iterator[StoredFile | StoredDirectory]:
        """Yield files and directories, but no links and nothing below a link."""
        with _translated():
            yield from self._inventory(directory.strip("/"), is_wanted)

    def _inventory(
        self, directory: str, is_wanted: Callable[[str], bool]
    ) -> Iterator[StoredFile | StoredDirectory]:
        for entry in entries_of(self._path(directory)):
            path = joined(directory, entry.name)
            if entry.is_symlink() or not is_wanted(path):
                continue
            if entry.is_dir(follow_symlinks=False):
                if (found := stored_directory(path, entry)) is not None:
                    yield found
                    yield from self._inventory(path, is_wanted)
            elif (file := stored_file(directory, entry)) is not None:
                yield file

    def read(self, path: str) -> bytes:
        """Return the whole content."""
        with _translated():
            return self._path(path).read_bytes()

    def read_ahead(self, files: Sequence[StoredFile]) -> Store:  # noqa: ARG002
        """Return the store as it is: threads cost more than reading from a disk."""
        return self

    def open(self, path: str) -> BinaryIO:
        """Open for reading; the caller closes it."""
        with _translated():
            # Without a Path: making one costs more than opening the file, and files are many.
            return open(self._file_name(path), "rb")  # noqa: PTH123 - the caller closes it

    def read_end(self, path: str, num_bytes: int) -> FileEnd:
        """Return the last bytes; takes two system calls beside opening and closing."""
        name = self._file_name(path)
        try:  # thousands of footers are read: no context is entered for each
            return read_file_end(name, num_bytes)
        except OSError as error:
            _raise_translated(error)
            raise

    def put_if_absent(self, path: str, content: bytes) -> PutOutcome:
        """Write aside, flush, then link: a link never replaces an existing name."""
        return self.put_parts_if_absent(path, (content,))

    def put_parts_if_absent(self, path: str, parts: Iterable[bytes]) -> PutOutcome:
        """Write part by part, as `put_if_absent` does."""
        target = self._path(path)
        with _translated(), self._temporary(target, parts) as temporary:
            if not target.exists():
                _drop_checksum(target)
            outcome = link_new(temporary, target)
            if outcome is PutOutcome.CREATED:
                flush_directory(target.parent)
            return outcome

    def put(self, path: str, content: bytes) -> None:
        """Write aside, flush, then rename over the old file."""
        target = self._path(path)
        with _translated(), self._temporary(target, (content,)) as temporary:
            _drop_checksum(target)
            temporary.replace(target)
            flush_directory(target.parent)

    def move(self, path: str, new_path: str) -> None:
        """Rename a file; missing directories are created."""
        source, target = self._path(path), self._path(new_path)
        with _translated():
            make_directories(target.parent)
            source.rename(target)
            _drop_checksum(source)
            _drop_checksum(target)

    def delete(self, path: str) -> None:
        """Remove one file."""
        target = self._path(path)
        with _translated(), contextlib.suppress(FileNotFoundError):
            target.unlink()
            _drop_checksum(target)

    def delete_tree(self, directory: str) -> None:
        """Remove a directory with its content; links are removed, their targets are not."""
        target = self._path(directory)
        if target == self._root:
            raise ValueError("refusing to remove the root of a table")
        with _translated(), contextlib.suppress(FileNotFoundError):
            shutil.rmtree(target)

    def delete_directory(self, directory: str) -> bool:
        """Remove one empty directory, never the root."""
        target = self._path(directory)
        if target == self._root:
            raise ValueError("refusing to remove the root of a table")
        with _translated():
            try:
                target.rmdir()
            except FileNotFoundError:
                return False
            except OSError as error:
                if error.errno in _NOT_EMPTY:
                    return False
                raise
            return True

    def exists(self, path: str) -> bool:
        """Return whether a file or directory exists."""
        with _translated():
            try:
                self._path(path).stat()
            except (FileNotFoundError, NotADirectoryError):
                return False
            return True

    def _path(self, path: str) -> Path:
        return Path(self._file_name(path))

    def _file_name(self, path: str) -> str:
        if path.startswith("/") or (".." in path and ".." in path.split("/")):
            raise ValueError(f"{path!r} does not lie below the root of the store")
        return self._prefix + path

    @contextlib.contextmanager
    def _temporary(self, target: Path, parts: Iterable[bytes]) -> Iterator[Path]:
        """Yield a flushed file with this content next to the target; one that cannot go stays."""
        make_directories(target.parent)
        temporary = target.parent / temporary_name()
        try:
            with temporary.open("xb") as stream:
                stream.writelines(parts)
                stream.flush()
                os.fsync(stream.fileno())
            yield temporary
        finally:
            with contextlib.suppress(OSError):
                temporary.unlink()


def _drop_checksum(target: Path) -> None:
    """Remove the checksum that Hadoop keeps beside a file: it does not fit new content.

    Spark would refuse to read the file; without a checksum it does not verify it.
    """
    with contextlib.suppress(FileNotFoundError):
        target.with_name(f".{target.name}.crc").unlink()


class _translated:  # noqa: N801 - as context managers of contextlib are named
    """Let missing and forbidden files through; turn every other OSError into a StorageError.

    This is a class because a generator costs a microsecond, and thousands of files are opened.
    """

    def __enter__(self) -> None:
        pass

    def __exit__(
        self,
        _: type[BaseException] | None,
        error: BaseException | None,
        __: TracebackType | None,
    ) -> None:
        if isinstance(error, OSError):
            _raise_translated(error)


def _raise_translated(error: OSError) -> None:
    """Raise what the error is to callers of a store, unless it is that already."""
    if isinstance(error, FileNotFoundError | PermissionError | StorageError):
        return
    details = error.errno, error.strerror, error.filename
    if isinstance(error, NotADirectoryError):
        raise FileNotFoundError(*details) from error
    if error.errno is None:
        raise StorageError(str(error)) from error
    raise StorageError(*details) from error
