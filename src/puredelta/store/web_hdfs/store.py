"""A table in HDFS over HTTP, for reading: what streams and their workers have where no JVM is.

Nothing is written: a commit needs a rename that never replaces, which WebHDFS does not have.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, BinaryIO, NoReturn, cast
from urllib.parse import urlsplit

from puredelta.errors import ErrorCode, UnsupportedError
from puredelta.store.base import FileEnd, NameRule, PutOutcome, Store, StoredDirectory, StoredFile
from puredelta.store.ranged_file import END_BYTES, RangedFile
from puredelta.store.read_ahead import ReadFiles, begin_reading
from puredelta.store.web_hdfs.client import WebHdfsClient


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
            f"{self.root_uri} can only be read here: it is reached over HTTP, by which nothing is "
            "created unless it exists. Activate a classic session (puredelta.activate), which has "
            f"Hadoop's client for {urlsplit(self.root_uri).scheme}://.",
            code=ErrorCode.UNSUPPORTED_STORAGE,
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
