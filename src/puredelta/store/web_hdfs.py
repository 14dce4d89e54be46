"""HDFS over HTTP (WebHDFS), for reading in sessions without a JVM.

The name node answers a reading of bytes with the address of a data node, which is followed.

Nothing is written: a commit needs a rename that never replaces, which WebHDFS does not have.
"""

from __future__ import annotations

import contextlib
import getpass
import http.client
import io
import json
import os
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, BinaryIO, NoReturn, cast
from urllib.parse import unquote, urlsplit

from puredelta.errors import InvalidRequestError, Message, UnsupportedError
from puredelta.store.base import (
    FileEnd,
    NameRule,
    PutOutcome,
    StorageError,
    Store,
    StoredDirectory,
    StoredFile,
)
from puredelta.store.read_ahead import END_BYTES, RangedFile, ReadFiles, begin_reading

_SECONDS_MAX = 60
_TRIES_MAX = 4
_WAIT_SECONDS = 0.2
_TEXT_MAX = 1_000
_NOT_THE_ACTIVE_ONE = frozenset({"StandbyException", "RetriableException", "SafeModeException"})
_REFUSED = frozenset({401, 403})
_KERBEROS = "Kerberos is not spoken here"


class _BusyError(StorageError):
    """Another name node may answer, or this one a little later."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WebHdfsClient:
    """Asks one of the name nodes of a file system; a plain value, which may be pickled."""

    addresses: Sequence[str]
    """``http://host:port`` of each name node; one of them is active."""
    user: str

    def status(self, path: str) -> Mapping[str, Any]:
        """Return what the name node says of a file or directory."""
        found: Mapping[str, Any] = json.loads(self._ask(path, "GETFILESTATUS"))["FileStatus"]
        return found

    def list(self, path: str) -> Sequence[Mapping[str, Any]]:
        """Return the entries of a directory; a file is one entry without a name."""
        answer = json.loads(self._ask(path, "LISTSTATUS"))
        found: Sequence[Mapping[str, Any]] = answer["FileStatuses"]["FileStatus"]
        return found

    def read(self, path: str, start: int = 0, length: int | None = None) -> bytes:
        """Return bytes of a file, all of them by default."""
        if length is None:
            return self._ask(path, "OPEN")
        content = self._ask(path, "OPEN", offset=start, length=length)
        if len(content) != length:
            raise StorageError(f"{path}: {len(content)} bytes came instead of {length}")
        return content

    def _ask(self, path: str, operation: str, **parameters: int) -> bytes:
        """Ask the name nodes in turn, and wait a little after each round."""
        query = urllib.parse.urlencode({"op": operation, "user.name": self.user, **parameters})
        at = f"/webhdfs/v1{urllib.parse.quote(path)}?{query}"
        failed: StorageError | None = None
        for tried in range(_TRIES_MAX):
            for address in self.addresses:
                try:
                    return _answer(f"{address}{at}", f"{address}{path}")
                except _BusyError as busy:  # noqa: PERF203 - a request takes longer
                    failed = busy
            time.sleep(_WAIT_SECONDS * 2**tried)
        raise StorageError(str(failed)) from failed


# A cluster's own machines are not behind the proxy of a company, and Hadoop asks none either.
_opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def _answer(url: str, what: str) -> bytes:
    try:
        with _opener.open(url, timeout=_SECONDS_MAX) as answer:
            content: bytes = answer.read()
            return content
    except urllib.error.HTTPError as error:
        raise _meant(error, what) from None
    except (OSError, http.client.HTTPException) as error:
        raise _BusyError(f"{what}: {type(error).__name__}: {error}"[:_TEXT_MAX]) from error


def _meant(error: urllib.error.HTTPError, what: str) -> OSError:
    """Return what a `puredelta.store.base.Store` raises instead of an answer of HTTP."""
    with error:
        content = error.read(1 << 16)
    try:
        remote = json.loads(content)["RemoteException"]
        name, said = str(remote["exception"]), str(remote["message"]).partition("\n")[0]
    except (ValueError, LookupError, TypeError):
        name, said = f"HTTP {error.code}", str(error.reason)
    text = f"{what}: {name}: {said}"[:_TEXT_MAX]
    if name == "FileNotFoundException":
        return FileNotFoundError(text)
    if name in _NOT_THE_ACTIVE_ONE:
        return _BusyError(text)
    if error.code in _REFUSED:
        negotiates = "Negotiate" in (error.headers.get("WWW-Authenticate") or "")
        return PermissionError(f"{text}. {_KERBEROS}" if negotiates else text)
    return StorageError(text)


