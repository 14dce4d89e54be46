"""A table in a file system of Hadoop: HDFS, and whatever else the session has a client for.

Reading works for every scheme. Writing needs one of three ways to create a file only if nothing
has its name, and readers must never see half of it. Which way a scheme has is written down here;
a scheme that is not is refused for writing, never guessed.

HDFS writes a temporary file and renames it without overwriting, one operation of the name node.
Its ``create`` is exclusive, too, but shows the file while it grows.
"""

from __future__ import annotations

import contextlib
import copy
import io
from collections.abc import Callable, Iterator, Sequence
from enum import Enum
from typing import BinaryIO, cast

from pyspark.sql import SparkSession

from puredelta.errors import ErrorCode, UnsupportedError
from puredelta.spark.jvm.hadoop.hadoop_files import (
    CONDITIONAL_OPTION,
    AlreadyThereError,
    DirectoryEntry,
    HadoopFiles,
    NotEmptyError,
    has_file_system,
)
from puredelta.store.base import (
    FileEnd,
    NameRule,
    PutOutcome,
    StorageError,
    Store,
    StoredDirectory,
    StoredFile,
    UnknownOutcomeError,
    temporary_name,
)
from puredelta.store.ranged_file import END_BYTES, RangedFile
from puredelta.store.read_ahead import ReadFiles, begin_reading, walk_in_order


class Creation(Enum):
    """How a file is created unless it exists."""

    RENAME = "a temporary file is renamed without overwriting"
    CONDITIONAL = "the store refuses a second object (fs.option.create.conditional.overwrite)"
    CLOSE = "the object appears when it is closed, unless there is one"


CREATIONS = {
    "hdfs": Creation.RENAME,
    "viewfs": Creation.RENAME,
    "webhdfs": Creation.RENAME,
    "swebhdfs": Creation.RENAME,
    "ofs": Creation.RENAME,
    "o3fs": Creation.RENAME,
    "abfs": Creation.RENAME,
    "abfss": Creation.RENAME,
    "s3a": Creation.CONDITIONAL,
    "gs": Creation.CLOSE,
}
"""By scheme: those of which it is known that one writer of a name wins."""


