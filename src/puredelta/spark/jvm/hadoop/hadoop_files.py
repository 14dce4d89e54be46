"""Files of Hadoop's file systems, through the JVM of a classic session."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote, urlsplit
from weakref import WeakKeyDictionary

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.sql import SparkSession

from puredelta.spark.jvm.classes import JVM_ERRORS, gateway_of, java_class, jvm_of, session_of
from puredelta.store.base import StorageError

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