class WebHdfsStore:
    """The `puredelta.store.base.Store` of one directory; what writes is refused."""

    def __init__(
        self,
        client: WebHdfsClient,
        root_uri: str,
        *,
        open_at: Callable[[str], Store],
        begun: ReadFiles = MappingProxyType({}),
    ) -> None:
        """``root_uri`` is decoded; ``begun`` are files that are read already."""
        self._client, self._root_uri, self._open_at = client, root_uri, open_at
        self._top = "/" + root_uri.partition("://")[2].partition("/")[2]
        self._begun = begun

    @property
    def root_uri(self) -> str:
        """The location as it was named, decoded."""
        return self._root_uri

    def at(self, uri: str) -> Store:
        """Open another directory with the same settings."""
        return self._open_at(uri)

    def list_from(self, directory: str, start: str = "") -> Iterator[StoredFile]:
        """Yield the files of one directory in name order, with one request."""
        found = [
            _stored(directory, entry)
            for entry in self._list(directory)
            if not _is_directory(entry)
            and entry["pathSuffix"] >= start
            and not entry["pathSuffix"].startswith(".")
        ]
        yield from sorted(found, key=lambda file: file.path)

    def _list(self, directory: str) -> list[Mapping[str, Any]]:
        try:
            found = self._client.list(self._at(directory))
        except FileNotFoundError:
            return []
        return [entry for entry in found if entry["pathSuffix"]]

    def walk(self, directory: str) -> Iterator[StoredFile]:
        """Yield every file below a directory, with one request per directory."""
        for entry in self._list(directory):
            if _is_directory(entry):
                yield from self.walk(_join(directory, entry["pathSuffix"]))
            else:
                yield _stored(directory, entry)

    def inventory(
        self, directory: str, *, is_wanted: Callable[[str], bool]
    ) -> Iterator[StoredFile | StoredDirectory]:
        """Yield the files that are wanted, with one request per directory; no directories."""
        for entry in self._list(directory):
            path = _join(directory, entry["pathSuffix"])
            if not is_wanted(path):
                continue
            if _is_directory(entry):
                yield from self.inventory(path, is_wanted=is_wanted)
            else:
                yield _stored(directory, entry)

    def read(self, path: str) -> bytes:
        """Return the whole content."""
        return self._begun[path].result() if path in self._begun else self._read(path)

    def _read(self, path: str) -> bytes:
        return self._client.read(self._at(path))

    def read_ahead(self, files: Sequence[StoredFile]) -> Store:
        """Begin to read files, up to sixteen at a time."""
        begun = begin_reading(files, self._read)
        return WebHdfsStore(self._client, self._root_uri, open_at=self._open_at, begun=begun)

    def open(self, path: str) -> BinaryIO:
        """Open for reading anywhere; the last 64 KB are read at once."""
        if path in self._begun:
            return io.BytesIO(self.read(path))

        def read_range(start: int, length: int) -> bytes:
            return self._client.read(self._at(path), start, length)

        return cast("BinaryIO", RangedFile(self.read_end(path, END_BYTES), read_range))

    def read_end(self, path: str, num_bytes: int) -> FileEnd:
        """Return the last bytes; the size is asked for first."""
        size = int(self._client.status(self._at(path))["length"])
        length = min(size, num_bytes)
        if length == 0:
            return FileEnd(b"", size)
        return FileEnd(self._client.read(self._at(path), size - length, length), size)

    def exists(self, path: str) -> bool:
        """Return whether a file or directory exists."""
        try:
            self._client.status(self._at(path))
        except FileNotFoundError:
            return False
        return True

    def _at(self, path: str) -> str:
        if path.startswith("/") or ".." in path.split("/"):
            raise ValueError(f"{path!r} does not lie below the root of the store")
        return f"{self._top.rstrip('/')}/{path}".rstrip("/") or "/"

    def _refuse(self) -> NoReturn:
        raise UnsupportedError(
            Message.UNSUPPORTED_STORAGE_READ_ONLY,
            scheme=urlsplit(self.root_uri).scheme,
            path=self.root_uri,
        )

    def name_rule(self) -> NameRule:
        """Refuse, as all that follows here does."""
        self._refuse()

    def flush(self, paths: Sequence[str]) -> None:  # noqa: ARG002
        """Refuse."""
        self._refuse()

    def put_if_absent(self, path: str, content: bytes) -> PutOutcome:  # noqa: ARG002
        """Refuse."""
        self._refuse()

    def put(self, path: str, content: bytes) -> None:  # noqa: ARG002
        """Refuse."""
        self._refuse()

    def move(self, path: str, new_path: str) -> None:  # noqa: ARG002
        """Refuse."""
        self._refuse()

    def delete(self, path: str) -> None:  # noqa: ARG002
        """Refuse."""
        self._refuse()

    def delete_tree(self, directory: str) -> None:  # noqa: ARG002
        """Refuse."""
        self._refuse()

    def delete_directory(self, directory: str) -> bool:  # noqa: ARG002
        """Refuse."""
        self._refuse()


