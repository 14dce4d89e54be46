"""A table in an object store: requests of obstore, no Hadoop, no Spark.

The one atomic step is a conditional put (``If-None-Match: *`` on S3 and Azure, generation 0 on
GCS): of all writers of one name the store lets one succeed, and readers see all of an object or
none of it (X-01, X-02). What the store acknowledged is durable. There are no directories, only
names with slashes in them.
"""

from __future__ import annotations

import contextlib
import functools
import io
import re
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, BinaryIO, Concatenate, TypeVar, cast

import obstore
from obstore import exceptions
from typing_extensions import ParamSpec

from puredelta.errors import Message, UnsupportedError
from puredelta.store.base import (
    Directories,
    FileEnd,
    NameRule,
    PutOutcome,
    Store,
    StoredDirectory,
    StoredFile,
)
from puredelta.store.file_system import TRIAL_PREFIX
from puredelta.store.location import ObjectAccess, ObjectLocation
from puredelta.store.object_client import (
    PAGE,
    UnsupportedRequestError,
    client_of,
    directory_of,
    list_below,
    marked,
    pages_below,
    translated,
)
from puredelta.store.read_ahead import END_BYTES, RangedFile, ReadFiles, begin_reading

_LISTS_FROM_A_KEY = ("s3://", "s3a://", "gs://")
"""Where a listing may begin at any key; elsewhere each part would read all that is before it."""
_EMPTY = re.compile(r"status code: 416|non-partial|CONTENT_RANGE", re.IGNORECASE)
"""What is answered where a part of an empty object is asked for."""
_atomic_roots: set[tuple[object, ...]] = set()
"""The roots whose store was seen to refuse a second put, for the length of the process."""


_P = ParamSpec("_P")
_R = TypeVar("_R")


def _renewing(
    request: Callable[Concatenate[ObjectStore, _P], _R],
) -> Callable[Concatenate[ObjectStore, _P], _R]:
    """Make a request that is refused once more, with the key that there is by now, if another."""

    @functools.wraps(request)
    def requested(store: ObjectStore, /, *args: _P.args, **kwargs: _P.kwargs) -> _R:
        try:
            return request(store, *args, **kwargs)
        except PermissionError:
            if not store.renew():
                raise
        return request(store, *args, **kwargs)

    return requested


