"""Iceberg's files read through the stores that the session's settings open."""

from __future__ import annotations

from typing import BinaryIO

from pyiceberg.io import FileIO, InputFile, OutputFile

from puredelta.protocol.actions.paths import absolute_uri, encode_uri
from puredelta.store.base import Store


class StoreInputFile(InputFile):
    """One file, by its location."""

    def __init__(self, location: str, store: Store) -> None:
        super().__init__(location)
        directory, _, self._name = located(store, location).rpartition("/")
        self._store = store.at(directory)

    def __len__(self) -> int:
        """Return the size in bytes."""
        return self._store.read_end(self._name, 1).size_bytes

    def exists(self) -> bool:
        """Tell whether the file is there."""
        return self._store.exists(self._name)

    def open(self, seekable: bool = True) -> BinaryIO:  # noqa: ARG002, FBT001, FBT002 - pyiceberg's
        """Open the file for reading."""
        return self._store.open(self._name)


class StoreFileIO(FileIO):
    """All of Iceberg's files, read alone."""

    def __init__(self, store: Store) -> None:
        super().__init__()
        self._store = store

    def new_input(self, location: str) -> StoreInputFile:
        """Return a file to read."""
        return StoreInputFile(location, self._store)

    def new_output(self, location: str) -> OutputFile:
        """Refuse: a conversion leaves Iceberg's files as they are."""
        raise PermissionError(location)

    def delete(self, location: str | InputFile | OutputFile) -> None:
        """Refuse: a conversion leaves Iceberg's files as they are."""
        raise PermissionError(location)


def located(store: Store, location: str) -> str:
    """Return a location of Iceberg's metadata as an absolute, decoded URI."""
    return absolute_uri(store.root_uri, encode_uri(location))
