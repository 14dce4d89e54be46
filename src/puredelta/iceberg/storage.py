"""The folder of a table with its Iceberg metadata, and the table's files under Iceberg's names.

The folder is ``_iceberg/metadata``: no engine reads hidden folders as data, and no VACUUM looks
into them. A metadata file ``v<N>.metadata.json`` is created with put-if-absent, so two exporters
never have the same number; ``version-hint.text`` tells readers by path the newest number.
"""

from __future__ import annotations

import json
import re
import struct
import threading
import uuid
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import BinaryIO, Generic, TypeVar

from pyiceberg.exceptions import ValidationError
from pyiceberg.io import FileIO, InputFile, OutputFile
from pyiceberg.table.metadata import TableMetadata, TableMetadataUtil
from pyiceberg.typedef import IcebergBaseModel

from puredelta.errors import CorruptTableError, Message
from puredelta.protocol.actions.paths import absolute_uri, encode_uri
from puredelta.store.base import PutOutcome, Store

ICEBERG_DIRECTORY = "_iceberg"
METADATA_DIRECTORY = f"{ICEBERG_DIRECTORY}/metadata"
HINT = f"{METADATA_DIRECTORY}/version-hint.text"

_METADATA_FILE = re.compile(r"v(\d{1,18})\.metadata\.json")
_HADOOP_S3 = re.compile(r"s3[an]://")


def located(store: Store, location: str) -> str:
    """Return a location of Iceberg's metadata as an absolute, decoded URI."""
    return absolute_uri(store.root_uri, encode_uri(location))


def iceberg_location(uri: str) -> str:
    """Return a decoded URI as Iceberg's readers take it.

    >>> iceberg_location("s3a://bucket/t/x.parquet"), iceberg_location("file:/data/my table")
    ('s3://bucket/t/x.parquet', 'file:///data/my table')
    """
    if uri.startswith("file:/") and not uri.startswith("file://"):
        return f"file://{uri.removeprefix('file:')}"
    return _HADOOP_S3.sub("s3://", uri, count=1)


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
    """Read access to all of Iceberg's files."""

    def __init__(self, store: Store) -> None:
        super().__init__()
        self._store = store

    def new_input(self, location: str) -> StoreInputFile:
        """Return a file to read."""
        return StoreInputFile(location, self._store)

    def new_output(self, location: str) -> OutputFile:
        """Refuse: readers leave Iceberg's files as they are."""
        raise PermissionError(location)

    def delete(self, location: str | InputFile | OutputFile) -> None:
        """Refuse: readers leave Iceberg's files as they are."""
        raise PermissionError(location)


_T = TypeVar("_T")


class DecodedFiles(Generic[_T]):
    """The decoded content of files that this process has read or written last.

    An export reads what the export before has written. The keys are the bytes of files, so a file
    that another program has changed is decoded. ``size_of`` tells the bytes of decoded content.
    """

    def __init__(self, bytes_max: int, size_of: Callable[[_T], int] = lambda _: 0) -> None:
        self._bytes_max = bytes_max
        self._size_of = size_of
        self._kept: dict[bytes, tuple[_T, int]] = {}
        self._lock = threading.Lock()

    def of(self, content: bytes, decode: Callable[[bytes], _T]) -> _T:
        """Return the decoded content, which may be used at other places: it is not changed."""
        with self._lock:
            known = self._kept.pop(content, None)
        decoded = decode(content) if known is None else known[0]
        self.keep(content, decoded)
        return decoded

    def keep(self, content: bytes, decoded: _T) -> None:
        """Remember the decoded content of a file that this process has read or written."""
        with self._lock:
            self._kept[content] = decoded, len(content) + self._size_of(decoded)
            left = sum(size_bytes for _, size_bytes in self._kept.values())
            while left > self._bytes_max:
                left -= self._kept.pop(next(iter(self._kept)))[1]


_PUFFIN = b"PFA1"
_POSITION_ID = 2_147_483_645
"""The id of the column of positions, which vectors are of."""


def puffin_file(vectors: Sequence[tuple[str, int, bytes]]) -> tuple[bytes, list[int]]:
    """Return a Puffin file of deletion vectors, and the offset of each.

    A vector is the location of its data file, the number of deleted rows, and the bytes.
    """
    content = bytearray(_PUFFIN)
    offsets, blobs = [], []
    for location, cardinality, data in vectors:
        offsets.append(len(content))
        blobs.append(
            {
                "type": "deletion-vector-v1",
                "fields": [_POSITION_ID],
                "snapshot-id": -1,
                "sequence-number": -1,
                "offset": len(content),
                "length": len(data),
                "properties": {"referenced-data-file": location, "cardinality": str(cardinality)},
            }
        )
        content += data
    footer = json.dumps({"blobs": blobs, "properties": {}}).encode()
    content += _PUFFIN + footer + struct.pack("<ii", len(footer), 0) + _PUFFIN
    return bytes(content), offsets


