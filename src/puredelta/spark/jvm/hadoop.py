"""Files and tables in Hadoop's file systems, through the JVM of a classic session.

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
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, BinaryIO, cast
from urllib.parse import unquote, urlsplit
from weakref import WeakKeyDictionary

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.sql import SparkSession

from puredelta.errors import Message, UnsupportedError
from puredelta.spark.jvm.gateway import JVM_ERRORS, gateway_of, java_class, jvm_of, session_of
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
from puredelta.store.read_ahead import (
    END_BYTES,
    RangedFile,
    ReadFiles,
    begin_reading,
    walk_in_order,
)

_FS = "org.apache.hadoop.fs"
_MISSING = frozenset(
    {
        "java.io.FileNotFoundException",
        "java.nio.file.NoSuchFileException",
        f"{_FS}.PathNotFoundException",
    }
)
_DENIED = frozenset(
    {
        "org.apache.hadoop.security.AccessControlException",
        "java.nio.file.AccessDeniedException",
        "java.security.AccessControlException",
    }
)
_EXISTS = frozenset(
    {f"{_FS}.FileAlreadyExistsException", "java.nio.file.FileAlreadyExistsException"}
)
_CHANGED = "org.apache.hadoop.fs.s3a.RemoteFileChangedException"
_NOT_EMPTY = "org.apache.hadoop.fs.PathIsNotEmptyDirectoryException"
_TEXT_MAX = 1_000
CONDITIONAL_OPTION = "fs.option.create.conditional.overwrite"
_mappers: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()


class AlreadyThereError(StorageError):
    """Something has the name."""


class NotEmptyError(StorageError):
    """The directory has files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectoryEntry:
    """One entry of a directory."""

    name: str
    size_bytes: int
    modified_ms: int
    is_directory: bool


def hadoop_conf(spark: SparkSession) -> Any:
    """Return Hadoop's configuration of a classic session, with the session's own settings."""
    return session_of(spark).sessionState().newHadoopConf()


def hadoop_settings(spark: SparkSession) -> dict[str, str]:
    """Return what Hadoop's configuration says of file systems and of credentials."""
    jvm, conf = jvm_of(spark), hadoop_conf(spark)
    writer = java_class(jvm, "com.fasterxml.jackson.databind.ObjectMapper")()
    found: dict[str, str] = {}
    for prefix in ("fs.", "dfs.", "google.cloud.", "hadoop.security.credential."):
        some = json.loads(writer.writeValueAsString(conf.getPropsWithPrefix(prefix)))
        found |= {f"{prefix}{key}": value for key, value in some.items()}
    return found


def has_file_system(spark: SparkSession, scheme: str) -> bool:
    """Return whether a classic session has a class for a scheme; nothing is connected."""
    systems = java_class(jvm_of(spark), f"{_FS}.FileSystem")
    try:
        systems.getFileSystemClass(scheme, hadoop_conf(spark))
    except JVM_ERRORS:
        return False
    return True


def qualified(spark: SparkSession, location: str) -> str:
    """Return a location as Spark understands it: with scheme and host, and absolute."""
    path = java_class(jvm_of(spark), f"{_FS}.Path")(location)
    return str(path.getFileSystem(hadoop_conf(spark)).makeQualified(path).toString())


