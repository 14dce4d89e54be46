"""Which files below the table root the log still needs."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterator

import pyarrow as pa
import pyarrow.compute as pc

from puredelta.log.replay.snapshot import Snapshot
from puredelta.protocol.actions.actions import DeletionVectorDescriptor
from puredelta.protocol.actions.deletion_vector import vector_path
from puredelta.protocol.actions.paths import absolute_uri, path_below_root, relative_path


def referenced_files(snapshot: Snapshot, *, removed_since_ms: int) -> frozenset[str]:
    """Return the paths, relative and decoded, of data files and deletion vectors in use.

    In use are the files of this version, and those removed at ``removed_since_ms`` or later,
    because a reader of an older version may still need them. A tombstone without a time counts
    as older than any other. Files outside the table root are left out: another table may own
    them. A file that the log names by an absolute path through a link, or through another mount
    of the root, is below the root all the same.
    """
    removed = snapshot.tombstones
    recent = removed.filter(
        pc.fill_null(pc.greater_equal(removed["deleted_ms"], removed_since_ms), fill_value=False)
    )
    paths = (
        path for rows in (snapshot.files.rows, recent) for path in _paths(rows) if path is not None
    )
    root = snapshot.root_uri
    real_directory = functools.cache(_real_directory)
    below = (
        path_below_root(root, path) or _path_below_real_root(root, path, real_directory)
        for path in paths
    )
    return frozenset(path for path in below if path is not None)


def _path_below_real_root(
    root_uri: str, encoded_path: str, real_directory: Callable[[str], str | None]
) -> str | None:
    """Return the path of a local file below the table root, wherever links lead."""
    directory, _, name = absolute_uri(root_uri, encoded_path).rpartition("/")
    real_root, real = real_directory(root_uri), real_directory(directory)
    return relative_path(real_root, f"{real}/{name}") if real_root and real else None


def _real_directory(uri: str) -> str | None:
    """Return the URI of a local directory without links; ``None`` for other storage."""
    scheme, _, path = uri.partition(":")
    return f"file:{os.path.realpath(path)}" if scheme == "file" else None


def _paths(rows: pa.Table) -> Iterator[str | None]:
    """Yield the paths of files and of their deletion vectors, as the log spells them."""
    for chunk in rows["path"].chunks:
        yield from chunk.to_pylist()
    vectors = rows["deletion_vector"]
    if vectors.null_count < len(vectors):
        for row in vectors.drop_null().to_pylist():
            yield vector_path(DeletionVectorDescriptor(**row))
