"""Avro files of Iceberg's metadata, encoded column by column.

A record in Avro is the bytes of its fields, one after the other. Each field of many records is one
Arrow array of bytes, and Arrow joins them: a hundredth of the time that an encoder of single
values takes. The header and rare values are written by pyiceberg's own encoder.

Manifests of this library remember in their header where each record begins and where its number of
rows is. So a file that is removed costs no decoding of the other entries.
"""

from __future__ import annotations

import base64
import contextlib
import errno
import io
import json
import os
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.avro.decoder import StreamingBinaryDecoder
from pyiceberg.avro.encoder import BinaryEncoder
from pyiceberg.avro.file import MAGIC, META_SCHEMA, SYNC_SIZE, AvroFileHeader
from pyiceberg.avro.reader import Reader
from pyiceberg.avro.resolver import construct_reader, construct_writer
from pyiceberg.manifest import PartitionFieldStats, PartitionFieldSummary
from pyiceberg.schema import Schema
from pyiceberg.types import IcebergType, PrimitiveType
from pyiceberg.utils.schema_conversion import AvroSchemaConversion

FieldBytes: TypeAlias = "pa.Array | bytes"
"""A field of many records: one element each, or the same bytes for all; NULL is no bytes."""
Numbers: TypeAlias = npt.NDArray[np.int64]

ABSENT, PRESENT = b"\x00", b"\x02"
"""The branch of an optional field."""
_BINARY = pa.large_binary()
_HEADER_READER = construct_reader(META_SCHEMA, {-1: AvroFileHeader})
_HEADER_WRITER = construct_writer(META_SCHEMA)
_RECORDS_KEY = "puredelta.records"
_LAST_GROUP = 0x7F
"""The greatest byte that no other group of bits follows."""
_NO_NAMES = frozenset({errno.EINVAL, errno.EISDIR, errno.ENAMETOOLONG, errno.ENOTDIR})
"""Errors of names that no file has."""
_BLOCK_RECORDS = 1_000
_LEVEL = 1
"""Of deflate: the files are hardly larger than with the level 6, in half of the time."""


# --- fields ---------------------------------------------------------------------------------


def varint(value: int) -> bytes:
    """Return a number as Avro writes it.

    >>> varint(-1).hex(), varint(64).hex()
    ('01', '8001')
    """
    return value_encoder(None)(value)


def varints(values: Numbers) -> pa.Array:
    """Return numbers as Avro writes them: groups of seven bits, the sign in the lowest bit.

    >>> [one.as_py().hex() for one in varints(np.array([0, -1, 64]))]
    ['00', '01', '8001']
    """
    numbers = values.astype(np.int64)
    bits = ((numbers << 1) ^ (numbers >> 63)).view(np.uint64)
    lengths = np.ones(len(bits), np.int64)
    for group in range(1, 10):
        longer = bits >= np.uint64(1 << (7 * group))
        if not longer.any():
            break
        lengths += longer
    offsets = offsets_of(lengths)
    content = np.empty(offsets[-1], np.uint8)
    for group in range(int(lengths.max(initial=0))):
        here = np.flatnonzero(lengths > group) if group else slice(None)
        shown = (bits[here] >> np.uint64(7 * group)) & np.uint64(_LAST_GROUP)
        more = (lengths[here] > group + 1).astype(np.uint8) << 7
        content[offsets[:-1][here] + group] = shown.astype(np.uint8) | more
    return texts(offsets, content)


def offsets_of(lengths: Numbers) -> Numbers:
    """Return where each of the values begins, and the end."""
    found = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=found[1:])
    return found


def texts(offsets: Numbers, content: npt.NDArray[np.uint8], valid: Any = None) -> pa.Array:
    """Return bytes as an array."""
    buffers = [valid, pa.py_buffer(offsets), pa.py_buffer(content)]
    return pa.Array.from_buffers(_BINARY, len(offsets) - 1, buffers)


