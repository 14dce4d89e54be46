"""Which files below the table root the log still needs."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from puredelta.log.replay.snapshot import Snapshot
from puredelta.protocol.actions.actions import DeletionVectorDescriptor
from puredelta.protocol.actions.deletion_vector import vector_path
from puredelta.protocol.actions.paths import path_below_root


def referenced_files(snapshot: Snapshot, *, removed_since_ms: int) -> frozenset[str]:
    """Return the paths, relative and decoded, of data files and deletion vectors in use.

    In use are the files of this version, and those removed at ``removed_since_ms`` or later,
    because a reader of an older version may still need them. A tombstone without a time counts
    as older than any other. Files outside the table root are left out: another table may own
    them.
    """
    removed = snapshot.tombstones
    recent = removed.filter(
        pc.fill_null(pc.greater_equal(removed["deleted_ms"], removed_since_ms), fill_value=False)
    )
    paths = (
        path for rows in (snapshot.files.rows, recent) for path in _paths(rows) if path is not None
    )
    below = (path_below_root(snapshot.root_uri, path) for path in paths)
    return frozenset(path for path in below if path is not None)


def _paths(rows: pa.Table) -> Iterator[str | None]:
    """Yield the paths of files and of their deletion vectors, as the log spells them."""
    for chunk in rows["path"].chunks:
        yield from chunk.to_pylist()
    vectors = rows["deletion_vector"]
    if vectors.null_count < len(vectors):
        for row in vectors.drop_null().to_pylist():
            yield vector_path(DeletionVectorDescriptor(**row))
