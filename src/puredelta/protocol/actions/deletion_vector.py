"""Deletion vectors as bytes: bitmap, Z85, and the framing inside ``.bin`` files.

Sections "Deletion Vector Format" and "Deletion Vector File Storage Format" (M-135 to M-137).
`RowIndexes` are the sorted, distinct positions of rows in one data file. Everything that is read is
checked (magic, size, CRC-32, cardinality): a damaged vector would bring deleted rows back.
"""

from __future__ import annotations

import array
import base64
import struct
import uuid
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from pyroaring import BitMap64

from puredelta.errors import CorruptTableError, Message
from puredelta.protocol.actions.actions import DeletionVectorDescriptor

RowIndexes: TypeAlias = npt.NDArray[np.uint64]

PORTABLE_MAGIC = 1681511377
FILE_VERSION = 1
RELATIVE, BY_PATH = "u", "p"
"""Storage types of vectors in files, named by UUID or by URI; ``i`` is the log itself."""

_UUID_LENGTH = 20
_FRAME_BYTES = 8
"""Size before and CRC-32 after the bitmap, four bytes each."""

# Z85 groups and orders bytes as RFC 1924 base 85 does; only the alphabet differs.
_Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_B85 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
_FROM_Z85, _TO_Z85 = str.maketrans(_Z85, _B85), str.maketrans(_B85, _Z85)


# --- the bitmap -----------------------------------------------------------------------------


def decode_bitmap(data: bytes) -> BitMap64:
    """Read a 64-bit Roaring bitmap in the portable format, magic number first.

    >>> list(decode_bitmap(encode_vector(np.array([7, 2**40], np.uint64)).data))
    [7, 1099511627776]

    Raises:
        CorruptTableError: DELTA_DELETION_VECTOR_INVALID.
    """
    if len(data) < 4 or int.from_bytes(data[:4], "little") != PORTABLE_MAGIC:  # noqa: PLR2004
        raise _invalid(f"it starts with {data[:4].hex()}, which no known format does")
    try:
        return BitMap64.deserialize(data[4:])
    except (ValueError, IndexError) as error:
        raise _invalid(f"its bitmap cannot be read ({error})") from error


# --- where a vector is ----------------------------------------------------------------------


def vector_path(descriptor: DeletionVectorDescriptor) -> str | None:
    """Return the path of the vector's file as the log spells paths; ``None`` if it is inline.

    Relative to the table root for storage type ``u``, a URI for ``p``; either way
    `puredelta.protocol.actions.paths.absolute_uri` takes it.

    Raises:
        CorruptTableError: an unknown storage type, or no UUID (DELTA_DELETION_VECTOR_INVALID).
    """
    match descriptor.storage_type:
        case "i":
            return None
        case "p":
            return descriptor.path_or_inline
        case "u":
            prefix = descriptor.path_or_inline[:-_UUID_LENGTH]
            name = f"deletion_vector_{_file_uuid(descriptor)}.bin"
            return f"{prefix}/{name}" if prefix else name
        case other:
            raise _invalid(f"its storage type is {other!r}", descriptor)


def vector_range(descriptor: DeletionVectorDescriptor) -> tuple[int, int]:
    """Return offset and length of the bytes that `decode_block` needs from the file.

    Raises:
        CorruptTableError: one of them is negative (DELTA_DELETION_VECTOR_INVALID).
    """
    offset = 1 if descriptor.offset is None else descriptor.offset
    if min(offset, descriptor.size_bytes) < 0:
        raise _invalid(f"{descriptor.size_bytes} bytes at {offset} are no range", descriptor)
    return offset, descriptor.size_bytes + _FRAME_BYTES


def _file_uuid(descriptor: DeletionVectorDescriptor) -> uuid.UUID:
    try:
        return uuid.UUID(bytes=z85_decode(descriptor.path_or_inline[-_UUID_LENGTH:]))
    except ValueError as error:
        raise _invalid("its path holds no UUID", descriptor) from error


# --- reading --------------------------------------------------------------------------------


def decode_inline(descriptor: DeletionVectorDescriptor) -> RowIndexes:
    """Return the positions of a vector in the log itself; errors as `decode_block`."""
    return _positions(inline_data(descriptor), descriptor)


def inline_data(descriptor: DeletionVectorDescriptor) -> bytes:
    """Return the bitmap of a vector in the log itself as bytes."""
    try:
        data = z85_decode(descriptor.path_or_inline)
    except ValueError as error:
        raise _invalid("its inline text is no Z85", descriptor) from error
    if not 0 <= descriptor.size_bytes <= len(data):
        raise _wrong_size(len(data), descriptor)
    # Z85 encodes groups of four bytes, so padding may follow.
    return data[: descriptor.size_bytes]


def decode_block(block: bytes, descriptor: DeletionVectorDescriptor) -> RowIndexes:
    """Return the positions in the bytes of `vector_range`.

    Raises:
        CorruptTableError: size, CRC, bitmap or cardinality are wrong
            (DELTA_DELETION_VECTOR_SIZE_MISMATCH, ..._CHECKSUM_MISMATCH, ..._INVALID,
            ..._CARDINALITY_MISMATCH).
    """
    return _positions(block_data(block, descriptor), descriptor)


