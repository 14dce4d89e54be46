"""Files that workers have written, by what they have answered, become actions of a commit."""

from __future__ import annotations

import contextlib
import posixpath
from collections.abc import Iterable, Mapping

import pyarrow as pa
import pyarrow.parquet as pq

from puredelta.log.footers.file_stats import TableStatistics
from puredelta.protocol.actions.actions import Add
from puredelta.protocol.actions.paths import encode_path
from puredelta.spark.write.parquet_job import unseen
from puredelta.store.base import Store, StoredFile
from puredelta.worker.data_files.write_file import FileAnswer


def keep_answered(
    store: Store, found: Iterable[StoredFile], answers: Mapping[str, FileAnswer]
) -> None:
    """Delete what attempts have left that failed or lost; ``found`` is a listing, ``answers`` say
    what lies under which path.

    Every attempt's file has a name of its own, so names count and directories do not: where a file
    system takes ``p=A`` for ``p=a`` the listing does not spell a path as its worker did.

    Raises:
        DeltaError: a file that a worker has written is not there, or not whole (WRITE_FAILED).
    """
    files = {file.name: file for file in found}
    for path, answer in answers.items():
        file = files.pop(posixpath.basename(path), None)
        if file is None or file.size_bytes != answer.size_bytes:
            _require_whole(store, path, answer.size_bytes)
    for left in files.values():
        with contextlib.suppress(OSError):
            store.delete(left.path)


def _require_whole(store: Store, path: str, size_bytes: int) -> None:
    """Look at a file itself: the listing of a network's file system may be a minute old."""
    try:
        seen = f"{store.read_end(path, 0).size_bytes} bytes"
    except FileNotFoundError:
        seen = "no such file"
    if seen != f"{size_bytes} bytes":
        raise unseen(f"{store.root_uri}/{path}", f"{size_bytes} bytes", seen)


def added_file(
    answer: FileAnswer,
    path: str,
    partition_values: Mapping[str, str | None],
    statistics: TableStatistics,
) -> Add:
    """Return the action that adds a file; ``path`` is relative to the table root, unescaped."""
    footer = pq.read_metadata(pa.BufferReader(answer.footer))
    return Add(
        path=encode_path(path),
        partition_values=partition_values,
        size_bytes=answer.size_bytes,
        modified_ms=answer.modified_ms,
        data_change=True,
        stats=statistics.encode(footer, nan_leaves=answer.nan_columns),
    )
