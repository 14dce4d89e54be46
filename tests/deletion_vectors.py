"""Deletion vectors as other writers make them: several in one file, or one inside the log."""

from __future__ import annotations

import uuid
from collections.abc import Sequence

from puredelta.protocol.actions.actions import DeletionVectorDescriptor
from puredelta.protocol.actions.deletion_vector import (
    RowIndexes,
    decode_block,
    encode_vector,
    encode_vectors,
    require_file_version,
    vector_range,
    z85_encode,
)


def encode_file(
    vectors: Sequence[RowIndexes], file_id: uuid.UUID, *, prefix: str = ""
) -> tuple[bytes, tuple[DeletionVectorDescriptor, ...]]:
    """Return the content of one file, with a descriptor for each vector."""
    return encode_vectors([encode_vector(rows) for rows in vectors], file_id, prefix=prefix)


def encode_inline(rows: RowIndexes) -> DeletionVectorDescriptor:
    """Return a descriptor that holds a small vector itself."""
    vector = encode_vector(rows)
    return DeletionVectorDescriptor(
        storage_type="i",
        path_or_inline=z85_encode(vector.data + bytes(-len(vector.data) % 4)),
        offset=None,
        size_bytes=len(vector.data),
        cardinality=vector.cardinality,
    )


def decode_file(content: bytes, descriptor: DeletionVectorDescriptor) -> RowIndexes:
    """Return the rows of one vector out of the whole content of its file."""
    require_file_version(content[:1], descriptor)
    start, length = vector_range(descriptor)
    return decode_block(content[start : start + length], descriptor)
