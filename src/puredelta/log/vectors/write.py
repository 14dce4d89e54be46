"""Deletion vectors of a command: written to storage, and given to the files they belong to.

The vectors of one command share files of about two megabytes under the table root (M-135).
A data file keeps its path and its row ids, and its bounds become loose (M-134).
"""

from __future__ import annotations

import contextlib
import random
import string
import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from puredelta.log.files.clock import IdSource, random_id
from puredelta.log.files.row_counts import physical_rows
from puredelta.log.footers.file_stats import TableStatistics
from puredelta.log.footers.parquet_footer import map_footers, read_end_of
from puredelta.protocol.actions.actions import Add, DeletionVectorDescriptor
from puredelta.protocol.actions.deletion_vector import (
    EncodedVector,
    RowIndexes,
    encode_vector,
    encode_vectors,
    vector_path,
)
from puredelta.protocol.table.loose_bounds import loosen_bounds
from puredelta.protocol.table.table_config import TableConfig
from puredelta.store.base import Store

VECTOR_FILE_BYTES = 2 * 1024 * 1024
"""How many bytes of vectors go into one file; a larger vector gets a file of its own."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DeletionVectorUpdate:
    """A file of the table, and all of its rows that are to be deleted."""

    file: Add
    rows: RowIndexes
    """Includes the rows that its present deletion vector deletes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenVectors:
    """The files of a table with their new vectors, not committed yet."""

    adds: tuple[Add, ...] = ()
    """Files that have a row left."""
    paths: tuple[str, ...] = ()
    """The paths of the vector files, relative to the table root."""


def write_vectors(
    updates: Iterable[DeletionVectorUpdate],
    *,
    store: Store,
    config: TableConfig,
    new_id: IdSource = random_id,
    file_bytes: int = VECTOR_FILE_BYTES,
) -> WrittenVectors:
    """Write the vectors and return the files that have them; files without rows are left out.

    If the statistics of a file lack the row count, new ones are read from its footer.

    Raises:
        CorruptTableError: such a file has no readable footer.
        StorageError: the storage failed; the vectors written so far are removed.
    """
    prefix = _random_prefix(config)
    files: list[Add] = []
    vectors: list[EncodedVector] = []
    for each in updates:
        files.append(each.file)
        vectors.append(encode_vector(each.rows))
    files = _counted(files, store, config)
    left = [n for n, vector in enumerate(vectors) if physical_rows(files[n]) != vector.cardinality]
    written: list[str] = []
    adds: list[Add] = []
    try:
        for bin_ in packed([len(vectors[n].data) for n in left], file_bytes):
            chosen = [left[n] for n in bin_]
            content, descriptors = encode_vectors(
                [vectors[n] for n in chosen], uuid.UUID(new_id()), prefix=prefix
            )
            path = str(vector_path(descriptors[0]))
            written.append(path)
            store.put(path, content)
            adds += [_with_vector(files[n], d) for n, d in zip(chosen, descriptors, strict=True)]
    except BaseException:
        discard_vectors(WrittenVectors(paths=tuple(written)), store)
        raise
    return WrittenVectors(adds=tuple(adds), paths=tuple(written))


def discard_vectors(written: WrittenVectors, store: Store) -> None:
    """Remove vectors that will not be committed, as far as storage allows."""
    for path in written.paths:
        with contextlib.suppress(OSError):
            store.delete(path)


def packed(sizes: Sequence[int], limit: int) -> Iterator[range]:
    """Cut a sequence into runs whose sum is at most ``limit``; a larger element is a run.

    >>> list(packed([3, 4, 9, 2], 8))
    [range(0, 2), range(2, 3), range(3, 4)]
    """
    start = total = 0
    for number, size in enumerate(sizes):
        if number > start and total + size > limit:
            yield range(start, number)
            start, total = number, 0
        total += size
    if start < len(sizes):
        yield range(start, len(sizes))


def _with_vector(file: Add, vector: DeletionVectorDescriptor) -> Add:
    """Return the file with another deletion vector and everything else as it was."""
    already = 0 if file.deletion_vector is None else file.deletion_vector.cardinality
    return replace(
        file,
        data_change=True,
        deletion_vector=vector,
        stats=loosen_bounds(str(file.stats), rows=physical_rows(file) or 0, num_deleted=already),
    )


def _counted(files: list[Add], store: Store, config: TableConfig) -> list[Add]:
    """Read the statistics of files whose row count is not in the log (M-134)."""
    unknown = [n for n, file in enumerate(files) if physical_rows(file) is None]
    statistics = TableStatistics(config)
    described = map_footers(
        unknown,
        lambda _, footer: statistics.encode(footer),
        read_end=lambda n, num_bytes: read_end_of(files[n], store, num_bytes),
        name=lambda n: files[n].path,
    )
    counted = list(files)
    for n, stats in zip(unknown, described, strict=True):
        counted[n] = replace(files[n], stats=stats)
    return counted


def _random_prefix(config: TableConfig) -> str:
    """Return a random directory, which spreads keys in object stores, if the table wants one."""
    properties = config.properties
    if not properties.randomize_file_prefixes:
        return ""
    letters = string.ascii_letters + string.digits
    return "".join(random.choices(letters, k=properties.random_prefix_length))  # noqa: S311