def fixed(prefix: bytes, values: npt.NDArray[Any], valid: npt.NDArray[np.bool_]) -> pa.Array:
    """Return numbers in their little-endian bytes after the prefix; NULL where not valid."""
    width = len(prefix) + values.dtype.itemsize
    content = np.empty((len(values), width), np.uint8)
    content[:, : len(prefix)] = np.frombuffer(prefix, np.uint8)
    content[:, len(prefix) :] = values[:, None].view(np.uint8)
    bitmap = None if valid.all() else pa.array(valid).buffers()[1]
    return texts(np.arange(len(values) + 1) * width, content.reshape(-1), bitmap)


def sized(values: pa.Array, prefix: bytes = b"") -> pa.Array:
    """Return texts or bytes after their length, both after the prefix; NULL stays NULL."""
    content = values.cast(_BINARY)
    lengths = varints(pc.fill_null(pc.binary_length(content), 0).to_numpy())
    first = pa.scalar(prefix, _BINARY)
    return pc.binary_join_element_wise(first, lengths, content, pa.scalar(b"", _BINARY))


def joined(columns: Sequence[FieldBytes], num_records: int) -> pa.Array:
    """Return the bytes of each record, those of its fields in their order."""
    merged: list[Any] = []
    constant = b""
    for column in [*columns, None]:
        if isinstance(column, bytes):
            constant += column
            continue
        if constant:
            merged.append(pa.scalar(constant, _BINARY))
            constant = b""
        if column is not None:
            merged.append(column)
    if all(isinstance(column, pa.Scalar) for column in merged):
        merged.append(pa.repeat(pa.scalar(b"", _BINARY), num_records))
    nothing = pa.scalar(b"", _BINARY)
    return pc.binary_join_element_wise(*merged, nothing, null_handling="skip")


def mapping(entries: Sequence[pa.Array], num_records: int) -> list[FieldBytes]:
    """Return an optional map of each record; no entry is no map, as pyiceberg's ``None``."""
    if not entries:
        return [ABSENT]
    if not any(entry.null_count for entry in entries):
        return [PRESENT + varint(len(entries)), *entries, ABSENT]
    counts = np.zeros(num_records, np.int64)
    for entry in entries:
        counts += pc.is_valid(entry).to_numpy(zero_copy_only=False)
    heads = [ABSENT, *(PRESENT + varint(count) for count in range(1, len(entries) + 1))]
    head = pa.array(heads, _BINARY).take(pa.array(counts))
    end = pa.array([b"", ABSENT], _BINARY).take(pa.array((counts > 0).astype(np.int64)))
    return [head, *entries, end]


def value_encoder(kind: IcebergType | None) -> Callable[[Any], bytes]:
    """Return pyiceberg's encoder of a type, by default of whole numbers."""
    writer = None if kind is None else construct_writer(kind)

    def encoded(value: Any) -> bytes:
        stream = io.BytesIO()
        encoder = BinaryEncoder(stream)
        if writer is None:
            encoder.write_int(value)
        else:
            writer.write(encoder, value)
        return stream.getvalue()

    return encoded


@dataclass(frozen=True, slots=True, kw_only=True)
class Entries:
    """Descriptions of files, encoded for entries of a manifest."""

    records: pa.Array
    """Of `pyiceberg.manifest.DataFile`."""
    rows: Numbers
    """The number of rows of each file, or of deleted ones."""
    places: Sequence[Numbers]
    """Where this number is in each record, and the name of the file that a vector belongs to."""
    summaries: Sequence[PartitionFieldSummary]
    """The values of each column that partitions the table."""


def primitive(kind: IcebergType) -> PrimitiveType:
    """Return the type of a column that partitions a table, which is never nested."""
    if not isinstance(kind, PrimitiveType):
        raise TypeError(kind)
    return kind


