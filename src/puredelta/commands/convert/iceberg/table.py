"""Iceberg's metadata file: which one is a table's current one (C-03)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from pydantic import ValidationError as InvalidJsonError
from pyiceberg.exceptions import ValidationError
from pyiceberg.serializers import FromInputFile
from pyiceberg.table.metadata import TableMetadata

from puredelta.commands.convert.iceberg.content import IcebergContent
from puredelta.commands.convert.iceberg.read import read_content
from puredelta.commands.convert.iceberg.store_io import StoreFileIO, located
from puredelta.errors import (
    ConcurrentWriteException,
    CorruptTableError,
    ErrorCode,
    InvalidRequestError,
)
from puredelta.store.base import Store

_HINT = "metadata/version-hint.text"
_METADATA = re.compile(r".*\.metadata\.json(?:\.gz)?|.*\.gz\.metadata\.json")


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataFile:
    """A table by one of its metadata files; see `IcebergTable`."""

    store: Store
    """Of the table's root."""
    metadata: TableMetadata
    uri: str
    """Of the metadata file."""
    listed: tuple[str, ...]
    """The metadata files that were beside it, itself included."""

    @property
    def location(self) -> str:
        """The table's root, as the metadata says."""
        return self.store.root_uri

    @property
    def properties(self) -> Mapping[str, str]:
        """The table's properties."""
        return self.metadata.properties

    def read(self) -> IcebergContent:
        """Read what the current snapshot holds."""
        return read_content(self.metadata, self.store)

    def require_current(self) -> None:
        """Look for metadata that is newer than what was read.

        Raises:
            ConcurrentWriteException: there is some.
        """
        directory = self.uri.rpartition("/")[0]
        new = set(_metadata_files(self.store.at(directory))) - set(self.listed)
        if new:
            raise ConcurrentWriteException(
                f"The Iceberg table {self.location} was written while it was converted: there is "
                f"{min(new)} now. Nothing was changed; convert it again when nobody writes there.",
                code=ErrorCode.CONCURRENT_WRITE,
                path=self.location,
            )


def open_table(store: Store) -> MetadataFile:
    """Open the table in a directory, or by its metadata file: the store is at what was named.

    Raises:
        InvalidRequestError: there is no table, or nobody can know which metadata is its newest.
        CorruptTableError: the metadata cannot be read.
    """
    directory, _, name = store.root_uri.rpartition("/")
    if not _METADATA.fullmatch(name):
        directory, name = f"{store.root_uri}/metadata", _newest(store)
    beside = store.at(directory)
    listed = _metadata_files(beside)
    if name not in listed:
        raise _not_found(f"{directory}/{name}")
    uri = f"{directory}/{name}"
    try:
        metadata = FromInputFile.table_metadata(StoreFileIO(store).new_input(uri))
    except (ValidationError, InvalidJsonError, ValueError) as error:
        raise CorruptTableError(
            f"The file {uri} is no metadata of an Iceberg table that pyiceberg can read: {error}",
            code=ErrorCode.UNSUPPORTED_ICEBERG_TABLE,
            path=uri,
        ) from error
    root = store.at(located(store, metadata.location.rstrip("/")))
    return MetadataFile(store=root, metadata=metadata, uri=uri, listed=listed)


def _metadata_files(store: Store) -> tuple[str, ...]:
    return tuple(file.path for file in store.list_from("") if _METADATA.fullmatch(file.path))


def _newest(store: Store) -> str:
    """Return the name of the metadata file that the version hint of a directory names."""
    if store.exists(_HINT):
        hint = store.read(_HINT).decode().strip()
        if _METADATA.fullmatch(hint):
            return hint
        return f"v{hint}.metadata.json" if hint.isdigit() else f"{hint}.metadata.json"
    found = [file.name for file in store.list_from("metadata") if _METADATA.fullmatch(file.name)]
    if not found:
        raise _not_found(store.root_uri)
    raise InvalidRequestError(
        f"{store.root_uri} has metadata of an Iceberg table, but only its catalog knows which file "
        "is the newest that was committed. Name that file (in pyiceberg: table.metadata_location), "
        f"probably iceberg.`{store.root_uri}/metadata/{max(found)}`.",
        code=ErrorCode.UNSUPPORTED_ICEBERG_TABLE,
        path=store.root_uri,
    )


def _not_found(place: str) -> InvalidRequestError:
    return InvalidRequestError(
        f"There is no Iceberg table at {place}. Name the directory of a table or its metadata "
        "file, absolutely: iceberg.`/path/metadata/v3.metadata.json`.",
        code=ErrorCode.PATH_NOT_FOUND,
        path=place,
    )
