"""The store of a location, by its scheme; local files outside of tables."""

from __future__ import annotations

import functools
import json
import logging
import os
import re
import stat
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import BinaryIO, Protocol

from puredelta.errors import InvalidRequestError, Message, UnsupportedError
from puredelta.protocol.actions.paths import canonical_path, encode_uri
from puredelta.store.base import Directories, FileEnd, Store
from puredelta.store.file_system import read_file_end
from puredelta.store.hadoop_settings import translate
from puredelta.store.local import LocalStore
from puredelta.store.location import (
    ObjectAccess,
    ObjectLocation,
    Untranslated,
    VendedOptions,
    is_secret,
    parse_object_location,
)
from puredelta.store.object_store import ObjectStore

logger = logging.getLogger(__name__)

_ENDPOINTS = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT", "AZURE_STORAGE_ENDPOINT")
_ALLOW_HTTP = ("AWS_ALLOW_HTTP", "AZURE_ALLOW_HTTP")

# As Hadoop reads it: a colon before the first slash ends a scheme. One letter is a drive.
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):")
_LOCAL = "file:"
_NO_FILE_NAME = re.compile("[\ud800-\udc7f\udd00-\udfff]")
"""Halves of surrogate pairs that stand for no byte of a file name."""
_HADOOP = ("fs.", "dfs.", "google.cloud.")
_OF_CLOUDS = ("fs.s3a.", "fs.azure.", "fs.gs.", "google.cloud.")
_OF_HDFS = ("dfs.namenode.http", "dfs.ha.namenodes.", "dfs.http.policy")
"""Where name nodes answer HTTP: `puredelta.store.web_hdfs`."""
_FILE_AUTHORITIES = ("", "localhost")


class FileSystems(Directories, Protocol):
    """The file systems that the JVM of a session has."""

    def has_scheme(self, scheme: str) -> bool:
        """Return whether there is a class for a scheme; nothing is connected."""

    def open(self, location: str, *, open_at: Callable[[str], Store]) -> Store:
        """Return the store of a location."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Storage:
    """The storage settings of a session; opens the stores of all tables that the session uses.

    The default is that of no session: object stores are reached as the environment says.
    """

    settings: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Hadoop's, ``fs.*``; some are secrets."""
    options: Mapping[str, object] = field(default_factory=dict, repr=False)
    """Options of object stores by obstore's names, which win over the settings."""
    keys_of: Callable[[str], VendedOptions] | None = field(default=None, repr=False)
    """Further options by location: keys that a catalog hands out. They win over all."""
    file_systems: FileSystems | None = None
    """The session's own file systems; ``None`` where no JVM is in reach."""
    read_again: Callable[[], Storage] | None = field(default=None, repr=False, compare=False)
    """Reads the settings of the session as they are by now; ``None`` where there is no session."""

    def with_options(self, options: Mapping[str, object] | None) -> Storage:
        """Return this storage with options of one call, Hadoop's names or obstore's.

        >>> Storage().with_options({"fs.s3a.endpoint": "h", "region": "r"}).settings
        {'fs.s3a.endpoint': 'h'}
        """
        if not options:
            return self
        hadoop = {key: str(value) for key, value in options.items() if key.startswith(_HADOOP)}
        own = {key: value for key, value in options.items() if not key.startswith(_HADOOP)}
        again = self.read_again
        return replace(
            self,
            settings={**self.settings, **hadoop},
            options={**self.options, **own},
            read_again=None if again is None else lambda: again().with_options(options),
        )

    @property
    def secrets(self) -> tuple[str, ...]:
        """The values that no text may show."""
        known = {**self.settings, **self.options}
        return tuple(str(value) for key, value in known.items() if value and is_secret(key))

    def packed(self) -> str:
        """Return what is needed without a JVM as text, for `with_packed` in another process."""
        wanted = (*_OF_CLOUDS, *_OF_HDFS)
        settings = {k: v for k, v in self.settings.items() if k.startswith(wanted)}
        return json.dumps({**settings, **self.options})

    def with_packed(self, text: str | None) -> Storage:
        """Return this storage with the options that `packed` gave elsewhere.

        >>> Storage().with_packed(Storage(options={"region": "r"}).packed()).options
        {'region': 'r'}
        """
        return self if text is None else self.with_options(json.loads(text))

    def open(self, location: str | os.PathLike[str]) -> Store:
        """Return the store of a table location; nothing is read or created.

        A location is a plain path, relative to the working directory or absolute, or a URI. As
        in Spark, nothing in it is expanded or decoded: ``~`` and ``%20`` are part of the name.

        Raises:
            UnsupportedError: storage that cannot be reached (UNSUPPORTED_STORAGE).
            InvalidRequestError: the location is empty or cannot be a path, or an option is wrong.

        Examples:
            >>> Storage().open("file:///data/my table").root_uri
            'file:/data/my table'
        """
        text = os.fspath(location)
        if not text or "\0" in text or _NO_FILE_NAME.search(text) is not None:
            raise InvalidRequestError(Message.PATH_DOES_NOT_EXIST_EMPTY, path=text)
        scheme = _SCHEME.match(text)
        if scheme is None:
            return LocalStore(text, open_at=self.open)
        if scheme[1].lower() == "file":
            return LocalStore(_path_of_file_uri(text), open_at=self.open)
        found = parse_object_location(text)
        return self._in_hadoop(text, None) if found is None else self._in_cloud(found, text)

    def _in_cloud(self, location: ObjectLocation, text: str) -> Store:
        access = _access(self, location)
        if isinstance(access, Untranslated):
            return self._in_hadoop(text, access.reason)
        again = self.read_again

        def access_now() -> ObjectAccess:
            now = _access(self if again is None else again(), location)
            return access if isinstance(now, Untranslated) else now

        systems = self.file_systems
        if systems is None:
            return ObjectStore(location, access, open_at=self.open, access_now=access_now)
        known = location.named_for(systems.has_scheme)
        directories = systems if systems.has_scheme(known.scheme) else None
        return ObjectStore(
            known, access, open_at=self.open, directories=directories, access_now=access_now
        )

    def _in_hadoop(self, location: str, reason: str | None) -> Store:
        """Leave a location to the session's own file system."""
        scheme = location.partition(":")[0]
        if self.file_systems is not None and self.file_systems.has_scheme(scheme):
            if reason is not None:
                _say_once(scheme, reason)
            return self.file_systems.open(location, open_at=self.open)
        raise _unreachable(location, scheme, reason)