def summary(kind: IcebergType, values: Iterable[Any]) -> PartitionFieldSummary:
    """Return what the values of a partition field have in common."""
    stats = PartitionFieldStats(primitive(kind))
    for value in values:
        stats.update(value)
    return stats.to_summary()


# --- files ----------------------------------------------------------------------------------


def avro_schema(schema: Schema, name: str) -> str:
    """Return the text of a schema of records in the header of a file."""
    return json.dumps(AvroSchemaConversion().iceberg_to_avro(schema, schema_name=name))


@dataclass(frozen=True, slots=True, kw_only=True)
class AvroHead:
    """The schema and the metadata of files of one kind."""

    schema: str
    """As `avro_schema` returns it."""
    metadata: Mapping[str, str]

    def file(self, records: pa.Array, places: Sequence[Numbers] | None = None) -> bytes:
        """Return a file of records; with places in each record `RawRecords` can read it."""
        offsets = np.frombuffer(records.buffers()[1], np.int64)[records.offset :]
        offsets = offsets[: len(records) + 1]
        content = memoryview(records.buffers()[2] or b"")
        meta = {**self.metadata, "avro.schema": self.schema, "avro.codec": "deflate"}
        if places is not None:
            known = np.stack([np.diff(offsets), *places]).astype("<i8").tobytes()
            checksum = zlib.crc32(content[offsets[0] : offsets[-1]], zlib.crc32(known))
            text = base64.b64encode(zlib.compress(known, _LEVEL)).decode()
            meta[_RECORDS_KEY] = f"{checksum} {len(places)} {text}"
        sync = os.urandom(SYNC_SIZE)
        stream = io.BytesIO()
        encoder = BinaryEncoder(stream)
        _HEADER_WRITER.write(encoder, AvroFileHeader(MAGIC, meta, sync))
        for start in range(0, len(records), _BLOCK_RECORDS):
            end = min(start + _BLOCK_RECORDS, len(records))
            deflate = zlib.compressobj(_LEVEL, wbits=-zlib.MAX_WBITS)
            block = deflate.compress(content[offsets[start] : offsets[end]]) + deflate.flush()
            encoder.write_int(end - start)
            encoder.write_bytes(block)
            encoder.write(sync)
        return stream.getvalue()


class UnreadableRecordsError(ValueError):
    """The file is damaged, of another program, or of an older version of this one."""