class ObjectStore:
    """The `puredelta.store.base.Store` of one directory of a bucket."""

    def __init__(
        self,
        location: ObjectLocation,
        access: ObjectAccess,
        *,
        open_at: Callable[[str], Store],
        directories: Directories | None = None,
        begun: ReadFiles = MappingProxyType({}),
        access_now: Callable[[], ObjectAccess] | None = None,
    ) -> None:
        """``directories`` removes directory markers; ``begun`` are files that are read
        already. ``access_now`` reads the settings again: a key may have been renewed.
        """
        self._access_now = access_now
        self._directories = directories
        self._access = access
        self._client = client_of(access)
        self._location = location
        self._root_uri = location.root_uri
        self._prefix = f"{location.path}/" if location.path else ""
        self._open_at = open_at
        self._begun = begun

    @property
    def root_uri(self) -> str:
        """The location as it was named, decoded."""
        return self._root_uri

    @property
    def access(self) -> ObjectAccess:
        """How the bucket is reached, for workers that read and write data files."""
        return self._access

    def renew(self) -> bool:
        """Read the settings and the environment again; return whether they say something else."""
        access = self._access if self._access_now is None else self._access_now()
        client = client_of(access)
        if client is self._client:
            return False
        self._access, self._client = access, client
        return True

    def at(self, uri: str) -> Store:
        """Open another directory with the settings of the same session."""
        return self._open_at(uri)

    def name_rule(self) -> NameRule:
        """Put one object twice: the second put must be refused."""
        root = (*self._access.identity(), self._prefix)
        if root not in _atomic_roots:
            self._require_conditional_puts()
            _atomic_roots.add(root)
        return NameRule.EXACT

    def _require_conditional_puts(self) -> None:
        trial = f"{TRIAL_PREFIX}{uuid.uuid4().hex}"
        try:
            self._put_new(trial, b"")
            is_atomic = self._put_new(trial, b"") is PutOutcome.ALREADY_EXISTS
        except UnsupportedRequestError:
            is_atomic = False
        finally:
            with contextlib.suppress(OSError):
                self.delete(trial)
        if not is_atomic:
            raise UnsupportedError(
                Message.UNSUPPORTED_STORAGE_CONDITIONAL_PUTS, path=self._root_uri
            )

    def flush(self, paths: Sequence[str]) -> None:
        """Do nothing: an object that is there is durable."""

    def list_from(self, directory: str, start: str = "") -> Iterator[StoredFile]:
        """Yield the objects of one directory in name order, with a request per 1,000 names."""
        files = self._list_from(directory, start)
        here = directory.strip("/")
        wanted = (
            file
            for file in files
            if file.directory == here and file.name >= start and not file.name.startswith(".")
        )
        yield from sorted(wanted, key=lambda file: file.path)

    @_renewing
    def _list_from(self, directory: str, start: str) -> list[StoredFile]:
        prefix = self._key(directory)
        with self._translated(directory):
            if start:
                # An offset is exclusive, and some stores ignore it.
                offset = f"{prefix}/{start[:-1]}" if prefix else start[:-1]
                pages = pages_below(self._client, prefix, offset)
                found: Iterable[Any] = (entry for page in pages for entry in page)
            else:
                found = directory_of(self._client, prefix)["objects"]
            return [self._stored(entry) for entry in found]

    def walk(self, directory: str) -> Iterator[StoredFile]:
        """Yield every object below a directory, but none that stands for one with objects in it."""
        return (file for file, is_marker in marked(self._walk(directory)) if not is_marker)

    def _walk(self, directory: str) -> Iterator[StoredFile]:
        files = self._walked(directory)
        try:
            first = next(files, None)
        except PermissionError:
            if not self.renew():
                raise
            files = self._walked(directory)
            first = next(files, None)
        if first is not None:
            yield first
            yield from files

    def _walked(self, directory: str) -> Iterator[StoredFile]:
        prefix = self._key(directory)
        with self._translated(directory):
            parted = self._access.url.startswith(_LISTS_FROM_A_KEY)
            yield from list_below(self._client, prefix, self._stored, parted=parted)

    def inventory(
        self, directory: str, *, is_wanted: Callable[[str], bool]
    ) -> Iterator[StoredFile | StoredDirectory]:
        """Yield the files whose path, and every directory of it, is wanted.

        Where Hadoop is in reach, empty objects that may stand for directories come as such.
        """
        depth = len(directory.strip("/").split("/")) if directory.strip("/") else 0
        answers: dict[str, bool] = {}
        for file, is_marker in marked(self._walk(directory)):
            parts = file.path.split("/")
            above = ("/".join(parts[:n]) for n in range(depth + 1, len(parts)))
            if all(_asked(path, is_wanted, answers) for path in above) and is_wanted(file.path):
                if self._directories is not None and _may_be_marker(file):
                    at = file.modified_ms
                    yield StoredDirectory(path=file.path, modified_ms=at, is_empty=not is_marker)
                elif not is_marker:
                    yield file

    def read(self, path: str) -> bytes:
        """Return the whole content, in one request."""
        return self._begun[path].result() if path in self._begun else self._read(path)

    @_renewing
    def _read(self, path: str) -> bytes:
        key = self._key(path)
        with self._translated(path):
            return bytes(obstore.get(self._client, key).bytes())

    def read_ahead(self, files: Sequence[StoredFile]) -> Store:
        """Begin to read files, up to sixteen at a time."""
        begun = begin_reading(files, self._read)
        return ObjectStore(
            self._location,
            self._access,
            open_at=self._open_at,
            directories=self._directories,
            begun=begun,
            access_now=self._access_now,
        )

    def open(self, path: str) -> BinaryIO:
        """Open for reading anywhere; one request, which gets the last 64 KB."""
        if path in self._begun:
            return io.BytesIO(self.read(path))
        read_range = functools.partial(self._read_range, path)
        return cast("BinaryIO", RangedFile(self.read_end(path, END_BYTES), read_range))

    @_renewing
    def _read_range(self, path: str, start: int, length: int) -> bytes:
        key = self._key(path)
        with self._translated(path):
            return bytes(obstore.get_range(self._client, key, start=start, length=length))

    @_renewing
    def read_end(self, path: str, num_bytes: int) -> FileEnd:
        """Return the last bytes by a suffix range; Azure has none and is asked for the size."""
        key = self._key(path)
        with self._translated(path):
            if num_bytes > 0:
                try:
                    wanted: Any = {"range": {"suffix": num_bytes}}
                    answer = obstore.get(self._client, key, options=wanted)
                    return FileEnd(bytes(answer.bytes()), answer.meta["size"])
                except exceptions.NotSupportedError:
                    pass  # Azure
                except exceptions.GenericError as error:
                    if _EMPTY.search(str(error)) is None:
                        raise
            size = obstore.head(self._client, key)["size"]
            length = min(size, num_bytes)
            if length == 0:
                return FileEnd(b"", size)
            start = size - length
            content = obstore.get_range(self._client, key, start=start, length=length)
            return FileEnd(bytes(content), size)

    def put_if_absent(self, path: str, content: bytes) -> PutOutcome:
        """Put conditionally, in one request.

        obstore repeats a put whose answer was lost, and is then told that the object exists:
        whose it is, is for the caller to find out.
        """
        return self._put_new(path, content)

    @_renewing
    def _put_new(self, path: str, content: bytes) -> PutOutcome:
        key = self._key(path)
        with translated(self._access, self._named(path), writes=True):
            try:
                obstore.put(self._client, key, content, mode="create", use_multipart=False)
            except (exceptions.AlreadyExistsError, exceptions.PreconditionError):
                return PutOutcome.ALREADY_EXISTS
        return PutOutcome.CREATED

    @_renewing
    def put(self, path: str, content: bytes) -> None:
        """Create or replace the object."""
        key = self._key(path)
        with translated(self._access, self._named(path), writes=True):
            obstore.put(self._client, key, content)

    @_renewing
    def move(self, path: str, new_path: str) -> None:
        """Copy the object inside the store, then delete it under its old name."""
        old, new = self._key(path), self._key(new_path)
        with self._translated(path):
            obstore.copy(self._client, old, new)
            obstore.delete(self._client, old)

    @_renewing
    def delete(self, path: str) -> None:
        """Remove one object."""
        key = self._key(path)
        with self._translated(path), contextlib.suppress(FileNotFoundError):
            obstore.delete(self._client, key)

    @_renewing
    def delete_tree(self, directory: str) -> None:
        """Remove everything below a directory, with a request per 1,000 objects where it can."""
        if not directory.strip("/"):
            raise ValueError("refusing to remove the root of a table")
        prefix = self._key(directory)
        with self._translated(directory):
            found = [e for page in pages_below(self._client, prefix, None) for e in page]
            keys = [entry["path"] for entry in found if entry["path"] != prefix]
            for first in range(0, len(keys), PAGE):
                self._delete_all(keys[first : first + PAGE])
        if self._directories is not None and any(entry["size"] == 0 for entry in found):
            self._directories.remove(self._named(directory.strip("/")))

    def _delete_all(self, keys: list[str]) -> None:
        try:
            obstore.delete(self._client, keys)
        except FileNotFoundError:  # another program has removed one of them
            for key in keys:
                with contextlib.suppress(FileNotFoundError):
                    obstore.delete(self._client, key)

    def delete_directory(self, directory: str) -> bool:
        """Remove the marker object of an empty directory, or an empty object of that name.

        Also removes the markers of parent directories that became empty (s3a creates them).
        """
        path = directory.strip("/")
        if not path:
            raise ValueError("refusing to remove the root of a table")
        removed: list[bool] = []
        while self._directories is not None and path and all(removed):
            removed.append(self._directories.remove(self._named(path), recursive=False))
            path = path.rpartition("/")[0]
        return any(removed)

    @_renewing
    def exists(self, path: str) -> bool:
        """Return whether there is such an object, or one below it; two requests at most."""
        key = self._key(path)
        with self._translated(path):
            if key:
                with contextlib.suppress(FileNotFoundError):
                    obstore.head(self._client, key)
                    return True
            return any(len(page) > 0 for page in pages_below(self._client, key, None))

    def _key(self, path: str) -> str:
        if path.startswith("/") or ".." in path.split("/"):
            raise ValueError(f"{path!r} does not lie below the root of the store")
        return f"{self._prefix}{path}".strip("/")

    def _named(self, path: str) -> str:
        return f"{self._root_uri}/{path}".rstrip("/")

    def _translated(self, path: str) -> translated:
        return translated(self._access, self._named(path))

    def _stored(self, entry: Mapping[str, Any]) -> StoredFile:
        return StoredFile(
            path=entry["path"].removeprefix(self._prefix),
            size_bytes=entry["size"],
            modified_ms=int(entry["last_modified"].timestamp() * 1000),
        )

    def __reduce__(self) -> tuple[Any, ...]:
        """Drop the client; another process makes its own."""
        made = functools.partial(ObjectStore, open_at=self._open_at)
        return made, (self._location, self._access)


def _may_be_marker(file: StoredFile) -> bool:
    return file.size_bytes == 0 and "." not in file.name


def _asked(path: str, is_wanted: Callable[[str], bool], answers: dict[str, bool]) -> bool:
    if path not in answers:
        answers[path] = is_wanted(path)
    return answers[path]