class HadoopFiles:
    """The file system of one location."""

    def __init__(self, spark: SparkSession, location: str) -> None:
        self.jvm = jvm = jvm_of(spark)
        self._gateway = gateway_of(spark)
        self._path = java_class(jvm, f"{_FS}.Path")
        self._streams = java_class(jvm, "org.apache.commons.io.IOUtils")
        self._mapper = _status_writer(jvm)
        top, conf = self._path(location), hadoop_conf(spark)
        with translated(location):
            self.system = top.getFileSystem(conf)
            self.root_uri = str(self.system.makeQualified(top).toString()).rstrip("/")
        self._conf, self._top = conf, top

    def path(self, path: str) -> Any:
        """Return Hadoop's path of a path below the root."""
        return self._path(f"{self.root_uri}/{path}".rstrip("/"))

    def list(self, path: str) -> list[DirectoryEntry]:
        """Return the entries of a directory; a file has none. One call."""
        with translated(path):
            statuses = self.system.listStatus(self.path(path))
            found = json.loads(self._mapper.writeValueAsString(statuses))
        own = str(self.path(path).toUri().getPath())
        entries = [(_path_of(status), status) for status in found]
        return [
            DirectoryEntry(
                name=at.rpartition("/")[2],
                size_bytes=status["length"],
                modified_ms=status["modification_time"],
                is_directory=bool(status["isdir"]),
            )
            for at, status in entries
            if at != own
        ]

    def size(self, path: str) -> int:
        """Return the size of a file."""
        with translated(path):
            status = self.system.getFileStatus(self.path(path))
            if status.isDirectory():
                raise FileNotFoundError(f"{path} is a directory")
            return int(status.getLen())

    def read(self, path: str) -> bytes:
        """Return the whole content."""
        with translated(path), self._opened(path) as stream:
            return bytes(self._streams.toByteArray(stream))

    def read_range(self, path: str, start: int, length: int) -> bytes:
        """Return a part of a file."""
        with translated(path), self._opened(path) as stream:
            stream.seek(start)
            return bytes(self._streams.toByteArray(stream, length))

    @contextlib.contextmanager
    def _opened(self, path: str) -> Iterator[Any]:
        stream = self.system.open(self.path(path))
        try:
            yield stream
        finally:
            stream.close()

    def create(self, path: str, content: bytes, *, overwrites: bool) -> None:
        """Write a file in the way of its file system."""
        with translated(path):
            stream = self.system.create(self.path(path), overwrites)
            self._fill(stream, content)

    def create_conditionally(self, path: str, content: bytes) -> None:
        """Let the store itself refuse a second object of the name, which s3a can since 3.4.2."""
        with translated(path):
            builder = self.system.createFile(self.path(path)).recursive()
            builder = builder.overwrite(False).must(CONDITIONAL_OPTION, "true")  # noqa: FBT003
            self._fill(builder.build(), content)

    def _fill(self, stream: Any, content: bytes) -> None:
        """Write and close; a file that was not written to its end is not closed."""
        try:
            stream.write(content)
        except Py4JError:
            with contextlib.suppress(Py4JError):
                getattr(stream, "abort", stream.close)()
            raise
        stream.close()

    def rename(self, path: str, new_path: str, *, overwrites: bool) -> None:
        """Rename atomically, as far as the file system can."""
        kind = java_class(self.jvm, f"{_FS}.Options$Rename")
        option = kind.OVERWRITE if overwrites else kind.NONE
        options = self._gateway.new_array(kind._java, 1)
        options[0] = option
        with translated(path):
            contexts = java_class(self.jvm, f"{_FS}.FileContext")
            context = contexts.getFileContext(self._top.toUri(), self._conf)
            context.rename(self.path(path), self.path(new_path), options)

    def move(self, path: str, new_path: str) -> None:
        """Rename as the file system does it, copies included."""
        with translated(path):
            if not self.system.rename(self.path(path), self.path(new_path)):
                raise FileNotFoundError(f"{path} could not be renamed to {new_path}")

    def make_directories(self, path: str) -> None:
        """Make a directory and those above it."""
        with translated(path):
            self.system.mkdirs(self.path(path))

    def delete(self, path: str, *, recursive: bool = False) -> bool:
        """Remove a file or directory; return whether it was there."""
        with translated(path):
            return bool(self.system.delete(self.path(path), recursive))

    def exists(self, path: str) -> bool:
        """Return whether there is a file or directory."""
        with translated(path):
            return bool(self.system.exists(self.path(path)))


def _path_of(status: Any) -> str:
    """Return the decoded path of a status as Jackson has written it."""
    return unquote(urlsplit(status["path"]["uri"]).path, errors="surrogateescape")


@contextlib.contextmanager
def translated(what: str) -> Iterator[None]:
    """Raise what a `puredelta.store.base.Store` raises, by the classes of Hadoop's exceptions."""
    try:
        yield
    except Py4JJavaError as error:
        raise _meant(error, what) from error
    except JVM_ERRORS as error:
        raise StorageError(f"{what}: {error}"[:_TEXT_MAX]) from error


def _meant(error: Py4JJavaError, what: str) -> Exception:
    java = error.java_exception
    names, kind = set(), java.getClass()
    while kind is not None:
        names.add(str(kind.getName()))
        kind = kind.getSuperclass()
    text = f"{what}: {java.getClass().getSimpleName()}: {java.getMessage()}".partition("\n")[0]
    text = text[:_TEXT_MAX]
    if names & _EXISTS or _CHANGED in names:
        return AlreadyThereError(text)
    if names & _MISSING or "(is not a directory)" in text:
        return FileNotFoundError(text)
    if names & _DENIED:
        return PermissionError(text)
    return NotEmptyError(text) if _NOT_EMPTY in names or "not empty" in text else StorageError(text)


def _status_writer(jvm: Any) -> Any:
    """Return a Jackson mapper that writes the fields of Hadoop's ``FileStatus``; one per JVM."""
    if jvm not in _mappers:
        annotation = "com.fasterxml.jackson.annotation"
        mapper = java_class(jvm, "com.fasterxml.jackson.databind.ObjectMapper")()
        accessor = java_class(jvm, f"{annotation}.PropertyAccessor")
        visibility = java_class(jvm, f"{annotation}.JsonAutoDetect$Visibility")
        mapper.setVisibility(accessor.ALL, visibility.NONE)
        mapper.setVisibility(accessor.FIELD, visibility.ANY)
        _mappers[jvm] = mapper
    return _mappers[jvm]


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
                Message.UNSUPPORTED_STORAGE_CREATION, path=self.root_uri, scheme=self._scheme
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
                    Message.UNSUPPORTED_STORAGE_HADOOP_VERSION, path=self.root_uri
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
