"""Files of one table as another table refers to them: by absolute paths."""

from __future__ import annotations

from dataclasses import replace

from puredelta.protocol.actions.actions import Add, DeletionVectorDescriptor
from puredelta.protocol.actions.deletion_vector import BY_PATH, vector_path
from puredelta.protocol.actions.paths import absolute_uri, encode_uri


def absolute_file(add: Add, root_uri: str) -> Add:
    """Return a file of the table at ``root_uri`` with absolute paths, also of its vector."""
    return replace(
        add,
        path=encode_uri(absolute_uri(root_uri, add.path)),
        deletion_vector=None
        if add.deletion_vector is None
        else _absolute_vector(add.deletion_vector, root_uri),
    )


def _absolute_vector(vector: DeletionVectorDescriptor, root_uri: str) -> DeletionVectorDescriptor:
    path = vector_path(vector)
    if path is None:
        return vector
    uri = encode_uri(absolute_uri(root_uri, path))
    return replace(vector, storage_type=BY_PATH, path_or_inline=uri)