def block_data(block: bytes, descriptor: DeletionVectorDescriptor) -> bytes:
    """Return the bitmap in the bytes of `vector_range`, with the sum checked."""
    if len(block) < descriptor.size_bytes + _FRAME_BYTES:
        raise _wrong_size(max(len(block) - _FRAME_BYTES, 0), descriptor)
    (size,) = struct.unpack_from(">i", block)
    if size != descriptor.size_bytes:
        raise _wrong_size(size, descriptor)
    data = block[4 : 4 + size]
    (crc,) = struct.unpack_from(">I", block, 4 + size)
    if crc != zlib.crc32(data):
        raise CorruptTableError(
            Message.DELETION_VECTOR_CHECKSUM_MISMATCH,
            descriptor=_name(descriptor),
            data=zlib.crc32(data),
            crc=crc,
        )
    return data


def require_file_version(first_byte: bytes, descriptor: DeletionVectorDescriptor) -> None:
    """Check the first byte of a vector's file.

    Raises:
        CorruptTableError: the version is unknown (DELTA_DELETION_VECTOR_INVALID).
    """
    if first_byte != bytes([FILE_VERSION]):
        raise _invalid(f"its file has the version byte {first_byte.hex() or 'none'}", descriptor)


def _positions(data: bytes, descriptor: DeletionVectorDescriptor) -> RowIndexes:
    """Expand a bitmap of the size that the log says: some bytes may hold millions of rows."""
    return np.frombuffer(checked_bitmap(data, descriptor).to_array(), dtype=np.uint64)


def checked_bitmap(data: bytes, descriptor: DeletionVectorDescriptor) -> BitMap64:
    """Return a bitmap with as many rows as the log says."""
    bitmap = decode_bitmap(data)
    if len(bitmap) != descriptor.cardinality:
        raise CorruptTableError(
            Message.DELETION_VECTOR_CARDINALITY_MISMATCH_BITMAP,
            descriptor=_name(descriptor),
            bitmap_count=len(bitmap),
            cardinality=descriptor.cardinality,
        )
    return bitmap


# --- writing --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class EncodedVector:
    """A vector as bytes, not written to a file yet."""

    data: bytes
    cardinality: int


def encode_vector(positions: RowIndexes) -> EncodedVector:
    """Encode positions in any order; repeated positions count once."""
    values = np.ascontiguousarray(positions, dtype=np.uint64)
    bitmap = BitMap64(array.array("Q", values.tobytes()))
    bitmap.run_optimize()
    data = PORTABLE_MAGIC.to_bytes(4, "little") + bytes(bitmap.serialize())
    return EncodedVector(data, len(bitmap))


def framed(data: bytes) -> bytes:
    """Return a bitmap with its size and its sum, as in files of Delta and of Iceberg."""
    return struct.pack(">i", len(data)) + data + struct.pack(">I", zlib.crc32(data))


def encode_vectors(
    vectors: Sequence[EncodedVector], file_id: uuid.UUID, *, prefix: str = ""
) -> tuple[bytes, tuple[DeletionVectorDescriptor, ...]]:
    """Pack vectors into the content of one file, with a descriptor for each.

    `vector_path` returns the name of the file for any of the descriptors.
    """
    content = bytearray([FILE_VERSION])
    descriptors = []
    for vector in vectors:
        data = vector.data
        descriptors.append(
            DeletionVectorDescriptor(
                storage_type=RELATIVE,
                path_or_inline=prefix + z85_encode(file_id.bytes),
                offset=len(content),
                size_bytes=len(data),
                cardinality=vector.cardinality,
            )
        )
        content += framed(data)
    return bytes(content), tuple(descriptors)


# --- Z85 ------------------------------------------------------------------------------------


def z85_decode(text: str) -> bytes:
    """Read Z85 (ZeroMQ RFC 32).

    Raises:
        ValueError: a character outside the alphabet, or a length that is no multiple of 5.
    """
    if len(text) % 5 or not set(text) <= set(_Z85):
        raise ValueError(f"no Z85 text: {text!r}")
    return base64.b85decode(text.translate(_FROM_Z85))


def z85_encode(data: bytes) -> str:
    """Write bytes as Z85; their number must be a multiple of four.

    >>> z85_encode(bytes.fromhex("864FD26FB559F75B"))
    'HelloWorld'
    """
    if len(data) % 4:
        raise ValueError(f"Z85 takes a multiple of 4 bytes, not {len(data)}")
    return base64.b85encode(data).decode("ascii").translate(_TO_Z85)


# --- errors ---------------------------------------------------------------------------------


def _name(descriptor: DeletionVectorDescriptor | None) -> str:
    return "The deletion vector" + (f" {descriptor.unique_id[:80]!r}" if descriptor else "")


def _invalid(problem: str, descriptor: DeletionVectorDescriptor | None = None) -> CorruptTableError:
    return CorruptTableError(
        Message.DELETION_VECTOR_INVALID, descriptor=_name(descriptor), problem=problem
    )


def _wrong_size(size: int, descriptor: DeletionVectorDescriptor) -> CorruptTableError:
    return CorruptTableError(
        Message.DELETION_VECTOR_SIZE_MISMATCH,
        descriptor=_name(descriptor),
        size=size,
        size_bytes=descriptor.size_bytes,
    )