@dataclass(frozen=True, slots=True)
class RawRecords:
    """The records of a file as bytes, with places in them."""

    content: npt.NDArray[np.uint8]
    starts: Numbers
    ends: Numbers
    places: Sequence[Numbers]
    """Those that the writer of the file named."""
    version: str
    """Of Iceberg's format."""

    @classmethod
    def of(cls, records: pa.Array, places: Sequence[Numbers], version: str) -> RawRecords:
        """Return the records of a file that `AvroHead.file` writes of the same arguments."""
        offsets = np.frombuffer(records.buffers()[1], np.int64)[records.offset :]
        offsets = offsets[: len(records) + 1]
        content = np.frombuffer(records.buffers()[2] or b"", np.uint8)
        starts = offsets[:-1]
        return cls(content, starts, offsets[1:], [starts + one for one in places], version)

    @classmethod
    def read(cls, content: bytes) -> RawRecords:
        """Read a file of `AvroHead`.

        Raises:
            UnreadableRecordsError: its header does not say where the records are, or they are not
                the bytes that were written.
        """
        with decoding():
            decoder = StreamingBinaryDecoder(content)
            header = _HEADER_READER.read(decoder)
            checksum, num_places, text = header.meta[_RECORDS_KEY].split(" ")
            known = zlib.decompress(base64.b64decode(text))
            numbers = np.frombuffer(known, "<i8").reshape(1 + int(num_places), -1)
            raw = b"".join(_blocks(decoder, len(content)))
            if zlib.crc32(raw, zlib.crc32(known)) != int(checksum):
                raise UnreadableRecordsError
            lengths, *places = numbers.astype(np.int64)
            offsets = offsets_of(lengths)
            return cls(
                np.frombuffer(raw, np.uint8),
                offsets[:-1],
                offsets[1:],
                [offsets[:-1] + one for one in places],
                header.meta.get("format-version", ""),
            )

    def __len__(self) -> int:
        return len(self.starts)

    def select(self, mask: npt.NDArray[np.bool_]) -> RawRecords:
        """Return some of the records."""
        places = [one[mask] for one in self.places]
        return RawRecords(self.content, self.starts[mask], self.ends[mask], places, self.version)

    def numbers(self, places: Numbers) -> tuple[Numbers, Numbers]:
        """Return the whole numbers at some places, and the places after them."""
        found = np.zeros(len(places), np.uint64)
        ends = places.copy()
        going = np.arange(len(places))
        shift = 0
        while len(going):
            byte = self.content[ends[going]]
            found[going] |= (byte & _LAST_GROUP).astype(np.uint64) << np.uint64(shift)
            ends[going] += 1
            going = going[byte > _LAST_GROUP]
            shift += 7
        signs = (found & np.uint64(1)).astype(np.int64)
        return (found >> np.uint64(1)).astype(np.int64) ^ -signs, ends

    def optional_numbers(self, places: Numbers, default: int) -> tuple[Numbers, Numbers]:
        """Return the optional numbers at some places, and the places after them."""
        branches, ends = self.numbers(places)
        found = np.full(len(places), default, np.int64)
        present = np.flatnonzero(branches)
        found[present], ends[present] = self.numbers(ends[present])
        return found, ends

    def texts(self, places: Numbers) -> tuple[pa.Array, Numbers]:
        """Return the texts at some places, and the places after them."""
        lengths, starts = self.numbers(places)
        return self.slices(starts, starts + lengths).cast(pa.large_string()), starts + lengths

    def slices(self, starts: Numbers, ends: Numbers) -> pa.Array:
        """Return the bytes from some places to others."""
        if not len(starts):
            return pa.array([], _BINARY)
        # The array has what is between two slices, too, and every second element is taken.
        offsets = np.append(np.stack([starts, ends], axis=1).reshape(-1), ends[-1])
        everything = texts(offsets, self.content)
        return everything.take(pa.array(np.arange(0, 2 * len(starts), 2)))


@contextlib.contextmanager
def decoding() -> Iterator[None]:
    """Name every error of a decoder `UnreadableRecordsError`: damaged bytes may cause any.

    So may the name of a file that they hold. Other errors of a store pass.
    """
    try:
        yield
    except UnreadableRecordsError:
        raise
    except OSError as error:
        if error.errno in _NO_NAMES:
            raise UnreadableRecordsError from error
        raise
    except Exception as error:
        raise UnreadableRecordsError from error


def decoded_records(content: bytes, reader: Callable[[Schema], Reader]) -> Iterator[Any]:
    """Yield the records of a file of any program; ``reader`` returns what reads its schema.

    pyiceberg's faster decoder trusts lengths: a damaged one ends the process with a signal.
    """
    decoder = StreamingBinaryDecoder(content)
    header = _HEADER_READER.read(decoder)
    codec, read = header.compression_codec(), reader(header.get_schema()).read
    while decoder.tell() < len(content):
        num_records, block = decoder.read_int(), decoder.read_bytes()
        records = StreamingBinaryDecoder(block if codec is None else codec.decompress(block))
        for _ in range(num_records):
            yield read(records)
        if decoder.read(SYNC_SIZE) != header.sync:
            raise UnreadableRecordsError


def _blocks(decoder: Any, size: int) -> Iterator[bytes]:
    while decoder.tell() < size:
        decoder.read_int()
        yield zlib.decompress(decoder.read_bytes(), -zlib.MAX_WBITS)
        decoder.skip(SYNC_SIZE)