@dataclass(frozen=True, slots=True)
class MetadataFolder:
    """The Iceberg metadata of one table."""

    store: Store

    @property
    def location(self) -> str:
        """The location of the Iceberg table."""
        return f"{iceberg_location(self.store.root_uri)}/{ICEBERG_DIRECTORY}"

    @property
    def io(self) -> StoreFileIO:
        """The files of the folder, as pyiceberg opens them."""
        return StoreFileIO(self.store)

    def metadata_location(self, number: int) -> str:
        """Return the location of a metadata file."""
        return f"{self.location}/metadata/v{number}.metadata.json"

    def newest(self) -> tuple[int, TableMetadata] | None:
        """Return the newest metadata and its number, None if nothing was exported yet.

        Raises:
            CorruptTableError: the file is no metadata of Iceberg
                (DELTA_UNIVERSAL_FORMAT_CONVERSION_FAILED).
        """
        number = self._newest_number()
        if number is None:
            return None
        try:
            content = self.store.read(_metadata_path(number))
            return number, _METADATA.of(content, _decoded_metadata)
        except DAMAGED_METADATA as error:
            raise self.damaged(number, error) from error

    def damaged(self, number: int, error: Exception) -> CorruptTableError:
        """Return the error of a metadata file that is none of Iceberg's."""
        return CorruptTableError(
            Message.UNIVERSAL_FORMAT_CONVERSION_FAILED_METADATA,
            path=f"{self.store.root_uri}/{_metadata_path(number)}",
            directory=ICEBERG_DIRECTORY,
            error=str(error).partition("\n")[0],
        )

    def _newest_number(self) -> int | None:
        number = self._hinted()
        if number is None:
            numbers = [
                int(match[1])
                for file in self.store.list_from(METADATA_DIRECTORY)
                if (match := _METADATA_FILE.fullmatch(file.name)) is not None
            ]
            return max(numbers, default=None)
        while self.store.exists(_metadata_path(number + 1)):
            number += 1
        return number

    def _hinted(self) -> int | None:
        """Return the number of the hint, None if it is none of a metadata file."""
        try:
            text = self.store.read(HINT).decode("ascii").strip()
            number = int(text) if text.isdecimal() else None
        except (FileNotFoundError, UnicodeDecodeError):
            return None
        return number if number is not None and self.store.exists(_metadata_path(number)) else None

    def put_metadata(self, number: int, metadata: TableMetadata) -> bool:
        """Create a metadata file and the hint; False if the number is another exporter's."""
        # pyiceberg's own method refuses format 3.
        content = IcebergBaseModel.model_dump_json(metadata).encode()
        if self.store.put_if_absent(_metadata_path(number), content) is not PutOutcome.CREATED:
            return False
        _METADATA.keep(content, metadata)
        # A slower exporter may write an older number, which the next export corrects.
        while self.store.exists(_metadata_path(number + 1)):
            number += 1
        self.store.put(HINT, str(number).encode())
        return True

    def new_location(self, prefix: str, suffix: str = "avro") -> str:
        """Return the location of a new file in the folder."""
        return f"{self.location}/metadata/{prefix}{uuid.uuid4()}.{suffix}"

    def write(self, location: str, content: bytes) -> None:
        """Write a new file of the folder."""
        name = location.rpartition("/")[2]
        self.store.put_if_absent(f"{METADATA_DIRECTORY}/{name}", content)

    def delete(self, locations: Iterable[str]) -> None:
        """Remove files of the folder; those outside of it, which metadata may name, stay."""
        prefix = f"{self.location}/metadata/"
        for location in locations:
            name = location.removeprefix(prefix)
            if name != location and "/" not in name:
                self.store.delete(f"{METADATA_DIRECTORY}/{name}")

    def delete_metadata(self, numbers: Iterable[int]) -> None:
        """Remove metadata files."""
        for number in numbers:
            self.store.delete(_metadata_path(number))


DAMAGED_METADATA = (ValidationError, ValueError, TypeError, LookupError, AttributeError)
"""Errors of pyiceberg and of pydantic where JSON is no metadata of Iceberg."""
_METADATA = DecodedFiles[TableMetadata](bytes_max=4 << 20)


def _decoded_metadata(content: bytes) -> TableMetadata:
    return TableMetadataUtil.parse_raw(content.decode())


def _metadata_path(number: int) -> str:
    return f"{METADATA_DIRECTORY}/v{number}.metadata.json"