def _is_directory(entry: Mapping[str, Any]) -> bool:
    return bool(entry["type"] == "DIRECTORY")


def _join(directory: str, name: str) -> str:
    return f"{directory.strip('/')}/{name}" if directory.strip("/") else name


def _stored(directory: str, entry: Mapping[str, Any]) -> StoredFile:
    return StoredFile(
        path=_join(directory, entry["pathSuffix"]),
        size_bytes=entry["length"],
        modified_ms=entry["modificationTime"],
    )


_WEB = {"webhdfs": "http", "swebhdfs": "https"}
_PORTS = {"http": 9870, "https": 9871}
_ANY_HOST = "0.0.0.0"  # noqa: S104 - what a name node is told to listen on
_USERS = ("HADOOP_USER_NAME", "SPARK_USER")


@dataclass(frozen=True, slots=True, kw_only=True)
class WebHdfs:
    """The file systems that a process without a JVM can read: `puredelta.store.registry`."""

    settings: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Hadoop's; Hadoop's own defaults stand where they say nothing."""
    user: str

    def has_scheme(self, scheme: str) -> bool:
        """Return whether a scheme is one of HDFS; nothing is connected."""
        return scheme.lower() == "hdfs" or scheme.lower() in _WEB

    def open(self, location: str, *, open_at: Callable[[str], Store]) -> Store:
        """Return the store of a location, which can be read.

        Raises:
            InvalidRequestError: the location names no name node.
        """
        parts = urlsplit(location.replace("%", "%25").replace("?", "%3F").replace("#", "%23"))
        if not parts.netloc:
            raise InvalidRequestError(Message.PATH_DOES_NOT_EXIST_HDFS, path=location)
        addresses = name_nodes(parts.scheme.lower(), parts.netloc, self.settings)
        root_uri = f"{parts.scheme}://{parts.netloc}{unquote(parts.path)}".rstrip("/")
        client = WebHdfsClient(addresses=addresses, user=self.user)
        return WebHdfsStore(client, root_uri, open_at=open_at)

    def remove(self, location: str, *, recursive: bool = True) -> bool:  # noqa: ARG002
        """Refuse: nothing is written here.

        Raises:
            UnsupportedError: always.
        """
        raise UnsupportedError(Message.UNSUPPORTED_STORAGE_DELETE, path=location)


def current_user() -> str:
    """Return who Hadoop's client would say that it is, where no password is asked for."""
    known = next((os.environ[name] for name in _USERS if os.environ.get(name)), None)
    if known is not None:
        return known
    with contextlib.suppress(OSError, KeyError):  # a container may know no name of its user
        return getpass.getuser()
    return "nobody"


def name_nodes(scheme: str, authority: str, settings: Mapping[str, str]) -> Sequence[str]:
    """Return the addresses of the name nodes of an authority, which may be a name for several.

    Keys are compared without case: options of a reader come in lower case.

    >>> name_nodes("hdfs", "master:8020", {})
    ('http://master:9870',)
    >>> name_nodes("hdfs", "master:8020", {"dfs.namenode.http-address": "0.0.0.0:50070"})
    ('http://master:50070',)
    >>> several = {"dfs.ha.namenodes.lake": "a, b"}
    >>> several |= {f"dfs.namenode.http-address.lake.{n}": f"{n}.example:9870" for n in "ab"}
    >>> name_nodes("hdfs", "lake", several)
    ('http://a.example:9870', 'http://b.example:9870')
    >>> name_nodes("swebhdfs", "master:9871", {})
    ('https://master:9871',)
    """
    settings = {key.lower(): value for key, value in settings.items()}
    only_safe = settings.get("dfs.http.policy", "").upper() == "HTTPS_ONLY"
    protocol = _WEB.get(scheme, "https" if only_safe else "http")
    key = f"dfs.namenode.{protocol}-address"
    service = authority.lower()
    nodes = [n.strip().lower() for n in settings.get(f"dfs.ha.namenodes.{service}", "").split(",")]
    several = [settings.get(f"{key}.{service}.{node}") for node in nodes if node]
    if found := [each for each in several if each]:
        return tuple(f"{protocol}://{each}" for each in found)
    if scheme in _WEB:
        return (f"{protocol}://{authority}",)
    host = authority.rpartition("@")[2].partition(":")[0]
    set_host, _, port = settings.get(key, "").rpartition(":")
    if not set_host or set_host == _ANY_HOST:
        set_host = host
    return (f"{protocol}://{set_host}:{port or _PORTS[protocol]}",)