def _access(storage: Storage, location: ObjectLocation) -> ObjectAccess | Untranslated:
    keys = VendedOptions() if storage.keys_of is None else storage.keys_of(location.root_uri)
    access = translate(location, storage.settings, {**storage.options, **keys.options})
    if isinstance(access, Untranslated):
        return access
    if keys.expires_ms is not None:
        access = replace(access, expires_ms=keys.expires_ms)
    if _allows_http(os.environ) and "allow_http" not in access.client_options:
        options = {**access.client_options, "allow_http": "true"}
        return replace(access, client_options=options)
    return access


NO_SESSION = Storage()


def open_store(location: str | os.PathLike[str]) -> Store:
    """Return the store of a location without the settings of a session: see `Storage.open`."""
    return NO_SESSION.open(location)


@functools.cache
def _say_once(scheme: str, reason: str) -> None:
    logger.warning(
        "%s:// is reached by Hadoop's file system in the driver, since %s", scheme, reason
    )


def _unreachable(location: str, scheme: str, reason: str | None) -> UnsupportedError:
    is_uri = location.startswith("/", len(scheme) + 1)
    hint = "" if is_uri else f" (a local name with a colon is written ./{location})"
    why = (
        f"{scheme!r} is no object store that this library knows, and the session has no file "
        "system of Hadoop for it"
        if reason is None
        else f"{reason}, which only the JVM of a classic session can do, and the session has no "
        f"file system of Hadoop for {scheme!r}"
    )
    return UnsupportedError(
        Message.UNSUPPORTED_STORAGE_UNREACHABLE, why=why, hint=hint, path=location, scheme=scheme
    )


def has_scheme(location: str) -> bool:
    """Return whether a location names its file system.

    >>> [has_scheme(location) for location in ("/data/t", "t", "file:/t", "s3a://b/t", "C:/t")]
    [False, False, True, True, False]
    """
    return _SCHEME.match(location) is not None


def is_same_location(one: str, other: str) -> bool:
    """Return whether two roots of tables are one directory, through whatever links or mounts."""
    if canonical_path(encode_uri(one)) == canonical_path(encode_uri(other)):
        return True
    if not (one.startswith(_LOCAL) and other.startswith(_LOCAL)):
        return False
    one_path, other_path = (root_uri.removeprefix(_LOCAL) for root_uri in (one, other))
    try:
        return Path(one_path).samefile(other_path)
    except OSError:  # one of them is gone
        return False


def _path_of_file_uri(uri: str) -> str:
    rest = uri[len("file:") :]
    if rest.startswith("//"):
        authority, slash, path = rest[2:].partition("/")
        if authority not in _FILE_AUTHORITIES:
            raise UnsupportedError(
                Message.UNSUPPORTED_STORAGE_FILE_URI, authority=authority, path=uri
            )
        rest = slash + path
    if not rest.startswith("/"):
        raise InvalidRequestError(Message.PATH_DOES_NOT_EXIST_FILE_URI, path=uri)
    return rest


def _allows_http(environment: Mapping[str, str]) -> bool:
    """Return whether the environment names an endpoint without TLS, or allows one.

    obstore reads endpoints there, and not this once a client has options of its own.
    """
    named = any(environment.get(key, "").startswith("http://") for key in _ENDPOINTS)
    return named or any(environment.get(key, "").lower() == "true" for key in _ALLOW_HTTP)


_FILE_SCHEME = "file:"


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
    return uri.removeprefix(_FILE_SCHEME) if uri.startswith(f"{_FILE_SCHEME}/") else None


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
    """Open a file for reading."""
    return Path(_required_path(uri)).open("rb")


def read_end(uri: str, num_bytes: int) -> FileEnd:
    """Return the last bytes of a file."""
    return read_file_end(_required_path(uri), num_bytes)


def _required_path(uri: str) -> str:
    path = local_path(uri)
    if path is None:
        raise FileNotFoundError(f"{uri} is on no local file system")
    return path