class HadoopFileSystems:
    """The file systems that the JVM of a classic session has."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    def has_scheme(self, scheme: str) -> bool:
        """Return whether there is a class for a scheme; nothing is connected."""
        return has_file_system(self._spark, scheme)

    def open(self, location: str, *, open_at: Callable[[str], Store]) -> Store:
        """Return the store of a location."""
        return HadoopStore(HadoopFiles(self._spark, location), open_at=open_at)

    def remove(self, location: str, *, recursive: bool = True) -> bool:
        """Remove a directory and everything in it, or only one that is empty; say if it did."""
        try:
            return HadoopFiles(self._spark, location).delete("", recursive=recursive)
        except NotEmptyError:
            return False


class HadoopStore:
    """The `puredelta.store.base.Store` of one directory."""

    def __init__(self, files: HadoopFiles, *, open_at: Callable[[str], Store]) -> None:
        self._files = files
        self._open_at = open_at
        self._scheme = files.root_uri.partition(":")[0]
        self._begun: ReadFiles = {}

    @property
    def root_uri(self) -> str:
        """The location with scheme and host, decoded."""
        return self._files.root_uri

    def at(self, uri: str) -> Store:
        """Open another directory with the settings of the same session."""
        return self._open_at(uri)

    def name_rule(self) -> NameRule:
        """Look the scheme up: whether writers of one name are kept apart is known by scheme."""
        self._creation()
        return NameRule.EXACT

    def _creation(self) -> Creation:
        creation = CREATIONS.get(self._scheme)
        if creation is None:
            raise UnsupportedError(
                f"{self.root_uri} cannot be written to: it is not known of {self._scheme!r} "
                "storage that of several writers of one name exactly one succeeds, so commits "
                "could be lost. The table can be read. Write to a table on HDFS, an object store "
                "or a mounted file system.",
                code=ErrorCode.UNSUPPORTED_STORAGE,
                path=self.root_uri,
                scheme=self._scheme,
            )
        return creation

    def flush(self, paths: Sequence[str]) -> None:
        """Do nothing: a file that is closed is on several machines."""

    def list_from(self, directory: str, start: str = "") -> Iterator[StoredFile]:
        """Yield the files of one directory in name order, with one request."""
        found = [
            _stored(directory, status)
            for status in self._list(directory)
            if not status.is_directory and status.name >= start and not status.name.startswith(".")
        ]
        yield from sorted(found, key=lambda file: file.path)

    def _list(self, directory: str) -> list[DirectoryEntry]:
        try:
            return self._files.list(_checked(directory).strip("/"))
        except FileNotFoundError:
            return []

    def walk(self, directory: str) -> Iterator[StoredFile]:
        """Yield every file below a directory, with one request per directory, side by side."""
        return walk_in_order(directory, self._list_all)

    def _list_all(self, directory: str) -> tuple[list[StoredFile], list[str]]:
        listed = self._list(directory)
        files = [_stored(directory, status) for status in listed if not status.is_directory]
        return files, [_join(directory, s.name) for s in listed if s.is_directory]

    def inventory(
        self, directory: str, *, is_wanted: Callable[[str], bool]
    ) -> Iterator[StoredFile | StoredDirectory]:
        """Yield files and directories, with one request per directory."""
        yield from self._inventory(directory, self._list(directory), is_wanted)

    def _inventory(
        self, directory: str, found: Sequence[DirectoryEntry], is_wanted: Callable[[str], bool]
    ) -> Iterator[StoredFile | StoredDirectory]:
        for status in found:
            path = _join(directory, status.name)
            if not is_wanted(path):
                continue
            if status.is_directory:
                below = self._list(path)
                yield StoredDirectory(path=path, modified_ms=status.modified_ms, is_empty=not below)
                yield from self._inventory(path, below, is_wanted)
            else:
                yield _stored(directory, status)

    def read(self, path: str) -> bytes:
        """Return the whole content."""
        return self._begun[path].result() if path in self._begun else self._read(path)

    def _read(self, path: str) -> bytes:
        return self._files.read(_checked(path))

    def read_ahead(self, files: Sequence[StoredFile]) -> Store:
        """Begin to read files, up to sixteen at a time."""
        ahead = copy.copy(self)
        ahead._begun = begin_reading(files, self._read)
        return ahead

    def open(self, path: str) -> BinaryIO:
        """Open for reading anywhere; the last 64 KB are read at once."""
        if path in self._begun:
            return io.BytesIO(self.read(path))

        def read_range(start: int, length: int) -> bytes:
            return self._files.read_range(path, start, length)

        return cast("BinaryIO", RangedFile(self.read_end(path, END_BYTES), read_range))

    def read_end(self, path: str, num_bytes: int) -> FileEnd:
        """Return the last bytes; the size is asked for first."""
        size = self._files.size(_checked(path))
        length = min(size, num_bytes)
        if length == 0:
            return FileEnd(b"", size)
        return FileEnd(self._files.read_range(path, size - length, length), size)

    def put_if_absent(self, path: str, content: bytes) -> PutOutcome:
        """Create a file in the way of the scheme.

        Raises:
            UnsupportedError: the scheme has none, or Hadoop's client is too old for it.
            UnknownOutcomeError: the storage did not say whether it did it.
        """
        _checked(path)
        creation = self._creation()
        if creation is Creation.RENAME:
            return self._renamed(path, content)
        try:
            if creation is Creation.CONDITIONAL:
                self._files.create_conditionally(path, content)
            else:
                self._files.create(path, content, overwrites=False)
        except AlreadyThereError:
            return PutOutcome.ALREADY_EXISTS
        except StorageError as error:
            if CONDITIONAL_OPTION in str(error):
                raise UnsupportedError(
                    f"{self.root_uri} cannot be written to: this version of Hadoop's client does "
                    "not know conditional puts. Use hadoop-aws 3.4.2 or newer, or give credentials "
                    "as spark.puredelta.storage.*.",
                    code=ErrorCode.UNSUPPORTED_STORAGE,
                    path=self.root_uri,
                ) from error
            raise UnknownOutcomeError(str(error)) from error
        return PutOutcome.CREATED

    def _renamed(self, path: str, content: bytes, *, overwrites: bool = False) -> PutOutcome:
        """Write aside, then rename. A rename without an answer is settled by what is left."""
        temporary = _join(path.rpartition("/")[0], temporary_name())
        try:
            self._files.create(temporary, content, overwrites=False)
        except StorageError:
            self._drop(temporary)
            raise
        try:
            self._files.rename(temporary, path, overwrites=overwrites)
        except AlreadyThereError:
            self._drop(temporary)
            return PutOutcome.ALREADY_EXISTS
        except OSError as error:
            # The rename takes the temporary file away; without that file it cannot come later.
            try:
                was_there = self._files.delete(temporary)
            except StorageError:
                raise UnknownOutcomeError(str(error)) from error
            if was_there:
                raise
        return PutOutcome.CREATED

    def _drop(self, temporary: str) -> None:
        with contextlib.suppress(OSError):
            self._files.delete(temporary)

    def put(self, path: str, content: bytes) -> None:
        """Create or replace the file: readers see the old content or the new one."""
        _checked(path)
        if self._creation() is Creation.RENAME:
            self._renamed(path, content, overwrites=True)
        else:
            self._files.create(path, content, overwrites=True)

    def move(self, path: str, new_path: str) -> None:
        """Rename a file; missing directories are created."""
        self._files.size(_checked(path))
        self._files.make_directories(_checked(new_path).rpartition("/")[0])
        self._files.move(path, new_path)

    def delete(self, path: str) -> None:
        """Remove one file."""
        self._files.delete(_checked(path))

    def delete_tree(self, directory: str) -> None:
        """Remove a directory and everything in it, with one request."""
        self._files.delete(_below_root(directory), recursive=True)

    def delete_directory(self, directory: str) -> bool:
        """Remove one empty directory, never the root."""
        try:
            return self._files.delete(_below_root(directory))
        except NotEmptyError:
            return False

    def exists(self, path: str) -> bool:
        """Return whether a file or directory exists."""
        return self._files.exists(_checked(path))


def _checked(path: str) -> str:
    if path.startswith("/") or ".." in path.split("/"):
        raise ValueError(f"{path!r} does not lie below the root of the store")
    return path


def _below_root(directory: str) -> str:
    if not _checked(directory).strip("/"):
        raise ValueError("refusing to remove the root of a table")
    return directory


def _join(directory: str, name: str) -> str:
    return f"{directory.strip('/')}/{name}" if directory.strip("/") else name


def _stored(directory: str, status: DirectoryEntry) -> StoredFile:
    return StoredFile(
        path=_join(directory, status.name),
        size_bytes=status.size_bytes,
        modified_ms=status.modified_ms,
    )
